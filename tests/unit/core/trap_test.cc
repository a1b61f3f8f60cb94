// Exceptions and interrupts: what is written where, and when.
#include <gtest/gtest.h>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kHandler = kRam + 0x1000;
constexpr std::uint64_t kNowhere = 0x4000000000;
constexpr std::uint64_t kMie = 1u << 3, kMpie = 1u << 7, kMpp = 3u << 11;

// With the trap handler at kHandler and a0 as given.
struct Trapping : Machine {
    explicit Trapping(std::initializer_list<std::uint32_t> instructions, std::uint64_t value = 0,
                      const Config& config = plain_config())
        : Machine(config) {
        HartState state = hart.state();
        state.mtvec = kHandler;
        state.x[a0] = value;
        hart.set_state(state);
        code(instructions);
    }
    void expect_trap(Cause cause, std::uint64_t tval, std::uint64_t pc) {
        const HartState state = hart.state();
        EXPECT_EQ(state.mcause, static_cast<std::uint64_t>(cause)) << to_string(cause);
        EXPECT_EQ(state.mtval, tval);
        EXPECT_EQ(state.mepc, pc);
        EXPECT_EQ(state.pc, kHandler);
    }
};

TEST(Trap, IllegalInstructionGivesItsBits) {
    Trapping m({nop(), 0xffffffff});
    EXPECT_EQ(m.hart.run(2), StopReason::kBudget);
    m.expect_trap(Cause::kIllegal, 0xffffffff, kRam + 4);
}

TEST(Trap, IllegalCompressedInstructionGivesSixteenBits) {
    Trapping m({0x12348000});  // 0x8000: reserved
    m.hart.run(1);
    m.expect_trap(Cause::kIllegal, 0x8000, kRam);
}

TEST(Trap, AllZeroIsIllegal) {
    Trapping m({0});
    m.hart.run(1);
    m.expect_trap(Cause::kIllegal, 0, kRam);
}

TEST(Trap, ExceptionTakesAStepAndDoesNotRetire) {
    Trapping m({nop(), ecall()});
    m.hart.run(2);
    m.expect_trap(Cause::kEcall, 0, kRam + 4);
    EXPECT_EQ(m.hart.state().steps, 2u);
    EXPECT_EQ(m.hart.state().minstret, 1u);
    EXPECT_EQ(m.hart.state().mcycle, 2u);
}

TEST(Trap, ThatRaisesItselfEndsWithTheBudget) {
    Trapping m({ecall()});
    m.bus.put_code(kHandler, {ecall()});
    EXPECT_EQ(m.hart.run(1000), StopReason::kBudget);
    EXPECT_EQ(m.hart.steps(), 1000u);
    EXPECT_EQ(m.hart.state().minstret, 0u);
}

TEST(Trap, HandlerThatCannotBeFetchedEndsWithTheBudget) {
    Trapping m({ecall()});
    HartState state = m.hart.state();
    state.mtvec = kNowhere;
    m.hart.set_state(state);
    EXPECT_EQ(m.hart.run(1000), StopReason::kBudget);
    EXPECT_EQ(m.hart.state().mcause, 1u);
    EXPECT_EQ(m.hart.state().mepc, kNowhere);
}

TEST(Trap, EbreakGivesItsAddress) {
    Trapping m({nop(), ebreak()});
    m.hart.run(2);
    m.expect_trap(Cause::kBreakpoint, kRam + 4, kRam + 4);
}

TEST(Trap, LoadAndStoreFaultsGiveTheAddressAndChangeNothing) {
    Trapping load_fault({ld(a1, a0, 8)}, kNowhere);
    load_fault.hart.set_x(a1, 77);
    load_fault.hart.run(1);
    load_fault.expect_trap(Cause::kLoadAccess, kNowhere + 8, kRam);
    EXPECT_EQ(load_fault.hart.x(a1), 77u);
    Trapping store_fault({sd(a1, a0, -8)}, kNowhere);
    store_fault.hart.run(1);
    store_fault.expect_trap(Cause::kStoreAccess, kNowhere - 8, kRam);
}

TEST(Trap, FetchFaultGivesTheTarget) {
    Trapping m({jalr(ra, a0, 0)}, kNowhere + 2);
    m.hart.run(2);
    m.expect_trap(Cause::kFetchAccess, kNowhere + 2, kNowhere + 2);
    EXPECT_EQ(m.hart.x(ra), kRam + 4);  // the jump itself is done
    EXPECT_EQ(m.hart.state().minstret, 1u);
}

