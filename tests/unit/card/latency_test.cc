// What goes one way over PCIe takes the SKU's time, to the picosecond.
#include <gtest/gtest.h>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kEcho = kRamBase + 0x10000;
// Longer than what the card has to do besides.
constexpr ModelTime kBase = 50'000 * kPsPerNs, kMore = 12'345;

CardConfig with(ModelTime msi, ModelTime doorbell) {
    CardConfig config = CardRig::config();
    config.sku.pcie_msi_ps = msi;
    config.sku.pcie_doorbell_ps = doorbell;
    return config;
}

std::vector<script_op> bind(unsigned slot, std::uint32_t tag) {
    return {CardRig::write(SOC_DB_PAGE, 2), CardRig::write(SOC_DB_SLOT, slot),
            CardRig::write(SOC_DB_TAG, tag), CardRig::write(SOC_DB_CMD, SOC_DB_BIND)};
}

TEST(CardLatency, OfInterrupts) {
    const auto time = [](ModelTime latency) {
        CardRig rig(with(latency, 0));
        rig.boot_script();
        const std::uint64_t before = rig.read64(ORR_R_MODEL_TIME);
        rig.run({CardRig::write(SOC_HOST_IRQ, 3)});
        EXPECT_EQ(rig.raised, (std::vector<unsigned>{3, 0})) << "0 is the script's end";
        EXPECT_EQ(rig.read32(ORR_R_IRQ_STATUS), 0b1001u);
        return rig.read64(ORR_R_MODEL_TIME) - before;
    };
    EXPECT_EQ(time(kBase + kMore), time(kBase) + kMore);
    EXPECT_GT(time(kBase), kBase);
}

TEST(CardLatency, InterruptsAreNotSeenOnTheirWay) {
    CardRig rig(with(kBase, 0));
    rig.boot_script();
    rig.start({CardRig::write(SOC_HOST_IRQ, 3), {OP_SPIN, 0, 0, 0}});
    const std::uint64_t before = rig.read64(ORR_R_MODEL_TIME);
    while (rig.read64(ORR_R_MODEL_TIME) < before + kBase / 2)
        rig.steps(1);
    EXPECT_EQ(rig.read32(ORR_R_IRQ_STATUS), 0u);
    EXPECT_TRUE(rig.raised.empty());
    while (rig.read64(ORR_R_MODEL_TIME) < before + 2 * kBase)
        rig.steps(1);
    EXPECT_EQ(rig.read32(ORR_R_IRQ_STATUS), 0b1000u);
    EXPECT_EQ(rig.raised.size(), 1u);
}

TEST(CardLatency, AResetForgetsWhatIsOnItsWay) {
    CardRig rig(with(kBase, kBase));
    rig.boot_script();
    rig.run(bind(5, 1));
    rig.raised.clear();
    rig.start({CardRig::write(SOC_HOST_IRQ, 3), {OP_SPIN, 0, 0, 0}});
    rig.ring(2, 5, 1);
    rig.steps(3);
    ASSERT_TRUE(rig.raised.empty());
    rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig.settle();
    EXPECT_TRUE(rig.raised.empty());
    EXPECT_EQ(rig.read32(ORR_R_IRQ_STATUS), 0u);
    rig.boot_script();
    EXPECT_EQ(rig.soc(SOC_DB_POP), ~std::uint64_t{0});
}

TEST(CardLatency, OfDoorbells) {
    const auto time = [](ModelTime latency) {
        CardRig rig(with(0, latency));
        rig.boot_script();
        rig.run(bind(5, 1));
        rig.start({{OP_SERVE, 0, kEcho, 0}});
        rig.settle();
        const std::uint64_t before = rig.read64(ORR_R_MODEL_TIME);
        rig.ring(2, 5, 0x77);
        rig.settle();
        EXPECT_EQ(rig.word(kEcho + 16), 0x77u);
        return rig.read64(ORR_R_MODEL_TIME) - before;
    };
    // The clock of a core is whole cycles.
    EXPECT_EQ(time(kBase), time(0) + kBase);
    EXPECT_EQ(time(3 * kBase), time(0) + 3 * kBase);
}

// Two stores on their way at once: each arrives, unless the first that was popped has taken both along.
TEST(CardLatency, DoorbellsThatFollowEachOther) {
    CardRig rig(with(0, kBase));
    rig.boot_script();
    rig.run(bind(5, 1));
    rig.run(bind(6, 2));
    rig.ring(2, 5, 1);
    rig.steps(1);
    rig.ring(2, 5, 2);
    rig.ring(2, 6, 9);
    rig.steps(1);
    rig.settle();
    EXPECT_EQ(rig.counter(ORR_CTR_DOORBELLS), 3u);
    EXPECT_EQ(rig.soc(SOC_DB_POP), 1u | SOC_DB_MORE);
    EXPECT_EQ(rig.soc(SOC_DB_POP), 2u);
    EXPECT_EQ(rig.soc(SOC_DB_POP), ~std::uint64_t{0});
    // Unbound on its way: it comes nowhere, also when the slot is bound again.
    rig.ring(2, 5, 3);
    rig.steps(1);
    rig.run({CardRig::write(SOC_DB_PAGE, 2), CardRig::write(SOC_DB_SLOT, 5),
             CardRig::write(SOC_DB_CMD, SOC_DB_UNBIND)});
    rig.run(bind(5, 7));
    EXPECT_EQ(rig.soc(SOC_DB_POP), ~std::uint64_t{0});
}

// While a debugger holds the card nothing arrives, so nothing may set out: a guest that rings on and on would
// take the host's memory.
TEST(CardLatency, DoorbellsOfAHeldCardAreHeardWhenItGoesOn) {
    CardRig rig(with(0, kBase));
    rig.boot_script();
    rig.run(bind(5, 1));
    rig.card().core().debug_stop();
    for (std::uint64_t value = 1; value <= 1000; ++value) {
        rig.ring(2, 5, value);
        rig.steps(1);
    }
    EXPECT_EQ(rig.counter(ORR_CTR_DOORBELLS), 0u);
    rig.card().core().debug_detach();
    rig.settle();
    EXPECT_EQ(rig.counter(ORR_CTR_DOORBELLS), 1u);
    EXPECT_EQ(rig.soc(SOC_DB_POP), 1u);
    EXPECT_EQ(rig.soc(SOC_DB_VALUE), 1000u);
    EXPECT_EQ(rig.soc(SOC_DB_POP), ~std::uint64_t{0});
}

}  // namespace
}  // namespace orrery::emu
