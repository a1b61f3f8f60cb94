// Rows in pages of 2 MiB of which the bus says that they are of a piece: what an instruction remembers of the
// one that it was in last (VectorFile::Row).
#pragma once

#include <iterator>

#include "emulator/core/core.h"

namespace orrery::emu {

inline constexpr std::uint64_t kSpan = std::uint64_t{2} << 20;

inline VectorFile::Row& row_at(VectorFile& file, const Op* op) {
    return file.rows[reinterpret_cast<std::uintptr_t>(op) / sizeof(Op) % std::size(file.rows)];
}

// An instruction that went on by as much as the time before will do so next time: the host is told what comes
// then, as otherwise it waits for each row anew. (A prefetch of what is not there does nothing.)
inline void expect_next(VectorFile::Row& row, std::uint64_t va, const std::uint8_t* host,
                        std::uint64_t bytes) {
    const std::uint64_t step = va - row.last;
    const bool goes_on = row.step == step && step != 0;
    row.last = va;
    row.step = step;
    if (!goes_on) return;
    const std::uintptr_t next = reinterpret_cast<std::uintptr_t>(host) + step;
    for (std::uint64_t line = 0; line < bytes; line += Meter::kLine)
        __builtin_prefetch(reinterpret_cast<const void*>(next + line));  // NOLINT(performance-no-int-to-ptr)
}

// Where a row may be read later without a copy, also a little beyond its end; nullptr: it is not known.
inline const std::uint8_t* row_in_place(const Core* core, const VectorFile::Row& row, std::uint64_t va,
                                        std::uint64_t bytes, unsigned log2) {
    if (core->overlay != nullptr || row.span != (va & ~(kSpan - 1)) ||
        (va & (kSpan - 1)) + bytes + VectorFile::kBeyond > kSpan || (va & ((1u << log2) - 1)) != 0)
        return nullptr;
    return reinterpret_cast<const std::uint8_t*>(row.addend + va);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace orrery::emu
