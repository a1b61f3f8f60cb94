// Arithmetic vector instructions: what all have in common around their element kernels.
#include "emulator/core/vector/execute.h"

#include <bit>
#include <cstring>
#include <utility>

#include "emulator/core/host_fp.h"
#include "emulator/core/vector/cost.h"
#include "emulator/core/vector/counting.h"
#include "emulator/core/vector/legal.h"

namespace orrery::emu {

void merge_bits(std::uint8_t* vd, const std::uint8_t* from, const std::uint8_t* mask, std::uint64_t start,
                std::uint64_t vl) {
    for (std::uint64_t at = start / 64 * 64; at < vl; at += 64) {
        std::uint64_t bits = ~std::uint64_t{0}, before, now;
        if (mask != nullptr) std::memcpy(&bits, mask + at / 8, sizeof bits);
        if (start > at) bits &= ~std::uint64_t{0} << (start - at);
        if (vl - at < 64) bits &= ~std::uint64_t{0} >> (64 - (vl - at));
        std::memcpy(&before, vd + at / 8, sizeof before);
        std::memcpy(&now, from + at / 8, sizeof now);
        now = (before & ~bits) | (now & bits);
        std::memcpy(vd + at / 8, &now, sizeof now);
    }
}

namespace {

using namespace vector_property;

// Of these an element depends on all before it, and the specification wants vstart to be 0.
bool begins_at_zero(const VectorRow& what, VectorOp op) {
    if (what.has(kReduce)) return true;
    switch (op) {
        case VectorOp::kVcpopM:
        case VectorOp::kVfirstM:
        case VectorOp::kVmsbfM:
        case VectorOp::kVmsifM:
        case VectorOp::kVmsofM:
        case VectorOp::kViotaM:
        case VectorOp::kVcompressVm:
            return true;
        default:
            return false;
    }
}

bool fp_ready(const Core* core) {
    constexpr unsigned kLastMode = 4;
    return (core->mstatus & kMstatusFs) != 0 && core->frm <= kLastMode;
}

std::uint64_t scalar_of(const Core* core, const Op* op, VectorOperand operand) {
    switch (operand) {
        case VectorOperand::kX:
        case VectorOperand::kXWhole:
            return core->x[op->rs1];
        case VectorOperand::kF:
            return core->f[op->rs1];
        case VectorOperand::kSigned:
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::uint64_t{op->rs1} << 59) >> 59);
        case VectorOperand::kUnsigned:
            return op->rs1;
        default:
            return 0;
    }
}

// vmv<n>r.v: elements of SEW, as many as the registers hold.
std::uint64_t move_whole(VectorFile& file, const Op* op) {
    const std::uint64_t bytes = (op->rs1 + std::uint64_t{1}) * file.vlen_bytes;
    const std::uint64_t start = std::min(file.vstart << (file.sew_log2 - 3), bytes);
    std::memmove(file.reg(op->rd) + start, file.reg(op->rs2) + start, bytes - start);
    return cycles_of_bits(file, bytes * 8);
}

// The kernel writes beside vd, because operands lie there or because it minds no mask.
void run_aside(VectorFile& file, VectorOperands& o, const VectorKernels::Entry& kernel,
               const std::uint8_t* active, const GroupShape& to, bool is_mask) {
    std::uint8_t* const vd = o.vd;
    o.vd = file.aside;
    if (kernel.minds_mask) {
        const std::size_t bytes = static_cast<std::size_t>(to.registers()) * file.vlen_bytes;
        std::memcpy(file.aside, vd, bytes);
        kernel.run(o);
        std::memcpy(vd, file.aside, bytes);
        return;
    }
    if (is_mask) {
        kernel.run(o);
        merge_bits(vd, file.aside, active, o.start, o.vl);
        return;
    }
    const auto log2 = static_cast<unsigned>(to.eew_log2 - 3);
    std::memcpy(file.aside, vd, o.vl << log2);
    kernel.run(o);
    if (active != nullptr) {
        file.kernels->blend(vd, file.aside, active, o.start, o.vl, log2);
    } else {
        std::memcpy(vd + (o.start << log2), file.aside + (o.start << log2), (o.vl - o.start) << log2);
    }
}

