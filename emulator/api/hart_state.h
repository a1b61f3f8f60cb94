// The state of a RISC-V hart.
#pragma once

#include <cstdint>

namespace orrery::emu {

// All architectural state: trivially copyable, no padding, no pointers. Two harts with equal states, equal
// memory and the same answers from their buses stay equal for ever. Caches are not state.
struct HartState {
    std::uint64_t x[32] = {};  // x[0] is 0, whatever is written there
    std::uint64_t f[32] = {};  // NaN-boxed singles
    std::uint64_t pc = 0;
    // Instructions retired plus exceptions taken since reset: the hart's own position in its history. Only
    // set_state() sets it back. The budget of run() counts these.
    std::uint64_t steps = 0;
    std::uint64_t minstret = 0;  // instructions retired (the guest may write it)
    std::uint64_t mcycle = 0;    // steps, plus advance_cycles() (the guest may write it)
    std::uint64_t mstatus = 0, mie = 0, mip = 0, mtvec = 0, mscratch = 0, mepc = 0, mcause = 0, mtval = 0;
    std::uint64_t reservation_address = 0, reservation_value = 0;
    std::uint32_t fcsr = 0;             // frm in 7:5, fflags in 4:0
    std::uint8_t reservation_size = 0;  // 0 (none), 4 or 8
    std::uint8_t waiting = 0;           // 1 after a WFI that found nothing pending
    std::uint8_t reserved[2] = {};
    bool operator==(const HartState&) const = default;
};

inline constexpr std::uint32_t kVectorRegisters = 32;
inline constexpr std::uint32_t kMaxVlenBytes = 512;

// What a hart with vectors has beside it. Its own struct, since it is large and most harts have none.
struct VectorState {
    std::uint64_t vl = 0;
    std::uint64_t vtype = 1ull << 63;  // vill
    std::uint64_t vstart = 0;
    std::uint8_t vxrm = 0, vxsat = 0;
    std::uint8_t reserved[6] = {};
    // VLEN / 8 bytes of v0, then those of v1 and so on; what is behind v31 is 0.
    std::uint8_t v[kVectorRegisters * kMaxVlenBytes] = {};
    bool operator==(const VectorState&) const = default;
};

}  // namespace orrery::emu
