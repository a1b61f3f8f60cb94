// Reset from every state in which a card can be, by every way to reset it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

struct Before {
    std::string name;
    std::function<void(CardRig&)> bring;
};

const std::vector<Before>& states() {
    static const std::vector<Before> kStates = {
        {"Reset", [](CardRig&) {}},
        {"Booting",
         [](CardRig& rig) {
             const auto image = make_image(script_elf());
             std::memcpy(rig.ram(CardRig::kImage), image.data(), image.size());
             rig.write64(ORR_R_BOOT_IMAGE, CardRig::kImage);
             rig.write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(image.size()));
             rig.write32(ORR_R_BOOT_START, 1);
             EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_BOOTING);
         }},
        {"BootFailed",
         [](CardRig& rig) {
             std::vector<std::uint8_t> rubbish(1000, 0x5a);
             EXPECT_EQ(rig.boot(rubbish), ORR_BOOT_BAD_MAGIC);
         }},
        {"Running", [](CardRig& rig) { rig.boot_script(); }},
        {"Spinning",
         [](CardRig& rig) {
             rig.boot_script();
             rig.start({{OP_SPIN, 0, 0, 0}});
             rig.steps(100);
         }},
        {"Halted",
         [](CardRig& rig) {
             rig.boot_script();
             rig.start({CardRig::write(SOC_HALT, 1)});
             rig.settle();
             EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_HALTED);
         }},
        {"Copying",
         [](CardRig& rig) {
             rig.boot_script();
             for (std::uint64_t at = 0; at < 16 << 20; at += 4096) {
                 rig.map_page(2, at, at, ORR_PTE_READ | ORR_PTE_WRITE);
             }
             auto script = rig.set_root(2);
             orr_desc_copy fill{};
             fill.op = ORR_DESC_FILL;
             fill.pattern_bytes = 1;
             fill.asid = 2;
             fill.row_bytes = 16 << 20;
             fill.rows = 1;
             fill.pattern = 0xa5;
             std::ranges::copy(CardRig::start_job(0, fill, 1), std::back_inserter(script));
             rig.start(script);
             for (int i = 0; i < 10000 && rig.counter(ORR_CTR_COPY_BYTES) == 0; ++i)
                 rig.steps(1);
             EXPECT_LT(rig.counter(ORR_CTR_COPY_BYTES), 16u << 20);
         }},
        {"DoorbellsPending",
         [](CardRig& rig) {
             rig.boot_script();
             rig.run({CardRig::write(SOC_DB_TAG, 5), CardRig::write(SOC_DB_CMD, SOC_DB_BIND),
                      CardRig::write(SOC_IRQ_ENABLE, 1)});
             rig.ring(0, 0, 9);
             rig.settle();
             EXPECT_TRUE(rig.card().doorbells().pending());
         }},
    };
    return kStates;
}

class Reset : public testing::TestWithParam<std::size_t> {};

void expect_fresh(CardRig& rig) {
    EXPECT_EQ(rig.read32(ORR_R_STATE), ORR_STATE_RESET);
    EXPECT_EQ(rig.read32(ORR_R_BOOT_STATUS), ORR_BOOT_IDLE);
    EXPECT_EQ(rig.read32(ORR_R_PROGRESS), 0u);
    EXPECT_EQ(rig.read64(ORR_R_HEARTBEAT), 0u);
    EXPECT_EQ(rig.read64(ORR_R_HALT_CAUSE), 0u);
    EXPECT_EQ(rig.read32(ORR_R_IRQ_STATUS), 0u);
    EXPECT_EQ(rig.read64(ORR_R_BOOT_IMAGE), 0u);
    EXPECT_FALSE(rig.card().doorbells().pending());
    EXPECT_EQ(rig.card().doorbells().bindings(), 0u);
    const std::uint64_t copied = rig.counter(ORR_CTR_COPY_BYTES);
    const std::uint64_t instructions = rig.counter(ORR_CTR_CORE_INSTRUCTIONS);
    rig.settle();
    EXPECT_EQ(rig.counter(ORR_CTR_COPY_BYTES), copied) << "an engine went on";
    EXPECT_EQ(rig.counter(ORR_CTR_CORE_INSTRUCTIONS), instructions) << "the core went on";
}

TEST_P(Reset, ByTheResetRegister) {
    CardRig rig;
    *rig.card().vram().at(0x3000000, 1) = 0x77;
    states()[GetParam()].bring(rig);
    const std::uint64_t time = rig.read64(ORR_R_MODEL_TIME);
    rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    expect_fresh(rig);
    EXPECT_EQ(rig.read32(ORR_R_RESET_COUNT), 1u);
    EXPECT_EQ(rig.counter(ORR_CTR_RESETS), 1u);
    EXPECT_GE(rig.read64(ORR_R_MODEL_TIME), time);
    EXPECT_EQ(*rig.card().vram().at(0x3000000, 1), 0x77) << "VRAM outlives a reset";
    rig.boot_script();
    EXPECT_EQ(rig.run({CardRig::read(SOC_IRQ_PENDING)})[0].result, 0u);
}

TEST_P(Reset, ByTheBusAndTheFunction) {
    for (const ResetKind kind : {ResetKind::kBus, ResetKind::kFunction}) {
        CardRig rig;
        states()[GetParam()].bring(rig);
        rig.device().reset(kind);
        expect_fresh(rig);
        rig.boot_script();
    }
}

TEST_P(Reset, ByAClientThatGoes) {
    CardRig rig;
    *rig.card().vram().at(0x3000000, 1) = 0x77;
    rig.page(3).doorbell[0] = 5;
    states()[GetParam()].bring(rig);
    rig.unmap_ram();
    rig.device().client_gone();
    expect_fresh(rig);
    EXPECT_EQ(*rig.card().vram().at(0x3000000, 1), 0) << "a next client sees nothing of this one";
    EXPECT_EQ(rig.page(3).doorbell[0], 0u);
    rig.device().client_attached();
    rig.device().bus_master(true);
    ASSERT_EQ(rig.map_ram(), 0);
    rig.boot_script();
}

TEST_P(Reset, HostMemoryMayGoInEveryState) {
    CardRig rig;
    states()[GetParam()].bring(rig);
    rig.unmap_ram();
    rig.steps(1000);
    ASSERT_EQ(rig.map_ram(), 0);
    rig.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig.boot_script();
}

INSTANTIATE_TEST_SUITE_P(From, Reset, testing::Range(std::size_t{0}, states().size()),
                         [](const auto& param) { return states()[param.param].name; });

TEST(DmaMaps, OverlapsAreRefusedAndUnknownUnmapsAreFine) {
    CardRig rig;
    EXPECT_NE(rig.map_ram(), 0);
    EXPECT_NE(rig.map_ram(kRamBase + 4096, 4096), 0);
    rig.unmap_ram(0x1000, 0x1000);
    rig.unmap_ram(kRamBase, 4096);
    rig.boot_script();
    EXPECT_EQ(rig.counter(ORR_CTR_DMA_MAPS), 1u);
}

}  // namespace
}  // namespace orrery::emu
