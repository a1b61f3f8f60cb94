// How many cycles vector instructions take; docs/riscv.md has the table.
#pragma once

#include "emulator/core/vector/execute.h"

namespace orrery::emu {

std::uint64_t cycles_of_bits(const VectorFile& file, std::uint64_t bits);
// Of an arithmetic one, with vl elements.
std::uint64_t cycles_of(const VectorFile& file, const VectorRow& what, VectorOp op);
// Whether that is what vl elements of SEW take, or of twice SEW (`wide`), and no more.
bool is_of_elements(const VectorRow& what, VectorOp op, bool& wide);
VectorFile::Common common_of(const VectorFile& file);
// What was counted of instructions that have this in common becomes a part of `work`.
void add_plain(VectorFile& file);
inline VectorFile::Common& common(VectorFile& file) {
    if (file.common.vl != file.vl || file.common.vtype != file.vtype) [[unlikely]] {
        add_plain(file);
        file.common = common_of(file);
    }
    return file.common;
}
// Of so many elements in places of their own: an address a cycle for each 64 bits of the datapath.
std::uint64_t cycles_of_places(const VectorFile& file, std::uint64_t elements);

}  // namespace orrery::emu
