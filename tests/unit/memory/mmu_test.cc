#include "emulator/memory/mmu.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include <orrery/hw/link.h>

namespace orrery::emu {
namespace {

constexpr std::uint64_t kPage = ORR_PAGE_SIZE;
constexpr std::uint64_t kHuge = ORR_HUGE_PAGE_SIZE;
constexpr std::uint64_t kRw = ORR_PTE_READ | ORR_PTE_WRITE;
constexpr std::uint64_t kHost = std::uint64_t{ORR_TARGET_HOST} << ORR_PTE_TARGET_SHIFT;
constexpr std::uint64_t kBarrier = std::uint64_t{ORR_TARGET_BARRIER} << ORR_PTE_TARGET_SHIFT;
constexpr std::uint64_t kPeer = std::uint64_t{ORR_TARGET_PEER} << ORR_PTE_TARGET_SHIFT;

class MmuTest : public testing::Test {
  protected:
    static constexpr std::uint32_t kAsid = 5;
    static constexpr std::uint64_t kRoot = 0x1000;

    void SetUp() override { ASSERT_EQ(mmu_.set_root(kAsid, kRoot), ORR_FAULT_NONE); }

    std::uint64_t& word(std::uint64_t table, std::uint64_t index) {
        return reinterpret_cast<std::uint64_t*>(vram_.data() + table)[index];
    }

    // The table under entry `index` of `table`, made if there is none.
    std::uint64_t table_at(std::uint64_t table, std::uint64_t index) {
        std::uint64_t& entry = word(table, index);
        if ((entry & ORR_PTE_VALID) == 0) {
            entry = ORR_PTE_VALID | next_table_;
            next_table_ += kPage;
        }
        return entry & ORR_PTE_ADDR_MASK;
    }
    static std::uint64_t index(std::uint64_t va, unsigned level) { return va >> (12 + 9 * level) & 511; }

    std::uint64_t& pte(std::uint64_t va) {
        std::uint64_t table = kRoot;
        for (unsigned level = 3; level > 0; --level)
            table = table_at(table, index(va, level));
        return word(table, index(va, 0));
    }
    std::uint64_t& huge_pte(std::uint64_t va) {
        std::uint64_t table = kRoot;
        for (unsigned level = 3; level > 1; --level)
            table = table_at(table, index(va, level));
        return word(table, index(va, 1));
    }
    void map(std::uint64_t va, std::uint64_t address, std::uint64_t bits = kRw) {
        pte(va) = address | bits | ORR_PTE_VALID | ORR_PTE_LEAF;
    }
    std::uint32_t fault(std::uint64_t va, Access access = Access::kLoad, std::uint32_t asid = kAsid) {
        const auto result = mmu_.translate(asid, va, 8, access);
        if (result) return ORR_FAULT_NONE;
        EXPECT_EQ(result.error().va, va);
        return result.error().code;
    }
    void add_host(std::uint64_t address, std::uint64_t size, bool writable = true) {
        const UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
        ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
        auto range = HostRange::create(address, size, fd, 0, true, writable);
        ASSERT_TRUE(range);
        ASSERT_TRUE(host_.insert(*std::move(range)));
    }

