#include <gtest/gtest.h>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

Config to_host(bool fp = false) {
    return {.hart_id = 5,
            .reset_pc = kRam,
            .fp = fp,
            .trap_to_host = true,
            .vendor_id = 11,
            .arch_id = 22,
            .impl_id = 33};
}

std::uint64_t read(Word csr, const Config& config) {
    Machine m(config);
    m.code({csrr(a0, csr)});
    EXPECT_EQ(m.hart.run(1), StopReason::kBudget) << std::hex << csr;
    return m.hart.x(a0);
}

// What reads back after all ones, then zero, were written.
std::pair<std::uint64_t, std::uint64_t> write_and_read(Word csr, const Config& config) {
    Machine m(config);
    m.code({li(a0, -1), csrw(csr, a0), csrrw(a1, csr, x0), csrr(a2, csr)});
    EXPECT_EQ(m.hart.run(4), StopReason::kBudget) << std::hex << csr;
    return {m.hart.x(a1), m.hart.x(a2)};
}

bool illegal(Word instruction, const Config& config) {
    Machine m(config);
    m.code({instruction});
    const StopReason reason = m.hart.run(1);
    if (reason == StopReason::kBudget) return false;
    EXPECT_EQ(reason, StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kIllegal);
    EXPECT_EQ(m.hart.trap().tval, instruction);
    EXPECT_EQ(m.hart.x(a0), 0u);
    return true;
}

TEST(Csr, Identity) {
    EXPECT_EQ(read(0xf11, to_host()), 11u);
    EXPECT_EQ(read(0xf12, to_host()), 22u);
    EXPECT_EQ(read(0xf13, to_host()), 33u);
    EXPECT_EQ(read(kCsrMhartid, to_host()), 5u);
    EXPECT_EQ(read(kCsrMisa, to_host()), 0x8000000000001105u);
    EXPECT_EQ(read(kCsrMisa, to_host(true)), 0x800000000000112du);
}

TEST(Csr, WritableBits) {
    using Pair = std::pair<std::uint64_t, std::uint64_t>;
    EXPECT_EQ(write_and_read(kCsrMstatus, to_host()), Pair(0x1888, 0x1800));
    EXPECT_EQ(write_and_read(kCsrMstatus, to_host(true)), Pair(0x8000000000007888, 0x1800));
    EXPECT_EQ(write_and_read(kCsrMie, to_host()), Pair(0x888, 0));
    EXPECT_EQ(write_and_read(kCsrMip, to_host()), Pair(0, 0));
    EXPECT_EQ(write_and_read(kCsrMtvec, to_host()), Pair(~2ull, 0));
    EXPECT_EQ(write_and_read(kCsrMepc, to_host()), Pair(~1ull, 0));
    EXPECT_EQ(write_and_read(kCsrMscratch, to_host()), Pair(~0ull, 0));
    EXPECT_EQ(write_and_read(kCsrMcause, to_host()), Pair(~0ull, 0));
    EXPECT_EQ(write_and_read(kCsrMtval, to_host()), Pair(~0ull, 0));
    EXPECT_EQ(write_and_read(kCsrFcsr, to_host(true)), Pair(0xff, 0));
    EXPECT_EQ(write_and_read(kCsrFrm, to_host(true)), Pair(7, 0));
    EXPECT_EQ(write_and_read(kCsrFflags, to_host(true)), Pair(31, 0));
    EXPECT_EQ(write_and_read(0x320, to_host()), Pair(0, 0));
    EXPECT_EQ(write_and_read(0xb03, to_host()), Pair(0, 0));
    EXPECT_EQ(write_and_read(0x33f, to_host()), Pair(0, 0));
}

TEST(Csr, SetAndClear) {
    Machine m(to_host());
    m.code({li(a0, 0x5a), csrrw(a1, kCsrMscratch, a0), csrrsi(a2, kCsrMscratch, 5),
            csrrci(a3, kCsrMscratch, 2), csrr(a4, kCsrMscratch), csrrs(a5, kCsrMscratch, x0),
            csrrc(a6, kCsrMscratch, a0), csrr(a7, kCsrMscratch)});
    m.hart.run(8);
    EXPECT_EQ(m.hart.x(a1), 0u);
    EXPECT_EQ(m.hart.x(a2), 0x5au);
    EXPECT_EQ(m.hart.x(a3), 0x5fu);
    EXPECT_EQ(m.hart.x(a4), 0x5du);
    EXPECT_EQ(m.hart.x(a5), 0x5du);
    EXPECT_EQ(m.hart.x(a7), 0x05u);
}

