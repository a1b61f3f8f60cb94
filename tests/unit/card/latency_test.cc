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

TEST(CardLatency, OfTheMailbox) {
    const auto time = [](ModelTime latency) {
        CardRig rig(with(0, latency));
        rig.boot_script();
        const std::uint64_t before = rig.read64(ORR_R_MODEL_TIME);
        rig.run({});
        return rig.read64(ORR_R_MODEL_TIME) - before;
    };
    EXPECT_EQ(time(kBase), time(0) + kBase);
    EXPECT_EQ(time(3 * kBase), time(0) + 3 * kBase);
}

// What the firmware's operations take, by its own clock.
std::uint64_t took(CardRig& rig, std::vector<script_op> script) {
    script.insert(script.begin(), CardRig::read(SOC_TIME));
    script.push_back(CardRig::read(SOC_TIME));
    const auto values = rig.run(script);
    return values.back().result - values.front().result;
}

TEST(CardLatency, OfMmuCommands) {
    const auto time = [](ModelTime latency, std::uint64_t command) {
        CardConfig config = CardRig::config();
        config.sku.mmu_invalidate_ps = latency;
        CardRig rig(config);
        rig.boot_script();
        return took(rig, {CardRig::write(SOC_MMU_ASID, 9), CardRig::write(SOC_MMU_ARG, 0),
                          CardRig::write(SOC_MMU_SIZE, 1), CardRig::write(SOC_MMU_CMD, command)});
    };
    for (const std::uint64_t command :
         {SOC_MMU_SET_ROOT, SOC_MMU_CLEAR_ROOT, SOC_MMU_FLUSH_ASID, SOC_MMU_FLUSH_RANGE})
        EXPECT_EQ(time(kBase, command), time(0, command) + kBase) << command;
    EXPECT_EQ(time(kBase, SOC_MMU_TRANSLATE), time(0, SOC_MMU_TRANSLATE));
}

TEST(CardLatency, OfTranslationsOfTheCore) {
    constexpr std::uint64_t kPage = ORR_PAGE_SIZE;
    CardRig rig;
    rig.boot_script();
    for (std::uint64_t page = 0; page < 32; ++page)
        rig.map_page(9, page * kPage, 0x20000 + page * kPage, kRw);
    rig.run(rig.set_root(9));
    const Sku& sku = rig.card().sku();
    ASSERT_LT(sku.core_tlb_entries, 32u);
    const auto forget = [&] {
        rig.run({CardRig::write(SOC_MMU_ASID, 9), CardRig::write(SOC_MMU_CMD, SOC_MMU_FLUSH_ASID)});
    };
    const auto signal = [&](std::uint64_t page) {
        return took(rig, {CardRig::write(SOC_SEM_ASID, 9), CardRig::write(SOC_SEM_VA, page * kPage),
                          CardRig::write(SOC_SEM_SIGNAL, 7)});
    };
    const auto load = [&](std::uint64_t page) {
        return took(rig, {{OP_READ, ORR_CONTEXT_WINDOW(9, page * kPage), 0, 0}});
    };
    const auto translate = [&](std::uint64_t page) {
        return took(rig, {CardRig::write(SOC_MMU_ASID, 9), CardRig::write(SOC_MMU_ARG, page * kPage),
                          CardRig::write(SOC_MMU_CMD, SOC_MMU_TRANSLATE)});
    };
    const auto check = [&](auto time) {
        forget();
        const std::uint64_t lookups = rig.counter(ORR_CTR_CORE_TLB_LOOKUPS),
                            misses = rig.counter(ORR_CTR_CORE_TLB_MISSES),
                            walked = rig.counter(ORR_CTR_CORE_TLB_WALKED);
        const std::uint64_t cold = time(0), warm = time(0);
        EXPECT_EQ(cold, warm + ORR_MMU_LEVELS * sku.vram_load_ps);
        for (std::uint64_t page = 1; page < 32; ++page)
            EXPECT_EQ(time(page), warm + sku.vram_load_ps);
        EXPECT_EQ(time(0), warm + sku.vram_load_ps) << "31 others were used since";
        EXPECT_EQ(rig.counter(ORR_CTR_CORE_TLB_LOOKUPS), lookups + 2 + 31 + 1);
        EXPECT_EQ(rig.counter(ORR_CTR_CORE_TLB_MISSES), misses + 1 + 31 + 1);
        EXPECT_EQ(rig.counter(ORR_CTR_CORE_TLB_WALKED), walked + ORR_MMU_LEVELS + 31 + 1);
    };
    check(signal);
    check(load);
    check(translate);
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
