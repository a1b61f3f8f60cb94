// What became of the work that streams were given until it began: a stream is a queue of its card.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/prof/analysis.h"
#include "tools/prof/model.h"

namespace orrery::prof {

// Of a stream. What begins while other work of the stream still runs is in none of the first four.
struct QueueSums {
    std::uint32_t stream = 0;  // of Activity::streams
    std::uint64_t work = 0;    // kernels, copies and fills; a run in parts is one
    // From the end of what was before it in the stream to its begin, in model time. What was submitted before
    // that end, by the host's clock, was there: it was brought to an engine, or others had that. `late` is
    // what was submitted behind it for certain, until the card's time that it had been submitted by at the
    // latest: for more than a launch behind that it is held back too. `unknown`: the clock does not tell
    // which.
    Totals launches, held_back, late, unknown;
    Totals waits;  // of the stream, for whatever
    // Work that was submitted and had not begun, at the moment when that was most: at least and at most, as
    // begins are known by the host's clock so exactly. Nothing: they are not known by that.
    struct Depth {
        std::uint64_t least = 0, most = 0;
    };
    std::optional<Depth> deepest;
};
// Of the device's streams that had work, in the order of their numbers.
std::vector<QueueSums> queue_sums(const Activity& activity, const DeviceModel& device);

// What the card itself counted for all of its queues, whoever's, between the first and the last sample.
struct QueueCounts {
    std::uint64_t ps = 0, packets = 0;
    double depth = 0;       // packets in ring slots, the mean
    double latency_us = 0;  // from a doorbell to the start of a packet, the mean
};
// Nothing: it was not sampled.
std::optional<QueueCounts> queue_counts(const Activity& activity, const DeviceModel& device);

}  // namespace orrery::prof
