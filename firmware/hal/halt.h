// SPDX-License-Identifier: MIT
// Codes with which the firmware stops the core (ORR_HALT_REQUESTED | code in ORR_R_HALT_CAUSE). All are
// faults of the driver or of this firmware, never of a process.
#pragma once

#include <stdint.h>

namespace orrery::fw {

inline constexpr uint32_t kHaltNone = 0;
inline constexpr uint32_t kHaltCommandIndex = 1;  // the host's command ring index makes no sense
inline constexpr uint32_t kHaltMessageIndex = 2;  // the host's message ring index makes no sense
inline constexpr uint32_t kHaltHostMemory = 3;    // the driver's rings or status lines are not reachable

}  // namespace orrery::fw
