// How many cycles vector instructions take; docs/riscv.md has the table.
#pragma once

#include "emulator/core/vector/execute.h"

namespace orrery::emu {

std::uint64_t cycles_of_bits(const VectorFile& file, std::uint64_t bits);
// Of an arithmetic one, with vl elements.
std::uint64_t cycles_of(const VectorFile& file, const VectorRow& what, VectorOp op);
// Of so many elements in places of their own: an address a cycle for each 64 bits of the datapath.
std::uint64_t cycles_of_places(const VectorFile& file, std::uint64_t elements);

}  // namespace orrery::emu
