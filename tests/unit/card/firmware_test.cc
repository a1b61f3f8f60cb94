// The real firmware on the card, driven natively: the whole device without a VM.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "emulator/card/card_thread.h"
#include "tests/unit/card/firmware_rig.h"

namespace orrery::emu {
namespace {

TEST(Firmware, BootsAndAnswers) {
    FirmwareRig fw;
    fw.boot();
    EXPECT_EQ(fw.boot_block().fw_magic, ORR_BB_FW_MAGIC);
    EXPECT_EQ(fw.boot_block().fw_abi, ORR_FW_ABI);
    const auto pong = fw.command(ORR_MBOX_PING, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(pong.status, ORR_STATUS_OK);
    EXPECT_EQ(pong.arg[5], 6u);
    EXPECT_EQ(fw.command(ORR_MBOX_VERSION, {}).arg[0], ORR_FW_ABI);
    EXPECT_EQ(fw.command(0x7777, {}).status, ORR_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(fw.rig().counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST(Firmware, RunsAFillAndASignal) {
    FirmwareRig fw;
    fw.boot();
    for (std::uint64_t at = 0; at < 0x10000; at += 4096)
        fw.rig().map_page(1, 0x10000 + at, 0x200000 + at, kRw);
    fw.make_queue(1);
    orr_packet_fill fill{};
    fill.header.opcode = ORR_PKT_FILL;
    fill.pattern = 0x5a;
    fill.pattern_bytes = 1;
    fill.dst = 0x10000;
    fill.row_bytes = 0x8000;
    fill.rows = 1;
    fw.push(1, fill);
    orr_packet_semaphore signal{};
    signal.header.opcode = ORR_PKT_SIGNAL;
    signal.header.flags = ORR_PKT_F_INTERRUPT;
    signal.semaphore = 0x1f000;
    signal.value = 42;
    fw.push(1, signal);
    fw.submit(1);
    fw.rig().settle();
    EXPECT_EQ(fw.ring(1).error, 0u);
    EXPECT_EQ(fw.ring(1).consumer, 2u);
    EXPECT_EQ(fw.status(1).completed, 2u);
    EXPECT_EQ(*fw.card().vram().at(0x200000 + 0x7fff, 1), 0x5a);
    orr_semaphore semaphore{};
    std::memcpy(&semaphore, fw.card().vram().at(0x20f000, sizeof semaphore), sizeof semaphore);
    EXPECT_EQ(semaphore.value, 42u);
    EXPECT_GT(semaphore.time_ps, 0u);
    EXPECT_NE(std::ranges::count(fw.rig().raised, ORR_IRQ_QUEUE), 0);
    EXPECT_EQ(fw.rig().counter(ORR_CTR_GUEST_ERRORS), 0u);
}

TEST(Firmware, StopsAQueueThatFaultsAndNoOther) {
    FirmwareRig fw;
    fw.boot();
    fw.make_queue(1);
    fw.make_queue(2);
    orr_packet_fill fill{};
    fill.header.opcode = ORR_PKT_FILL;
    fill.pattern_bytes = 1;
    fill.dst = 0x666000;
    fill.row_bytes = 64;
    fill.rows = 1;
    fw.push(1, fill);
    fw.submit(1);
    fw.rig().settle();
    EXPECT_EQ(fw.ring(1).error, ORR_QERR_FAULT);
    EXPECT_EQ(fw.ring(1).error_address, 0x666000u);
    fw.push(2, orr_packet{});
    fw.submit(2);
    fw.rig().settle();
    EXPECT_EQ(fw.ring(2).consumer, 1u);
    EXPECT_EQ(fw.rig().read32(ORR_R_STATE), ORR_STATE_RUNNING);
}

TEST(Firmware, GivesTheSameTimesForTheSameArrivals) {
    const auto history = [] {
        FirmwareRig fw;
        fw.boot();
        fw.make_queue(1);
        fw.make_queue(2);
        std::vector<std::uint64_t> seen;
        for (std::uint32_t i = 0; i < 20; ++i) {
            fw.push(1 + i % 2, orr_packet{});
            fw.submit(1 + i % 2);
            fw.rig().settle();
            seen.push_back(fw.ring(1 + i % 2).consumer_time_ps);
        }
        for (unsigned i = 0; i < ORR_COUNTER_COUNT; ++i) {
            seen.push_back(fw.rig().counter(static_cast<orr_counter>(i)));
        }
        return seen;
    };
    EXPECT_EQ(history(), history());
}

// Figures for people, no judgement: the time of a machine that others use too.
TEST(Firmware, ShowsItsLatencyOnAThread) {
    FirmwareRig fw;
    fw.boot();
    fw.make_queue(1);
    CardThread thread(fw.card());
    std::vector<double> us;
    for (std::uint64_t i = 1; i <= 5000; ++i) {
        fw.push(1, orr_packet{});
        const auto start = std::chrono::steady_clock::now();
        fw.submit(1);
        while (std::atomic_ref(fw.ring(1).consumer).load(std::memory_order_acquire) != i) {
        }
        us.push_back(
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    thread.stop();
    std::ranges::sort(us);
    std::printf(
        "doorbell to consumer index of an empty packet: fastest %.2f us, median %.2f us; %.0f instructions\n",
        us.front(), us[us.size() / 2],
        static_cast<double>(fw.rig().counter(ORR_CTR_CORE_INSTRUCTIONS)) / 5000);
    EXPECT_EQ(fw.ring(1).consumer, 5000u);
}

}  // namespace
}  // namespace orrery::emu
