// What a semaphore unit does to a semaphore, its own or one that a peer signals.
#pragma once

#include <atomic>
#include <cstdint>

#include <orrery/hw/link.h>

namespace orrery::emu {

// `at`: a struct orr_semaphore. Time first, so that who sees the value sees at least that time; the release
// orders both behind everything before. Another card may signal the same host memory at this moment, so the
// value is exchanged: neither goes back, and the first failure stays. False: that would have been so.
inline bool raise_semaphore(std::uint8_t* at, std::uint64_t value, std::uint64_t time_ps) {
    auto* const words = reinterpret_cast<std::uint64_t*>(at);
    const std::atomic_ref shown(words[0]);
    const std::atomic_ref time(words[1]);
    std::uint64_t before = shown.load(std::memory_order_relaxed);
    if (value <= before || (before & ORR_SEM_FAILED) != 0) return false;
    time.store((time.load(std::memory_order_relaxed) & ORR_SEM_CLOSED) | time_ps, std::memory_order_relaxed);
    while (
        !shown.compare_exchange_weak(before, value, std::memory_order_release, std::memory_order_relaxed)) {
        if (value <= before || (before & ORR_SEM_FAILED) != 0) return false;
    }
    return true;
}

}  // namespace orrery::emu
