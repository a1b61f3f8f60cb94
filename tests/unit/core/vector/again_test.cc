// An instruction that was executed before, at the same vtype, takes a shorter way: it does the same there.
#include <numeric>
#include <random>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/vector/vector_machine.h"

namespace orrery::emu::test {
namespace {

using namespace vector_property;

constexpr std::uint64_t kData = kRam + 0x8000, kDataPages = 8;
constexpr std::uint64_t kEnd = kData + kDataPages * kPageBytes;

struct Start {
    HartState hart;
    VectorState vectors;
};
// What an instruction may change.
struct Outcome {
    StopReason reason{};
    Trap trap;
    HartState hart;
    VectorState vectors;
    std::uint64_t cycles = 0;
    AccessCounts counts;
    WorkCounts work;
    std::vector<std::uint8_t> memory;
};

struct AgainMachine : VectorMachine {
    AgainMachine() : VectorMachine(config()) {
        for (std::uint64_t page = kData; page < kEnd; page += kPageBytes)
            bus.pages[page] =
                PageRef::memory(bus.ram() + (page - kRam), kPageRead | kPageWrite, PagePlace::kVram);
        bus.pages[kEnd] = PageRef::fault();
    }
    static Config config() {
        Config config = vector_config(256);
        config.code_pages = 1;
        config.memory = {.l1_bytes = 4096, .vram_cycles = 100, .host_cycles = 1000};
        return config;
    }
    Outcome run(Word instruction, const Start& start) {
        hart.set_state(start.hart);
        hart.set_vector_state(start.vectors);
        hart.finish_vectors();
        hart.take_counts();
        hart.take_work();
        hart.forget_lines();
        if (has_data) std::iota(bus.ram() + (kData - kRam), bus.ram() + (kEnd - kRam), std::uint8_t{1});
        // The page of a1 is in the page cache.
        code({load(4, a2, a1, 0), instruction});
        if (has_data) {
            EXPECT_EQ(hart.run(1), StopReason::kBudget);
        } else {
            hart.set_pc(kRam + 4);
        }
        const std::uint64_t cycles = hart.cycles();
        Outcome outcome;
        outcome.reason = hart.run(1);
        if (outcome.reason == StopReason::kTrap) outcome.trap = hart.trap();
        // What it keeps busy for the next.
        outcome.cycles = hart.cycles() - cycles + hart.finish_vectors();
        outcome.hart = hart.state();
        outcome.hart.steps = outcome.hart.mcycle = outcome.hart.minstret = 0;
        outcome.vectors = hart.vector_state();
        outcome.counts = hart.take_counts();
        outcome.work = hart.take_work();
        const std::uint8_t* const data = bus.ram() + (kData - kRam);
        if (has_data) outcome.memory.assign(data, data + kDataPages * kPageBytes);
        return outcome;
    }
    // As if nothing had been executed.
    void forget() {
        constexpr Word kNop = 0x13;
        code({kNop, kNop});
        hart.set_pc(kRam);
        hart.run(2);
    }
    Outcome run_first(Word instruction, const Start& start) {
        forget();
        return run(instruction, start);
    }

