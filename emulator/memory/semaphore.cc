#include "emulator/memory/semaphore.h"

#include <atomic>
#include <bit>

namespace orrery::emu {
namespace {

// As a 128-bit compare-and-swap of PCIe. Without an instruction for it this would be a lock, which says
// nothing to other processes: CMakeLists.txt asks for the instruction.
bool exchange(std::uint8_t* at, const orr_semaphore& before, const orr_semaphore& after) {
    __extension__ using Both = unsigned __int128;
    return __sync_bool_compare_and_swap(reinterpret_cast<Both*>(at), std::bit_cast<Both>(before),
                                        std::bit_cast<Both>(after));
}

}  // namespace

orr_semaphore look_at_semaphore(std::uint8_t* at) {
    auto* const words = reinterpret_cast<std::uint64_t*>(at);
    const std::uint64_t value = std::atomic_ref(words[0]).load(std::memory_order_acquire);
    return {.value = value, .time_ps = std::atomic_ref(words[1]).load(std::memory_order_relaxed)};
}

bool raise_semaphore(std::uint8_t* at, std::uint64_t value, std::uint64_t time_ps) {
    for (;;) {
        const orr_semaphore before = look_at_semaphore(at);
        if (value <= before.value || (before.value & ORR_SEM_FAILED) != 0) return false;
        if (exchange(at, before, {.value = value, .time_ps = (before.time_ps & ORR_SEM_CLOSED) | time_ps}))
            return true;
    }
}

void close_semaphore(std::uint8_t* at) {
    for (;;) {
        const orr_semaphore before = look_at_semaphore(at);
        if (exchange(at, before, {.value = before.value, .time_ps = before.time_ps | ORR_SEM_CLOSED})) return;
    }
}

}  // namespace orrery::emu
