// SPDX-License-Identifier: MIT
// The firmware's own version; the version of its contracts is ORR_FW_ABI (orrery/fw/boot_block.h). The build
// reads the three numbers from this file.
#pragma once

#include <stdint.h>

#define ORR_FW_VERSION_MAJOR 0
#define ORR_FW_VERSION_MINOR 1
#define ORR_FW_VERSION_PATCH 0

namespace orrery::fw {

inline constexpr uint32_t kFirmwareVersion =
    ORR_FW_VERSION_MAJOR << 16 | ORR_FW_VERSION_MINOR << 8 | ORR_FW_VERSION_PATCH;

}  // namespace orrery::fw
