// Model time: what a card's clock counts.
#pragma once

#include <cstdint>

namespace orrery::emu {

// Picoseconds of model time since power-on; 2^64 ps are 213 days.
using ModelTime = std::uint64_t;
inline constexpr ModelTime kNever = ~ModelTime{0};
inline constexpr ModelTime kPsPerNs = 1'000;
inline constexpr ModelTime kPsPerSecond = 1'000'000'000'000;

// a + b, stopping at the end of time.
constexpr ModelTime later(ModelTime a, ModelTime b) {
    return a > kNever - b ? kNever : a + b;
}

}  // namespace orrery::emu
