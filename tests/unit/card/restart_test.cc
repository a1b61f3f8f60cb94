// Restart of the control core alone: what its next firmware finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kKept = ORR_SRAM_BASE + 0x60000;  // behind all segments of the tests' firmware

class Restart : public testing::Test {
  protected:
    static script_op read(std::uint64_t reg) { return CardRig::read(reg); }
    static script_op write(std::uint64_t reg, std::uint64_t value) { return CardRig::write(reg, value); }
    void restart() {
        rig_.write32(ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
        rig_.settle();
    }
    std::uint64_t& vram(std::uint64_t offset) {
        return *reinterpret_cast<std::uint64_t*>(rig_.card().vram().at(offset, 8));
    }
    // An endless kernel on port 2.
    std::vector<script_op> start_loop(std::uint32_t tag) {
        rig_.map_page(3, 0x10000, 0x10000, ORR_PTE_READ | ORR_PTE_WRITE | ORR_PTE_EXEC);
        vram(0x10000) = 0x0000006f;
        auto script = rig_.set_root(3);
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = 3;
        desc.entry = 0x10000;
        desc.grid_x = desc.grid_y = desc.grid_z = 1;
        desc.block_x = desc.block_y = desc.block_z = 1;
        std::ranges::copy(CardRig::start_job(2, desc, tag), std::back_inserter(script));
        return script;
    }
    CardRig rig_;
};

TEST_F(Restart, KeepsSramOutsideTheImage) {
    rig_.boot_script();
    const auto first = rig_.run({{OP_WRITE, kKept, 0x1234'5678, 0}, read(SOC_BOOT_COUNT)});
    EXPECT_EQ(first[1].result, 1u);
    // The image itself is loaded anew.
    rig_.card().core().sram()[0] ^= 0xff;
    restart();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RESET);
    EXPECT_EQ(rig_.read32(ORR_R_PROGRESS), 0u);
    EXPECT_EQ(rig_.read32(ORR_R_BOOT_STATUS), ORR_BOOT_IDLE);
    rig_.boot_script();
    auto again = rig_.run({{OP_READ, kKept, 0, 0}, read(SOC_BOOT_COUNT)});
    EXPECT_EQ(again[0].result, 0x1234'5678u);
    EXPECT_EQ(again[1].result, 2u);
    EXPECT_EQ(rig_.counter(ORR_CTR_CORE_RESTARTS), 1u);
    EXPECT_EQ(rig_.read32(ORR_R_RESET_COUNT), 0u);
    // A reset of the card clears it.
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    rig_.boot_script();
    again = rig_.run({{OP_READ, kKept, 0, 0}, read(SOC_BOOT_COUNT)});
    EXPECT_EQ(again[0].result, 0u);
    EXPECT_EQ(again[1].result, 1u);
}

TEST_F(Restart, HelpsACoreThatHaltedOrSpins) {
    rig_.boot_script();
    rig_.start({write(SOC_HALT, 7)});
    rig_.settle();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_HALTED);
    restart();
    EXPECT_EQ(rig_.read64(ORR_R_HALT_CAUSE), 0u);
    rig_.boot_script();
    rig_.start({{OP_SPIN, 0, 0, 0}});
    rig_.steps(100);
    restart();
    rig_.boot_script();
    EXPECT_EQ(rig_.soc(SOC_BOOT_COUNT), 3u);
    // A second halt is told as the first was.
    rig_.start({write(SOC_HALT, 8)});
    rig_.settle();
    EXPECT_EQ(rig_.read64(ORR_R_HALT_CAUSE), ORR_HALT_REQUESTED | 8);
}

TEST_F(Restart, LeavesEnginesAtWorkAndTheirCompletions) {
    rig_.boot_script();
    auto script = start_loop(0x99);
    script.push_back(write(SOC_ENGINE(2) + SOC_ENGINE_WEIGHT, 5));
    script.push_back(write(SOC_ENGINE(1) + SOC_ENGINE_START, 0x55));  // no descriptor: it ends at once
    script.push_back(write(SOC_IRQ_ENABLE, 0));
    rig_.start(script);
    for (unsigned i = 0; i < 10'000 && rig_.word(CardRig::kScript) == 0; ++i)
        rig_.steps(1);
    ASSERT_EQ(rig_.word(CardRig::kScript), 1u);
    const std::uint64_t before = rig_.counter(ORR_CTR_VECTOR_INSTRUCTIONS);
    rig_.write32(ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
    rig_.steps(20);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RESET);
    EXPECT_GT(rig_.counter(ORR_CTR_VECTOR_INSTRUCTIONS), before) << "without a core";
    rig_.write32(ORR_R_BOOT_START, 1);
    for (unsigned i = 0; i < 10'000 && rig_.read32(ORR_R_STATE) != ORR_STATE_RUNNING; ++i)
        rig_.steps(1);
    ASSERT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING);
    rig_.start({read(SOC_ENGINE(2) + SOC_ENGINE_BUSY), read(SOC_ENGINE(2) + SOC_ENGINE_TAG),
                read(SOC_ENGINE(2) + SOC_ENGINE_WEIGHT), read(SOC_DONE_STATUS), read(SOC_DONE_POP),
                read(SOC_DONE_STATUS), write(SOC_ENGINE(2) + SOC_ENGINE_ABORT, 1)});
    rig_.settle();
    const auto ops = rig_.results(6);
    EXPECT_EQ(ops[0].result, 1u);
    EXPECT_EQ(ops[1].result, 0x99u);
    EXPECT_EQ(ops[2].result, 5u);
    EXPECT_EQ(ops[3].result, 0u);
    EXPECT_EQ(ops[4].result, 1ull << 32 | 0x55);
    EXPECT_EQ(ops[5].result, ORR_DONE_BAD_DESC);
    const auto last = rig_.run({read(SOC_DONE_POP), read(SOC_DONE_STATUS)});
    EXPECT_EQ(last[0].result, 2ull << 32 | 0x99);
    EXPECT_EQ(last[1].result, ORR_DONE_ABORTED);
}

TEST_F(Restart, LeavesDoorbellsMailboxAndMmu) {
    rig_.map_page(9, 0x5000, 0x20000, ORR_PTE_READ | ORR_PTE_WRITE);
    vram(0x20000) = 0xabcd;
    rig_.boot_script();
    rig_.run({write(SOC_DB_PAGE, 3), write(SOC_DB_SLOT, 4), write(SOC_DB_TAG, 5),
              write(SOC_DB_CMD, SOC_DB_BIND), write(SOC_SLOT(0) + SOC_SLOT_RING, ORR_VRAM_WINDOW),
              write(SOC_SLOT(0) + SOC_SLOT_LIMIT, 3)});
    rig_.run(rig_.set_root(9));
    rig_.ring(3, 4, 77);
    rig_.card().soc().poked(0x700);
    rig_.write32(ORR_R_IRQ_MASK, 0x80);
    restart();
    rig_.ring(3, 4, 78);
    rig_.write32(ORR_R_MBOX_DOORBELL, 1);
    rig_.boot_script();
    const auto ops = rig_.run({read(SOC_DB_TAG),
                               read(SOC_DB_POP),
                               read(SOC_DB_VALUE),
                               read(SOC_POKE_POP),
                               {OP_READ, ORR_CONTEXT_WINDOW(9, 0x5000), 0, 0},
                               read(SOC_SLOT(0) + SOC_SLOT_LIMIT),
                               read(SOC_IRQ_ENABLE)});
    EXPECT_EQ(ops[0].result, 0u);
    EXPECT_EQ(ops[1].result, 5u);
    EXPECT_EQ(ops[2].result, 78u);
    EXPECT_EQ(ops[3].result, 0x700u);
    EXPECT_EQ(ops[4].result, 0xabcdu);
    EXPECT_EQ(ops[5].result, 0u);
    EXPECT_EQ(rig_.read32(ORR_R_IRQ_MASK), 0x80u);
}

TEST_F(Restart, InEachStateOfTheCard) {
    // In reset there is nothing to restart.
    restart();
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 1u);
    EXPECT_EQ(rig_.counter(ORR_CTR_CORE_RESTARTS), 0u);
    rig_.write32(ORR_R_CORE_RESTART, 1);
    EXPECT_EQ(rig_.counter(ORR_CTR_GUEST_ERRORS), 2u);
    EXPECT_EQ(rig_.read32(ORR_R_CORE_RESTART), 0u);
    // In the boot ROM.
    const auto image = make_image(script_elf());
    std::memcpy(rig_.ram(CardRig::kImage), image.data(), image.size());
    rig_.write64(ORR_R_BOOT_IMAGE, CardRig::kImage);
    rig_.write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(image.size()));
    rig_.write32(ORR_R_BOOT_START, 1);
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_BOOTING);
    restart();
    EXPECT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RESET);
    // After a boot that failed; no firmware has run yet, so the one that comes finds zeros.
    const std::vector<std::uint8_t> rubbish(1000, 0x5a);
    EXPECT_EQ(rig_.boot(rubbish), ORR_BOOT_BAD_MAGIC);
    rig_.card().core().sram()[kKept - ORR_SRAM_BASE] = 0x77;
    restart();
    rig_.boot_script();
    EXPECT_EQ(rig_.run({{OP_READ, kKept, 0, 0}})[0].result, 0u);
    // A warm boot that fails leaves SRAM alone, and can be tried again.
    rig_.run({{OP_WRITE, kKept, 42, 0}});
    restart();
    EXPECT_EQ(rig_.boot(rubbish), ORR_BOOT_BAD_MAGIC);
    restart();
    rig_.boot_script();
    const auto ops = rig_.run({{OP_READ, kKept, 0, 0}, read(SOC_BOOT_COUNT)});
    EXPECT_EQ(ops[0].result, 42u);
    EXPECT_EQ(ops[1].result, 2u);
}

}  // namespace
}  // namespace orrery::emu
