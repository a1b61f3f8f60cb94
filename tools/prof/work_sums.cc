#include "tools/prof/work_sums.h"

#include <algorithm>

namespace orrery::prof {

void WorkSums::add(const Work& one) {
    const bool kernel = one.operation() == Operation::kKernel;
    if (!kernel && one.operation() != Operation::kCopy && one.operation() != Operation::kFill) return;
    const std::uint64_t one_run = one.runs();
    work += one_run;
    (kernel ? kernels : copies) += one_run;
    (kernel ? kernel_ps : copy_ps) += one.ps();
    if (one.counters == nullptr) return;
    counted += one_run;
    known = std::min(known, known_fields(*one.counters));
    if (kernel) counted_times[one.record->device].push_back({one.record->begin_ps, one.record->end_ps});
    for (std::size_t i = 0; i < counters.size(); ++i)
        counters[i] += one.counters->*kCounterFields[i].value;
}

void WorkSums::add(const WorkSums& others) {
    work += others.work;
    kernels += others.kernels;
    copies += others.copies;
    counted += others.counted;
    kernel_ps += others.kernel_ps;
    copy_ps += others.copy_ps;
    known = std::min(known, others.known);
    for (std::size_t i = 0; i < counters.size(); ++i)
        counters[i] += others.counters[i];
    for (const auto& [device, times] : others.counted_times) {
        Intervals& own = counted_times[device];
        own.insert(own.end(), times.begin(), times.end());
    }
}

std::uint64_t WorkSums::counted_ps() const {
    std::uint64_t ps = 0;
    for (const auto& [device, times] : counted_times)
        ps += length_of(union_of(times));
    return ps;
}

static std::size_t number_of(std::uint64_t WorkCountersRecord::* field) {
    return static_cast<std::size_t>(std::ranges::find(kCounterFields, field, &CounterField::value) -
                                    kCounterFields.begin());
}

std::uint64_t WorkSums::operator[](std::uint64_t WorkCountersRecord::* field) const {
    const std::size_t number = number_of(field);
    return number < counters.size() ? counters[number] : 0;
}

bool WorkSums::knows(std::uint64_t WorkCountersRecord::* field) const {
    return counter(number_of(field)).has_value();
}

std::optional<std::uint64_t> WorkSums::counter(std::size_t number) const {
    return counted > 0 && number < known ? std::optional(counters[number]) : std::nullopt;
}

std::vector<WorkSums> stream_sums(const Activity& activity) {
    std::vector<WorkSums> sums(activity.streams.size());
    for (const Work& one : activity.work)
        sums[one.stream].add(one);
    return sums;
}

std::vector<WorkSums> stream_sums(const Activity& activity, const DeviceModel& device) {
    std::vector<WorkSums> sums(activity.streams.size());
    for (const std::uint32_t number : device.work)
        sums[activity.work[number].stream].add(activity.work[number]);
    return sums;
}

}  // namespace orrery::prof
