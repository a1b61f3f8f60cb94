// Integer computations.
#include "emulator/core/alu.h"
#include "emulator/core/handler.h"

namespace orrery::emu {
namespace {

template <class Function, unsigned kLength>
Next op_reg(Core* core, Op* op, Left left) {
    core->x[op->rd] = Function::of(core->x[op->rs1], core->x[op->rs2]);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <class Function, unsigned kLength>
Next op_muldiv(Core* core, Op* op, Left left) {
    core->x[op->rd] = Function::of(core->x[op->rs1], core->x[op->rs2]);
    count_scalar(core, ScalarClass::kMulDiv);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <class Function, unsigned kLength>
Next op_imm(Core* core, Op* op, Left left) {
    core->x[op->rd] = Function::of(core->x[op->rs1], sext(op->imm));
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_nop(Core* core, Op* op, Left left) {
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_mv(Core* core, Op* op, Left left) {
    core->x[op->rd] = core->x[op->rs1];
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_li(Core* core, Op* op, Left left) {
    core->x[op->rd] = sext(op->imm);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_liu(Core* core, Op* op, Left left) {
    core->x[op->rd] = static_cast<std::uint32_t>(op->imm);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_auipc(Core* core, Op* op, Left left) {
    core->x[op->rd] = core->pc_of(op) + sext(op->imm);
    op += kLength;
    ORR_NEXT(core, op, left);
}

}  // namespace

void add_int_handlers(HandlerTable& table) {
#define PLAIN(code, name) table.set(OpCode::code, name<1>, name<2>)
#define REG(name) table.set(OpCode::k##name, op_reg<name, 1>, op_reg<name, 2>)
#define MULDIV(name) table.set(OpCode::k##name, op_muldiv<name, 1>, op_muldiv<name, 2>)
#define IMM(code, name) table.set(OpCode::code, op_imm<name, 1>, op_imm<name, 2>)
    PLAIN(kNop, op_nop);
    PLAIN(kMv, op_mv);
    PLAIN(kLi, op_li);
    PLAIN(kLiu, op_liu);
    PLAIN(kAuipc, op_auipc);
    REG(Add);
    REG(Sub);
    REG(Sll);
    REG(Slt);
    REG(Sltu);
    REG(Xor);
    REG(Srl);
    REG(Sra);
    REG(Or);
    REG(And);
    REG(Addw);
    REG(Subw);
    REG(Sllw);
    REG(Srlw);
    REG(Sraw);
    MULDIV(Mul);
    MULDIV(Mulh);
    MULDIV(Mulhsu);
    MULDIV(Mulhu);
    MULDIV(Div);
    MULDIV(Divu);
    MULDIV(Rem);
    MULDIV(Remu);
    MULDIV(Mulw);
    MULDIV(Divw);
    MULDIV(Divuw);
    MULDIV(Remw);
    MULDIV(Remuw);
    IMM(kAddi, Add);
    IMM(kSlti, Slt);
    IMM(kSltiu, Sltu);
    IMM(kXori, Xor);
    IMM(kOri, Or);
    IMM(kAndi, And);
    IMM(kSlli, Sll);
    IMM(kSrli, Srl);
    IMM(kSrai, Sra);
    IMM(kAddiw, Addw);
    IMM(kSlliw, Sllw);
    IMM(kSrliw, Srlw);
    IMM(kSraiw, Sraw);
#undef PLAIN
#undef REG
#undef MULDIV
#undef IMM
}

}  // namespace orrery::emu