    bool has_data = false;
};

void expect_same(const Outcome& first, const Outcome& again) {
    EXPECT_EQ(first.reason, again.reason);
    EXPECT_EQ(first.trap.cause, again.trap.cause);
    EXPECT_EQ(first.trap.tval, again.trap.tval);
    EXPECT_TRUE(first.hart == again.hart);
    EXPECT_TRUE(first.vectors == again.vectors);
    EXPECT_EQ(first.cycles, again.cycles);
    EXPECT_TRUE(first.counts == again.counts);
    EXPECT_TRUE(first.work == again.work);
    EXPECT_TRUE(first.memory == again.memory);
}

Start random_start(AgainMachine& machine, std::mt19937_64& random) {
    machine.hart.reset();
    Start start{machine.hart.state(), machine.hart.vector_state()};
    start.hart.mstatus |= std::uint64_t{3} << 13 | std::uint64_t{3} << 9;  // FS and VS are dirty
    for (std::uint64_t& x : start.hart.x)
        x = random();
    start.hart.x[0] = 0;
    // Singles are boxed; half of them are numbers of no extreme size.
    for (std::uint64_t& f : start.hart.f)
        f = ~0ull << 32 | ((random() & 1) != 0 ? 0x3f80'0000 : 0) | (random() & 0xffff'ffff);
    for (std::uint32_t i = 0; i < kVectorRegisters * machine.vlenb; ++i)
        start.vectors.v[i] = static_cast<std::uint8_t>(i % 4 == 3 ? 0x3f : random());
    return start;
}

TEST(VectorAgain, ArithmeticDoesTheSame) {
    std::mt19937_64 random(2);
    AgainMachine machine;
    for (std::size_t i = 0; i < kVectorOps; ++i) {
        const auto op = static_cast<VectorOp>(i);
        if (row(op).has(kLoad | kStore | kConfig)) continue;
        for (const Sew sew : {e8, e16, e32, e64}) {
            const Word instruction = v(op, 8, 16, 24);
            Start start = random_start(machine, random);
            start.hart.fcsr = static_cast<std::uint32_t>(random() % 5) << 5;
            start.vectors.vtype = vtype(sew, m2);
            const std::uint64_t all = std::uint64_t{2} * 256 / (8u << sew);
            for (const std::uint64_t vl : {all, 1 + random() % all, std::uint64_t{0}}) {
                SCOPED_TRACE(::testing::Message() << row(op).name << " e" << (8u << sew) << " vl " << vl);
                start.vectors.vl = vl;
                const Outcome first = machine.run_first(instruction, start);
                expect_same(first, machine.run(instruction, start));
                // Where it cannot begin, or may not, it does not.
                std::vector<Start> others(3, start);
                others[0].vectors.vstart = 1;
                others[1].hart.mstatus &= ~(std::uint64_t{3} << 13);
                others[2].hart.mstatus &= ~(std::uint64_t{3} << 9);
                for (const Start& other : others) {
                    const Outcome of_other = machine.run_first(instruction, other);
                    machine.run(instruction, start);
                    expect_same(of_other, machine.run(instruction, other));
                }
                if (::testing::Test::HasFailure()) return;
            }
        }
    }
}

TEST(VectorAgain, LoadsAndStoresDoTheSame) {
    std::mt19937_64 random(3);
    AgainMachine machine;
    machine.has_data = true;
    for (const VectorOp op : {VectorOp::kVle8V, VectorOp::kVle16V, VectorOp::kVle32V, VectorOp::kVle64V,
                              VectorOp::kVse8V, VectorOp::kVse32V, VectorOp::kVle32ffV, VectorOp::kVlse32V}) {
        for (const Sew sew : {e8, e16, e32, e64}) {
            const Word instruction = v(op, 8, 16, a0);
            Start start = random_start(machine, random);
            start.hart.x[16] = 12;
            start.vectors.vtype = vtype(sew, m2);
            start.vectors.vl = std::uint64_t{2} * 256 / (8u << sew) - 1;
            for (const std::uint64_t va :
                 {kData, kData + 1, kData + 12, kData + kPageBytes - 16, kEnd - 16, kEnd, kMmio}) {
                SCOPED_TRACE(::testing::Message() << row(op).name << " e" << (8u << sew) << " at " << va);
                start.hart.x[a0] = va;
                start.hart.x[a1] = va < kEnd && va >= kData ? va : kData;
                const Outcome first = machine.run_first(instruction, start);
                Start before = start;
                before.hart.x[a0] = before.hart.x[a1] = kData;
                machine.run(instruction, before);
                for (int turn = 0; turn < 2; ++turn)
                    expect_same(first, machine.run(instruction, start));
                if (::testing::Test::HasFailure()) return;
            }
        }
    }
}

}  // namespace
}  // namespace orrery::emu::test
