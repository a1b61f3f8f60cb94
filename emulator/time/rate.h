// How long bytes and cycles take, in exact integers: a duration must not depend on a host's floating point.
#pragma once

#include <cstdint>

#include "emulator/time/event_queue.h"

namespace orrery::emu {

// `count` things at `per_second`, in picoseconds, rounded up; 0 per second takes no time.
constexpr ModelTime duration_ps(std::uint64_t count, std::uint64_t per_second) {
    if (per_second == 0) return 0;
    // Nearly always: fits 64 bits.
    constexpr std::uint64_t kFew = 18'000'000;
    if (count <= kFew && per_second <= kPsPerSecond)
        return (count * kPsPerSecond + per_second - 1) / per_second;
    __extension__ using Wide = unsigned __int128;
    const Wide ps = (Wide{count} * kPsPerSecond + per_second - 1) / per_second;
    return ps >= Wide{kNever} ? kNever - 1 : static_cast<ModelTime>(ps);
}

}  // namespace orrery::emu
