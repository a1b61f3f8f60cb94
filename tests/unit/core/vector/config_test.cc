// vset{i}vl{i}, the CSRs, mstatus.VS, and vector state from outside.
#include "tests/unit/core/vector/vector_machine.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kIllegalVtype = 1ull << 63;
constexpr std::uint64_t kVs = 3u << 9;

TEST(VectorConfig, IsAbsentUnlessConfigured) {
    Machine m({.reset_pc = kRam, .fp = true, .trap_to_host = true});
    for (const Word instruction : {vsetivli(a0, 4, vtype(e8, m1)), v(VectorOp::kVaddVv, 1, 2, 3),
                                   v(VectorOp::kVle8V, 1, 0, a0), csrr(a0, kVlenb), csrr(a0, kVl)}) {
        m.hart.set_pc(kRam);
        m.code({instruction});
        EXPECT_EQ(m.hart.run(1), StopReason::kTrap);
        EXPECT_EQ(m.hart.trap().tval, instruction);
    }
    EXPECT_EQ(m.hart.vector_state().vtype, 0u);
}

TEST(VectorConfig, VlIsTheLesserOfAvlAndVlmax) {
    VectorMachine m;
    struct Case {
        Word type;
        std::uint64_t vlmax;
    };
    for (const Case& each : {Case{vtype(e8, m1), 32}, Case{vtype(e8, m8), 256}, Case{vtype(e64, m1), 4},
                             Case{vtype(e8, mf8), 4}, Case{vtype(e16, mf4), 4}, Case{vtype(e32, mf2), 4}}) {
        m.hart.set_pc(kRam);
        m.hart.set_x(a0, 3);
        m.code({vsetvli(a1, a0, each.type), vsetvli(a2, x0, each.type), csrr(a3, kVtype), csrr(a4, kVl)});
        m.hart.run(4);
        EXPECT_EQ(m.hart.x(a1), 3u);
        EXPECT_EQ(m.hart.x(a2), each.vlmax);
        EXPECT_EQ(m.hart.x(a3), each.type);
        EXPECT_EQ(m.hart.x(a4), each.vlmax);
    }
    // Far above VLMAX, and all there is in between.
    m.hart.set_pc(kRam);
    m.hart.set_x(a0, ~0ull);
    m.hart.set_x(a5, 33);
    m.code({vsetvli(a1, a0, vtype(e8, m1)), vsetvli(a2, a5, vtype(e8, m1)), vsetivli(a3, 31, vtype(e8, m1))});
    m.hart.run(3);
    EXPECT_EQ(m.hart.x(a1), 32u);
    EXPECT_EQ(m.hart.x(a2), 32u);
    EXPECT_EQ(m.hart.x(a3), 31u);
}

TEST(VectorConfig, X0KeepsVl) {
    VectorMachine m;
    m.code({vsetivli(a0, 5, vtype(e16, m1)), vsetvli(x0, x0, vtype(e32, m2)), csrr(a1, kVl)});
    m.hart.run(3);
    EXPECT_EQ(m.hart.x(a1), 5u);
}

TEST(VectorConfig, WhatIsNotImplementedIsVill) {
    VectorMachine m;
    // Reserved bits, SEW 128, LMUL 4 of the encoding, and SEW above LMUL * ELEN.
    for (const Word type : {0x100u, 4u << 3, 4u, vtype(e16, mf8), vtype(e64, mf2), vtype(e32, mf4)}) {
        m.hart.set_pc(kRam);
        m.code({vsetivli(a0, 1, vtype(e8, m1)), vsetvli(a0, x0, type), csrr(a1, kVtype), csrr(a2, kVl),
                v(VectorOp::kVaddVv, 1, 2, 3)});
        EXPECT_EQ(m.hart.run(5), StopReason::kTrap) << type;
        EXPECT_EQ(m.hart.x(a0), 0u);
        EXPECT_EQ(m.hart.x(a1), kIllegalVtype);
        EXPECT_EQ(m.hart.x(a2), 0u);
    }
    m.hart.set_pc(kRam);
    m.hart.set_x(a3, kIllegalVtype | vtype(e8, m1));
    m.code({vsetvl(a0, x0, a3), csrr(a1, kVtype)});
    m.hart.run(2);
    EXPECT_EQ(m.hart.x(a1), kIllegalVtype);
}

TEST(VectorConfig, Csrs) {
    VectorMachine m;
    m.code({li(a0, -1), csrw(kVstart, a0), csrr(a1, kVstart), csrw(kVcsr, a0), csrr(a2, kVcsr),
            csrr(a3, kVxrm), csrr(a4, kVxsat), csrrwi(x0, kVxrm, 2), csrrwi(x0, kVxsat, 0), csrr(a5, kVcsr),
            csrr(a6, kVlenb)});
    EXPECT_EQ(m.hart.run(11), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a1), 255u);
    EXPECT_EQ(m.hart.x(a2), 7u);
    EXPECT_EQ(m.hart.x(a3), 3u);
    EXPECT_EQ(m.hart.x(a4), 1u);
    EXPECT_EQ(m.hart.x(a5), 4u);
    EXPECT_EQ(m.hart.x(a6), 32u);
    for (const Word csr : {kVl, kVtype, kVlenb})
        EXPECT_TRUE(m.illegal(csrw(csr, a0))) << csr;
}

