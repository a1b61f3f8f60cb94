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
    for (std::size_t i = 0; i < counters.size(); ++i)
        counters[i] += others.counters[i];
}

std::uint64_t WorkSums::operator[](std::uint64_t WorkCountersRecord::* field) const {
    const auto found = std::ranges::find(kCounterFields, field, &CounterField::value);
    return found == kCounterFields.end() ? 0
                                         : counters[static_cast<std::size_t>(found - kCounterFields.begin())];
}

std::vector<WorkSums> stream_sums(const Activity& activity) {
    std::vector<WorkSums> sums(activity.streams.size());
    for (const Work& one : activity.work)
        sums[one.stream].add(one);
    return sums;
}

}  // namespace orrery::prof
