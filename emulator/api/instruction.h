// The length and the form of RISC-V instructions.
#pragma once

#include <cstdint>

namespace orrery::emu {

// True if the instruction that begins with this halfword has four bytes. (Longer ones do not exist here:
// their first halfword decodes as an illegal four-byte instruction.)
constexpr bool is_four_bytes(std::uint16_t first) {
    return (first & 3) == 3;
}

// The four-byte instruction that a two-byte one stands for, or 0, which is illegal.
std::uint32_t expand_compressed(std::uint16_t bits);

}  // namespace orrery::emu
