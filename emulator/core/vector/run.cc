// vfmacc.vf with one vs2, one after the other, and the loads of their scalars between them, in one go; and
// what they compute later, together with that of the next rows, so that sums stay in the host's registers.
//
// What is done at once is found in the Ops as they stand: an instruction that is not decoded yet, has a
// breakpoint, or whose load is not for the page cache, ends it before it. Each keeps its own step and cycles,
// and a budget may end after any of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/core/page_access.h"
#include "emulator/core/vector/cost.h"
#include "emulator/core/vector/execute.h"

namespace orrery::emu {
namespace {

// charge_vector() for instructions in a row that nobody waits for, with its state at hand.
class Clock {
  public:
    static constexpr unsigned kMost = 16;
    Clock(const Core* core, std::int64_t left)
        : now_(core->steps_end - static_cast<std::uint64_t>(left) + core->extra_cycles),
          left_(left),
          until_(core->vector->arithmetic_until) {
        const VectorFile& file = *core->vector;
        for (std::size_t i = 0; i < VectorFile::kAhead; ++i)
            began_[i] = file.began[(file.oldest + i) % VectorFile::kAhead];
    }
    // False: the budget is used up.
    bool step() {
        ++now_;
        return --left_ != 0;
    }
    bool takes_more() const { return count_ != kMost; }
    bool vector(std::uint64_t cycles) {
        const std::uint64_t given = std::max(now_, began_[count_]);
        const std::uint64_t begin = std::max({given, began_[count_ + VectorFile::kAhead - 1], until_});
        until_ = begin + cycles;
        began_[VectorFile::kAhead + count_++] = begin;
        const std::uint64_t extra = given - now_;
        now_ = given;
        if (extra >= static_cast<std::uint64_t>(left_)) [[unlikely]] {
            beyond_ = extra - static_cast<std::uint64_t>(left_ - 1);
            left_ = 1;
        } else {
            left_ -= static_cast<std::int64_t>(extra);
        }
        extra_ += extra;
        return step();
    }
    // What is left of the budget.
    std::int64_t finish(Core* core) const {
        VectorFile& file = *core->vector;
        file.arithmetic_until = until_;
        for (std::size_t i = 0; i < VectorFile::kAhead; ++i)
            file.began[(file.oldest + count_ + i) % VectorFile::kAhead] = began_[count_ + i];
        file.oldest = (file.oldest + count_) % VectorFile::kAhead;
        core->extra_cycles += extra_;
        core->mcycle_delta += extra_;
        core->steps_end -= extra_ - beyond_;
        core->deferred -=
            static_cast<std::int64_t>(std::min(beyond_, static_cast<std::uint64_t>(core->deferred)));
        return left_;
    }

  private:
    std::uint64_t now_;
    std::int64_t left_;
    std::uint64_t until_, extra_ = 0, beyond_ = 0;
    unsigned count_ = 0;
    std::uint64_t began_[VectorFile::kAhead + kMost];
};

// flw or fld as its handler does it. False: that one has to.
template <class T>
bool load(Core* core, const Op* op) {
    const std::uint64_t va = core->x[op->rs1] + sext(op->imm);
    const PageEntry& entry = core->page_entry(va);
    if (entry.load_tag != tag_of<T>(va) &&
        (entry.load_tag != (tag_of<T>(va) | kCountedPage) || !core->meter.has(va)))
        return false;
    const auto* host = reinterpret_cast<const typename Host<T>::Type*>(entry.host(va));
    constexpr std::uint64_t kBox = sizeof(T) == 4 ? 0xffffffff00000000u : 0;
    core->f[op->rd] = __atomic_load_n(host, __ATOMIC_RELAXED) | kBox;
    return true;
}

// The products that are pending take one more; false: not after those that there are.
bool append(VectorFile& file, const Op* op, std::uint64_t scalar) {
    VectorFile::Pending& pending = file.pending;
    VectorProducts& all = pending.all;
    std::uint8_t* const vd = file.reg(op->rd);
    if (all.rows == 0) {
        pending.vs2 = op->rs2;
        pending.log2 = static_cast<unsigned>(file.sew_log2 - 3);
        pending.kernel = file.kernels->products[pending.log2];
        pending.one.vl = all.vl = file.vl;
        all.one = &pending.one;
        all.row[0] = file.reg(op->rs2);
        all.rows = 1;
        all.sums = pending.in_last = 0;
    } else if (pending.vs2 != op->rs2) {
        return false;
    }
    unsigned& k = pending.in_last;
    if (all.rows == 1) {
        if (k == VectorProducts::kSums || std::find(all.vd, all.vd + k, vd) != all.vd + k) return false;
        all.vd[k] = vd;
        ++all.sums;
    } else if (k == all.sums || all.vd[k] != vd) {
        return false;
    }
    all.scalar[all.rows - 1][k++] = scalar;
    return true;
}

struct Went {
    Op* op;
    std::int64_t left;
};

template <class T>
Went run(Core* core, Op* op, std::int64_t left) {
    VectorFile& file = *core->vector;
    const std::uint64_t cycles = common(file).cycles[0];
    constexpr OpCode kLoad = sizeof(T) == 4 ? OpCode::kFlw : OpCode::kFld;
    const Handler loads = core->handlers->of[static_cast<unsigned>(kLoad)][1];
    const std::int32_t imm = op->imm;
    const std::uint8_t vs2 = op->rs2;
    Clock clock(core, left);
    for (bool more = true; more;) {
        if (!append(file, op, core->f[op->rs1])) [[unlikely]] {
            compute_pending(core);
            append(file, op, core->f[op->rs1]);
        }
        op += 2;
        more = clock.vector(cycles);
        for (; more && op->fn == loads; op += 2) {
            if (!load<T>(core, op)) break;
            more = clock.step();
        }
        more = more && clock.takes_more() && op->fn == op_vector && op->imm == imm && op->rs2 == vs2;
    }
    file.touched = true;
    return {op, clock.finish(core)};
}

}  // namespace

void compute_pending(Core* core) {
    VectorFile& file = *core->vector;
    VectorFile::Pending& pending = file.pending;
    VectorProducts& all = pending.all;
    const unsigned rows = std::exchange(all.rows, 0), last = rows - 1;
    all.rows = pending.in_last == all.sums ? rows : last;
    if (all.rows != 0) pending.kernel(all);
    if (all.rows != rows && pending.in_last != 0) {
        VectorProducts rest = all;
        rest.rows = 1;
        rest.sums = pending.in_last;
        rest.row[0] = all.row[last];
        std::copy_n(all.scalar[last], rest.sums, rest.scalar[0]);
        pending.kernel(rest);
    }
    if (last != 0) std::memcpy(file.reg(pending.vs2), all.row[last], all.vl << pending.log2);
    all.rows = 0;
    if (pending.one.fflags != 0) [[unlikely]]
        core->fflags = core->fflags | (std::exchange(pending.one.fflags, 0) & 31);
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

Next op_vector_run(Core* core, Op* op, std::int64_t left) {
    const Went went =
        core->vector->sew_log2 == 5 ? run<std::uint32_t>(core, op, left) : run<std::uint64_t>(core, op, left);
    if (went.left == 0 || core->attention) ORR_CALL(leave, core, went.op, went.left);
    ORR_DISPATCH_SLOW(core, went.op, went.left);
}

}  // namespace orrery::emu
