// SPDX-License-Identifier: MIT
// Number of the lowest set bit without an instruction for it (RV64IMAC has none, and the library's is slow).
#pragma once

#include <stdint.h>

namespace orrery::fw {

namespace detail {
inline constexpr uint64_t kDeBruijn = 0x03f79d71b4cb0a89ull;
struct LowestBit {
    uint8_t at[64];
};
consteval LowestBit lowest_bits() {
    LowestBit table{};
    for (uint32_t n = 0; n < 64; ++n)
        table.at[(kDeBruijn << n) >> 58] = static_cast<uint8_t>(n);
    return table;
}
inline constexpr LowestBit kLowestBit = lowest_bits();
}  // namespace detail

// x != 0
inline uint32_t lowest_bit(uint64_t x) {
    return detail::kLowestBit.at[((x & (~x + 1)) * detail::kDeBruijn) >> 58];
}

}  // namespace orrery::fw