TEST(VectorConfig, MisaAndMstatusShowIt) {
    VectorMachine m;
    m.code(
        {csrr(a0, kCsrMisa), csrr(a1, kCsrMstatus), vsetivli(x0, 1, vtype(e8, m1)), csrr(a2, kCsrMstatus)});
    m.hart.run(4);
    EXPECT_EQ(m.hart.x(a0), 0x800000000020112du);
    EXPECT_EQ(m.hart.x(a1) & kVs, 1u << 9);  // initial
    EXPECT_EQ(m.hart.x(a2) & kVs, kVs);
    EXPECT_EQ(m.hart.x(a2) >> 63, 1u);
    EXPECT_TRUE(m.hart.vector_dirty());
}

TEST(VectorConfig, NothingGoesWhileItIsOff) {
    VectorMachine m;
    HartState state = m.hart.state();
    state.mstatus &= ~kVs;
    m.hart.set_state(state);
    for (const Word instruction :
         {vsetivli(a0, 4, vtype(e8, m1)), v(VectorOp::kVaddVv, 1, 2, 3), v(VectorOp::kVle8V, 1, 0, a0),
          v(VectorOp::kVl1re8V, 1, 0, a0), csrr(a0, kVlenb), csrr(a0, kVstart), csrw(kVxrm, a0)})
        EXPECT_TRUE(m.illegal(instruction)) << std::hex << instruction;
}

TEST(VectorConfig, FpInstructionsNeedFpToo) {
    VectorMachine m;
    m.configure(e32, m1, 4);
    HartState state = m.hart.state();
    state.mstatus &= ~(3ull << 13);
    m.hart.set_state(state);
    EXPECT_TRUE(m.illegal(v(VectorOp::kVfmvVF, 1, 0, 1)));
    m.run(v(VectorOp::kVmvVI, 1, 0, 1));
}

TEST(VectorConfig, RestartClearsWhatWasUsed) {
    VectorMachine m;
    m.set<std::uint8_t>(31, {1, 2, 3});
    m.code({vsetivli(a0, 4, vtype(e8, m1)), csrrwi(x0, kVcsr, 7), v(VectorOp::kVmvVI, 8, 0, 5)});
    m.hart.run(3);
    m.hart.restart(kRam);
    EXPECT_EQ(m.hart.vector_state(), VectorState{});
    EXPECT_FALSE(m.hart.vector_dirty());
}

// What a program writes to mstatus does not hide registers that it has used.
TEST(VectorConfig, WhatWasUsedIsKnownWhateverMstatusSays) {
    VectorMachine m;
    m.code({vsetivli(a0, 4, vtype(e8, m1)), v(VectorOp::kVmvVI, 8, 0, 5), li(a0, 1 << 9),
            csrw(kCsrMstatus, a0)});
    m.hart.run(4);
    EXPECT_EQ(m.hart.state().mstatus & kVs, 1u << 9);
    EXPECT_TRUE(m.hart.vector_dirty());
    m.hart.set_vector_state({});
    EXPECT_FALSE(m.hart.vector_dirty());
}

TEST(VectorConfig, StateGoesOutAndIn) {
    VectorMachine a, b;
    a.code({vsetivli(a0, 7, vtype(e16, m2)), csrrwi(x0, kVcsr, 5), csrrwi(x0, kVstart, 3)});
    a.hart.run(3);
    a.set<std::uint64_t>(31, {1, 2, 3, 4});
    const VectorState state = a.hart.vector_state();
    EXPECT_EQ(state.vl, 7u);
    EXPECT_EQ(state.vstart, 3u);
    b.hart.set_vector_state(state);
    EXPECT_EQ(b.hart.vector_state(), state);
    // What no hart can be in becomes legal.
    VectorState wrong = state;
    wrong.vtype = 0x100;
    wrong.vstart = ~0ull;
    wrong.vxrm = 255;
    b.hart.set_vector_state(wrong);
    EXPECT_EQ(b.hart.vector_state().vtype, kIllegalVtype);
    EXPECT_EQ(b.hart.vector_state().vl, 0u);
    EXPECT_EQ(b.hart.vector_state().vstart, 255u);
    EXPECT_EQ(b.hart.vector_state().vxrm, 3u);
}

