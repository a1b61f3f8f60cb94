// The real firmware crashes on the card and is started again, while its engines work.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/unit/card/firmware_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kCode = 0x300000;  // in VRAM, and in every context
constexpr std::uint64_t kSemaphores = 0x20000;

class FirmwareRestart : public testing::Test {
  protected:
    void SetUp() override {
        fw.boot();
        for (std::uint32_t asid = 1; asid <= 3; ++asid) {
            fw.rig().map_page(asid, kCode, kCode, kRw | ORR_PTE_EXEC);
            fw.rig().map_page(asid, kSemaphores, 0x200000, kRw);
            fw.make_queue(asid);
        }
        // li t0, 2000000; 1: addi t0, t0, -1; bnez t0, 1b; ret
        const std::array<std::uint32_t, 5> code{0x001e82b7, 0x48028293, 0xfff28293, 0xfe029ee3, 0x00008067};
        std::memcpy(fw.card().vram().at(kCode, sizeof code), code.data(), sizeof code);
    }
    void push_kernel(std::uint32_t asid) {
        orr_packet_dispatch p{};
        p.header.opcode = ORR_PKT_DISPATCH;
        p.entry = kCode;
        p.grid_x = p.grid_y = p.grid_z = 1;
        p.block_x = p.block_y = p.block_z = 1;
        fw.push(asid, p);
    }
    void push_semaphore(std::uint32_t asid, std::uint16_t opcode, std::uint64_t value) {
        orr_packet_semaphore p{};
        p.header.opcode = opcode;
        p.semaphore = kSemaphores;
        p.value = value;
        fw.push(asid, p);
    }
    void crash(std::uint64_t guilty) {
        fw.post(ORR_MBOX_CRASH, {guilty});
        for (int n = 0; n < 1000 && fw.rig().read32(ORR_R_STATE) != ORR_STATE_HALTED; ++n)
            fw.rig().steps(1);
        ASSERT_EQ(fw.rig().read32(ORR_R_STATE), ORR_STATE_HALTED);
        EXPECT_EQ(fw.rig().read64(ORR_R_HALT_CAUSE), 2u) << "an illegal instruction";
        fw.rig().write32(ORR_R_CORE_RESTART, ORR_RESTART_MAGIC);
        for (int n = 0; n < 1000 && fw.rig().read32(ORR_R_STATE) != ORR_STATE_RESET; ++n)
            fw.rig().steps(1);
        fw.boot_again();
    }
    FirmwareRig fw;
};

TEST_F(FirmwareRestart, EnginesGoOnAndSoDoQueues) {
    push_kernel(1);
    push_semaphore(1, ORR_PKT_SIGNAL, 7);
    fw.submit(1);
    push_semaphore(2, ORR_PKT_WAIT, 7);
    fw.submit(2);
    fw.rig().steps(60);
    ASSERT_EQ(fw.ring(1).consumer, 0u) << "the kernel is too short for this test";
    const auto heartbeat = fw.rig().read64(ORR_R_HEARTBEAT);
    crash(~0ull);
    EXPECT_EQ(fw.boot_block().start_kind, ORR_BB_START_WARM);
    EXPECT_EQ(fw.boot_block().resumed_queues, 3u);
    EXPECT_GT(fw.rig().read64(ORR_R_HEARTBEAT), heartbeat);
    fw.rig().settle();
    EXPECT_EQ(fw.ring(1).consumer, 2u);
    EXPECT_EQ(fw.ring(2).consumer, 1u) << "the wait did not end";
    EXPECT_EQ(fw.ring(1).error + fw.ring(2).error, 0u);
    // Once only: it takes 2,000,000 rounds of two instructions.
    EXPECT_LT(fw.rig().counter(ORR_CTR_VECTOR_INSTRUCTIONS), 5'000'000u);
    EXPECT_EQ(fw.command(ORR_MBOX_PING, {1}).arg[0], 1u);
    fw.push(3, orr_packet{});
    fw.submit(3);
    fw.rig().settle();
    EXPECT_EQ(fw.ring(3).consumer, 1u);
    EXPECT_EQ(fw.rig().counter(ORR_CTR_GUEST_ERRORS), 1u) << "the halt itself is one";
}

TEST_F(FirmwareRestart, TheGuiltyQueueStopsWithTheCause) {
    push_kernel(1);
    fw.submit(1);
    push_kernel(2);
    fw.submit(2);
    fw.rig().steps(60);
    crash(2);
    fw.rig().settle();
    EXPECT_EQ(fw.boot_block().resumed_queues, 2u);
    EXPECT_EQ(fw.ring(1).consumer, 1u);
    EXPECT_EQ(fw.status(2).error, ORR_QERR_FIRMWARE);
    EXPECT_EQ(fw.status(2).error_detail, 2u) << "mcause";
    EXPECT_EQ(fw.status(2).completed, fw.status(2).error_index);
}

TEST_F(FirmwareRestart, ManyTimes) {
    for (std::uint64_t n = 1; n <= 20; ++n) {
        push_kernel(1);
        push_semaphore(1, ORR_PKT_SIGNAL, n);
        fw.submit(1);
        push_semaphore(2, ORR_PKT_WAIT, n);
        fw.submit(2);
        fw.rig().steps(static_cast<unsigned>(7 * n));
        crash(~0ull);
        ASSERT_EQ(fw.boot_block().start_kind, ORR_BB_START_WARM);
        fw.rig().settle();
        ASSERT_EQ(fw.ring(1).consumer, 2 * n);
        ASSERT_EQ(fw.ring(2).consumer, n);
    }
}

}  // namespace
}  // namespace orrery::emu
