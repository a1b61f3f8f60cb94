// The registers of a vector core's hart as gdb numbers them: x, pc, f, v and CSRs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/core/hart.h"

namespace orrery::emu::gdb {

// `vlen`: bits of a vector register, 0: none.
std::string vector_description(std::uint32_t vlen);

// Where a register's bytes are; for the caller to read and to write in place.
struct VectorHart {
    HartState state;
    VectorState vectors;
};
// Empty: no register of these, but maybe one of vector_csrs().
std::span<std::uint8_t> register_bytes(VectorHart& hart, std::uint64_t number, std::uint32_t vlen);
bool is_vector_register(std::uint64_t number);

// CSRs that are parts of others, constants, or the card's own: read only. 0: `number` is no such register.
std::uint32_t csr_number(std::uint64_t number);

}  // namespace orrery::emu::gdb
