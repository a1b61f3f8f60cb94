// Numbers that look random and are the same on every host.
#pragma once

#include <cstdint>

namespace orrery::emu {

// splitmix64: as good for any of the value's bits.
constexpr std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

}  // namespace orrery::emu
