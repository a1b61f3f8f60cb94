#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {

Bench::Bench(const FakeSoc::Config& config) : soc(config), firmware(std::make_unique<Firmware>()) {
    pass = [this] {
        if (crashed) return false;
        try {
            return firmware->pass();
        } catch (const CoreCrash&) {
            crashed = true;
            return false;
        }
    };
    soc.on_crash = [this] {
        const auto* const from = reinterpret_cast<const std::uint8_t*>(tables.get());
        remains.assign(from, from + sizeof(Tables));
    };
    soc.boot_arg = kBlock;
    soc.set_host(kBlock + offsetof(orr_boot_block, host_magic), ORR_BB_HOST_MAGIC);
    soc.set_host(kBlock + offsetof(orr_boot_block, host_abi), ORR_FW_ABI);
    soc.set_host(kBlock + offsetof(orr_boot_block, command_ring), kCommands);
    soc.set_host(kBlock + offsetof(orr_boot_block, message_ring), kMessages);
    soc.set_host(kBlock + offsetof(orr_boot_block, queue_status), kStatus);
    soc.set_host(kBlock + offsetof(orr_boot_block, host_page_size), 4096);
}

bool Bench::restart() {
    if (crashed) std::memcpy(static_cast<void*>(tables.get()), remains.data(), sizeof(Tables));
    crashed = false;
    firmware = std::make_unique<Firmware>();
    soc.restart_core();
    for (const std::uint64_t ring : {kCommands, kMessages}) {
        soc.set_host(ring, 0);
        soc.set_host(ring + 64, 0);
    }
    command_producer = message_consumer = 0;
    return firmware->start(soc, *tables, "1.2.3+test");
}

bool Bench::boot() {
    return firmware->start(soc, *tables, "1.2.3+test");
}

bool Bench::step() {
    if (pass()) return true;
    // A pending line or timer ends the core's sleep.
    return ((soc.lines() & soc.irq_enable) != 0 || soc.timer_pending()) && !crashed && !firmware->halted();
}

void Bench::run() {
    for (int n = 0; n < 1'000'000; ++n) {
        if (!step()) return;
    }
    FAIL() << "the firmware never goes idle";
}

void Bench::send(orr_mbox_message command) {
    std::uint64_t words[8];
    std::memcpy(words, &command, sizeof(words));
    const std::uint64_t entry = kCommands + 128 + command_producer % ORR_MBOX_ENTRIES * 64;
    for (std::uint64_t n = 0; n < 8; ++n)
        soc.set_host(entry + 8 * n, words[n]);
    soc.set_host(kCommands, ++command_producer);
    soc.ring_mailbox();
}

std::optional<orr_mbox_message> Bench::receive() {
    if (soc.host(kMessages) == message_consumer) return std::nullopt;
    std::uint64_t words[8];
    const std::uint64_t entry = kMessages + 128 + message_consumer % ORR_MBOX_ENTRIES * 64;
    for (std::uint64_t n = 0; n < 8; ++n)
        words[n] = soc.host(entry + 8 * n);
    soc.set_host(kMessages + 64, ++message_consumer);
    orr_mbox_message message;
    std::memcpy(&message, words, sizeof(message));
    return message;
}

orr_mbox_message Bench::call(orr_mbox_message command) {
    if (command.sequence == 0) command.sequence = ++sequence;
    send(command);
    run();
    while (const auto message = receive()) {
        if (message->sequence == command.sequence) return *message;
        events.push_back(*message);
    }
    ADD_FAILURE() << "no reply to command " << command.opcode;
    return {};
}

orr_mbox_message Bench::call(std::uint16_t opcode, std::vector<std::uint64_t> args, std::uint16_t flags) {
    orr_mbox_message command{};
    command.opcode = opcode;
    command.flags = flags;
    std::copy(args.begin(), args.end(), command.arg);
    return call(command);
}

void Bench::create_context(std::uint32_t number, std::uint32_t page, std::uint64_t user,
                           std::uint64_t process) {
    const auto reply =
        call(ORR_MBOX_CONTEXT_CREATE, {number, 0x1000ull * number, page, 0, user | process << 32});
    ASSERT_EQ(reply.status, ORR_STATUS_OK) << "detail " << reply.detail;
    pages[number] = page;
    for (std::uint64_t at = 0; at < kSharedBytes; at += ORR_PAGE_SIZE) {
        soc.map(number, kSharedVa + at, kSharedMemory + at);
        soc.map(number, kAliasVa + at, kSharedMemory + at);
    }
}

