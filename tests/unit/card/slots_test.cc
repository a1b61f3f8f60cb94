// Ring slots: what is prefetched when, from where, and how long the core waits for it.
#include <gtest/gtest.h>

#include <cstring>

#include "emulator/time/rate.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kVramRing = 0x40000;
constexpr std::uint64_t kHostRing = kRamBase + 0x10000;

// Registers of a card whose core does not run, used at model times of the test's choice.
class Slots : public testing::Test {
  protected:
    Slots() {
        for (std::uint64_t i = 0; i < 64; ++i) {
            for (std::uint64_t word = 0; word < 8; ++word) {
                vram(i, word) = packet(i, word);
                rig_.word(kHostRing + 64 * i + 8 * word) = packet(i, word) + 1000;
            }
        }
    }
    static std::uint64_t packet(std::uint64_t index, std::uint64_t word) { return 1 + index * 10 + word; }
    std::uint64_t& vram(std::uint64_t index, std::uint64_t word) {
        return *reinterpret_cast<std::uint64_t*>(rig_.card().vram().at(kVramRing + 64 * index + 8 * word, 8));
    }
    void write(unsigned slot, std::uint32_t reg, std::uint64_t value) {
        rig_.card().soc().write(SOC_SLOT(slot) + reg, value);
    }
    std::uint64_t read(unsigned slot, std::uint32_t reg) {
        wait_ = 0;
        return rig_.card().soc().read(SOC_SLOT(slot) + reg, wait_);
    }
    std::uint64_t word(unsigned slot, unsigned number) { return read(slot, SOC_SLOT_PACKET + 8 * number); }
    std::uint64_t soc(std::uint32_t reg) {
        ModelTime wait = 0;
        return rig_.card().soc().read(reg, wait);
    }
    void open(unsigned slot, std::uint64_t ring, std::uint64_t entries) {
        write(slot, SOC_SLOT_MASK, entries - 1);
        write(slot, SOC_SLOT_RING, ring);
    }
    void set_root(std::uint32_t asid) {
        SocRegisters& registers = rig_.card().soc();
        registers.write(SOC_MMU_ASID, asid);
        registers.write(SOC_MMU_ARG, rig_.root(asid));
        registers.write(SOC_MMU_CMD, SOC_MMU_SET_ROOT);
    }
    void advance(ModelTime ps) { rig_.card().events().advance_to(rig_.card().events().now() + ps); }
    std::uint64_t fetched() { return rig_.counter(ORR_CTR_SLOT_PACKETS); }
    std::uint64_t errors() { return rig_.counter(ORR_CTR_GUEST_ERRORS); }

    CardRig rig_;
    ModelTime wait_ = 0;
};

TEST_F(Slots, ShowPacketsInTheirOrderAndWrapWithTheRing) {
    open(0, ORR_VRAM_WINDOW + kVramRing, 4);
    write(0, SOC_SLOT_LIMIT, 10);
    for (std::uint64_t i = 0; i < 10; ++i) {
        for (unsigned w = 0; w < 8; ++w)
            EXPECT_EQ(word(0, w), packet(i % 4, w)) << i;
        write(0, SOC_SLOT_NEXT, i + 1);
    }
    EXPECT_EQ(fetched(), 10u);
    EXPECT_EQ(read(0, SOC_SLOT_NEXT), 10u);
    EXPECT_EQ(read(0, SOC_SLOT_LIMIT), 10u);
    EXPECT_EQ(read(0, SOC_SLOT_MASK), 3u);
    EXPECT_EQ(read(0, SOC_SLOT_RING), ORR_VRAM_WINDOW + kVramRing);
    EXPECT_EQ(errors(), 0u);
    // Another slot is another ring.
    open(63, ORR_HOST_WINDOW(kHostRing), 8);
    write(63, SOC_SLOT_LIMIT, 1);
    EXPECT_EQ(word(63, 7), packet(0, 7) + 1000);
    EXPECT_EQ(read(0, SOC_SLOT_NEXT), 10u);
}

