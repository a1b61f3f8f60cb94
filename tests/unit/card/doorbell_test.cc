// Doorbells from the guest's store to the firmware, and that the same arrivals always give the same times.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kEcho = kRamBase + 0x10000;

std::vector<script_op> bind(unsigned page, unsigned slot, std::uint32_t tag) {
    return {CardRig::write(SOC_DB_PAGE, page), CardRig::write(SOC_DB_SLOT, slot),
            CardRig::write(SOC_DB_TAG, tag), CardRig::write(SOC_DB_CMD, SOC_DB_BIND)};
}

TEST(CardDoorbells, ReachTheFirmware) {
    CardRig rig;
    rig.boot_script();
    rig.run(bind(2, 5, 1));
    rig.run(bind(7, 0, 2));
    rig.start({{OP_SERVE, 0, kEcho, 0}});
    rig.settle();
    rig.ring(2, 5, 0x77);
    rig.ring(2, 6, 0x88);
    rig.settle();
    EXPECT_EQ(rig.word(kEcho + 16), 0x77u);
    rig.ring(7, 0, 0x99);
    rig.settle();
    EXPECT_EQ(rig.word(kEcho + 32), 0x99u);
    EXPECT_EQ(rig.counter(ORR_CTR_DOORBELLS), 2u);
    EXPECT_EQ(rig.counter(ORR_CTR_KICKS), 0u);
    rig.kick(7, 0);
    rig.settle();
    EXPECT_EQ(rig.counter(ORR_CTR_KICKS), 1u);
}

TEST(CardDoorbells, KickPagesReadAsZero) {
    CardRig rig;
    std::array<std::byte, 8> bytes{std::byte{1}};
    rig.device().bar_read(ORR_BAR_DOORBELL, ORR_DB_KICK_OFFSET + 8, bytes);
    EXPECT_EQ(bytes[0], std::byte{0});
}

// One run of a fixed sequence of arrivals, each when the card has come to rest: all that is visible of it.
std::vector<std::uint64_t> history(unsigned chunk_of_steps) {
    CardRig rig;
    std::vector<std::uint64_t> seen;
    const auto look = [&] {
        seen.push_back(rig.read64(ORR_R_MODEL_TIME));
        for (unsigned i = 0; i < ORR_COUNTER_COUNT; ++i)
            seen.push_back(rig.counter(static_cast<orr_counter>(i)));
    };
    const auto settle = [&] {
        rig.steps(chunk_of_steps);
        rig.settle();
    };
    rig.boot_script();
    look();
    for (unsigned i = 0; i < 10; ++i)
        rig.run(bind(i, i, i));
    rig.run({{OP_SLEEP, 0, 12'345'678, 0}, {OP_CYCLES, 0, 0, 0}});
    look();
    rig.map_page(1, 0x1000, 0x1000, ORR_PTE_READ | ORR_PTE_WRITE);
    rig.run(rig.set_root(1));
    orr_desc_copy fill{};
    fill.op = ORR_DESC_FILL;
    fill.pattern_bytes = 8;
    fill.asid = 1;
    fill.dst = 0x1000;
    fill.row_bytes = 4096;
    fill.rows = 1;
    std::vector<script_op> script = CardRig::start_job(0, fill, 1);
    script.push_back({OP_WAIT, 0, 1u << SOC_LINE_DONE, 0});
    script.push_back(CardRig::read(SOC_DONE_POP));
    script.push_back(CardRig::read(SOC_DONE_END_PS));
    const std::uint64_t before = rig.counter(ORR_CTR_VRAM_BYTES);
    seen.push_back(rig.run(script).back().result);
    // Beside the fill's 4096 only a few words of the control core and of tables.
    EXPECT_GE(rig.counter(ORR_CTR_VRAM_BYTES) - before, 4096u);
    EXPECT_LT(rig.counter(ORR_CTR_VRAM_BYTES) - before, 2 * 4096u);
    look();
    rig.start({{OP_SERVE, 0, kEcho, 0}});
    settle();
    for (unsigned round = 1; round <= 20; ++round) {
        for (unsigned i = 0; i < 10; i += round % 3 + 1)
            rig.ring(i, i, round);
        settle();
        look();
    }
    rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    settle();
    look();
    return seen;
}

TEST(Determinism, TheSameArrivalsGiveTheSameTimesAndCounters) {
    const auto first = history(0);
    EXPECT_EQ(history(0), first);
    EXPECT_EQ(history(13), first);
    EXPECT_GT(first[first.size() - ORR_COUNTER_COUNT + ORR_CTR_RESETS], 0u);
}

}  // namespace
}  // namespace orrery::emu
