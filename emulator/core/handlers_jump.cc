// Branches and jumps. All budget checks of straight code are in ORR_NEXT; here too every path makes its own.
#include "emulator/core/alu.h"
#include "emulator/core/handler.h"

namespace orrery::emu {
namespace {

template <class Condition, unsigned kLength>
Next op_branch_near(Core* core, Op* op, Left left) {
    if (Condition::of(core->x[op->rs1], core->x[op->rs2])) {
        op += op->imm;
        // Keeps the two ends apart: merged, the address of the next Op would wait for the comparison.
        asm volatile("" : "+r"(op));
        ORR_NEXT_AS(core, op, left, kLeftJump);
    }
    op += kLength;
    ORR_NEXT_AS(core, op, left, kLeftJump);
}
template <class Condition, unsigned kLength>
Next op_branch_far(Core* core, Op* op, Left left) {
    if (Condition::of(core->x[op->rs1], core->x[op->rs2])) {
        ORR_JUMP(core, core->pc_of(op) + sext(op->imm), left);
    }
    op += kLength;
    ORR_NEXT_AS(core, op, left, kLeftJump);
}
template <unsigned kLength>
Next op_j_near(Core* core, Op* op, Left left) {
    op += op->imm;
    ORR_NEXT_AS(core, op, left, kLeftJump);
}
template <unsigned kLength>
Next op_jal_near(Core* core, Op* op, Left left) {
    core->x[op->rd] = core->pc_of(op) + 2 * kLength;
    op += op->imm;
    ORR_NEXT_AS(core, op, left, kLeftJump);
}
template <unsigned kLength>
Next op_jal_far(Core* core, Op* op, Left left) {
    const std::uint64_t pc = core->pc_of(op);
    core->x[op->rd] = pc + 2 * kLength;
    ORR_JUMP(core, pc + sext(op->imm), left);
}
template <unsigned kLength>
Next op_jalr(Core* core, Op* op, Left left) {
    const std::uint64_t target = (core->x[op->rs1] + sext(op->imm)) & ~std::uint64_t{1};
    core->x[op->rd] = core->pc_of(op) + 2 * kLength;
    ORR_JUMP(core, target, left);
}
template <unsigned kLength>
Next op_jr(Core* core, Op* op, Left left) {
    ORR_JUMP(core, (core->x[op->rs1] + sext(op->imm)) & ~std::uint64_t{1}, left);
}

}  // namespace

void add_jump_handlers(HandlerTable& table) {
#define BRANCH(code, name)                                                           \
    table.set(OpCode::code##Near, op_branch_near<name, 1>, op_branch_near<name, 2>); \
    table.set(OpCode::code##Far, op_branch_far<name, 1>, op_branch_far<name, 2>)
    BRANCH(kBeq, Eq);
    BRANCH(kBne, Ne);
    BRANCH(kBlt, Lt);
    BRANCH(kBge, Ge);
    BRANCH(kBltu, Ltu);
    BRANCH(kBgeu, Geu);
#undef BRANCH
    table.set(OpCode::kJNear, op_j_near<1>, op_j_near<2>);
    table.set(OpCode::kJalNear, op_jal_near<1>, op_jal_near<2>);
    table.set(OpCode::kJalFar, op_jal_far<1>, op_jal_far<2>);
    table.set(OpCode::kJalr, op_jalr<1>, op_jalr<2>);
    table.set(OpCode::kJr, op_jr<1>, op_jr<2>);
}

}  // namespace orrery::emu