ProcessQueue Bench::create_queue(std::uint32_t number, std::uint32_t context, std::uint64_t entries,
                                 std::uint64_t limit_us) {
    ProcessQueue queue{.number = number,
                       .context = context,
                       .page = pages.at(context),
                       .slot = number % ORR_DB_SLOTS,
                       .entries = entries,
                       .ring = kRingMemory + number * kRingBytes};
    const std::uint64_t va = kRingVa + number * kRingBytes;
    for (std::uint64_t at = 0; at < kRingBytes; at += ORR_PAGE_SIZE)
        soc.map(context, va + at, queue.ring + at);
    soc.set_memory(queue.ring, 0);
    const auto reply =
        call(ORR_MBOX_QUEUE_CREATE, {number | std::uint64_t{context} << 32, va, entries,
                                     queue.slot | std::uint64_t{ORR_PRIORITY_NORMAL} << 32, limit_us});
    EXPECT_EQ(reply.status, ORR_STATUS_OK) << "detail " << reply.detail;
    queue.generation = reply.arg[0];
    return queue;
}

orr_queue_status Bench::status(std::uint32_t queue) const {
    std::uint64_t words[8];
    for (std::uint64_t n = 0; n < 8; ++n)
        words[n] = soc.host(kStatus + 64ull * queue + 8 * n);
    orr_queue_status line;
    std::memcpy(&line, words, sizeof(line));
    return line;
}

void Bench::push(ProcessQueue& queue, const orr_packet& packet) {
    std::uint64_t words[8];
    std::memcpy(words, &packet, sizeof(words));
    const std::uint64_t slot =
        queue.ring + sizeof(orr_ring) + queue.producer % queue.entries * ORR_PACKET_SIZE;
    for (std::uint64_t n = 0; n < 8; ++n)
        soc.set_memory(slot + 8 * n, words[n]);
    ++queue.producer;
}

void Bench::ring(const ProcessQueue& queue) {
    soc.set_memory(queue.ring, queue.producer);
    soc.ring(queue.page, queue.slot, ORR_DB_VALUE(queue.generation, queue.producer));
}

void Bench::submit(ProcessQueue& queue, std::initializer_list<orr_packet> packets) {
    for (const orr_packet& p : packets)
        push(queue, p);
    ring(queue);
    run();
}

orr_ring Bench::ring_of(const ProcessQueue& queue) const {
    std::uint64_t words[sizeof(orr_ring) / 8];
    for (std::uint64_t n = 0; n < sizeof(orr_ring) / 8; ++n)
        words[n] = soc.memory(queue.ring + 8 * n);
    orr_ring ring;
    std::memcpy(&ring, words, sizeof(ring));
    return ring;
}

void expect_error(Bench& bench, const ProcessQueue& queue, std::uint64_t code, std::uint64_t index,
                  std::uint64_t address, std::uint64_t detail) {
    const orr_ring ring = bench.ring_of(queue);
    EXPECT_EQ(ring.error, code);
    EXPECT_EQ(ring.error_index, index);
    EXPECT_EQ(ring.error_address, address);
    EXPECT_EQ(ring.error_detail, detail);
    const orr_queue_status line = bench.status(queue.number);
    EXPECT_EQ(line.error, code);
    EXPECT_EQ(line.error_index, index);
    EXPECT_EQ(line.error_address, address);
    EXPECT_EQ(line.error_detail, detail);
    EXPECT_EQ(line.completed, index);
    EXPECT_GT(bench.soc.host_irqs[ORR_IRQ_QUEUE], 0u);
    bool told = false;
    while (const auto message = bench.receive())
        bench.events.push_back(*message);
    for (const orr_mbox_message& event : bench.events) {
        if (event.opcode != ORR_EVENT_QUEUE_ERROR || event.arg[0] != queue.number) continue;
        told = true;
        EXPECT_EQ(event.sequence, 0u);
        EXPECT_EQ(event.arg[1], code);
        EXPECT_EQ(event.arg[2], index);
        EXPECT_EQ(event.arg[3], address);
    }
    EXPECT_TRUE(told) << "no ORR_EVENT_QUEUE_ERROR for queue " << queue.number;
}

}  // namespace orrery::fw::test