TEST(Trap, MisalignedAtomicsTrap) {
    Trapping lr({lr_w(a1, a0)}, kRam + 0x2002);
    lr.hart.run(1);
    lr.expect_trap(Cause::kLoadMisaligned, kRam + 0x2002, kRam);
    Trapping sc({sc_d(a1, a2, a0)}, kRam + 0x2004);
    sc.hart.run(1);
    sc.expect_trap(Cause::kStoreMisaligned, kRam + 0x2004, kRam);
    Trapping add_w({amo(0, 2, a1, a0, a2)}, kRam + 0x2001);
    add_w.hart.run(1);
    add_w.expect_trap(Cause::kStoreMisaligned, kRam + 0x2001, kRam);
}

TEST(Trap, EntryAndReturnMoveTheInterruptEnable) {
    Trapping m({csrrwi(x0, kCsrMstatus, 8), ecall(), nop()});
    m.bus.put_code(kHandler,
                   {csrr(t0, kCsrMstatus), csrr(t1, kCsrMepc), addi(t1, t1, 4), csrw(kCsrMepc, t1), mret()});
    m.hart.run(2);
    EXPECT_EQ(m.hart.state().mstatus, kMpie | kMpp);
    m.hart.run(5);
    EXPECT_EQ(m.hart.x(t0), kMpie | kMpp);
    EXPECT_EQ(m.hart.state().mstatus, kMie | kMpie | kMpp);
    EXPECT_EQ(m.hart.pc(), kRam + 8);
}

TEST(Trap, ToHostStopsAtTheInstruction) {
    Config config = plain_config();
    config.trap_to_host = true;
    Trapping m({nop(), ld(a1, a0, 0)}, kNowhere, config);
    EXPECT_EQ(m.hart.run(10), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kLoadAccess);
    EXPECT_EQ(m.hart.trap().tval, kNowhere);
    EXPECT_EQ(m.hart.trap().pc, kRam + 4);
    EXPECT_EQ(m.hart.pc(), kRam + 4);
    EXPECT_EQ(m.hart.steps(), 1u);
    EXPECT_EQ(m.hart.state().mcause, 0u);
    // The host may mend it and go on.
    m.hart.set_x(a0, kRam);
    EXPECT_EQ(m.hart.run(1), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a1), m.bus.get<std::uint64_t>(kRam));
}

TEST(Trap, EbreakToHostLeavesOtherExceptionsAlone) {
    Config config = plain_config();
    config.ebreak_to_host = true;
    Trapping m({ebreak(), ecall()}, 0, config);
    EXPECT_EQ(m.hart.run(10), StopReason::kEbreak);
    EXPECT_EQ(m.hart.pc(), kRam);
    m.hart.set_pc(kRam + 4);
    EXPECT_EQ(m.hart.run(1), StopReason::kBudget);
    m.expect_trap(Cause::kEcall, 0, kRam + 4);
}

// --- interrupts ---

struct Interruptible : Trapping {
    explicit Interruptible(std::uint64_t mtvec = kHandler) : Trapping({nop(), nop(), nop(), nop()}) {
        HartState state = hart.state();
        state.mstatus = kMie;
        state.mie = 0x888;
        state.mtvec = mtvec;
        hart.set_state(state);
        for (int slot = 0; slot < 12; ++slot)
            bus.put_code(kHandler + 4 * static_cast<unsigned>(slot), {nop()});
    }
};

TEST(Interrupt, IsTakenBeforeTheNextInstructionAndTakesNoStep) {
    Interruptible m;
    m.hart.run(2);
    m.hart.set_irq(Irq::kTimer, true);
    m.hart.run(1);  // the handler's first instruction
    const HartState state = m.hart.state();
    EXPECT_EQ(state.pc, kHandler + 4);
    EXPECT_EQ(state.mepc, kRam + 8);
    EXPECT_EQ(state.mcause, 1ull << 63 | 7);
    EXPECT_EQ(state.mtval, 0u);
    EXPECT_EQ(state.mstatus, kMpie | kMpp);
    EXPECT_EQ(state.steps, 3u);
    EXPECT_EQ(state.minstret, 3u);
}

TEST(Interrupt, PriorityIsExternalSoftwareTimer) {
    for (const auto& [lines, expected] : {std::pair{0x888u, 11u}, {0x88u, 3u}, {0x80u, 7u}}) {
        Interruptible m;
        for (const Irq line : {Irq::kSoftware, Irq::kTimer, Irq::kExternal}) {
            m.hart.set_irq(line, (lines >> static_cast<unsigned>(line) & 1) != 0);
        }
        m.hart.run(1);
        EXPECT_EQ(m.hart.state().mcause, 1ull << 63 | expected);
    }
}

