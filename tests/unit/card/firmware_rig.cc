#include "tests/unit/card/firmware_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace orrery::emu {

CardConfig FirmwareRig::config(CardConfig base) {
    auto key = load_fuses(FIRMWARE_KEY);
    EXPECT_TRUE(key) << key.error();
    base.key = *key;
    return base;
}

FirmwareRig::FirmwareRig(CardConfig config) : rig_(std::move(config)) {}

void FirmwareRig::boot() {
    orr_boot_block& block = boot_block();
    block = {};
    block.host_magic = ORR_BB_HOST_MAGIC;
    block.host_abi = ORR_FW_ABI;
    block.command_ring = kCommands;
    block.message_ring = kMessages;
    block.queue_status = kStatus;
    block.host_page_size = 4096;
    start();
}

void FirmwareRig::boot_again() {
    std::memset(rig_.ram(kCommands), 0, sizeof(orr_mbox_ring));
    std::memset(rig_.ram(kMessages), 0, sizeof(orr_mbox_ring));
    start();
}

void FirmwareRig::start() {
    const auto image = read_file(FIRMWARE_IMAGE);
    std::memcpy(rig_.ram(CardRig::kImage), image.data(), image.size());
    rig_.write64(ORR_R_BOOT_IMAGE, CardRig::kImage);
    rig_.write32(ORR_R_BOOT_SIZE, static_cast<std::uint32_t>(image.size()));
    rig_.write64(ORR_R_BOOT_ARG, kBootBlock);
    rig_.write32(ORR_R_BOOT_START, 1);
    if (card().running()) {
        // A read does not wait for long until the card's thread has carried out what was written before.
        for (std::uint32_t state = ORR_STATE_RESET; state == ORR_STATE_RESET || state == ORR_STATE_BOOTING;
             state = rig_.read32(ORR_R_STATE))
            std::this_thread::yield();
    } else {
        rig_.settle();
    }
    ASSERT_EQ(rig_.read32(ORR_R_BOOT_STATUS), ORR_BOOT_OK);
    ASSERT_EQ(rig_.read32(ORR_R_STATE), ORR_STATE_RUNNING) << std::hex << rig_.read32(ORR_R_PROGRESS);
}

void FirmwareRig::post(std::uint16_t opcode, std::initializer_list<std::uint64_t> args) {
    auto& commands = *reinterpret_cast<orr_mbox_ring*>(rig_.ram(kCommands));
    orr_mbox_message message{};
    message.sequence = ++sequence_;
    message.opcode = opcode;
    std::ranges::copy(args, message.arg);
    commands.entry[commands.producer % ORR_MBOX_ENTRIES] = message;
    std::atomic_ref(commands.producer).store(commands.producer + 1, std::memory_order_release);
    rig_.write32(ORR_R_MBOX_DOORBELL, 1);
}

orr_mbox_message FirmwareRig::command(std::uint16_t opcode, std::initializer_list<std::uint64_t> args) {
    post(opcode, args);
    auto& messages = *reinterpret_cast<orr_mbox_ring*>(rig_.ram(kMessages));
    const auto arrived = [&] {
        return std::atomic_ref(messages.producer).load(std::memory_order_acquire) != messages.consumer;
    };
    if (card().running()) {
        while (!arrived())
            std::this_thread::yield();
    } else {
        rig_.settle();
    }
    EXPECT_TRUE(arrived());
    const orr_mbox_message reply = messages.entry[messages.consumer % ORR_MBOX_ENTRIES];
    std::atomic_ref(messages.consumer).store(messages.consumer + 1, std::memory_order_release);
    EXPECT_EQ(reply.sequence, sequence_);
    return reply;
}

void FirmwareRig::make_queue(std::uint32_t asid) {
    constexpr std::uint64_t kHost = std::uint64_t{ORR_TARGET_HOST} << ORR_PTE_TARGET_SHIFT;
    std::memset(rig_.ram(ring_bus(asid)), 0, 0x4000);
    for (std::uint64_t at = 0; at < 0x4000; at += 4096) {
        rig_.map_page(asid, kRingVa + at, ring_bus(asid) + at, ORR_PTE_READ | ORR_PTE_WRITE | kHost);
    }
    ASSERT_EQ(command(ORR_MBOX_CONTEXT_CREATE, {asid, rig_.root(asid), asid}).status, ORR_STATUS_OK);
    const auto reply = command(ORR_MBOX_QUEUE_CREATE, {asid | std::uint64_t{asid} << 32, kRingVa, kEntries,
                                                       std::uint64_t{ORR_PRIORITY_NORMAL} << 32 | 7, 0});
    ASSERT_EQ(reply.status, ORR_STATUS_OK) << reply.detail;
    generation_[asid] = reply.arg[0];
}

void FirmwareRig::submit(std::uint32_t asid) {
    rig_.ring(asid, 7, ORR_DB_VALUE(generation_[asid], ring(asid).producer));
    if (std::atomic_ref(rig_.page(asid).need_wakeup).load(std::memory_order_acquire) != 0) rig_.kick(asid, 7);
}

}  // namespace orrery::emu