TEST_F(Slots, ReadEachPacketOnceSoonAfterTheLimit) {
    open(0, ORR_VRAM_WINDOW + kVramRing, 64);
    write(0, SOC_SLOT_LIMIT, 20);
    EXPECT_EQ(fetched(), SOC_SLOT_DEPTH);
    for (std::uint64_t i = 0; i < 20; ++i)
        vram(i, 0) = 5000 + i;
    for (std::uint64_t i = 0; i < 20; ++i) {
        EXPECT_EQ(word(0, 0), i < SOC_SLOT_DEPTH ? packet(i, 0) : 5000 + i) << i;
        write(0, SOC_SLOT_NEXT, i + 1);
    }
    EXPECT_EQ(fetched(), 20u);
}

TEST_F(Slots, NextAnywhereElseAndRingEmptyThem) {
    open(0, ORR_VRAM_WINDOW + kVramRing, 64);
    write(0, SOC_SLOT_LIMIT, 30);
    write(0, SOC_SLOT_NEXT, 12);
    EXPECT_EQ(word(0, 1), packet(12, 1));
    vram(12, 1) = 77;
    EXPECT_EQ(word(0, 1), packet(12, 1));
    write(0, SOC_SLOT_NEXT, 12);
    EXPECT_EQ(word(0, 1), 77u);
    write(0, SOC_SLOT_NEXT, 11);
    EXPECT_EQ(word(0, 1), packet(11, 1));
    write(0, SOC_SLOT_RING, ORR_VRAM_WINDOW + kVramRing);
    EXPECT_EQ(read(0, SOC_SLOT_NEXT), 0u);
    EXPECT_EQ(read(0, SOC_SLOT_LIMIT), 0u);
    // A queue that goes on where it was.
    write(0, SOC_SLOT_NEXT, 1'000'001);
    EXPECT_EQ(errors(), 0u);
    const std::uint64_t before = fetched();
    write(0, SOC_SLOT_LIMIT, 1'000'003);
    EXPECT_EQ(fetched() - before, 2u);
    EXPECT_EQ(word(0, 3), packet(1'000'001 % 64, 3));
}

TEST_F(Slots, EmptyOnesReadAsZeroAndCount) {
    EXPECT_EQ(word(5, 0), 0u);
    EXPECT_EQ(wait_, 0u);
    open(5, ORR_VRAM_WINDOW + kVramRing, 64);
    write(5, SOC_SLOT_LIMIT, 1);
    write(5, SOC_SLOT_NEXT, 1);
    EXPECT_EQ(word(5, 0), 0u);
    EXPECT_EQ(errors(), 2u);
    write(5, SOC_SLOT_LIMIT, 9);
    write(5, SOC_SLOT_LIMIT, 8);
    EXPECT_EQ(errors(), 3u);
    EXPECT_EQ(read(5, SOC_SLOT_LIMIT), 9u);
    // Holes, and read-only words.
    write(5, SOC_SLOT_PACKET, 1);
    EXPECT_EQ(read(5, 0x40), 0u);
    EXPECT_EQ(read(5, 0x1f8), 0u);
    write(5, 0x120, 1);
    EXPECT_EQ(errors(), 7u);
}

TEST_F(Slots, TheCoreWaitsForTheBurst) {
    const Sku& sku = rig_.card().sku();
    const ModelTime burst = duration_ps(64, sku.copy_host_bytes_per_s);
    open(0, ORR_HOST_WINDOW(kHostRing), 64);
    write(0, SOC_SLOT_LIMIT, 3);
    EXPECT_EQ(word(0, 0), packet(0, 0) + 1000);
    EXPECT_EQ(wait_, sku.host_load_ps + burst);
    advance(wait_ - 1);
    word(0, 7);
    EXPECT_EQ(wait_, 1u);
    advance(1);
    word(0, 7);
    EXPECT_EQ(wait_, 0u);
    // Bursts of one memory follow each other; they do not each take a round trip.
    write(0, SOC_SLOT_NEXT, 1);
    word(0, 0);
    EXPECT_EQ(wait_, burst);
    write(0, SOC_SLOT_NEXT, 2);
    word(0, 0);
    EXPECT_EQ(wait_, 2 * burst);
    // VRAM is nearer, and has a way of its own.
    open(1, ORR_VRAM_WINDOW + kVramRing, 64);
    write(1, SOC_SLOT_LIMIT, 1);
    word(1, 0);
    EXPECT_EQ(wait_, sku.vram_load_ps + duration_ps(64, sku.copy_vram_bytes_per_s));
}

