// The inside of runs (run.cc): rows of products that are pending, and turns of loops of them.
#pragma once

#include <cstring>

#include "emulator/core/known.h"
#include "emulator/core/page_access.h"
#include "emulator/core/vector/clock.h"
#include "emulator/core/vector/execute.h"

namespace orrery::emu {

// --- rows.cc ---
// All that is pending, but the group is left as it is. The next rows may be of the same sums.
void compute_rows(Core* core);
// At the end of a run no row stays in memory, where it may change: few are copied, many are computed.
void leave_rows(Core* core);
// A row of vl elements, at most kMostBytes, is loaded into the group of those that are pending, and stays
// where it is. Nobody needs what the group held.
inline void take_row(Core* core, const std::uint8_t* host) {
    VectorFile::Pending& pending = core->vector->pending;
    VectorProducts& all = pending.all;
    // Without rows `in_last` and `sums` are those of products that are done.
    if (all.rows != 0 && (pending.in_last != all.sums || all.rows == VectorProducts::kRows))
        compute_rows(core);
    pending.in_place |= 1u << all.rows;
    all.row[all.rows++] = host;
    pending.in_last = 0;
}
template <class T>
void put_factor(VectorProducts& all, unsigned row, unsigned sum, T value) {
    std::memcpy(all.factors[row] + sum * sizeof(T), &value, sizeof value);
}
template <class T>
T unboxed(std::uint64_t f) {
    if constexpr (sizeof(T) == 4) {
        constexpr std::uint32_t kNan = 0x7fc00000;
        return f >> 32 == 0xffffffff ? static_cast<std::uint32_t>(f) : kNan;
    } else {
        return f;
    }
}
template <class T>
inline constexpr std::uint64_t kBoxOf = sizeof(T) == 4 ? 0xffffffff00000000u : 0;
template <class T>
T factor_at(const std::uint8_t* host) {
    return __atomic_load_n(reinterpret_cast<const typename Host<T>::Type*>(host), __ATOMIC_RELAXED);
}
// The handler of flw or fld.
template <class T>
Handler loads_of(const Core* core) {
    constexpr OpCode kLoad = sizeof(T) == 4 ? OpCode::kFlw : OpCode::kFld;
    return core->handlers->of[static_cast<unsigned>(kLoad)][1];
}

// --- memory.cc ---
bool is_plain_load(const VectorFile& file, const Op* op);
// A load into the group of the rows that are pending, if it is in short. False: nothing is done.
bool load_row(Core* core, const Op* op);

// Instructions that a run has done; what is none of these is an addition or move.
struct RunCounts {
    std::uint64_t products = 0, rows = 0, configs = 0, loads = 0, branches = 0;
};

// --- turns.cc ---
// A loop of which each turn loads one row, then adds its products to the same sums, with factors that it
// loads or that stay; around them are additions. Turns of it that take the time of the one before are done
// without looking at its instructions again: nothing in it can change them.
class RowTurns {
  public:
    // What so many turns do.
    void add_to(RunCounts& done, std::uint64_t turns) const {
        done.products += turns * product_count_;
        done.rows += turns;
        done.configs += turns * config_count_;
        done.loads += turns * load_count_;
        done.branches += turns;
    }
    // From `head` to the branch back to it, of which a turn has just been done in a run. `product` is one of
    // its vfmacc.vf. False: it is another kind of loop.
    bool plan(const Core* core, Op* head, Op* branch, const Op* product);
    // From the head on as many turns as take `cycles` each and leave something of `left`; how many.
    // `goes_on`: the last branch was taken. T: as wide as an element.
    template <class T>
    std::uint64_t run(Core* core, std::int64_t left, std::uint64_t cycles, bool& goes_on) const;

  private:
    static constexpr std::int32_t kNone = 4096;  // more than there is in an instruction
    struct Product {
        std::int32_t offset = kNone;  // of the factor, from the base; kNone: f[fs]
        std::uint8_t fs = 0, vd = 0;
    };
    struct Addition {
        const Op* op = nullptr;
        OpCode code = OpCode::kCount;
    };
    static constexpr unsigned kMostAdditions = 8;

    const Op* row_ = nullptr;
    const Op* branch_ = nullptr;
    OpCode branch_code_ = OpCode::kCount;
    Addition additions_[kMostAdditions];
    Product products_[VectorProducts::kSums];
    std::int32_t loaded_[32] = {};  // into each of f, from where; or kNone
    unsigned addition_count_ = 0, product_count_ = 0, config_count_ = 0, load_count_ = 0;
    std::uint8_t base_ = 0;
    std::int32_t low_ = kNone, high_ = -kNone;
};
// An addition, a branch or the like of a loop in a run; goes to the next one. False: nothing is done.
bool keep_count(Core* core, Op*& op, const KnownHandler& which);

}  // namespace orrery::emu
