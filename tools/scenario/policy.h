// Numbers of the firmware's policy (orrery/fw/policy.h) as people type them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/text/result.h"

namespace orrery::scenario {

using Policy = std::vector<std::pair<std::string, std::uint64_t>>;

// Each is NAME=VALUE, as in "slice_us=50"; flags by their names, as in "flags=no_weights,no_preemption".
text::Result<Policy> parse_policy(const std::vector<std::string>& settings);

}  // namespace orrery::scenario
