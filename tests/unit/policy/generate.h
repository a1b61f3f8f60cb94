// Random scenarios, each from its seed alone.
#pragma once

#include <cstdint>

#include "tools/scenario/scenario.h"

namespace orrery::policy {

// Queues of all classes and weights, kernels, copies, fills, barriers, waits that are always signalled in the
// end, bursts and pauses; one card of 1 to 4 vector ports and 1 or 2 copy engines.
scenario::Scenario random_scenario(std::uint64_t seed);

}  // namespace orrery::policy
