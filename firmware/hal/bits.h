// SPDX-License-Identifier: MIT
// Arithmetic that takes the same time whatever the values are. RV64IMAC has no instruction for the lowest set
// bit (and the library's is slow), nor for the larger of two.
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

// `to` becomes `at_least` if it is less: one instruction on the card (amomaxu.d) and never a branch, for what
// has grown since the card started. What others have had before must not show in the time of what comes now.
inline void raise(uint64_t& to, uint64_t at_least) {
#if defined(ORRERY_FW_CARD)
    asm("amomaxu.d zero, %1, %0" : "+A"(to) : "r"(at_least));  // no g++ has a builtin for it
#else
    if (to < at_least) to = at_least;
#endif
}

// `to` becomes `at_most` if it is more; never a branch.
inline void lower(uint64_t& to, uint64_t at_most) {
    to ^= (to ^ at_most) & (0 - uint64_t{at_most < to});
}

// 0 where b is more; never a branch.
inline uint64_t less_or_zero(uint64_t a, uint64_t b) {
    return (a - b) & (uint64_t{a < b} - 1);
}

}  // namespace orrery::fw
