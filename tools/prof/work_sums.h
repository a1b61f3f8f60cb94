// What work of a card adds up to: that of a range, of a stream, of a process.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tools/prof/counter_fields.h"
#include "tools/prof/intervals.h"
#include "tools/prof/model.h"

namespace orrery::prof {

// Some of the kernels, copies and fills, with what they counted. Nothing is estimated: what was not counted
// is in the numbers of work and not in those of counters.
struct WorkSums {
    std::uint64_t work = 0, kernels = 0, copies = 0;  // the parts of a kernel that was preempted are one
    std::uint64_t counted = 0;
    std::uint64_t kernel_ps = 0, copy_ps = 0;  // model time, summed
    std::array<std::uint64_t, kCounterFields.size()> counters{};
    std::size_t known =
        kCounterFields.size();  // of all that was counted the first so many: the rest is of a part
    // When kernels ran that were counted, by device: clocks of cards are their own.
    std::map<std::uint32_t, Intervals> counted_times{};

    // In which any of those ran: side by side they are counted once. Rates go by that.
    std::uint64_t counted_ps() const;
    void add(const Work& one);
    void add(const WorkSums& others);
    std::uint64_t operator[](std::uint64_t WorkCountersRecord::* field) const;
    bool knows(std::uint64_t WorkCountersRecord::* field) const;
    // The number in kCounterFields; nothing: it is not known, or nothing was counted.
    std::optional<std::uint64_t> counter(std::size_t number) const;
};

// For each of Activity::streams; those of a device together are what the process had done there.
std::vector<WorkSums> stream_sums(const Activity& activity);
// The same of one device's work; those of other devices' streams are empty.
std::vector<WorkSums> stream_sums(const Activity& activity, const DeviceModel& device);

}  // namespace orrery::prof
