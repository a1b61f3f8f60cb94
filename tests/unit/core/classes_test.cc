// Scalar instructions by class: what a hart counts is what it executes, one by one, whatever ends its runs.
// (core_oracle_test counts random programs against Unicorn.)
#include <gtest/gtest.h>

#include "emulator/core/snapshot.h"
#include "tests/unit/core/encode.h"
#include "tests/unit/core/instruction_class.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kHandler = kRam + 0x1000, kData = kRam + 0x8000;
constexpr Word kFaddD = 0x02b57553, kFld = 0x0005b507, kFsd = 0x00a5b027, kMul = 0x02b50533;

using Counts = std::array<std::uint64_t, kScalarClasses>;

Counts counts(std::uint64_t integer, std::uint64_t muldiv, std::uint64_t fp, std::uint64_t loads,
              std::uint64_t stores, std::uint64_t jumps, std::uint64_t atomics, std::uint64_t system) {
    return {integer, muldiv, fp, loads, stores, jumps, atomics, system};
}

// An instruction of each class, and calls, exceptions and an interrupt between them; 21 of them, four times.
void everything(Machine& m) {
    HartState state = m.hart.state();
    state.mtvec = kHandler;
    state.mie = 8;
    state.mstatus |= 3u << 13 | 8;
    state.x[a1] = kData;
    state.x[s0] = 4;
    m.hart.set_state(state);
    m.code({kFld,
            kFaddD,
            kFsd,
            ld(a2, a1, 0),
            sd(a2, a1, 8),
            kMul,
            addi(a3, a3, 1),
            csrr(a4, 0x300),
            fence(),
            fence_i(),
            lr_d(a5, a1),
            sc_d(a6, a5, a1),
            amo(0, 3, a7, a1, a3),
            ecall(),
            jal(ra, 8),
            jalr(x0, t1, 0),
            beq(s0, x0, 16),
            addi(s0, s0, -1),
            bne(s0, x0, -72),
            wfi(),
            nop(),
            jal(x0, 0)});
    m.code({csrr(t0, 0x341), addi(t0, t0, 4), csrw(0x341, t0), mret()}, kHandler);
}

TEST(Classes, OfOneInstructionEach) {
    struct One {
        Word bits;
        ScalarClass kind;
    };
    Machine m(fp_config());
    for (const One& one : std::initializer_list<One>{{kFld, ScalarClass::kLoads},
                                                     {kFsd, ScalarClass::kStores},
                                                     {kFaddD, ScalarClass::kFp},
                                                     {kMul, ScalarClass::kMulDiv},
                                                     {ld(a2, a1, 3), ScalarClass::kLoads},
                                                     {sd(a2, a1, 3), ScalarClass::kStores},
                                                     {add(a2, a2, a2), ScalarClass::kInt},
                                                     {auipc(a2, 1), ScalarClass::kInt},
                                                     {lui(a2, 1), ScalarClass::kInt},
                                                     {csrrwi(a2, 0x340, 3), ScalarClass::kSystem},
                                                     {fence(), ScalarClass::kSystem},
                                                     {fence_i(), ScalarClass::kSystem},
                                                     {mret(), ScalarClass::kSystem},
                                                     {wfi(), ScalarClass::kSystem},
                                                     {lr_w(a2, a1), ScalarClass::kAtomics},
                                                     {sc_w(a2, a2, a1), ScalarClass::kAtomics},
                                                     {amo(0, 2, a2, a1, a2), ScalarClass::kAtomics},
                                                     {jal(ra, 4), ScalarClass::kJumps},
                                                     {jal(ra, 0x2000), ScalarClass::kJumps},
                                                     {jalr(ra, a1, 0), ScalarClass::kJumps},
                                                     {jalr(x0, a1, 0), ScalarClass::kJumps},
                                                     {beq(x0, x0, 8), ScalarClass::kJumps},
                                                     {bne(x0, x0, 8), ScalarClass::kJumps},
                                                     {beq(x0, x0, 0xf00), ScalarClass::kJumps},
                                                     {bne(x0, x0, -0xf00), ScalarClass::kJumps}}) {
        m.code({one.bits});
        HartState state = m.hart.state();
        state.pc = kRam;
        state.x[a1] = kData;
        state.mstatus |= 3u << 13;
        state.waiting = 0;
        m.hart.set_state(state);
        m.hart.take_work();
        m.hart.run(1);
        Counts wanted{};
        wanted.at(static_cast<std::size_t>(one.kind)) = 1;
        EXPECT_EQ(m.hart.take_work().scalar, wanted) << std::hex << one.bits;
        EXPECT_EQ(class_of(one.bits), one.kind) << std::hex << one.bits;
    }
}