// Before it runs, as it may write the mask.
void count_arithmetic(Core* core, const Op* op, const VectorRow& what) {
    VectorFile& file = *core->vector;
    const auto sew = static_cast<unsigned>(file.sew_log2);
    const VectorTraits traits = kVectorTraits[static_cast<std::size_t>(vector_op(op))];
    if (what.has(kWhole)) {
        const std::uint64_t elements =
            ((op->rs1 + std::uint64_t{1}) * file.vlen_bytes) >> (file.sew_log2 - 3);
        return count_vector(file.work, traits, sew, elements, elements);
    }
    // Of element 0 alone: to a register of scalars whatever vl is.
    if (what.has(kScalar)) {
        const bool done = what.vd != VectorOperand::kElement || file.vstart < file.vl;
        return count_vector(file.work, traits, sew, done ? 1 : 0, 1);
    }
    std::uint64_t active = file.vstart < file.vl ? file.vl - file.vstart : 0;
    if (active != 0 && what.maskable() && !unmasked(op)) active = ones_in(file.v, file.vstart, file.vl);
    count_vector(file.work, traits, sew, active, file.vlmax);
}

// Between kernel and hart: what comes out besides vd.
void take_results(Core* core, const Op* op, const VectorRow& what, const VectorOperands& o) {
    VectorFile& file = *core->vector;
    file.vxsat = file.vxsat | (o.vxsat & 1);
    core->fflags = core->fflags | (o.fflags & 31);
    if (o.slow != 0) core->spend(o.slow);
    if (what.has(kFp)) core->mstatus |= kMstatusFs;
    if (what.vd == VectorOperand::kXResult && op->rd != 0) core->x[op->rd] = o.result;
    if (what.vd == VectorOperand::kFResult) core->f[op->rd] = o.result;
}

// What it took, in cycles.
std::uint64_t run_kernel(Core* core, const Op* op, const VectorRow& what,
                         const VectorKernels::Entry& kernel) {
    VectorFile& file = *core->vector;
    const bool gives_scalar = what.vd == VectorOperand::kXResult || what.vd == VectorOperand::kFResult;
    if (file.vstart >= file.vl && !gives_scalar) return 1;
    VectorOperands o;
    o.vd = file.reg(op->rd);
    o.vs2 = file.reg(op->rs2);
    o.vs1 = file.reg(op->rs1);
    o.scalar = scalar_of(core, op, what.vs1);
    o.mask = unmasked(op) ? nullptr : file.v;
    o.start = file.vstart;
    o.vl = file.vl;
    o.vlmax = file.vlmax;
    o.vlen_bytes = file.vlen_bytes;
    o.frm = core->frm;
    o.vxrm = file.vxrm;
    // Carries and merges take v0 for an operand.
    const std::uint8_t* const active = what.maskable() ? o.mask : nullptr;
    const bool is_mask = what.vd == VectorOperand::kMask;
    const bool aside = !gives_scalar && ((static_cast<std::uint32_t>(op->imm) & kOverlaps) != 0 ||
                                         (active != nullptr && (!kernel.minds_mask || op->rd == 0)) ||
                                         (is_mask && !kernel.minds_mask));
    const auto run = [&] {
        if (aside) {
            run_aside(file, o, kernel, active, shape_of(file, what.vd, what.eew), is_mask);
        } else {
            kernel.run(o);
        }
    };
    if (file.kernels->leaves_flags && !what.has(kFp)) {
        const HostFpPause pause(core);
        run();
    } else {
        run();
    }
    take_results(core, op, what, o);
    return cycles_of(file, what, vector_op(op));
}

// So that next time op_vector() need not look at what it looked at now, if there is little to do.
void remember_plain(const VectorFile& file, Op* op, const VectorRow& what) {
    auto imm = static_cast<std::uint32_t>(op->imm);
    bool wide = false;
    const bool group = what.vd == VectorOperand::kGroup || what.vd == VectorOperand::kWide;
    if ((imm & kOverlaps) != 0 || !unmasked(op) || !group || !is_of_elements(what, vector_op(op), wide) ||
        (file.kernels->leaves_flags && !what.has(kFp)))
        return;
    const PlainScalar scalar = what.vs1 == VectorOperand::kF          ? PlainScalar::kF
                               : what.vs1 == VectorOperand::kSigned   ? PlainScalar::kSigned
                               : what.vs1 == VectorOperand::kUnsigned ? PlainScalar::kUnsigned
                                                                      : PlainScalar::kX;
    const bool runs = vector_op(op) == VectorOp::kVfmaccVf && op->rd != op->rs2 &&
                      file.kernels->products[file.sew_log2 - 3] != nullptr;
    imm |= (runs ? kBeginsRun : 0) | kPlain | (wide ? kPlainWide : 0) | (what.has(kFp) ? kPlainFp : 0) |
           std::uint32_t{std::to_underlying(scalar)} << kPlainScalarShift;
    op->imm = static_cast<std::int32_t>(imm);
}