// An instruction of 32 cycles takes one of the hart, unless four have not begun yet.
TEST(VectorConfig, TheHartGoesOnBesideVectors) {
    Config config = vector_config(256);
    config.vector_datapath = 64;
    VectorMachine m(config);
    m.configure(e64, m8, 32);
    const Word add = v(VectorOp::kVaddVv, 8, 16, 24);
    m.code({add, add, add, add, nop(), add, nop(), csrr(a0, 0xb00), csrr(a1, 0xb02)});
    EXPECT_EQ(m.hart.run(6), StopReason::kBudget);
    EXPECT_EQ(m.hart.steps(), 6u);
    EXPECT_EQ(m.hart.cycles(), 6u);
    EXPECT_EQ(m.hart.run(3), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a0), 7u);
    EXPECT_EQ(m.hart.x(a1), 8u);
    EXPECT_EQ(m.hart.state().mcycle, 9u);
    EXPECT_EQ(m.hart.finish_vectors(), 5u * 32 - 9);
    EXPECT_EQ(m.hart.state().mcycle, 5u * 32);
    EXPECT_EQ(m.hart.finish_vectors(), 0u);
}

// Only the last instruction goes beyond the budget.
TEST(VectorConfig, TheHartWaitsForAPlace) {
    Config config = vector_config(256);
    config.vector_datapath = 64;
    VectorMachine m(config);
    m.configure(e64, m8, 32);
    const Word add = v(VectorOp::kVaddVv, 8, 16, 24);
    m.code({add, add, add, add, add, add, nop()});
    EXPECT_EQ(m.hart.run(20), StopReason::kBudget);
    EXPECT_EQ(m.hart.steps(), 6u) << "the sixth waits for the second to begin";
    EXPECT_EQ(m.hart.cycles(), 33u);
    EXPECT_EQ(m.hart.pc(), kRam + 24);
    EXPECT_EQ(m.hart.finish_vectors(), 6u * 32 - 33);
    m.hart.set_state(m.hart.state());
    EXPECT_EQ(m.hart.finish_vectors(), 0u);
}

TEST(VectorConfig, LoadsGoBesideArithmeticAndResultsAreAwaited) {
    const auto cycles = [](std::initializer_list<Word> code) {
        Config config = vector_config(256);
        config.vector_datapath = 64;
        VectorMachine m(config);
        m.configure(e64, m8, 32);
        HartState state = m.hart.state();
        state.x[a2] = kRam + 0x8000;
        m.hart.set_state(state);
        m.code(code);
        (void)m.hart.run(code.size());
        const std::uint64_t hart = m.hart.cycles();
        return std::pair(hart, hart + m.hart.finish_vectors());
    };
    using Cycles = std::pair<std::uint64_t, std::uint64_t>;
    const Word add = v(VectorOp::kVaddVv, 8, 16, 24), load = v(VectorOp::kVle64V, 16, 0, a2),
               first = v(VectorOp::kVmvXS, a0, 16, 0);
    EXPECT_EQ(cycles({load, add}), Cycles(2, 33));
    EXPECT_EQ(cycles({load, load}), Cycles(2, 64));
    EXPECT_EQ(cycles({load, load, add}), Cycles(3, 64)) << "it begins with the second load";
    EXPECT_EQ(cycles({load, first}), Cycles(33, 33));
    EXPECT_EQ(cycles({add, first}), Cycles(33, 33));
}

TEST(VectorConfig, CyclesFollowVlTypeAndDatapath) {
    const auto cycles = [](std::uint32_t datapath, Sew sew, std::uint64_t vl) {
        Config config = vector_config(256);
        config.vector_datapath = datapath;
        VectorMachine m(config);
        m.configure(sew, m4, vl);
        m.run(v(VectorOp::kVaddVv, 8, 16, 24));
        return m.hart.cycles() + m.hart.finish_vectors();
    };
    EXPECT_EQ(cycles(64, e32, 32), 16u);
    EXPECT_EQ(cycles(64, e32, 16), 8u);
    EXPECT_EQ(cycles(64, e64, 16), 16u);
    EXPECT_EQ(cycles(128, e64, 16), 8u);
}

TEST(VectorConfig, CyclesAreTheSameInAnyPieces) {
    const auto run = [](std::uint64_t piece) {
        Config config = vector_config(256);
        config.vector_datapath = 128;
        VectorMachine m(config);
        m.configure(e32, m4, 29);
        m.code({v(VectorOp::kVaddVv, 8, 16, 24), v(VectorOp::kVdivVv, 4, 8, 12), nop(),
                v(VectorOp::kVredsumVs, 1, 8, 2), v(VectorOp::kVrgatherVv, 8, 16, 24),
                v(VectorOp::kViotaM, 8, 16, 0), ecall()});
        while (m.hart.run(piece) == StopReason::kBudget) {
        }
        EXPECT_EQ(m.hart.steps(), 6u);
        const std::uint64_t cycles = m.hart.cycles();
        return std::pair(cycles + m.hart.finish_vectors(), m.hart.vector_state());
    };
    // 29 elements: 8 cycles, eight times that, 8 and a tree of four lanes, two addresses or sums a cycle.
    EXPECT_EQ(run(1000).first, 8u + 64 + (8 + 2) + 15 + 15);
    for (const std::uint64_t piece : {1u, 3u, 8u, 70u})
        EXPECT_EQ(run(piece), run(1000));
}

}  // namespace
}  // namespace orrery::emu::test
