// System instructions: exceptions on purpose, MRET, WFI, FENCE.I, CSR accesses.
#include "emulator/core/handler.h"

namespace orrery::emu {
namespace {

Next op_illegal(Core* core, Op* op, Left left) {
    ORR_TRAP(core, op, left, Cause::kIllegal, static_cast<std::uint32_t>(op->imm));
}

Next op_ecall(Core* core, Op* op, Left left) {
    ORR_TRAP(core, op, left, Cause::kEcall, 0);
}

Next op_ebreak(Core* core, Op* op, Left left) {
    core->publish(op, left);
    if (core->config.ebreak_to_host) {
        core->has_stop = true;
        core->stop = StopReason::kEbreak;
    } else {
        core->raise(Cause::kBreakpoint, core->pc);
    }
    ORR_STOP();
}

Next op_mret(Core* core, Op*, Left left) {
    const std::uint64_t enable = (core->mstatus & kMstatusMpie) != 0 ? kMstatusMie : 0;
    core->mstatus = (core->mstatus & ~kMstatusMie) | enable | kMstatusMpie;
    core->pc = core->mepc;
    core->keep(left - kLeftStep);
    count_scalar(core, ScalarClass::kSystem);
    ORR_STOP();
}

Next op_wfi(Core* core, Op* op, Left left) {
    core->waiting = (core->mip & core->mie) == 0;
    count_scalar(core, ScalarClass::kSystem);
    core->publish(op + 2, left - kLeftStep);
    ORR_STOP();
}

Next op_fence_i(Core* core, Op* op, Left left) {
    if (core->overlay != nullptr) {
        core->publish(op, left);
        core->held = true;
        ORR_STOP();
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    core->publish(op + 2, left - kLeftStep);
    count_scalar(core, ScalarClass::kSystem);
    drop_code(core);
    ORR_STOP();
}

// aux: see decode.h. False: illegal, nothing changed.
bool access_csr(Core* core, const Op* op) {
    const auto number = static_cast<std::uint32_t>(op->imm);
    const unsigned function = op->aux & 3u;
    const bool immediate = (op->aux & 4) != 0;
    const std::uint64_t operand = immediate ? op->rs1 : core->x[op->rs1];
    const bool writes = function == 1 || op->rs1 != 0;
    const bool reads = function != 1 || op->rd != 0;
    if (writes && (number >> 10 & 3) == 3) return false;
    std::uint64_t old = 0;
    if (reads && !read_csr(core, number, old)) return false;
    if (writes) {
        const std::uint64_t value = function == 1 ? operand : function == 2 ? old | operand : old & ~operand;
        if (!write_csr(core, number, value)) return false;
    }
    if (op->rd != 0) core->x[op->rd] = old;
    return true;
}

// The instruction, put together again: its page may be gone after a call of the bus.
std::uint64_t csr_bits(const Op* op) {
    return static_cast<std::uint32_t>(op->imm) << 20 | static_cast<std::uint32_t>(op->rs1) << 15 |
           static_cast<std::uint32_t>(op->aux) << 12 | static_cast<std::uint32_t>(op->rd) << 7 | 0x73u;
}

Next op_csr(Core* core, Op* op, Left left) {
    core->publish(op, left);
    if (!access_csr(core, op)) {
        core->raise(Cause::kIllegal, csr_bits(op));
        ORR_STOP();
    }
    count_scalar(core, ScalarClass::kSystem);
    op += 2;
    ORR_NEXT_SLOW(core, op, left);
}

// A read of one of Config::csr_words.
Next op_csr_word(Core* core, Op* op, Left left) {
    core->x[op->rd] = core->config.csr_words[static_cast<std::uint32_t>(op->imm)];
    count_scalar(core, ScalarClass::kSystem);
    op += 2;
    ORR_NEXT(core, op, left);
}

}  // namespace

void add_sys_handlers(HandlerTable& table) {
    table.set(OpCode::kIllegal, op_illegal, op_illegal);
    table.set(OpCode::kEbreak, op_ebreak, op_ebreak);  // C.EBREAK exists
    table.set(OpCode::kEcall, nullptr, op_ecall);
    table.set(OpCode::kMret, nullptr, op_mret);
    table.set(OpCode::kWfi, nullptr, op_wfi);
    table.set(OpCode::kFenceI, nullptr, op_fence_i);
    table.set(OpCode::kCsr, nullptr, op_csr);
    table.set(OpCode::kCsrWord, nullptr, op_csr_word);
}

}  // namespace orrery::emu
