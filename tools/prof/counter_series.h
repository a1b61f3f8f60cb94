// Samples of cards' counters, as what went on between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/model.h"

namespace orrery::prof {

// The samples of each of the process's sample_sets, by time.
std::vector<std::vector<const Process::Sample*>> samples_of_sets(const Process& process);

// How much each counter of a set went up between two samples of it; nothing: it went down, so it began anew.
std::vector<std::optional<std::uint64_t>> went_up(const Process& process, const Process::SampleSet& set,
                                                  const Process::Sample& first, const Process::Sample& last);

// How much these counters of a device went up between the first and the last sample of a set that has all of
// them, the first such set. Nothing: there is none, or one went down.
struct SampledUps {
    std::uint64_t ps = 0;               // from the one to the other, not 0
    std::vector<std::uint64_t> values;  // in the order of `names`
};
std::optional<SampledUps> sampled_ups(const Process& process, std::uint32_t device,
                                      std::span<const std::string_view> names);

struct CounterSeries {
    std::uint32_t device = 0;
    std::string_view name;  // of the file, so of anybody's
    std::string unit;       // what counts in ps: "at once"; else its own, by the second: "bytes/s"
    struct Point {
        std::uint64_t ns = 0;  // by the host's clock, as DeviceModel::moment_ns has it
        double rate = 0;       // of the card's time from here to the next point; 0 at the last one
    };
    std::vector<Point> points;  // the first, those at which the rate changes, and the last
};
// Those that went up at all, of devices whose samples have moments.
std::vector<CounterSeries> counter_series(const Activity& activity);

}  // namespace orrery::prof
