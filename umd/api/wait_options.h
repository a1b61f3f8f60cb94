// What orrWaitOptions may say.
#pragma once

#include <cstdint>

#include "umd/winsys/error.h"

namespace orrery::umd {

// Nanoseconds of model time; 0: none, also without options.
Result<std::uint64_t> limit_of(const orrWaitOptions* options);

}  // namespace orrery::umd
