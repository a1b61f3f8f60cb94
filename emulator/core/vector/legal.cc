// What makes an arithmetic vector instruction illegal, by its registers and vtype.
#include "emulator/core/vector/legal.h"

namespace orrery::emu {

GroupShape shape_of(const VectorFile& file, VectorOperand operand, unsigned eew) {
    const auto scaled = [&](int by) { return GroupShape{file.sew_log2 + by, file.lmul_log2 + by}; };
    switch (operand) {
        case VectorOperand::kGroup:
            return scaled(0);
        case VectorOperand::kWide:
            return scaled(1);
        case VectorOperand::kHalf:
            return scaled(-1);
        case VectorOperand::kQuarter:
            return scaled(-2);
        case VectorOperand::kEighth:
            return scaled(-3);
        case VectorOperand::kGroup16:
            return scaled(4 - file.sew_log2);
        case VectorOperand::kData: {
            const int eew_log2 = eew == 8 ? 3 : eew == 16 ? 4 : eew == 32 ? 5 : 6;
            return scaled(eew_log2 - file.sew_log2);
        }
        case VectorOperand::kWideElement:
            return {file.sew_log2 + 1, 0};
        case VectorOperand::kElement:
            return {file.sew_log2, 0};
        default:
            return {0, 0};  // a mask, in one register
    }
}

bool may_overlap(unsigned vd, const GroupShape& to, unsigned vs, const GroupShape& from) {
    if (to.eew_log2 == from.eew_log2 || !overlap(vd, to.registers(), vs, from.registers())) return true;
    // Narrower than the source: in its lowest part.
    if (to.eew_log2 < from.eew_log2) return vd == vs;
    // Wider: a whole group in the highest part.
    return from.emul_log2 >= 0 &&
           static_cast<int>(vs) + from.registers() == static_cast<int>(vd) + to.registers();
}

namespace {

bool is_group(VectorOperand operand) {
    switch (operand) {
        case VectorOperand::kGroup:
        case VectorOperand::kWide:
        case VectorOperand::kHalf:
        case VectorOperand::kQuarter:
        case VectorOperand::kEighth:
        case VectorOperand::kGroup16:
        case VectorOperand::kMask:
            return true;
        default:
            return false;
    }
}
bool is_element(VectorOperand operand) {
    return operand == VectorOperand::kElement || operand == VectorOperand::kWideElement;
}
bool is_result(VectorOperand operand) {
    return operand == VectorOperand::kXResult || operand == VectorOperand::kFResult;
}

class Check {
  public:
    Check(const VectorFile& file, const Op* op)
        : file_(file), op_(op), row_(row(vector_op(op))), to_(shape_of(file, row_.vd, row_.eew)) {}

    bool legal() {
        if (row_.has(vector_property::kWhole)) return whole();
        if (!destination()) return false;
        return source(row_.vs2, op_->rs2) && source(row_.vs1, op_->rs1);
    }
    bool overlaps() const { return overlaps_; }

  private:
    bool whole() {
        const unsigned registers = op_->rs1 + 1u;
        return op_->rd % registers == 0 && op_->rs2 % registers == 0;
    }
    bool destination() const {
        if (is_result(row_.vd)) return true;
        if (row_.vd == VectorOperand::kMask)  // may be v0 itself
            return !row_.has(vector_property::kNoOverlap) || unmasked(op_) || op_->rd != 0;
        if (is_element(row_.vd)) return fits(to_, 0);
        return fits(to_, op_->rd) && (unmasked(op_) || op_->rd != 0);
    }
    bool source(VectorOperand operand, unsigned number) {
        const bool element = is_element(operand);
        if (!element && !is_group(operand)) return true;
        const GroupShape from = shape_of(file_, operand, row_.eew);
        if (operand != VectorOperand::kMask && !fits(from, element ? 0 : number)) return false;
        if (is_result(row_.vd) || !overlap(op_->rd, to_.registers(), number, from.registers())) return true;
        if (number != op_->rd || from.eew_log2 != to_.eew_log2) overlaps_ = true;
        // Of one element there is no group to overlap.
        if (element || is_element(row_.vd)) return true;
        return !row_.has(vector_property::kNoOverlap) && may_overlap(op_->rd, to_, number, from);
    }

    const VectorFile& file_;
    const Op* op_;
    const VectorRow& row_;
    GroupShape to_;
    bool overlaps_ = false;
};

}  // namespace

bool vector_legal(const VectorFile& file, Op* op) {
    const std::uint32_t now = static_cast<std::uint32_t>(file.vtype & 0xff) << 16 | kChecked;
    const auto imm = static_cast<std::uint32_t>(op->imm);
    if ((imm & (kCheckedVtype | kChecked)) == now && file.vtype != kVill) return true;
    if (file.vtype == kVill) return false;
    Check check(file, op);
    if (!check.legal()) return false;
    op->imm = static_cast<std::int32_t>((imm & 0xffff) | now | (check.overlaps() ? kOverlaps : 0));
    return true;
}

}  // namespace orrery::emu