    Counters counters_;
    Vram vram_ = *Vram::create(64 << 20);
    HostMemory host_;
    Mmu mmu_{vram_, host_, counters_};
    std::uint64_t next_table_ = 0x10000;
};

TEST_F(MmuTest, TranslatesVramHostAndPeerPages) {
    add_host(0x7000'0000, 4 * kPage);
    map(0x1000, 0x400000);
    map(0x2000, 0x7000'1000, kRw | kHost);
    map(0x3000, 0x123000, ORR_PTE_WRITE | kPeer | std::uint64_t{1022} << ORR_PTE_NODE_SHIFT);

    const auto vram = mmu_.translate(kAsid, 0x1008, 16, Access::kLoad);
    ASSERT_TRUE(vram);
    EXPECT_EQ(vram->target, ORR_TARGET_VRAM);
    EXPECT_EQ(vram->host, vram_.data() + 0x400008);
    EXPECT_EQ(vram->address, 0x400008u);
    EXPECT_EQ(vram->bytes, 16u);
    EXPECT_EQ(vram->rights, kPageRead | kPageWrite);

    const auto host = mmu_.translate(kAsid, 0x2010, 100, Access::kStore);
    ASSERT_TRUE(host);
    EXPECT_EQ(host->target, ORR_TARGET_HOST);
    EXPECT_EQ(host->host, host_.find(0x7000'1010, 1, false).data);
    EXPECT_EQ(host->address, 0x7000'1010u);

    const auto peer = mmu_.translate(kAsid, 0x3020, 100, Access::kStore);
    ASSERT_TRUE(peer);
    EXPECT_EQ(peer->target, ORR_TARGET_PEER);
    EXPECT_EQ(peer->node, 1022);
    EXPECT_EQ(peer->host, nullptr);
    EXPECT_EQ(peer->address, 0x123020u);
}

TEST_F(MmuTest, NamesEachFault) {
    add_host(0x7000'0000, kPage);
    map(0x1000, 0x400000, ORR_PTE_READ);
    map(0x2000, 0x400000, ORR_PTE_WRITE);
    map(0x3000, 0x400000, kRw | std::uint64_t{1} << 60);
    map(0x4000, vram_.size(), kRw);
    map(0x5000, 0x7000'1000, kRw | kHost);
    map(0x6000, 0x400000, kRw | kPeer);
    map(0x7000, std::uint64_t{ORR_BARRIER_SLOTS} << 12, kRw | kBarrier);
    map(0x9000, std::uint64_t{ORR_BARRIER_SLOTS - 1} << 12, kRw | kBarrier);
    map(0xa000, 0, kRw | kBarrier | std::uint64_t{1} << ORR_PTE_NODE_SHIFT);
    map(0xb000, 0, ORR_PTE_READ | kBarrier);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NONE);
    EXPECT_EQ(fault(0x1000, Access::kStore), ORR_FAULT_PERMISSION);
    EXPECT_EQ(fault(0x1000, Access::kFetch), ORR_FAULT_PERMISSION);
    EXPECT_EQ(fault(0x2000), ORR_FAULT_PERMISSION);
    EXPECT_EQ(fault(0x3000), ORR_FAULT_RESERVED_BIT);
    EXPECT_EQ(fault(0x4000), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault(0x5000), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(fault(0x6000), ORR_FAULT_PEER_READ);
    EXPECT_EQ(fault(0x6000, Access::kStore), ORR_FAULT_NONE);
    EXPECT_EQ(fault(0x6000, Access::kSignal), ORR_FAULT_NONE);
    EXPECT_EQ(fault(0x7000, Access::kSignal), ORR_FAULT_RESERVED_BIT) << "no such slot";
    // Signals, and nothing else.
    EXPECT_EQ(fault(0x9000, Access::kSignal), ORR_FAULT_NONE);
    for (const Access access : {Access::kLoad, Access::kStore, Access::kPull})
        EXPECT_EQ(fault(0x9000, access), ORR_FAULT_PERMISSION);
    EXPECT_EQ(fault(0xa000, Access::kSignal), ORR_FAULT_RESERVED_BIT);
    EXPECT_EQ(fault(0xb000, Access::kSignal), ORR_FAULT_PERMISSION);
    EXPECT_EQ(fault(0x2000, Access::kSignal), ORR_FAULT_NONE);
    EXPECT_EQ(fault(0x1000, Access::kSignal), ORR_FAULT_PERMISSION);
    EXPECT_EQ(fault(0x8000), ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(fault(std::uint64_t{1} << 40), ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(fault(std::uint64_t{1} << 48), ORR_FAULT_NON_CANONICAL);
    EXPECT_EQ(fault(~std::uint64_t{0}), ORR_FAULT_NON_CANONICAL);
    EXPECT_EQ(fault(0x1000, Access::kLoad, 0), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(fault(0x1000, Access::kLoad, 6), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(fault(0x1000, Access::kLoad, ORR_ASIDS), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(fault(0x1000, Access::kLoad, ~0u), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(counters_.get(ORR_CTR_MMU_FAULTS), 22u);
}

TEST_F(MmuTest, DoesNotTrustTables) {
    pte(0x1000);  // makes the tables
    const std::uint64_t level2 = table_at(kRoot, 0);
    const std::uint64_t level1 = table_at(level2, 0);
    const std::uint64_t good = word(level1, 0);

    word(level1, 0) = ORR_PTE_VALID | (vram_.size() & ORR_PTE_ADDR_MASK);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_TABLE_RANGE);
    word(level1, 0) = ORR_PTE_VALID | ORR_PTE_ADDR_MASK;
    EXPECT_EQ(fault(0x1000), ORR_FAULT_TABLE_RANGE);
    word(level1, 0) = good | 0x400;
    EXPECT_EQ(fault(0x1000), ORR_FAULT_RESERVED_BIT);
    word(level1, 0) = good | ORR_PTE_READ;
    EXPECT_EQ(fault(0x1000), ORR_FAULT_RESERVED_BIT);
    word(level1, 0) = good;
    // A level-0 entry without the leaf bit, and leaves where none can be.
    pte(0x1000) = ORR_PTE_VALID | kRw | 0x400000;
    EXPECT_EQ(fault(0x1000), ORR_FAULT_RESERVED_BIT);
    word(level2, 1) = ORR_PTE_VALID | ORR_PTE_LEAF | kRw;
    EXPECT_EQ(fault(std::uint64_t{1} << 30), ORR_FAULT_RESERVED_BIT);
    word(kRoot, 1) = ORR_PTE_VALID | ORR_PTE_LEAF | kRw;
    EXPECT_EQ(fault(std::uint64_t{1} << 39), ORR_FAULT_RESERVED_BIT);
    // A table that contains itself is walked four levels deep and no deeper.
    word(kRoot, 2) = ORR_PTE_VALID | kRoot;
    EXPECT_EQ(fault(std::uint64_t{2} << 39 | std::uint64_t{2} << 30 | std::uint64_t{2} << 21 | 2 << 12),
              ORR_FAULT_RESERVED_BIT);
    // A huge page that is not aligned to its size.
    huge_pte(4 * kHuge) = ORR_PTE_VALID | ORR_PTE_LEAF | kRw | 0x201000;
    EXPECT_EQ(fault(4 * kHuge), ORR_FAULT_RESERVED_BIT);
    // One that begins inside VRAM and ends outside cannot be aligned; one outside is refused as a whole.
    huge_pte(5 * kHuge) = ORR_PTE_VALID | ORR_PTE_LEAF | kRw | vram_.size();
    EXPECT_EQ(fault(5 * kHuge), ORR_FAULT_PAGE_RANGE);
}

TEST_F(MmuTest, RefusesBadRoots) {
    EXPECT_EQ(mmu_.set_root(0, kRoot), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(mmu_.set_root(ORR_ASIDS, kRoot), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(mmu_.set_root(7, 0x1008), ORR_FAULT_TABLE_RANGE);
    EXPECT_EQ(mmu_.set_root(7, vram_.size()), ORR_FAULT_TABLE_RANGE);
    EXPECT_EQ(mmu_.set_root(7, ~std::uint64_t{0xfff}), ORR_FAULT_TABLE_RANGE);
    EXPECT_EQ(mmu_.clear_root(0), ORR_FAULT_NO_CONTEXT);
    EXPECT_EQ(mmu_.clear_root(1023), ORR_FAULT_NONE);
}

TEST_F(MmuTest, MergesWhatFollowsWithoutAGap) {
    for (std::uint64_t i = 0; i < 8; ++i)
        map(0x10000 + i * kPage, 0x400000 + i * kPage);
    map(0x18000, 0x900000);                // elsewhere
    map(0x19000, 0x901000, ORR_PTE_READ);  // follows, with other rights
    const auto run = mmu_.translate(kAsid, 0x10100, 1 << 20, Access::kLoad);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->bytes, 8 * kPage - 0x100);
    EXPECT_EQ(mmu_.translate(kAsid, 0x10100, 5000, Access::kLoad)->bytes, 5000u);
    EXPECT_EQ(mmu_.translate(kAsid, 0x18000, 1 << 20, Access::kLoad)->bytes, kPage);
}

TEST_F(MmuTest, ARunIsOfPagesOfOneSize) {
    for (const std::uint64_t page : {1u, 2u})
        huge_pte(page * kHuge) = ORR_PTE_VALID | ORR_PTE_LEAF | kRw | (page + 1) * kHuge;
    map(3 * kHuge, 4 * kHuge);
    const auto run = mmu_.translate(kAsid, kHuge + 16, 1 << 24, Access::kLoad);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->bytes, 2 * kHuge - 16);
    EXPECT_EQ(run->address, 2 * kHuge + 16);
    EXPECT_TRUE(run->huge);
    EXPECT_FALSE(mmu_.translate(kAsid, 3 * kHuge, 1, Access::kLoad)->huge);
    for (const bool small : {false, true}) {
        const std::uint64_t va = small ? 3 * kHuge : kHuge + 7 * kPage;
        EXPECT_EQ(mmu_.translate_page(kAsid, va, Access::kLoad)->huge, !small);
        EXPECT_EQ(mmu_.peek_page(kAsid, va, Access::kLoad)->huge, !small);
    }
}

TEST_F(MmuTest, AHostPageEndsWhereItsRangeEnds) {
    add_host(0x8000'0000, kHuge / 2);
    huge_pte(kHuge) = ORR_PTE_VALID | ORR_PTE_LEAF | kRw | kHost | 0x8000'0000;
    EXPECT_EQ(mmu_.translate(kAsid, kHuge, kHuge, Access::kLoad)->bytes, kHuge / 2);
    EXPECT_EQ(fault(kHuge + kHuge / 2), ORR_FAULT_PAGE_RANGE);
    EXPECT_TRUE(mmu_.translate_page(kAsid, kHuge + kHuge / 2 - 1, Access::kLoad));
}

TEST_F(MmuTest, AHostPageHasTheRightsOfItsRange) {
    add_host(0x8000'0000, kPage, false);
    map(0x1000, 0x8000'0000, kRw | kHost);
    EXPECT_EQ(mmu_.translate_page(kAsid, 0x1234, Access::kLoad)->rights, kPageRead);
    EXPECT_EQ(fault(0x1000, Access::kStore), ORR_FAULT_PAGE_RANGE);
}

TEST_F(MmuTest, CountsEachLookup) {
    constexpr std::uint64_t kPages = 8, kRounds = 5;
    for (std::uint64_t n = 0; n < kPages; ++n)
        map(0x10000 + n * kPage, 0x400000 + 3 * n * kPage);
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
        for (std::uint64_t n = 0; n < kPages; ++n)
            EXPECT_TRUE(mmu_.translate(kAsid, 0x10000 + n * kPage + 8 * round, 8, Access::kLoad));
        EXPECT_EQ(counters_.get(ORR_CTR_MMU_TLB_MISSES), kPages);
        EXPECT_EQ(counters_.get(ORR_CTR_MMU_TLB_HITS), (round - 1) * kPages);
    }
    mmu_.flush_asid(kAsid);
    EXPECT_TRUE(mmu_.translate(kAsid, 0x10000, 8, Access::kLoad));
    EXPECT_EQ(counters_.get(ORR_CTR_MMU_TLB_MISSES), kPages + 1);
    EXPECT_EQ(counters_.get(ORR_CTR_MMU_FAULTS), 0u);
}

TEST_F(MmuTest, KeepsTranslationsUntilTheyAreFlushed) {
    map(0x1000, 0x400000);
    EXPECT_EQ(mmu_.translate(kAsid, 0x1000, 8, Access::kLoad)->address, 0x400000u);
    EXPECT_EQ(counters_.get(ORR_CTR_MMU_TLB_MISSES), 1u);
    map(0x1000, 0x500000);
    EXPECT_EQ(mmu_.translate(kAsid, 0x1000, 8, Access::kLoad)->address, 0x400000u);
    EXPECT_EQ(counters_.get(ORR_CTR_MMU_TLB_HITS), 1u);
    const auto generation = mmu_.generation();
    mmu_.flush_range(kAsid, 0x2000, kPage);
    mmu_.flush_asid(kAsid + 1);
    EXPECT_EQ(mmu_.translate(kAsid, 0x1000, 8, Access::kLoad)->address, 0x400000u);
    mmu_.flush_range(kAsid, 0x1fff, 1);
    EXPECT_EQ(mmu_.translate(kAsid, 0x1000, 8, Access::kLoad)->address, 0x500000u);
    EXPECT_NE(mmu_.generation(), generation);
    map(0x1000, 0x600000);
    mmu_.flush_range(kAsid, 0, ~std::uint64_t{0});
    EXPECT_EQ(mmu_.translate(kAsid, 0x1000, 8, Access::kLoad)->address, 0x600000u);
    map(0x1000, 0x700000);
    mmu_.flush_asid(kAsid);
    EXPECT_EQ(mmu_.translate(kAsid, 0x1000, 8, Access::kLoad)->address, 0x700000u);
}

// For what translations cost: all that software has forgotten, and nothing of what the host does.
TEST_F(MmuTest, TellsWhatHasBeenForgotten) {
    const std::uint64_t before = mmu_.invalidations().count();
    mmu_.flush_host();
    mmu_.flush_range(kAsid, 0x1000, 0);
    EXPECT_EQ(mmu_.invalidations().count(), before);
    const auto expect = [&](std::uint64_t number, std::uint32_t space, std::uint64_t first,
                            std::uint64_t last) {
        ASSERT_EQ(mmu_.invalidations().count(), before + number + 1);
        const Invalidations::One& one = mmu_.invalidations().at(before + number);
        EXPECT_EQ(one.space, space);
        EXPECT_EQ(one.first, first);
        EXPECT_EQ(one.last, last);
    };
    constexpr std::uint64_t kEnd = ~std::uint64_t{0};
    mmu_.flush_range(kAsid, 0x1234, 0x1000);
    expect(0, kAsid, 0x1234, 0x2233);
    mmu_.flush_range(kAsid, 0x1000, kEnd);
    expect(1, kAsid, 0x1000, kEnd);
    mmu_.flush_asid(kAsid);
    expect(2, kAsid, 0, kEnd);
    mmu_.set_root(kAsid, kRoot);
    expect(3, kAsid, 0, kEnd);
    mmu_.clear_root(kAsid);
    expect(4, kAsid, 0, kEnd);
    mmu_.reset();
    expect(5, Invalidations::kAll, 0, 0);
}

TEST_F(MmuTest, FlushesAHugePageByAnyOfItsAddresses) {
    huge_pte(kHuge) = ORR_PTE_VALID | ORR_PTE_LEAF | kRw | 2 * kHuge;
    EXPECT_EQ(fault(kHuge), ORR_FAULT_NONE);
    huge_pte(kHuge) = 0;
    EXPECT_EQ(fault(kHuge), ORR_FAULT_NONE);
    mmu_.flush_range(kAsid, kHuge + 0x7000, 1);
    EXPECT_EQ(fault(kHuge), ORR_FAULT_NOT_MAPPED);
}

TEST_F(MmuTest, ARootThatGoesTakesItsTranslationsAlong) {
    map(0x1000, 0x400000);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NONE);
    mmu_.clear_root(kAsid);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NO_CONTEXT);
    mmu_.set_root(kAsid, 0x8000);  // an empty table
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NOT_MAPPED);
    mmu_.set_root(kAsid, kRoot);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NONE);
    mmu_.reset();
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NO_CONTEXT);
}

TEST_F(MmuTest, ADmaRangeThatGoesIsGoneAtOnce) {
    add_host(0x7000'0000, kPage);
    map(0x1000, 0x7000'0000, kRw | kHost);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NONE);
    const auto generation = mmu_.generation();
    EXPECT_TRUE(host_.remove(0x7000'0000, kPage));
    mmu_.flush_host();
    EXPECT_NE(mmu_.generation(), generation);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_PAGE_RANGE);
}

TEST_F(MmuTest, HoldsThousandsOfPages) {
    constexpr std::uint64_t kPages = 2000;
    for (std::uint64_t i = 0; i < kPages; ++i)
        map(i * kPage, 0x1000000 + (kPages - i) * kPage);
    for (int round = 0; round < 2; ++round) {
        for (std::uint64_t i = 0; i < kPages; ++i) {
            ASSERT_EQ(mmu_.translate(kAsid, i * kPage, 8, Access::kLoad)->address,
                      0x1000000 + (kPages - i) * kPage);
        }
    }
    EXPECT_GT(counters_.get(ORR_CTR_MMU_TLB_HITS), kPages * 9 / 10);
}

TEST_F(MmuTest, AddressSpacesAreApart) {
    map(0x1000, 0x400000);
    ASSERT_EQ(mmu_.set_root(6, 0x8000), ORR_FAULT_NONE);
    EXPECT_EQ(fault(0x1000), ORR_FAULT_NONE);
    EXPECT_EQ(fault(0x1000, Access::kLoad, 6), ORR_FAULT_NOT_MAPPED);
}

}  // namespace
}  // namespace orrery::emu
