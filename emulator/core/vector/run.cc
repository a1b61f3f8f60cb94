// vfmacc.vf with one vs2, one after the other, and the loads of their scalars between them, in one go; and
// what they compute later, together with that of the next rows, so that sums stay in the host's registers.
//
// What is done at once is found in the Ops as they stand: an instruction that is not decoded yet, has a
// breakpoint, or whose load is not for the page cache, ends it before it. Each keeps its own step and cycles,
// and a budget may end after any of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/core/vector/cost.h"
#include "emulator/core/vector/counting.h"
#include "emulator/core/vector/run.h"

namespace orrery::emu {
namespace {

// flw or fld as its handler does it. False: that one has to.
template <class T>
bool load(Core* core, const Op* op) {
    const std::uint64_t va = core->x[op->rs1] + sext(op->imm);
    const PageEntry& entry = core->page_entry(va);
    if (entry.load_tag != tag_of<T>(va) &&
        (entry.load_tag != (tag_of<T>(va) | kCountedPage) || !core->meter.has(va)))
        return false;
    core->f[op->rd] = factor_at<T>(entry.host(va)) | kBoxOf<T>;
    return true;
}

// The products that are pending take one more; false: not after those that there are.
template <class T>
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
    if (k < all.sums) {
        if (all.vd[k] != vd) return false;
    } else {
        if (all.rows != 1 || k == VectorProducts::kSums || std::find(all.vd, all.vd + k, vd) != all.vd + k)
            return false;
        all.vd[k] = vd;
        ++all.sums;
    }
    put_factor(all, all.rows - 1, k++, unboxed<T>(scalar));
    return true;
}

// The loop that a run goes round in.
template <class T>
class Loop {
  public:
    // A branch back from `from` to `op` was taken.
    // `done` takes what instructions were done.
    void came_back(Core* core, VectorClock& clock, Op*& op, Op* from, const Op* product, RunCounts& done) {
        const VectorClock::Phase phase = clock.phase();
        if (op != head_ || from != branch_) {
            head_ = op;
            branch_ = from;
            known_ = Known::kNo;
        } else if (phase == phase_ && known_ != Known::kOther) {
            if (known_ == Known::kNo)
                known_ = turns_.plan(core, op, from, product) ? Known::kRows : Known::kOther;
            bool goes_on = true;
            const std::uint64_t cycles = clock.at().now - turn_.now;
            const std::uint64_t turns =
                known_ == Known::kRows ? turns_.template run<T>(core, clock.left(), cycles, goes_on) : 0;
            if (turns == 0) known_ = Known::kOther;
            clock.repeat(turn_, turns);
            turns_.add_to(done, turns);
            if (!goes_on) op = from + length_of_branch(from);
        }
        phase_ = phase;
        turn_ = clock.at();
    }

  private:
    enum class Known : std::uint8_t { kNo, kRows, kOther };
    static unsigned length_of_branch(const Op* op) { return known_handlers().find(op->fn)->length; }

    Op* head_ = nullptr;
    Op* branch_ = nullptr;
    Known known_ = Known::kNo;
    VectorClock::Phase phase_;
    VectorClock::Turn turn_;
    RowTurns turns_;
};

bool is_branch(OpCode code) {
    return code >= OpCode::kBeqNear && code <= OpCode::kBgeuNear;
}

struct Went {
    Op* op;
    std::int64_t steps;  // that are left
};

template <class T>
Went run(Core* core, Op* op, std::int64_t left) {
    VectorFile& file = *core->vector;
    const std::uint64_t cycles = common(file).cycles[0];
    const Handler loads = loads_of<T>(core);
    const KnownHandlers& known = known_handlers();
    const std::int32_t imm = op->imm;
    const std::uint8_t vs2 = op->rs2;
    VectorClock clock(core, left);
    Loop<T> loop;
    RunCounts done;
    const Op* const product = op;
    for (bool more = true; more;) {
        const Handler fn = op->fn;
        if (fn == op_vector) {
            if (op->imm != imm || op->rs2 != vs2) break;
            if (!append<T>(file, op, core->f[op->rs1])) [[unlikely]] {
                compute_pending(core);
                append<T>(file, op, core->f[op->rs1]);
            }
            op += 2;
            ++done.products;
            more = clock.arithmetic(cycles);
        } else if (fn == loads) {
            if (!load<T>(core, op)) break;
            op += 2;
            ++done.loads;
            more = clock.step();
        } else if (fn == op_vector_memory) {
            if (op->rd != vs2 || !load_row(core, op)) break;
            op += 2;
            ++done.rows;
            more = clock.memory(cycles) && !core->attention;
        } else {
            const KnownHandler* const which = known.find(fn);
            Op* const from = op;
            if (which == nullptr || !keep_count(core, op, *which)) break;
            if (which->code == OpCode::kVectorConfig) ++done.configs;
            if (is_branch(which->code)) ++done.branches;
            more = clock.step();
            if (more && op < from) loop.came_back(core, clock, op, from, product, done);
        }
    }
    file.touched = true;
    // All have this in common.
    file.plain[kPlainKind[static_cast<std::size_t>(VectorOp::kVfmaccVf)]] += done.products;
    file.plain[static_cast<std::size_t>(VectorClass::kLoads)] += done.rows;
    file.work.instructions[static_cast<std::size_t>(VectorClass::kConfig)] += done.configs;
    count_scalar(core, ScalarClass::kLoads, done.loads);
    count_scalar(core, ScalarClass::kJumps, done.branches);
    leave_rows(core);
    clock.finish(core);
    return {op, clock.left()};
}

}  // namespace

Next op_vector_run(Core* core, Op* op, Left left) {
    // It counts by itself, so it may go on through what was set aside for the next ones.
    const std::int64_t own = steps_left(left), others = core->attention ? 0 : core->deferred;
    core->deferred -= others;
    core->steps_end += static_cast<std::uint64_t>(others);
    const Went went = core->vector->sew_log2 == 5 ? run<std::uint32_t>(core, op, own + others)
                                                  : run<std::uint64_t>(core, op, own + others);
    const std::int64_t aside = std::max(went.steps - own, std::int64_t{0});
    core->deferred += aside;
    core->steps_end -= static_cast<std::uint64_t>(aside);
    left = with_steps_left(left, went.steps - aside);
    if (went.steps == 0 || core->attention) ORR_CALL(leave, core, went.op, left);
    ORR_DISPATCH_SLOW(core, went.op, left);
}

}  // namespace orrery::emu
