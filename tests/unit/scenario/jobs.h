// Jobs as tests of scenarios write them.
#pragma once

#include "tools/scenario/scenario.h"

namespace orrery::scenario {

inline Job kernel(std::uint32_t groups, std::uint64_t cycles) {
    Job job;
    job.op = Op::kKernel;
    job.groups = groups;
    job.cycles = cycles;
    return job;
}

}  // namespace orrery::scenario