// A step that enters an exception is none; an interrupt takes no step.
TEST(Classes, AreTheSameInPiecesOfAnySize) {
    const auto run = [](std::uint64_t budget, bool metered) {
        Config config = fp_config();
        if (metered) {
            config.memory = {.l1_bytes = 4096, .vram_cycles = 3, .host_cycles = 5, .tlb_entries = 4};
        }
        Machine m(config);
        if (metered) {
            m.bus.pages[kData] =
                PageRef::memory(m.bus.ram() + (kData - kRam), kPageRead | kPageWrite, PagePlace::kVram);
        }
        everything(m);
        WorkCounts all;
        const std::uint64_t begin = m.hart.steps();
        StopReason reason = StopReason::kBudget;
        while (reason == StopReason::kBudget) {
            reason = m.hart.run(budget);
            if (budget % 2 == 0) all += m.hart.take_work();
        }
        EXPECT_EQ(reason, StopReason::kWfi);
        EXPECT_EQ(m.hart.run(100), StopReason::kWfi);
        m.hart.set_irq(Irq::kSoftware, true);
        m.hart.run(1);
        m.hart.set_irq(Irq::kSoftware, false);
        m.hart.run(3 + 2 * 30);  // the handler's other instructions, and what follows
        all += m.hart.take_work();
        const HartState state = m.hart.state();
        std::uint64_t sum = 0;
        for (const std::uint64_t each : all.scalar)
            sum += each;
        EXPECT_EQ(sum + 4, state.steps - begin) << "four exceptions";
        EXPECT_EQ(state.minstret, sum);
        return all.scalar;
    };
    const Counts wanted = run(1, false);
    EXPECT_EQ(wanted[static_cast<std::size_t>(ScalarClass::kFp)], 4u);
    EXPECT_EQ(wanted[static_cast<std::size_t>(ScalarClass::kAtomics)], 3u * 4);
    EXPECT_EQ(wanted[static_cast<std::size_t>(ScalarClass::kLoads)], 2u * 4);
    EXPECT_EQ(wanted[static_cast<std::size_t>(ScalarClass::kStores)], 2u * 4);
    EXPECT_EQ(wanted[static_cast<std::size_t>(ScalarClass::kMulDiv)], 4u);
    for (const std::uint64_t budget : {2u, 3u, 4u, 7u, 10u, 1000u}) {
        EXPECT_EQ(run(budget, false), wanted) << budget;
        if (budget > 8) EXPECT_EQ(run(budget, true), wanted) << budget;
    }
}

// What stands there when it is executed is what counts.
TEST(Classes, OfCodeThatIsWrittenOver) {
    Machine m({.reset_pc = kRam, .trap_to_host = true});
    m.code({ld(a2, a1, 0), sw(a4, a0, 0), addi(s0, s0, -1), bne(s0, x0, -12), ecall()});
    m.hart.set_x(a0, kRam);
    m.hart.set_x(a1, kData);
    m.hart.set_x(s0, 3);
    m.hart.set_x(a4, add(a2, a2, a2));
    EXPECT_EQ(m.hart.run(100), StopReason::kTrap);
    EXPECT_EQ(m.hart.take_work().scalar, counts(2 + 3, 0, 0, 1, 3, 3, 0, 0));
    // By somebody else, with loads for additions.
    m.code({ld(a2, a1, 0), ld(a2, a1, 8), ecall()});
    m.hart.set_pc(kRam);
    EXPECT_EQ(m.hart.run(100), StopReason::kTrap);
    EXPECT_EQ(m.hart.take_work().scalar, counts(0, 0, 0, 2, 0, 0, 0, 0));
}

TEST(Classes, OfWhatFaultsAreNotCounted) {
    Machine m({.reset_pc = kRam, .trap_to_host = true});
    m.code({addi(a2, a2, 1), ld(a2, a1, 0)});
    m.hart.set_x(a1, 0x1000);
    EXPECT_EQ(m.hart.run(100), StopReason::kTrap);
    EXPECT_EQ(m.hart.run(100), StopReason::kTrap);
    EXPECT_EQ(m.hart.take_work().scalar, counts(1, 0, 0, 0, 0, 0, 0, 0));
}

TEST(Classes, GoBackAndOn) {
    Machine m(fp_config());
    everything(m);
    m.hart.take_work();
    m.hart.run(10);
    Hart::Snapshot snapshot;
    m.hart.take_snapshot(snapshot);
    m.hart.run(33);
    const Counts first = m.hart.take_work().scalar;
    m.hart.go_back(snapshot);
    everything(m);  // a debugger may say where it is: what is not taken yet stays
    HartState state = m.hart.state();
    state.steps += 1'000'000;
    m.hart.set_state(state);
    m.hart.go_back(snapshot);
    m.bus.put(kData, std::uint64_t{0});
    m.hart.run(33);
    EXPECT_EQ(m.hart.take_work().scalar, first);
    state = m.hart.state();
    m.hart.run(1);
    state.steps += 1'000'000;
    m.hart.set_state(state);
    std::uint64_t sum = 0;
    for (const std::uint64_t each : m.hart.take_work().scalar)
        sum += each;
    EXPECT_EQ(sum, 1u);
}

}  // namespace
}  // namespace orrery::emu::test
