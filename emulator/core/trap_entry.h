// What a hart whose host takes its exceptions (Config::trap_to_host) does with one.
#pragma once

#include "emulator/core/hart.h"

namespace orrery::emu {

// The state after the entry of the handler at mtvec; it counts as a step. false: there is no handler, or
// the handler itself trapped: a real core would be lost.
inline bool enter_trap(HartState& state, const Trap& trap) {
    constexpr std::uint64_t kMie = 1u << 3;
    constexpr std::uint64_t kMpie = 1u << 7;
    constexpr std::uint64_t kMpp = 3u << 11;
    const auto cause = static_cast<std::uint64_t>(trap.cause);
    const std::uint64_t handler = state.mtvec & ~std::uint64_t{3};
    const bool again = state.mepc == trap.pc && state.mcause == cause && (state.mstatus & kMie) == 0;
    if (handler == 0 || trap.pc == handler || again) return false;
    state.mepc = trap.pc;
    state.mcause = cause;
    state.mtval = trap.tval;
    state.mstatus = (state.mstatus & ~(kMie | kMpie)) | kMpp | ((state.mstatus & kMie) != 0 ? kMpie : 0);
    state.pc = handler;
    state.steps += 1;
    return true;
}

}  // namespace orrery::emu
