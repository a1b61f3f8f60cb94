// Turns of a loop that are all alike (run.h).
#include <algorithm>
#include <cstring>
#include <iterator>

#include "emulator/core/alu.h"
#include "emulator/core/known.h"
#include "emulator/core/vector/run.h"
#include "emulator/core/vector/span.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t bit_of(unsigned reg) {
    return std::uint64_t{1} << reg;
}

bool taken(const Core* core, const Op* op, OpCode code) {
    const std::uint64_t a = core->x[op->rs1], b = core->x[op->rs2];
    switch (code) {
        case OpCode::kBeqNear:
            return Eq::of(a, b);
        case OpCode::kBneNear:
            return Ne::of(a, b);
        case OpCode::kBltNear:
            return Lt::of(a, b);
        case OpCode::kBgeNear:
            return Ge::of(a, b);
        case OpCode::kBltuNear:
            return Ltu::of(a, b);
        default:
            return Geu::of(a, b);
    }
}

bool adds(OpCode code) {
    return code == OpCode::kAdd || code == OpCode::kSub || code == OpCode::kAddi || code == OpCode::kMv;
}

void add_up(Core* core, const Op* op, OpCode code) {
    const std::uint64_t a = core->x[op->rs1];
    core->x[op->rd] = code == OpCode::kAddi  ? a + sext(op->imm)
                      : code == OpCode::kAdd ? a + core->x[op->rs2]
                      : code == OpCode::kSub ? a - core->x[op->rs2]
                                             : a;
}

}  // namespace

bool keep_count(Core* core, Op*& op, const KnownHandler& which) {
    switch (which.code) {
        case OpCode::kVectorConfig:
            if (!keeps_vl(core, op)) return false;
            break;
        case OpCode::kAdd:
        case OpCode::kSub:
        case OpCode::kAddi:
        case OpCode::kMv:
            add_up(core, op, which.code);
            break;
        default:
            op += taken(core, op, which.code) ? op->imm : which.length;
            return true;
    }
    op += which.length;
    return true;
}

bool RowTurns::plan(const Core* core, Op* head, Op* branch, const Op* product) {
    const KnownHandlers& known = known_handlers();
    const Handler loads =
        core->vector->sew_log2 == 5 ? loads_of<std::uint32_t>(core) : loads_of<std::uint64_t>(core);
    const VectorFile& file = *core->vector;
    // What is changed and read of x, and what factors were before they were loaded. Additions are done after
    // all else, so nothing behind them reads what they change; and what vl is made of stays.
    std::uint64_t changed = 0, of_vl = 0, kept = 0;
    *this = RowTurns();
    std::fill_n(loaded_, std::size(loaded_), kNone);
    for (Op* op = head; op != branch;) {
        if (op > branch) return false;
        if (op->fn == op_vector) {
            if (op->imm != product->imm || op->rs2 != product->rs2 || row_ == nullptr ||
                product_count_ == VectorProducts::kSums)
                return false;
            products_[product_count_++] = {.offset = loaded_[op->rs1], .fs = op->rs1, .vd = op->rd};
            if (loaded_[op->rs1] == kNone) kept |= bit_of(op->rs1);
            op += 2;
        } else if (op->fn == loads) {
            const bool first = low_ > high_;
            if ((changed & bit_of(op->rs1)) != 0 || (kept & bit_of(op->rd)) != 0 ||
                (!first && op->rs1 != base_))
                return false;
            base_ = op->rs1;
            low_ = std::min(low_, op->imm);
            high_ = std::max(high_, op->imm);
            loaded_[op->rd] = op->imm;
            ++load_count_;
            op += 2;
        } else if (op->fn == op_vector_memory) {
            if (row_ != nullptr || op->rd != product->rs2 || !is_plain_load(file, op) ||
                (changed & bit_of(op->rs1)) != 0)
                return false;
            row_ = op;
            op += 2;
        } else {
            const KnownHandler* const which = known.find(op->fn);
            if (which == nullptr) return false;
            if (which->code == OpCode::kVectorConfig) {
                // That it keeps vl was seen in the turn before.
                if (op->rd != 0) return false;
                ++config_count_;
                of_vl |= bit_of(op->rs1) | (op->aux == kVsetvl ? bit_of(op->rs2) : 0);
            } else if (adds(which->code)) {
                if (addition_count_ == kMostAdditions) return false;
                additions_[addition_count_++] = {op, which->code};
                changed |= bit_of(op->rd);
            } else {
                return false;
            }
            op += which->length;
        }
    }
    branch_ = branch;
    branch_code_ = known.find(branch->fn)->code;
    return row_ != nullptr && product_count_ != 0 && low_ <= high_ && (changed & of_vl) == 0;
}

template <class T>
std::uint64_t RowTurns::run(Core* core, std::int64_t left, std::uint64_t cycles, bool& goes_on) const {
    VectorFile& file = *core->vector;
    VectorFile::Pending& pending = file.pending;
    VectorProducts& all = pending.all;
    const std::uint64_t bytes = file.vl * sizeof(T);
    if (pending.in_last != product_count_ || all.sums != product_count_ ||
        bytes > VectorFile::Pending::kMostBytes)
        return 0;
    T kept[VectorProducts::kSums] = {};
    for (unsigned k = 0; k < product_count_; ++k) {
        const Product& product = products_[k];
        if (all.vd[k] != file.reg(product.vd)) return 0;
        if (product.offset == kNone)
            kept[k] = unboxed<T>(core->f[product.fs]);
        else if ((product.offset - low_) % static_cast<std::int32_t>(sizeof(T)) != 0)
            return 0;
    }
    VectorFile::Row& row = row_at(file, row_);
    const std::uint8_t* base = nullptr;
    std::uint64_t turns = 0;
    for (; goes_on && left > static_cast<std::int64_t>(cycles); left -= static_cast<std::int64_t>(cycles)) {
        const std::uint64_t first = core->x[base_] + sext(low_), last = core->x[base_] + sext(high_);
        const PageEntry& entry = core->page_entry(first);
        if (entry.load_tag != tag_of<T>(first) || ((first ^ last) & ~kPageOffset) != 0) break;
        const std::uint64_t va = core->x[row_->rs1];
        const std::uint8_t* const host = row_in_place(core, row, va, bytes, pending.log2);
        if (host == nullptr || !core->meter.has_room(bytes)) break;
        take_row(core, host);
        base = entry.host(core->x[base_]);
        for (unsigned k = 0; k < product_count_; ++k)
            put_factor<T>(all, all.rows - 1, k,
                          products_[k].offset == kNone ? kept[k] : factor_at<T>(base + products_[k].offset));
        pending.in_last = product_count_;
        expect_next(row, va, host, bytes);
        core->meter.stream(va, bytes, PagePlace::kVram, false, true);
        for (unsigned i = 0; i < addition_count_; ++i)
            add_up(core, additions_[i].op, additions_[i].code);
        goes_on = taken(core, branch_, branch_code_);
        ++turns;
    }
    for (unsigned rd = 0; turns != 0 && rd < std::size(loaded_); ++rd)
        if (loaded_[rd] != kNone) core->f[rd] = kBoxOf<T> | factor_at<T>(base + loaded_[rd]);
    return turns;
}
template std::uint64_t RowTurns::run<std::uint32_t>(Core*, std::int64_t, std::uint64_t, bool&) const;
template std::uint64_t RowTurns::run<std::uint64_t>(Core*, std::int64_t, std::uint64_t, bool&) const;

}  // namespace orrery::emu
