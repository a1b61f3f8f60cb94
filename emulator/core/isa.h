// What a hart runs, as compilers write it.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::emu {

// Of a hart with F and D, and with V and 16-bit floating point if vlen (bits) is not 0:
// "rv64imafdcv_zicntr_...". What its letters imply is left out.
std::string isa_of(std::uint32_t vlen);

}  // namespace orrery::emu