// What is read ahead at one moment goes through one packet behind the other.
TEST_F(Slots, PacketsWaitForThoseBeforeThem) {
    constexpr std::uint64_t kPackets = 7, kSum = kPackets * (kPackets - 1) / 2;
    constexpr ModelTime kHostPs = 2'000, kVramPs = 80;  // for 64 bytes at 32 and 800 GB/s
    ASSERT_EQ(rig_.card().sku().copy_host_bytes_per_s, 32'000'000'000u);
    ASSERT_EQ(rig_.card().sku().copy_vram_bytes_per_s, 800'000'000'000u);
    const std::uint64_t pcie = rig_.counter(ORR_CTR_PCIE_WAIT_PS),
                        read = rig_.counter(ORR_CTR_PCIE_READ_BYTES),
                        vram = rig_.counter(ORR_CTR_VRAM_WAIT_PS);
    open(0, ORR_HOST_WINDOW(kHostRing), 64);
    write(0, SOC_SLOT_LIMIT, kPackets);
    EXPECT_EQ(rig_.counter(ORR_CTR_PCIE_WAIT_PS) - pcie, kSum * kHostPs);
    EXPECT_EQ(rig_.counter(ORR_CTR_PCIE_READ_BYTES) - read, kPackets * 64);
    EXPECT_EQ(rig_.counter(ORR_CTR_VRAM_WAIT_PS) - vram, 0u);
    open(1, ORR_VRAM_WINDOW + kVramRing, 64);
    write(1, SOC_SLOT_LIMIT, kPackets);
    EXPECT_EQ(rig_.counter(ORR_CTR_PCIE_WAIT_PS) - pcie, kSum * kHostPs);
    EXPECT_EQ(rig_.counter(ORR_CTR_VRAM_WAIT_PS) - vram, kSum * kVramPs);
    EXPECT_EQ(rig_.counter(ORR_CTR_SLOT_PACKETS), 2 * kPackets);
}

TEST_F(Slots, TheWaitIsModelTimeOfTheCore) {
    rig_.boot_script();
    const std::uint32_t code[] = {
        0x100082b7,  // lui t0, 0x10008 (slot 0)
        0x00100313,  // li t1, 1
        0x1062bc23,  // sd t1, 0x118(t0) (limit)
        0x0002b383,  // ld t2, 0(t0)
        0x00008067,  // ret
    };
    std::memcpy(rig_.card().core().sram().data() + 0x60000, code, sizeof code);
    rig_.run({CardRig::write(SOC_SLOT(0) + SOC_SLOT_MASK, 63),
              CardRig::write(SOC_SLOT(0) + SOC_SLOT_RING, ORR_HOST_WINDOW(kHostRing))});
    const std::uint64_t before = rig_.counter(ORR_CTR_CORE_STALL_PS);
    rig_.run({});
    const std::uint64_t middle = rig_.counter(ORR_CTR_CORE_STALL_PS);
    rig_.run({{OP_JUMP, ORR_SRAM_BASE + 0x60000, 0, 0}});
    const Sku& sku = rig_.card().sku();
    // Beyond what the script itself takes: between limit and packet lie a cycle each and a register access.
    const std::uint64_t script = middle - before + 3 * sku.host_load_ps + sku.host_store_ps;
    EXPECT_EQ(rig_.counter(ORR_CTR_CORE_STALL_PS) - middle - script,
              sku.host_load_ps + duration_ps(64, sku.copy_host_bytes_per_s) - sku.register_ps - sku.cycle_ps);
}

TEST_F(Slots, ThroughTheMmuOfTheirContext) {
    rig_.map_page(7, 0x5000, kVramRing, ORR_PTE_READ);
    rig_.map_page(7, 0x6000, kHostRing, kRw | kHostTarget);
    rig_.map_page(7, 0x7000, 0, kRw | of_node(5));
    set_root(7);
    open(0, ORR_CONTEXT_WINDOW(7, 0x5fc0), 1024);
    write(0, SOC_SLOT_NEXT, 0);
    write(0, SOC_SLOT_LIMIT, 67);
    EXPECT_EQ(word(0, 0), packet(63, 0));
    write(0, SOC_SLOT_NEXT, 1);
    EXPECT_EQ(word(0, 2), packet(0, 2) + 1000);
    EXPECT_EQ(soc(SOC_WINDOW_FAULT), 0u);
    // The fault shows with word 0, and names the packet's address; packets behind it may be good.
    open(1, ORR_CONTEXT_WINDOW(7, 0x4fc0), 1024);
    write(1, SOC_SLOT_LIMIT, 2);
    EXPECT_EQ(word(1, 1), 0u);
    EXPECT_EQ(soc(SOC_WINDOW_FAULT), 0u);
    EXPECT_EQ(word(1, 0), 0u);
    EXPECT_EQ(soc(SOC_WINDOW_FAULT), ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(soc(SOC_WINDOW_FAULT_VA), ORR_CONTEXT_WINDOW(7, 0x4fc0));
    write(1, SOC_SLOT_NEXT, 1);
    EXPECT_EQ(word(1, 2), packet(0, 2));
}

TEST_F(Slots, TrustNoAddress) {
    rig_.map_page(7, 0x7000, 0, kRw | of_node(5));
    rig_.map_page(7, 0xffff'ffff'f000, 0x1000, kRw);
    rig_.map_page(8, 0, 0x1000, kRw);
    set_root(7);
    set_root(8);
    const auto fault = [&](std::uint64_t ring, std::uint64_t mask, std::uint64_t next) {
        rig_.card().soc().write(SOC_WINDOW_FAULT, 0);
        write(2, SOC_SLOT_MASK, mask);
        write(2, SOC_SLOT_RING, ring);
        write(2, SOC_SLOT_NEXT, next);
        write(2, SOC_SLOT_LIMIT, next + 1);
        EXPECT_EQ(word(2, 0), 0u);
        return soc(SOC_WINDOW_FAULT);
    };
    const std::uint64_t all = ~std::uint64_t{0};
    EXPECT_EQ(fault(ORR_CONTEXT_WINDOW(7, 0x7000), 63, 0), ORR_FAULT_PEER_READ);
    EXPECT_EQ(fault(ORR_CONTEXT_WINDOW(9, 0x7000), 63, 0), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(fault(ORR_CONTEXT_WINDOW(7, 0x7008), 63, 0), ORR_FAULT_MISALIGNED);
    // Never into the next address space, nor round the end of a window.
    EXPECT_EQ(fault(ORR_CONTEXT_WINDOW(7, 0xffff'ffff'f000), 127, 64), ORR_FAULT_NON_CANONICAL);
    EXPECT_EQ(fault(ORR_CONTEXT_WINDOW(7, 0xffff'ffff'f000), all, all / 2), ORR_FAULT_NON_CANONICAL);
    EXPECT_EQ(fault(ORR_HOST_WINDOW(kHostRing), all, all / 2), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault(ORR_HOST_WINDOW(kRamBase + kRamBytes - 64), 63, 1), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault(ORR_VRAM_WINDOW + (64 << 20) - 64, 63, 1), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault(ORR_VRAM_WINDOW + (64 << 20) - 64, all, all / 64), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault(ORR_SRAM_BASE, 63, 0), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault(0, 63, 0), ORR_FAULT_PAGE_RANGE);
    // The end of time.
    write(2, SOC_SLOT_NEXT, all);
    write(2, SOC_SLOT_LIMIT, all);
    write(2, SOC_SLOT_NEXT, 0);
    EXPECT_EQ(read(2, SOC_SLOT_NEXT), 0u);
}

TEST_F(Slots, AResetEmptiesThem) {
    open(0, ORR_VRAM_WINDOW + kVramRing, 64);
    write(0, SOC_SLOT_LIMIT, 5);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    EXPECT_EQ(read(0, SOC_SLOT_RING), 0u);
    EXPECT_EQ(read(0, SOC_SLOT_LIMIT), 0u);
    EXPECT_EQ(word(0, 0), 0u);
    EXPECT_EQ(errors(), 1u);
}

// The number that waits, at each moment, and how many were taken.
TEST_F(Slots, CountWhatWaits) {
    const auto counts = [&] {
        rig_.card().snapshot();
        return std::pair(rig_.counter(ORR_CTR_RING_WAIT_PS), rig_.counter(ORR_CTR_RING_PACKETS));
    };
    using Counts = std::pair<std::uint64_t, std::uint64_t>;
    const auto [began, taken] = counts();
    open(0, ORR_VRAM_WINDOW + kVramRing, 64);
    open(5, ORR_HOST_WINDOW(kHostRing), 64);
    advance(5000);
    EXPECT_EQ(counts(), Counts(began, taken));
    write(0, SOC_SLOT_LIMIT, 3);
    advance(1000);
    write(5, SOC_SLOT_LIMIT, 40);  // more than it reads ahead
    advance(100);
    EXPECT_EQ(counts(), Counts(began + 3 * 1100 + 40 * 100, taken));
    write(0, SOC_SLOT_NEXT, 1);
    advance(10);
    EXPECT_EQ(counts(), Counts(began + 3 * 1100 + 40 * 110 + 2 * 10, taken + 1));
    // Elsewhere: none of them was taken.
    write(5, SOC_SLOT_NEXT, 30);
    advance(7);
    write(5, SOC_SLOT_RING, 0);
    write(0, SOC_SLOT_NEXT, 2);
    write(0, SOC_SLOT_NEXT, 3);
    advance(1'000'000);
    EXPECT_EQ(counts(), Counts(began + 3 * 1100 + 40 * 110 + 2 * 17 + 10 * 7, taken + 3));
    write(0, SOC_SLOT_LIMIT, 4);
    rig_.write32(ORR_R_RESET, ORR_RESET_MAGIC);
    rig_.settle();
    const auto after = counts();
    advance(1'000'000);
    EXPECT_EQ(counts(), after);
}

TEST_F(Slots, DoorbellsWaitUntilTheyAreTaken) {
    Doorbells& doorbells = rig_.card().doorbells();
    const ModelTime way = rig_.card().sku().pcie_doorbell_ps;
    const auto ring = [&](unsigned slot, std::uint64_t value) {
        rig_.ring(2, slot, value);
        doorbells.poll();
        EventQueue& events = rig_.card().events();
        const ModelTime arrival = events.now() + way;
        while (events.run_next(arrival)) {
        }
        events.advance_to(arrival);
    };
    ASSERT_TRUE(doorbells.bind(2, 5, 1));
    ASSERT_TRUE(doorbells.bind(2, 6, 2));
    const std::uint64_t pops = rig_.counter(ORR_CTR_DOORBELL_POPS),
                        waited = rig_.counter(ORR_CTR_DOORBELL_WAIT_PS);
    ring(5, 1);
    advance(700);
    ring(6, 1);
    ring(5, 2);  // is the first one's
    advance(300);
    EXPECT_EQ(soc(SOC_DB_POP), 1u | SOC_DB_MORE);
    EXPECT_EQ(soc(SOC_DB_VALUE), 2u);
    EXPECT_EQ(rig_.counter(ORR_CTR_DOORBELL_WAIT_PS) - waited, 700 + 2 * way + 300);
    advance(50);
    EXPECT_EQ(soc(SOC_DB_POP), 2u);
    EXPECT_EQ(soc(SOC_DB_POP), ~0ull);
    EXPECT_EQ(rig_.counter(ORR_CTR_DOORBELL_WAIT_PS) - waited, 700 + 2 * way + 300 + way + 350);
    EXPECT_EQ(rig_.counter(ORR_CTR_DOORBELL_POPS) - pops, 2u);
}

}  // namespace
}  // namespace orrery::emu
