// What is pending of products (file.h).
#include <cstring>
#include <utility>

#include "emulator/core/vector/execute.h"
#include "emulator/core/vector/run.h"

namespace orrery::emu {

void compute_rows(Core* core) {
    VectorFile::Pending& pending = core->vector->pending;
    VectorProducts& all = pending.all;
    const unsigned rows = std::exchange(all.rows, 0), last = rows - 1;
    all.rows = pending.in_last == all.sums ? rows : last;
    if (all.rows != 0) pending.kernel(all);
    if (all.rows != rows && pending.in_last != 0) {
        VectorProducts rest = all;
        rest.rows = 1;
        rest.sums = pending.in_last;
        rest.row[0] = all.row[last];
        std::memcpy(rest.factors[0], all.factors[last], sizeof rest.factors[0]);
        pending.kernel(rest);
    }
    all.rows = 0;
    pending.in_place = 0;
    if (pending.one.fflags != 0) [[unlikely]]
        core->fflags = core->fflags | (std::exchange(pending.one.fflags, 0) & 31);
}

void compute_pending(Core* core) {
    VectorFile& file = *core->vector;
    VectorFile::Pending& pending = file.pending;
    const unsigned last = pending.all.rows - 1;
    const std::uint64_t bytes = pending.all.vl << pending.log2;
    std::uint8_t* const reg = file.reg(pending.vs2);
    const std::uint8_t*& row = pending.all.row[last];
    if ((pending.in_place >> last & 1) != 0) {
        // What the register gets is what is computed with, also if somebody else writes there now.
        std::uint8_t* const to = pending.all.row[0] == reg ? pending.aside[last - 1] : reg;
        std::memcpy(to, row, bytes);
        row = to;
    }
    compute_rows(core);
    if (row != reg) std::memcpy(reg, row, bytes);
}

std::uint8_t* place_of_row(Core* core, unsigned rd, std::uint64_t bytes) {
    VectorFile& file = *core->vector;
    VectorFile::Pending& pending = file.pending;
    VectorProducts& all = pending.all;
    if (all.rows == 0) return file.reg(rd);
    if (pending.vs2 != rd || pending.in_last != all.sums || all.rows == VectorProducts::kRows ||
        bytes > VectorFile::Pending::kMostBytes) {
        compute_pending(core);
        return file.reg(rd);
    }
    std::uint8_t* const place = pending.aside[all.rows - 1];
    all.row[all.rows++] = place;
    pending.in_last = 0;
    return place;
}

void leave_rows(Core* core) {
    VectorFile& file = *core->vector;
    VectorFile::Pending& pending = file.pending;
    VectorProducts& all = pending.all;
    if (pending.in_place == 0) return;
    if (all.rows >= VectorProducts::kRows / 2) return compute_pending(core);
    for (unsigned r = 0; r < all.rows; ++r) {
        if ((pending.in_place >> r & 1) == 0) continue;
        std::uint8_t* const to = r == 0 ? file.reg(pending.vs2) : pending.aside[r - 1];
        std::memcpy(to, all.row[r], all.vl << pending.log2);
        all.row[r] = to;
    }
    pending.in_place = 0;
}

}  // namespace orrery::emu