TEST(Csr, UnknownAndReadOnlyAreIllegal) {
    EXPECT_TRUE(illegal(csrr(a0, 0x180), to_host()));  // supervisor mode does not exist
    EXPECT_TRUE(illegal(csrr(a0, 0xc01), to_host()));  // time is the bus's
    EXPECT_TRUE(illegal(csrrw(a0, 0xf14, x0), to_host()));
    EXPECT_TRUE(illegal(csrrsi(a0, 0xc00, 1), to_host()));
    EXPECT_FALSE(illegal(csrrs(a0, 0xc00, x0), to_host()));
    EXPECT_TRUE(illegal(csrr(a0, kCsrFcsr), to_host(false)));
    EXPECT_TRUE(illegal(0x00004073, to_host()));  // funct3 4
    EXPECT_TRUE(illegal(0x30200173, to_host()));  // mret with rd
}

TEST(Csr, FpIsOffWhenMstatusSaysSo) {
    for (const Word instruction :
         {csrr(a0, kCsrFcsr), csrrwi(a0, kCsrFrm, 0), fadd_d(1, 2, 3), fp(0x1c, 1, 0, a0, 1, 0),
          i_type(0x07, 3, 1, sp, 0), s_type(0x27, 2, sp, 1, 0), fp(0x14, 0, 2, a0, 1, 2),
          fp(0x0b, 0, 0, 1, 2, 0), 0x02000043u}) {
        Machine m(to_host(true));
        HartState state = m.hart.state();
        state.mstatus = 0;
        state.x[sp] = kRam + 0x1000;
        m.hart.set_state(state);
        m.code({instruction});
        EXPECT_EQ(m.hart.run(1), StopReason::kTrap) << std::hex << instruction;
        EXPECT_EQ(m.hart.trap().cause, Cause::kIllegal);
        EXPECT_EQ(m.hart.trap().tval, instruction);
    }
}

TEST(Csr, FpMakesItselfDirty) {
    Machine m(to_host(true));
    EXPECT_EQ(m.hart.state().mstatus & 0x6000, 0x2000u);
    m.code({fadd_d(1, 2, 3), csrr(a0, kCsrMstatus)});
    m.hart.run(2);
    EXPECT_EQ(m.hart.x(a0) & 0x8000000000006000, 0x8000000000006000u);
}

TEST(Csr, ReservedRoundingModesAreIllegal) {
    EXPECT_TRUE(illegal(fp(0, 1, 5, 1, 2, 3), to_host(true)));
    EXPECT_TRUE(illegal(fp(0, 0, 6, 1, 2, 3), to_host(true)));
    for (Word mode = 5; mode < 8; ++mode) {
        Machine m(to_host(true));
        m.code({csrrwi(x0, kCsrFrm, mode), fp(0, 1, 0, 1, 2, 3), fadd_d(1, 2, 3)});
        EXPECT_EQ(m.hart.run(5), StopReason::kTrap);
        EXPECT_EQ(m.hart.pc(), kRam + 8);  // the one with a mode of its own is fine
    }
}

TEST(Csr, CountersAreExact) {
    Machine m(to_host());
    m.code({csrr(a0, kCsrMinstret), nop(), csrr(a1, kCsrMinstret), csrw(kCsrMinstret, a7),
            csrr(a2, kCsrMinstret), csrr(a3, 0xc02), csrw(kCsrMcycle, a7), csrr(a4, kCsrMcycle),
            csrr(a5, 0xc00)});
    m.hart.set_x(a7, 1000);
    m.hart.run(9);
    EXPECT_EQ(m.hart.x(a0), 0u);
    EXPECT_EQ(m.hart.x(a1), 2u);
    EXPECT_EQ(m.hart.x(a2), 1000u);
    EXPECT_EQ(m.hart.x(a3), 1001u);
    EXPECT_EQ(m.hart.x(a4), 1000u);
    EXPECT_EQ(m.hart.x(a5), 1001u);
    EXPECT_EQ(m.hart.state().steps, 9u);
    EXPECT_EQ(m.hart.state().minstret, 1005u);
    EXPECT_EQ(m.hart.state().mcycle, 1002u);
    m.hart.advance_cycles(50);
    EXPECT_EQ(m.hart.state().mcycle, 1052u);
    EXPECT_EQ(m.hart.state().steps, 9u);
}

