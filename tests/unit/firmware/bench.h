// A firmware on a fake chip, with the driver's and the processes' side of the contracts: what the tests
// drive it with.
#pragma once

#include <gtest/gtest.h>
#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/doorbell.h>

#include <functional>
#include <memory>
#include <optional>

#include "firmware/main/firmware.h"
#include "tests/unit/firmware/fake_soc.h"

namespace orrery::fw::test {

// Host memory.
inline constexpr std::uint64_t kBlock = kHostBase;
inline constexpr std::uint64_t kCommands = kHostBase + 0x10000;
inline constexpr std::uint64_t kMessages = kHostBase + 0x20000;
inline constexpr std::uint64_t kStatus = kHostBase + 0x30000;

// Where things are in every context, and in the test's memory. Rings: 0x2000 bytes a queue.
inline constexpr std::uint64_t kRingVa = 0x10000000;
inline constexpr std::uint64_t kRingMemory = 0x100000;
inline constexpr std::uint64_t kRingBytes = 0x2000;
// Semaphores and other shared words: the same memory in all contexts, at two addresses.
inline constexpr std::uint64_t kSharedVa = 0x20000000;
inline constexpr std::uint64_t kAliasVa = 0x30000000;
inline constexpr std::uint64_t kSharedMemory = 0x10000;
inline constexpr std::uint64_t kSharedBytes = 0x10000;

struct ProcessQueue {
    std::uint32_t number = 0, context = 0, page = 0, slot = 0;
    std::uint64_t entries = 0, ring = 0;  // memory offset
    std::uint64_t generation = 0;
    std::uint64_t producer = 0;
};

inline orr_packet packet(std::uint16_t opcode, std::uint16_t flags = 0) {
    orr_packet p{};
    p.header.opcode = opcode;
    p.header.flags = flags;
    return p;
}

inline orr_packet nop(std::uint16_t flags = 0) {
    return packet(ORR_PKT_NOP, flags);
}
inline orr_packet barrier() {
    return packet(ORR_PKT_BARRIER);
}

inline orr_packet semaphore_packet(std::uint16_t opcode, std::uint64_t va, std::uint64_t value,
                                   std::uint16_t flags) {
    orr_packet p = packet(opcode, flags);
    p.word[0] = va;
    p.word[1] = value;
    return p;
}
inline orr_packet signal(std::uint64_t va, std::uint64_t value, std::uint16_t flags = 0) {
    return semaphore_packet(ORR_PKT_SIGNAL, va, value, flags);
}
inline orr_packet wait(std::uint64_t va, std::uint64_t value, std::uint16_t flags = 0) {
    return semaphore_packet(ORR_PKT_WAIT, va, value, flags);
}
inline orr_packet timestamp(std::uint64_t va) {
    orr_packet p = packet(ORR_PKT_TIMESTAMP);
    p.word[0] = va;
    return p;
}

template <typename T>
orr_packet as_packet(const T& typed) {
    orr_packet p;
    static_assert(sizeof(p) == sizeof(typed));
    std::memcpy(&p, &typed, sizeof(p));
    return p;
}

inline orr_packet_copy copy_of(std::uint64_t src, std::uint16_t flags = 0) {
    orr_packet_copy p{};
    p.header = {ORR_PKT_COPY, flags, 0};
    p.src = src;
    p.dst = src + 0x100000;
    p.row_bytes = 64;
    p.rows = 1;
    return p;
}
inline orr_packet copy(std::uint64_t src, std::uint16_t flags = 0) {
    return as_packet(copy_of(src, flags));
}

inline orr_packet_fill fill_of(std::uint64_t dst) {
    orr_packet_fill p{};
    p.header.opcode = ORR_PKT_FILL;
    p.pattern = 0x1122334455667788;
    p.dst = dst;
    p.row_bytes = 32;
    p.rows = 2;
    p.pattern_bytes = 4;
    p.dst_pitch = 64;
    return p;
}

inline orr_packet_dispatch dispatch_of(std::uint64_t entry, std::uint16_t flags = 0) {
    orr_packet_dispatch p{};
    p.header = {ORR_PKT_DISPATCH, flags, 0};
    p.entry = entry;
    p.args = 0x5000;
    p.grid_x = 2;
    p.grid_y = 3;
    p.grid_z = 4;
    p.block_x = 8;
    p.block_y = 2;
    p.block_z = 1;
    p.local_bytes = 256;
    return p;
}
inline orr_packet dispatch(std::uint64_t entry, std::uint16_t flags = 0) {
    return as_packet(dispatch_of(entry, flags));
}

class Bench {
  public:
    explicit Bench(const FakeSoc::Config& config = {});

    // Starts the firmware with a good boot block. False: it gave up.
    bool boot();
    // Stops the core wherever it is and starts it again, as the driver does it; what it had in `tables` is
    // what they held at a crash, else what they hold now. False: it gave up.
    bool restart();
    // One pass. False: then the core sleeps.
    bool step();
    // Lets the firmware work until it would sleep. Fails the test if it never does.
    void run();

    // --- the driver's side ---
    void send(orr_mbox_message command);
    std::optional<orr_mbox_message> receive();
    // Sends, runs, and gives the reply; events that come before it are kept in `events`.
    orr_mbox_message call(orr_mbox_message command);
    orr_mbox_message call(std::uint16_t opcode, std::vector<std::uint64_t> args = {},
                          std::uint16_t flags = 0);
    void create_context(std::uint32_t number, std::uint32_t page, std::uint64_t user = 0,
                        std::uint64_t process = 0);
    ProcessQueue create_queue(std::uint32_t number, std::uint32_t context, std::uint64_t entries = 16,
                              std::uint64_t limit_us = 0);
    orr_queue_status status(std::uint32_t queue) const;

    // --- a process's side ---
    void push(ProcessQueue& queue, const orr_packet& packet);
    void ring(const ProcessQueue& queue);  // publishes the producer, then the doorbell
    void submit(ProcessQueue& queue, std::initializer_list<orr_packet> packets);
    orr_ring ring_of(const ProcessQueue& queue) const;
    std::uint64_t shared(std::uint64_t offset) const { return soc.memory(kSharedMemory + offset); }
    void set_shared(std::uint64_t offset, std::uint64_t value) {
        soc.set_memory(kSharedMemory + offset, value);
    }

    FakeSoc soc;
    // One pass of the firmware; false: it sleeps. Natively Firmware::pass(); a test can put the real image
    // here.
    std::function<bool()> pass;
    std::unique_ptr<Tables> tables = std::make_unique<Tables>();
    std::unique_ptr<Firmware> firmware;
    std::vector<orr_mbox_message> events;
    std::map<std::uint32_t, std::uint32_t> pages;  // doorbell page of a context
    std::uint64_t command_producer = 0, message_consumer = 0;
    std::uint32_t sequence = 0;
    bool crashed = false;
    std::vector<std::uint8_t> remains;  // of `tables`, at the crash
};

// Booted, with context 1. Its engines go on with what is aborted until the test ends it.
class SlowBench : public Bench {
  public:
    SlowBench() : Bench(slow()) {
        EXPECT_TRUE(boot());
        create_context(1, 0);
    }

  private:
    static FakeSoc::Config slow() {
        FakeSoc::Config config;
        config.abort_at_once = false;
        return config;
    }
};

// Expects ring and status line to show this error, and an event to have told it.
void expect_error(Bench& bench, const ProcessQueue& queue, std::uint64_t code, std::uint64_t index,
                  std::uint64_t address, std::uint64_t detail);

}  // namespace orrery::fw::test