TEST(Interrupt, VectoredModeJumpsByCauseForInterruptsOnly) {
    Interruptible m(kHandler | 1);
    m.hart.set_irq(Irq::kExternal, true);
    m.hart.run(1);
    EXPECT_EQ(m.hart.pc(), kHandler + 4 * 11 + 4);
    Interruptible exception(kHandler | 1);
    exception.code({ecall()});
    exception.hart.run(1);
    EXPECT_EQ(exception.hart.pc(), kHandler);
}

TEST(Interrupt, WaitsForBothEnables) {
    Interruptible m;
    HartState state = m.hart.state();
    state.mstatus = 0;
    m.hart.set_state(state);
    m.hart.set_irq(Irq::kTimer, true);
    m.hart.run(1);
    EXPECT_EQ(m.hart.pc(), kRam + 4);
    // Enabling it in the program: the instruction after the CSR write does not execute.
    m.code({nop(), csrrsi(x0, kCsrMstatus, 8), li(a1, 1)});
    m.hart.run(1);
    EXPECT_EQ(m.hart.pc(), kRam + 8);
    m.hart.run(1);
    EXPECT_EQ(m.hart.state().mepc, kRam + 8);
    EXPECT_EQ(m.hart.x(a1), 0u);
}

TEST(Interrupt, MaskedByMieStaysPending) {
    Interruptible m;
    m.code({csrrw(x0, kCsrMie, x0), csrr(a1, kCsrMip), csrrw(x0, kCsrMip, x0), csrr(a2, kCsrMip)});
    m.hart.run(1);
    m.hart.set_irq(Irq::kExternal, true);
    m.hart.run(3);
    EXPECT_EQ(m.hart.pc(), kRam + 16);
    EXPECT_EQ(m.hart.x(a1), 0x800u);
    EXPECT_EQ(m.hart.x(a2), 0x800u);  // the guest cannot clear a line
}

TEST(Interrupt, RaisedByAStoreIsTakenRightAfterIt) {
    Interruptible m;
    m.bus.on_store = [&](std::uint64_t, unsigned, std::uint64_t value) {
        m.hart.set_irq(Irq::kExternal, value != 0);
        return true;
    };
    m.code({lui(a0, 0x10000), sw(a0, a0, 0), li(a1, 1)});
    m.hart.run(3);
    EXPECT_EQ(m.hart.state().mepc, kRam + 8);
    EXPECT_EQ(m.hart.x(a1), 0u);
    EXPECT_EQ(m.hart.pc(), kHandler + 4);
}

TEST(Interrupt, BetweenMretAndTheNextInstruction) {
    Interruptible m;
    m.bus.put_code(kHandler, {mret()});
    m.hart.set_irq(Irq::kTimer, true);  // never cleared
    EXPECT_EQ(m.hart.run(100), StopReason::kBudget);
    EXPECT_EQ(m.hart.state().mepc, kRam);  // no progress, and no hang
    EXPECT_EQ(m.hart.steps(), 100u);
}

// --- WFI ---

TEST(Wfi, StopsUntilAnEnabledInterruptIsPending) {
    Machine m;
    m.code({csrrw(x0, kCsrMie, a0), wfi(), li(a1, 1)});
    m.hart.set_x(a0, 1u << 7);
    EXPECT_EQ(m.hart.run(100), StopReason::kWfi);
    EXPECT_EQ(m.hart.steps(), 2u);
    EXPECT_EQ(m.hart.pc(), kRam + 8);
    EXPECT_EQ(m.hart.run(100), StopReason::kWfi);
    EXPECT_EQ(m.hart.steps(), 2u);
    m.hart.set_irq(Irq::kExternal, true);  // not enabled in mie
    EXPECT_EQ(m.hart.run(100), StopReason::kWfi);
    m.hart.set_irq(Irq::kTimer, true);  // enabled in mie; mstatus.MIE does not matter
    EXPECT_EQ(m.hart.run(1), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a1), 1u);
}

TEST(Wfi, GoesOnAtOnceIfSomethingIsPending) {
    Machine m;
    m.code({csrrw(x0, kCsrMie, a0), wfi(), li(a1, 1)});
    m.hart.set_x(a0, 1u << 7);
    m.hart.set_irq(Irq::kTimer, true);
    EXPECT_EQ(m.hart.run(3), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a1), 1u);
}

TEST(Wfi, IsPartOfTheState) {
    Machine m;
    m.code({wfi(), li(a1, 1)});
    EXPECT_EQ(m.hart.run(1), StopReason::kWfi);
    const HartState state = m.hart.state();
    EXPECT_EQ(state.waiting, 1u);
    Machine other;
    other.hart.set_state(state);
    EXPECT_EQ(other.hart.run(5), StopReason::kWfi);
    EXPECT_EQ(other.hart.state(), state);
}

}  // namespace
}  // namespace orrery::emu::test
