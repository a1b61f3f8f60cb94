// Synthetic kernels: RISC-V code for the vector cores that does nothing for a given number of cycles.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "emulator/api/sku.h"

namespace orrery::scenario {

// a0 holds the rounds: two cycles each, and one for the return.
inline constexpr std::array<std::uint32_t, 3> kSpinCode = {
    0xfff50513,  // addi a0, a0, -1
    0xfe051ee3,  // bnez a0, -4
    0x00008067,  // ret
};
inline constexpr std::array<std::uint32_t, 1> kTrapCode = {0x00000000};
inline constexpr std::uint64_t kTrapEntry = 64;  // behind the spin code

inline std::uint64_t spin_cycles(std::uint64_t rounds, const emu::Sku& sku) {
    return sku.vector_item_cycles + 1 + 2 * rounds;
}

// The kernel's argument for a group of so many cycles, or as near as an even number of them comes.
inline std::uint64_t spin_rounds(std::uint64_t cycles, const emu::Sku& sku) {
    const std::uint64_t overhead = sku.vector_item_cycles + 1;
    return std::max<std::uint64_t>(1, cycles > overhead ? (cycles - overhead + 1) / 2 : 0);
}

}  // namespace orrery::scenario
