// Launches: packets that go from a ring slot to a port without passing through the core.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <orrery/fw/packet.h>

#include "emulator/engines/descriptor.h"
#include "firmware/sched/queue/packets.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kRing = 0x40000;
constexpr std::uint64_t kRefused = ~std::uint64_t{0};
constexpr std::uint32_t kAsid = 3;
constexpr std::uint32_t kCopy = 0;  // the first port

// Registers of a card whose core does not run.
class Launch : public testing::Test {
  protected:
    Launch() {
        write(SOC_SLOT(5) + SOC_SLOT_MASK, 63);
        write(SOC_SLOT(5) + SOC_SLOT_RING, ORR_VRAM_WINDOW + kRing);
        vector_ = rig_.card().sku().copy_engines;
    }
    template <class Packet>
    void put(std::uint64_t index, const Packet& packet) {
        static_assert(sizeof packet == 64);
        std::memcpy(rig_.card().vram().at(kRing + 64 * index, 64), &packet, 64);
    }
    void write(std::uint32_t reg, std::uint64_t value) {
        wait_ = 0;
        rig_.card().soc().write(reg, value, wait_);
    }
    std::uint64_t read(std::uint32_t reg) {
        ModelTime wait = 0;
        return rig_.card().soc().read(reg, wait);
    }
    std::uint64_t slot(std::uint32_t reg) { return read(SOC_SLOT(5) + reg); }
    void limit(std::uint64_t packets) {
        write(SOC_SLOT(5) + SOC_SLOT_LIMIT, packets);
        advance(1'000'000);
    }
    // SOC_LAUNCH_RESULT.
    std::uint64_t launch(std::uint32_t port, std::uint32_t op, std::uint32_t tag, std::uint64_t from = 5) {
        write(SOC_ENGINE(port) + SOC_ENGINE_DESC, op | std::uint64_t{kAsid} << 32);
        write(SOC_ENGINE(port) + SOC_ENGINE_LAUNCH, from << 32 | tag);
        return read(SOC_LAUNCH_RESULT);
    }
    bool busy(std::uint32_t port) { return read(SOC_ENGINE(port) + SOC_ENGINE_BUSY) != 0; }
    void advance(ModelTime ps) { rig_.card().events().advance_to(rig_.card().events().now() + ps); }
    std::uint64_t errors() { return rig_.counter(ORR_CTR_GUEST_ERRORS); }

    static orr_packet_copy copy() {
        orr_packet_copy p{};
        p.header.opcode = ORR_PKT_COPY;
        p.header.tag = 77;  // the submitter's
        p.src = 0x1000;
        p.dst = 0x2000;
        p.row_bytes = 96;
        p.rows = 3;
        p.src_pitch = p.dst_pitch = 128;
        return p;
    }
    static orr_packet_fill fill() {
        orr_packet_fill p{};
        p.header.opcode = ORR_PKT_FILL;
        p.pattern = 0x1122334455667788;
        p.dst = 0x3000;
        p.row_bytes = 64;
        p.rows = 2;
        p.pattern_bytes = 4;
        p.dst_pitch = 256;
        return p;
    }
    static orr_packet_dispatch dispatch() {
        orr_packet_dispatch p{};
        p.header.opcode = ORR_PKT_DISPATCH;
        p.entry = 0x5000;
        p.args = 0x6000;
        p.grid_x = 4;
        p.grid_y = 3;
        p.grid_z = 2;
        p.block_x = 8;
        p.block_y = p.block_z = 1;
        p.local_bytes = 64;
        return p;
    }

    CardRig rig_;
    std::uint32_t vector_ = 0;
    ModelTime wait_ = 0;
};

