// "slice_us=50" as what-ifs take it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/step/base/result.h"

namespace orrery::step {

Result<std::vector<std::pair<std::string, std::uint64_t>>> parse_policy(
    const std::vector<std::string>& settings);

}  // namespace orrery::step
