// Two instructions in a row may be one for the interpreter (handlers_pair.cc): nobody must see that.
#include <gtest/gtest.h>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

TEST(CodePairs, TheSecondIsItsOwnInstruction) {
    Machine m;
    m.bus.put_code(kRam, {li(a0, 1), addi(a0, a0, 10), nop()});
    const auto run_from = [&](std::uint64_t pc, std::uint64_t budget) {
        m.hart.set_pc(pc);
        m.hart.run(budget);
        return m.hart.x(a0);
    };
    EXPECT_EQ(run_from(kRam, 2), 11u);
    EXPECT_EQ(run_from(kRam, 1), 1u);
    EXPECT_EQ(m.hart.pc(), kRam + 4);
    EXPECT_EQ(run_from(kRam + 4, 1), 11u);
    // The program changes it, six bytes behind the begin of the first.
    m.bus.put_code(kRam + 0x100, {store(1, t0, t1, 0)});
    m.hart.set_x(t1, kRam + 6);
    m.hart.set_x(t0, addi(a0, a0, 30) >> 16);
    run_from(kRam + 0x100, 1);
    EXPECT_EQ(run_from(kRam, 2), 31u);
    EXPECT_EQ(run_from(kRam + 4, 1), 61u);
}

TEST(CodePairs, StopsAtTheSecond) {
    Machine m;
    m.bus.put_code(kRam, {li(a0, 1), addi(a0, a0, 10), nop()});
    m.hart.run(3);
    const std::uint64_t second = kRam + 4;
    EXPECT_TRUE(m.hart.set_breakpoints({&second, 1}));
    m.hart.set_pc(kRam);
    EXPECT_EQ(m.hart.run(3), StopReason::kBreakpoint);
    EXPECT_EQ(m.hart.pc(), second);
    EXPECT_EQ(m.hart.x(a0), 1u);

    Config config = plain_config();
    config.has_exit_pc = true;
    config.exit_pc = second;
    Machine ends(config);
    ends.bus.put_code(kRam, {li(a0, 1), addi(a0, a0, 10), nop()});
    EXPECT_EQ(ends.hart.run(3), StopReason::kExit);
    EXPECT_EQ(ends.hart.x(a0), 1u);
}

// What the page cache does not have, in either place: a register page, and a page that is not there.
TEST(CodePairs, AccessesThatGoToTheBusOrFault) {
    Machine m;
    std::uint64_t value = 7;
    m.bus.on_load = [&](std::uint64_t, unsigned, std::uint64_t& out) {
        out = value++;
        return true;
    };
    m.hart.set_x(t0, kMmio);
    m.bus.put_code(kRam, {ld(a0, t0, 0), addi(a0, a0, 1), ld(a1, t0, 8), ld(a2, t0, 16), ld(a3, x0, 0)});
    for (int round = 0; round < 2; ++round) {
        value = 7;
        m.hart.set_pc(kRam);
        m.hart.run(4);
        EXPECT_EQ(m.hart.x(a0), 8u);
        EXPECT_EQ(m.hart.x(a1), 8u);
        EXPECT_EQ(m.hart.x(a2), 9u);
        EXPECT_EQ(m.hart.pc(), kRam + 16);
        m.hart.run(1);
        EXPECT_EQ(m.hart.state().mcause, static_cast<std::uint64_t>(Cause::kLoadAccess));
        EXPECT_EQ(m.hart.state().mepc, kRam + 16);
    }
}

}  // namespace
}  // namespace orrery::emu::test