TEST_F(Launch, TakesWordZeroFromTheCoreAndTheRestFromTheSlot) {
    put(0, copy());
    put(1, dispatch());
    limit(2);
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 0x11), 3u * 96);
    EXPECT_EQ(wait_, 4 * rig_.card().sku().cycle_ps);
    EXPECT_TRUE(busy(kCopy));
    EXPECT_EQ(read(SOC_ENGINE(kCopy) + SOC_ENGINE_TAG), 0x11u);
    EXPECT_EQ(slot(SOC_SLOT_NEXT), 1u);
    std::array<std::uint64_t, 8> desc{};
    for (unsigned i = 0; i < 8; ++i)
        desc[i] = read(SOC_ENGINE(kCopy) + SOC_ENGINE_DESC + 8 * i);
    const auto started = std::bit_cast<orr_desc_copy>(desc);
    EXPECT_EQ(started.op, ORR_DESC_COPY);
    EXPECT_EQ(started.asid, kAsid);
    EXPECT_EQ(started.src, 0x1000u);
    EXPECT_EQ(started.dst_pitch, 128u);
    EXPECT_EQ(launch(vector_, ORR_DESC_KERNEL, 0x12), 24u);
    EXPECT_EQ(slot(SOC_SLOT_NEXT), 2u);
    EXPECT_EQ(errors(), 0u);
}

TEST_F(Launch, WaitsForAPacketThatIsOnItsWay) {
    put(0, copy());
    write(SOC_SLOT(5) + SOC_SLOT_LIMIT, 1);
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 1), 3u * 96);
    write(SOC_ENGINE(kCopy) + SOC_ENGINE_DESC, 0);
    put(1, copy());
    write(SOC_SLOT(5) + SOC_SLOT_LIMIT, 2);
    write(SOC_ENGINE(kCopy + 1) + SOC_ENGINE_DESC, ORR_DESC_COPY);
    write(SOC_ENGINE(kCopy + 1) + SOC_ENGINE_LAUNCH, std::uint64_t{5} << 32);
    EXPECT_GE(wait_, rig_.card().sku().vram_load_ps + 4 * rig_.card().sku().cycle_ps);
}

TEST_F(Launch, RefusesAndLeavesEverythingAsItWas) {
    EXPECT_EQ(read(SOC_LAUNCH_RESULT), kRefused);
    // An empty slot is no error: nobody has read it.
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 1), kRefused);
    EXPECT_EQ(errors(), 0u);
    auto bad = copy();
    bad.rows = 0;
    put(0, bad);
    put(1, copy());
    limit(2);
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 1), kRefused);
    EXPECT_EQ(launch(kCopy, ORR_DESC_KERNEL, 1), kRefused);
    EXPECT_EQ(launch(vector_, ORR_DESC_COPY, 1), kRefused);
    EXPECT_FALSE(busy(kCopy));
    EXPECT_EQ(read(SOC_ENGINE(kCopy) + SOC_ENGINE_DESC + 8), 0u);
    EXPECT_EQ(slot(SOC_SLOT_NEXT), 0u);
    EXPECT_EQ(slot(SOC_SLOT_PACKET + 8), bad.src);
    EXPECT_EQ(errors(), 0u);
    // A slot that there is not, and a port that is busy.
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 1, SOC_SLOTS), kRefused);
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 1, 0xffffffff), kRefused);
    EXPECT_EQ(errors(), 2u);
    write(SOC_SLOT(5) + SOC_SLOT_NEXT, 1);
    advance(1'000'000);
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 1), 3u * 96);
    put(2, copy());
    limit(3);
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 2), kRefused);
    EXPECT_EQ(errors(), 3u);
    EXPECT_EQ(read(SOC_ENGINE(kCopy) + SOC_ENGINE_TAG), 1u);
    EXPECT_EQ(slot(SOC_SLOT_NEXT), 2u);
}

TEST_F(Launch, RefusesWhatCouldNotBeRead) {
    write(SOC_SLOT(6) + SOC_SLOT_MASK, 63);
    write(SOC_SLOT(6) + SOC_SLOT_RING, ORR_CONTEXT_WINDOW(9, 0x1000));  // no such address space
    write(SOC_SLOT(6) + SOC_SLOT_LIMIT, 1);
    advance(1'000'000);
    EXPECT_EQ(launch(kCopy, ORR_DESC_COPY, 1, 6), kRefused);
    EXPECT_EQ(read(SOC_WINDOW_FAULT), ORR_FAULT_NONE) << "whoever reads the packet is told";
    EXPECT_NE(read(SOC_SLOT(6) + SOC_SLOT_PACKET), 1u);
    EXPECT_NE(read(SOC_WINDOW_FAULT), ORR_FAULT_NONE);
}