TEST(Csr, OthersAreTheBus) {
    Machine m(to_host());
    m.bus.csrs[0xcc0] = 42;
    m.bus.csrs[0x800] = 7;
    m.code({csrr(a0, 0xcc0), csrrwi(a1, 0x800, 9), csrrsi(a2, 0x800, 2), csrrw(a3, 0xcc0, x0)});
    EXPECT_EQ(m.hart.run(4), StopReason::kTrap);
    EXPECT_EQ(m.hart.pc(), kRam + 12);  // 0xcc0 is read-only by its number
    EXPECT_EQ(m.hart.x(a0), 42u);
    EXPECT_EQ(m.hart.x(a1), 7u);
    EXPECT_EQ(m.hart.x(a2), 9u);
    EXPECT_EQ(m.bus.csrs[0x800], 11u);
}

TEST(Csr, FpFlagsAreStickyAndSurviveRuns) {
    Machine m(to_host(true));
    HartState state = m.hart.state();
    state.f[2] = 0x3ff0000000000000;  // 1.0
    m.hart.set_state(state);
    m.code({fdiv_d(1, 2, 3), csrr(a0, kCsrFflags), fdiv_d(1, 3, 3), csrr(a1, kCsrFflags),
            csrrwi(a2, kCsrFflags, 0), csrr(a3, kCsrFcsr)});
    for (int i = 0; i < 6; ++i)
        m.hart.run(1);
    EXPECT_EQ(m.hart.x(a0), 8u);  // 1 / 0
    EXPECT_EQ(m.hart.x(a1), 8u | 16u);
    EXPECT_EQ(m.hart.x(a2), 8u | 16u);
    EXPECT_EQ(m.hart.x(a3), 0u);
}

TEST(Csr, TheBusesOwnArithmeticLeavesNoFlags) {
    Machine m(to_host(true));
    volatile double one = 1, three = 3, third = 0;
    m.bus.on_load = [&](std::uint64_t, unsigned, std::uint64_t& value) {
        third = one / three;
        value = 1;
        return true;
    };
    m.code({lui(a0, 0x10000), ld(a1, a0, 0), csrr(a2, kCsrFflags)});
    EXPECT_EQ(m.hart.run(3), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a2), 0u);
    EXPECT_GT(third, 0.3);
}

// CSRs that are words of the host's are the same to the program as those of the bus, which is not asked.
TEST(Csr, WordsOfTheHost) {
    constexpr Word kFirst = 0xcc0;
    std::uint64_t words[2] = {7, 8};
    Config config = to_host();
    config.first_csr_word = kFirst;
    config.csr_words = words;
    Machine m(config);
    m.code({csrr(a0, kFirst), csrrci(a1, kFirst + 1, 0), csrrs(x0, kFirst, x0), csrr(a3, kFirst)});
    EXPECT_EQ(m.hart.run(4), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a0), 7u);
    EXPECT_EQ(m.hart.x(a1), 8u);
    EXPECT_EQ(m.hart.x(0), 0u);
    // As they are when they are read, not as they were when the instruction was decoded.
    words[0] = 70;
    m.hart.set_pc(kRam);
    m.hart.run(1);
    EXPECT_EQ(m.hart.x(a0), 70u);
    // Behind them the bus is asked, and writes are refused without it.
    m.bus.csrs = {{kFirst, 1}, {kFirst + 1, 1}, {kFirst + 2, 9}};
    m.code({csrr(a0, kFirst), csrr(a2, kFirst + 2)});
    m.hart.set_pc(kRam);
    m.hart.run(2);
    EXPECT_EQ(m.hart.x(a0), 70u);
    EXPECT_EQ(m.hart.x(a2), 9u);
    EXPECT_TRUE(illegal(csrrw(x0, kFirst, x0), config));
    EXPECT_TRUE(illegal(csrrs(x0, kFirst, a0), config));
    EXPECT_TRUE(illegal(csrrsi(a0, kFirst + 1, 1), config));
}

}  // namespace
}  // namespace orrery::emu::test
