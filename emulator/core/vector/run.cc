// Several vfmacc.vf with one vs2, and the loads of their scalars between them, in one go: the row of vs2 is
// brought into the host's registers once, and dispatch and counting are a short loop.
//
// What is done is found in the Ops as they stand: an instruction that is not decoded yet, has a breakpoint,
// or whose load is not for the page cache, ends the run before it. Each keeps its own step and cycles, and a
// budget may end after any of them.
#include <algorithm>
#include <utility>

#include "emulator/core/page_access.h"
#include "emulator/core/vector/cost.h"
#include "emulator/core/vector/execute.h"

namespace orrery::emu {
namespace {

// charge_vector() for instructions in a row that nobody waits for, with its state at hand.
class Clock {
  public:
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
    std::uint64_t began_[VectorFile::kAhead + VectorRun::kMost];
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

struct Went {
    Op* op;
    std::int64_t left;
};

Went run(Core* core, Op* op, std::int64_t left) {
    VectorFile& file = *core->vector;
    VectorFile::Common& known = common(file);
    const std::uint64_t cycles = known.cycles[0];
    const bool singles = file.sew_log2 == 5;
    const Handler loads = core->handlers->of[static_cast<unsigned>(singles ? OpCode::kFlw : OpCode::kFld)][1];
    const std::int32_t imm = op->imm;
    const std::uint8_t vs2 = op->rs2;
    VectorRun all;
    all.vl = file.vl;
    all.vs2 = file.reg(vs2);
    all.one = &known.operands;
    Clock clock(core, left);
    for (bool more = true; more;) {
        all.vd[all.count] = file.reg(op->rd);
        all.scalar[all.count++] = core->f[op->rs1];
        op += 2;
        more = clock.vector(cycles);
        for (; more && op->fn == loads; op += 2) {
            if (!(singles ? load<std::uint32_t>(core, op) : load<std::uint64_t>(core, op))) break;
            more = clock.step();
        }
        more =
            more && all.count != VectorRun::kMost && op->fn == op_vector && op->imm == imm && op->rs2 == vs2;
    }
    file.kernels->runs[file.sew_log2 - 3](all);
    if (known.operands.fflags != 0) [[unlikely]]
        core->fflags = core->fflags | (std::exchange(known.operands.fflags, 0) & 31);
    file.touched = true;
    return {op, clock.finish(core)};
}

}  // namespace

Next op_vector_run(Core* core, Op* op, std::int64_t left) {
    const Went went = run(core, op, left);
    if (went.left == 0 || core->attention) ORR_CALL(leave, core, went.op, went.left);
    ORR_DISPATCH_SLOW(core, went.op, went.left);
}

}  // namespace orrery::emu