// What the firmware would say of a packet that it has read is what the chip says of one that it has not.
TEST_F(Launch, KnowsTheSamePacketsAsTheFirmware) {
    std::mt19937_64 random(4);
    std::size_t good = 0, bad = 0;
    for (int n = 0; n < 200'000; ++n) {
        std::array<std::uint64_t, 8> words{};
        const auto kind = random() % 3;
        if (kind == 0) words = std::bit_cast<std::array<std::uint64_t, 8>>(copy());
        if (kind == 1) words = std::bit_cast<std::array<std::uint64_t, 8>>(fill());
        if (kind == 2) words = std::bit_cast<std::array<std::uint64_t, 8>>(dispatch());
        for (std::uint64_t changes = random() % 3; changes != 0; --changes) {
            const std::uint64_t at = 1 + random() % 7;
            const auto bits = static_cast<unsigned>(random() % 64);
            switch (random() % 4) {
                case 0:
                    words[at] ^= std::uint64_t{1} << bits;
                    break;
                case 1:
                    words[at] = random() >> bits;
                    break;
                case 2:
                    words[at] &= ~std::uint64_t{0} << bits;
                    break;
                default:
                    words[at] = random();
            }
        }
        std::uint64_t packet[8];
        std::memcpy(packet, words.data(), sizeof packet);
        const bool valid = fw::validate_packet(packet).code == ORR_QERR_NONE;
        const std::uint32_t opcode = fw::packet_opcode(packet);
        DescriptorWords descriptor = words;
        descriptor[0] = fw::descriptor_word(opcode, kAsid);
        const auto work = work_of(descriptor, kind == 2 ? ORR_ENGINE_VECTOR : ORR_ENGINE_COPY,
                                  rig_.card().sku().vector_cores);
        ASSERT_EQ(work.has_value(), valid) << "packet " << n << ", opcode " << opcode;
        ++(valid ? good : bad);
    }
    EXPECT_GT(good, 50'000u);
    EXPECT_GT(bad, 50'000u);
}

TEST_F(Launch, ASignalGoesFromItsSlotToTheSemaphore) {
    rig_.map_page(kAsid, 0x5000, 0x20000, ORR_PTE_READ | ORR_PTE_WRITE);
    for (const script_op& op : rig_.set_root(kAsid))
        write(static_cast<std::uint32_t>(op.address - ORR_SOC_BASE), op.value);
    const auto memory = [&](std::uint64_t at) {
        std::uint64_t value = 0;
        std::memcpy(&value, rig_.card().vram().at(at, 8), 8);
        return value;
    };
    orr_packet_semaphore packet{};
    packet.header.opcode = ORR_PKT_SIGNAL;
    packet.semaphore = 0x5010;
    packet.value = 7;
    put(0, packet);
    packet.value = 8;
    packet.limit_ns = 1;  // what a signal does not have
    put(1, packet);
    packet.limit_ns = 0;
    packet.semaphore = 0x9000;  // leads nowhere
    put(2, packet);
    const auto signal = [&](std::uint64_t from = 5) {
        write(SOC_SEM_LAUNCH, from << 32 | kAsid);
        return read(SOC_SEM_STATUS);
    };
    EXPECT_EQ(signal(), kRefused) << "nothing was read";
    limit(3);
    EXPECT_EQ(signal(), ORR_FAULT_NONE);
    EXPECT_EQ(read(SOC_SEM_MEMORY), ORR_VRAM_WINDOW + 0x20010);
    EXPECT_EQ(memory(0x20010), 7u);
    EXPECT_EQ(slot(SOC_SLOT_NEXT), 1u);
    EXPECT_EQ(signal(), kRefused);
    EXPECT_EQ(slot(SOC_SLOT_NEXT), 1u);
    EXPECT_EQ(memory(0x20010), 7u);
    write(SOC_SLOT(5) + SOC_SLOT_NEXT, 2);
    EXPECT_EQ(signal(), ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(read(SOC_SEM_MEMORY), kRefused);
    EXPECT_EQ(slot(SOC_SLOT_NEXT), 2u) << "it is still there to be looked at";
    EXPECT_EQ(signal(6), kRefused);
    EXPECT_EQ(signal(SOC_SLOTS), kRefused);
}

}  // namespace
}  // namespace orrery::emu
