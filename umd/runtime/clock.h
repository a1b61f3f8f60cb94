// The host's clock, for limits of waits.
#pragma once

#include <time.h>

#include <cstdint>

namespace orrery::umd {

// CLOCK_MONOTONIC, which the driver's time-outs count by too.
inline std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace orrery::umd
