// Loads and stores of rows in pages of 2 MiB of which the bus says that all parts are alike: they need no
// page cache, and do what they do in pages that are asked for one by one.
#include "tests/unit/core/vector/huge_bus.h"

namespace orrery::emu::test {
namespace {

struct HugeMachine {
    explicit HugeMachine(bool whole = true) : hart(config(), bus) {
        bus.whole = whole;
        for (std::size_t i = 0; i < bus.memory.size(); ++i)
            bus.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 4096);
    }
    static Config config() {
        Config config = vector_config(2048);
        config.memory = {.l1_bytes = 4096, .vram_cycles = 100, .host_cycles = 1000, .tlb_entries = 4};
        return config;
    }
    // Moves `rows` rows of 2 KiB from `from` on to `to` on.
    StopReason copy(std::uint64_t to, std::uint64_t from, std::uint64_t rows) {
        bus.put_code(kRam, {vsetvli(t0, x0, vtype(e32, m8)), v(VectorOp::kVle32V, 8, 0, a1),
                            v(VectorOp::kVse32V, 8, 0, a0), add(a0, a0, a3), add(a1, a1, a3),
                            addi(a2, a2, -1), bne(a2, x0, -20), 0x100073});
        hart.set_pc(kRam);
        hart.set_x(a0, to);
        hart.set_x(a1, from);
        hart.set_x(a2, rows);
        hart.set_x(a3, 2048);
        return hart.run(1'000'000);
    }
    std::vector<std::uint8_t> bytes(std::uint64_t va, std::size_t count) {
        std::vector<std::uint8_t> all(count);
        for (std::size_t i = 0; i < count; ++i)
            all[i] = *bus.at(va + i);
        return all;
    }
    HugeBus bus;
    Hart hart;
};

// Also rows across the border of the two pages, which are not in a row for the host.
TEST(VectorSpans, RowsGoWhereTheyBelongAndThePageIsAskedForOnce) {
    HugeMachine m, plain(false);
    const std::uint64_t from = kHere + 4, to = kThere - 200 * 2048 - 1000;
    for (HugeMachine* each : {&m, &plain}) {
        const auto expected = each->bytes(from, 400 * 2048);
        EXPECT_EQ(each->copy(to, from, 400), StopReason::kTrap);
        EXPECT_EQ(each->hart.trap().cause, Cause::kBreakpoint);
        EXPECT_EQ(each->bytes(to, expected.size()), expected);
    }
    EXPECT_EQ(m.bus.memory, plain.bus.memory);
    EXPECT_EQ(m.hart.cycles(), plain.hart.cycles());
    EXPECT_EQ(m.hart.take_counts(), plain.hart.take_counts());
    EXPECT_GT(plain.bus.translations, 400u);
    EXPECT_LT(m.bus.translations, 16u);
}

TEST(VectorSpans, AreForgottenWithThePages) {
    HugeMachine m;
    m.copy(kThere, kHere, 8);
    m.bus.moved = kHuge;
    m.hart.flush_pages();
    const auto expected = m.bytes(kHere, 8 * 2048);
    m.copy(kThere, kHere, 8);
    EXPECT_EQ(m.bytes(kThere, expected.size()), expected);
}

TEST(VectorSpans, OfLoadsIsNoneOfStores) {
    HugeMachine m;
    m.bus.rights = kPageRead;
    const auto before = m.bus.memory;
    EXPECT_EQ(m.copy(kHere, kHere, 8), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kStoreAccess);
    EXPECT_EQ(m.hart.trap().tval, kHere);
    EXPECT_EQ(m.bus.memory, before);
}

// The store in the loop of copy() writes over code in the same page of 2 MiB that was executed.
TEST(VectorSpans, StoresToCodeAreSeen) {
    for (const bool executed_first : {true, false}) {
        HugeMachine m;
        const std::uint64_t code = kThere + 0x10000, source = kHere + 0x10000;
        const auto put = [&](std::uint64_t va, int value) {
            const Word words[] = {li(a4, value), 0x100073};
            std::memcpy(m.bus.at(va), words, sizeof words);
        };
        const auto execute = [&] {
            m.hart.set_pc(code);
            EXPECT_EQ(m.hart.run(100), StopReason::kTrap);
            EXPECT_EQ(m.hart.trap().cause, Cause::kBreakpoint);
            return m.hart.x(a4);
        };
        put(code, 1);
        put(source, 2);
        if (!executed_first) m.copy(kThere, kHere, 4);
        EXPECT_EQ(execute(), 1u);
        m.copy(kThere + 0x8000, kHere + 0x8000, 16);
        EXPECT_EQ(execute(), 1u);
        m.copy(code, source, 1);
        EXPECT_EQ(execute(), 2u);
    }
}

// What the meter's limits leave is done after the row at which they are reached, in both ways.
TEST(VectorSpans, StopWhereTheLimitOfMemoryIs) {
    for (const bool whole : {true, false}) {
        HugeBus bus;
        bus.whole = whole;
        Config config = HugeMachine::config();
        config.memory.most_vram = 5 * 2048;
        Hart hart(config, bus);
        bus.put_code(kRam, {vsetvli(t0, x0, vtype(e32, m8)), v(VectorOp::kVle32V, 8, 0, a1),
                            v(VectorOp::kVle32V, 16, 0, a1), jal(x0, -8)});
        hart.set_x(a1, kHere);
        EXPECT_EQ(hart.run(1000), StopReason::kRequested);
        EXPECT_TRUE(hart.full());
        EXPECT_EQ(hart.pc(), kRam + 8) << whole;
        hart.take_counts();
        EXPECT_EQ(hart.run(1000), StopReason::kRequested);
        EXPECT_EQ(hart.pc(), kRam + 12) << whole;
    }
}

// A line that is there, but not the last of its set that was used, is used last from then on: of five lines
// of one set the one that was used longest ago goes.
TEST(Lines, ThatAreThereBehindOthersAreUsedLast) {
    for (const bool stores : {false, true}) {
        HugeBus bus;
        Config config = HugeMachine::config();
        config.memory = {.l1_bytes = 512, .vram_cycles = 100};  // two sets
        Hart hart(config, bus);
        std::vector<std::uint64_t> lines;
        for (std::uint64_t va = kHere; lines.size() < 5; va += 64)
            if ((va >> 6) * 0x9e37'79b9'7f4a'7c15 >> 63 == 0) lines.push_back(va);
        const auto touches = [&](std::size_t line) {
            bus.put_code(kRam, {stores ? sd(x0, a0, 8) : ld(a1, a0, 8)});
            hart.set_pc(kRam);
            hart.set_x(a0, lines[line]);
            hart.take_counts();
            const std::uint64_t cycles = hart.cycles();
            EXPECT_EQ(hart.run(1), StopReason::kBudget);
            const AccessCounts counts = hart.take_counts();
            EXPECT_EQ(hart.cycles() - cycles, counts.vram.read != 0 ? 101u : 1u);
            return counts.vram.read + counts.vram.written != 0;
        };
        hart.set_x(a0, kHere + 0x8000);
        for (const std::size_t line : {0u, 1u, 2u, 3u})
            EXPECT_TRUE(touches(line));
        for (const std::size_t line : {0u, 2u, 0u})
            EXPECT_FALSE(touches(line));
        EXPECT_TRUE(touches(4));
        for (const std::size_t line : {0u, 2u, 3u, 4u})
            EXPECT_FALSE(touches(line)) << line;
        EXPECT_TRUE(touches(1));
    }
}

}  // namespace
}  // namespace orrery::emu::test