Next op_vector_other(Core* core, Op* op, Left left) {
    compute_products(core);
    core->publish(op, left);
    const VectorOp number = vector_op(op);
    const VectorRow& what = row(number);
    VectorFile& file = *core->vector;
    bool legal = vector_on(core) && vector_legal(file, op) && (!what.has(kFp) || fp_ready(core)) &&
                 (file.vstart == 0 || !begins_at_zero(what, number));
    const VectorKernels::Entry* kernel = nullptr;
    if (legal && !what.has(kWhole)) {
        kernel = &file.kernels->of[static_cast<std::size_t>(number)][file.sew_log2 - 3];
        legal = kernel->run != nullptr;
    }
    if (!legal) {
        raise_illegal(core, op);
        ORR_STOP();
    }
    if (kernel != nullptr) remember_plain(file, op, what);
    count_arithmetic(core, op, what);
    const std::uint64_t cycles =
        kernel != nullptr ? run_kernel(core, op, what, *kernel) : move_whole(file, op);
    file.vstart = 0;
    vector_written(core);
    const bool awaited = what.vd == VectorOperand::kXResult || what.vd == VectorOperand::kFResult;
    charge_vector(core, left, file.arithmetic_until, cycles, awaited);
    op += 2;
    ORR_NEXT_SLOW(core, op, left);
}

std::uint64_t plain_scalar(const Core* core, const Op* op, std::uint32_t imm) {
    const auto scalar = static_cast<PlainScalar>(imm >> kPlainScalarShift & 3);
    if (scalar == PlainScalar::kF) return core->f[op->rs1];
    if (scalar == PlainScalar::kX) return core->x[op->rs1];
    if (scalar == PlainScalar::kUnsigned) return op->rs1;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::uint64_t{op->rs1} << 59) >> 59);
}

// Of one that is kPlain, with mstatus as it leaves it: all else is op_vector_other()'s.
void run_plain(Core* core, const Op* op, std::uint32_t imm, VectorOperands& o) {
    VectorFile& file = *core->vector;
    o.vd = file.reg(op->rd);
    o.vs2 = file.reg(op->rs2);
    o.vs1 = file.reg(op->rs1);
    o.scalar = plain_scalar(core, op, imm);
    o.frm = core->frm;
    o.vxrm = file.vxrm;
    file.kernels->of[imm & kVectorOpBits][file.sew_log2 - 3].run(o);
    if ((o.fflags | o.vxsat | o.slow) != 0) [[unlikely]] {
        core->fflags = core->fflags | (std::exchange(o.fflags, 0) & 31);
        file.vxsat = file.vxsat | (std::exchange(o.vxsat, 0) & 1);
        core->spend(std::exchange(o.slow, 0));
    }
    file.touched = true;
}

// Whether a run (run.cc) may be more than this one.
bool goes_on(const Core* core, const Op* op) {
    const Handler next = (op + 2)->fn;
    const auto load = core->vector->sew_log2 == 5 ? OpCode::kFlw : OpCode::kFld;
    return core->frm == 0 &&
           (next == op_vector || next == core->handlers->of[static_cast<unsigned>(load)][1]);
}

}  // namespace

Next op_vector(Core* core, Op* op, Left left) {
    VectorFile& file = *core->vector;
    const auto imm = static_cast<std::uint32_t>(op->imm);
    const bool fp = (imm & kPlainFp) != 0;
    const std::uint64_t dirty = kMstatusVs | (fp ? kMstatusFs : 0);
    if (ORR_UNLIKELY(!is_plain(file, op) || (core->mstatus & dirty) != dirty || (fp && !fp_ready(core))))
        ORR_CALL(op_vector_other, core, op, left);
    if ((imm & kBeginsRun) != 0 && goes_on(core, op)) ORR_CALL(op_vector_run, core, op, left);
    compute_products(core);
    VectorFile::Common& known = common(file);
    run_plain(core, op, imm, known.operands);
    count_plain(file, imm);
    charge_vector(core, left, file.arithmetic_until, known.cycles[(imm & kPlainWide) != 0 ? 1 : 0], false);
    op += 2;
    ORR_NEXT_SLOW(core, op, left);
}

void add_config_handlers(HandlerTable& table);

void add_vector_handlers(HandlerTable& table) {
    add_config_handlers(table);
    table.set(OpCode::kVector, nullptr, op_vector);
    table.set(OpCode::kVectorMemory, nullptr, op_vector_memory);
}

}  // namespace orrery::emu
