// Copies whose source is another card's memory: what they ask for, in which order they take it, and what ends
// them.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kSrc = 0x10'0000'0000, kDst = 0x20'0000'0000, kMiB = 1 << 20;
constexpr std::uint64_t kArea = 48 << 20;

class Pull : public testing::Test {
  protected:
    Pull() : engine(5, rates, rig.context) {
        std::mt19937_64 random(1);
        for (std::size_t i = 0; i < rig.peer.memory.size(); i += 8) {
            const std::uint64_t word = random();
            std::memcpy(rig.peer.memory.data() + i, &word, 8);
        }
        rig.map(kSrc, 4 * kMiB, ORR_TARGET_PEER, 0, ORR_PTE_READ | ORR_PTE_WRITE, Rig::kPeerNode);
        rig.map(kDst, 4 * kMiB, ORR_TARGET_VRAM, 0);
    }
    template <class Desc>
    void start(const Desc& desc) {
        rig.done.clear();
        ASSERT_TRUE(engine.start(Rig::words_of(desc), 1));
        rig.run();
    }
    // Answers as long as it asks.
    void answer() {
        while (!rig.peer.asked.empty()) {
            EXPECT_LE(rig.peer.asked.size(), rates.peer_reads);
            rig.peer.give();
            rig.run();
        }
    }
    void expect_copied(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
        EXPECT_EQ(std::memcmp(rig.vram.data() + dst, rig.peer.memory.data() + src, bytes), 0);
    }

    CopyRates rates{.peer_reads = 4};
    Rig rig;
    CopyEngine engine;
};

TEST_F(Pull, AsksForSoMuchAheadAndNoMore) {
    orr_desc_copy desc = Rig::copy(kSrc + 5, kDst + 4093, 3 * kMiB + 17);
    start(desc);
    EXPECT_EQ(rig.peer.asked.size(), 4u);
    EXPECT_TRUE(engine.busy());
    EXPECT_EQ(rig.events.size(), 0u) << "it waits for nothing but answers";
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    expect_copied(4093, 5, desc.row_bytes);
    EXPECT_EQ(rig.vram.data()[4092], 0);
    EXPECT_EQ(rig.vram.data()[4093 + desc.row_bytes], 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), desc.row_bytes);
    EXPECT_EQ(rig.peer.last_tag, 97u);
}

TEST_F(Pull, RowsAreAskedForAheadToo) {
    orr_desc_copy desc = Rig::copy(kSrc, kDst, 100);
    desc.rows = 300;
    desc.src_pitch = 333;
    desc.dst_pitch = 128;
    start(desc);
    EXPECT_EQ(rig.peer.asked.size(), 4u);
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    for (std::uint64_t row = 0; row < desc.rows; ++row)
        expect_copied(row * 128, row * 333, 100);
    EXPECT_EQ(rig.vram.data()[100], 0);
}

TEST_F(Pull, SomeOfTheSourceIsNearer) {
    rig.map(kSrc + 0x5000, 0x3000, ORR_TARGET_HOST, Rig::kHostBase);
    std::memset(rig.host_data, 0x77, 0x3000);
    start(Rig::copy(kSrc, kDst, 64 << 10));
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    expect_copied(0, 0, 0x5000);
    EXPECT_EQ(rig.vram.data()[0x5000], 0x77);
    EXPECT_EQ(rig.vram.data()[0x7fff], 0x77);
    expect_copied(0x8000, 0x8000, 0x8000);
}

TEST_F(Pull, FromOneCardToAnother) {
    rig.map(kDst, kMiB, ORR_TARGET_PEER, 4 * kMiB, ORR_PTE_WRITE, Rig::kPeerNode);
    start(Rig::copy(kSrc, kDst, kMiB));
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    EXPECT_EQ(std::memcmp(rig.peer.memory.data(), rig.peer.memory.data() + 4 * kMiB, kMiB), 0);
}

TEST_F(Pull, ListsAndReductions) {
    constexpr std::uint64_t kList = 0x30'0000'0000;
    rig.map(kList, 4096, ORR_TARGET_VRAM, 8 * kMiB);
    const orr_copy_entry entries[] = {
        {kSrc + 100, kDst, 40'000, 0}, {kSrc, kDst + 65536, 0, 0}, {kSrc + 7, kDst + 65536, 9, 0}};
    std::memcpy(rig.vram.data() + 8 * kMiB, entries, sizeof entries);
    orr_desc_copies list{};
    list.op = ORR_DESC_COPIES;
    list.asid = 1;
    list.list = kList;
    list.bytes = 40'009;
    list.entries = 3;
    start(list);
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    expect_copied(0, 100, 40'000);
    expect_copied(65536, 7, 9);

    std::vector<std::uint32_t> mine(20'000, 3);
    std::memcpy(rig.vram.data(), mine.data(), mine.size() * 4);
    orr_desc_reduce sum{};
    sum.op = ORR_DESC_REDUCE;
    sum.asid = 1;
    sum.src = kSrc;
    sum.dst = kDst;
    sum.row_bytes = mine.size() * 4;
    sum.rows = 1;
    sum.type = ORR_TYPE_U32;
    sum.function = ORR_REDUCE_ADD;
    start(sum);
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    for (std::size_t i = 0; i < mine.size(); ++i) {
        std::uint32_t got = 0, theirs = 0;
        std::memcpy(&got, rig.vram.data() + 4 * i, 4);
        std::memcpy(&theirs, rig.peer.memory.data() + 4 * i, 4);
        ASSERT_EQ(got, theirs + 3);
    }
}

TEST_F(Pull, APreemptedOneGoesOnWhereItWas) {
    orr_desc_copy desc = Rig::copy(kSrc, kDst, 50'000);
    desc.rows = 40;
    desc.src_pitch = 51'230;
    desc.dst_pitch = 50'003;
    std::mt19937 random(7);
    unsigned preempted = 0;
    for (unsigned round = 0; round < 10; ++round) {
        std::memset(rig.vram.data(), 0, 4 * kMiB);
        start(desc);
        for (;;) {
            for (unsigned n = random() % 20; n != 0 && !rig.peer.asked.empty(); --n) {
                rig.peer.give();
                rig.run();
            }
            if (!engine.busy()) break;
            ASSERT_TRUE(engine.preempt(Preempt::kNow, kArea));
            rig.run();
            EXPECT_TRUE(rig.peer.asked.empty()) << "nobody waits for these any more";
            ASSERT_EQ(rig.done.size(), 1u);
            ASSERT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
            rig.done.clear();
            ++preempted;
            ASSERT_TRUE(engine.resume(kArea, 1));
            rig.run();
        }
        ASSERT_EQ(rig.done.size(), 1u);
        EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
        for (std::uint64_t row = 0; row < desc.rows; ++row)
            expect_copied(row * 50'003, row * 51'230, 50'000);
    }
    EXPECT_GT(preempted, 20u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 10u * 40 * 50'000) << "no byte twice";
}

TEST_F(Pull, WhatEndsIt) {
    start(Rig::copy(kSrc, kDst, kMiB));
    engine.abort();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
    EXPECT_EQ(rig.peer.abandoned, 4u);

    start(Rig::copy(kSrc, kDst, kMiB));
    rig.peer.give();
    rig.run();
    rig.peer.give(ORR_FAULT_PEER_DENIED);
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(rig.done[0].detail, kSrc + PeerPort::kMostRead);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), PeerPort::kMostRead) << "what came before it is there";
    EXPECT_TRUE(rig.peer.asked.empty());

    // Its way is another.
    start(Rig::copy(kSrc, kDst, kMiB));
    EXPECT_TRUE(rig.peers.set_route(Rig::kPeerNode, ORR_ROUTE_VALID | 3 | 1 << ORR_ROUTE_EPOCH_SHIFT));
    static_cast<Asker*>(rig.peer.asked[0].asker)->ways_changed();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(rig.done[0].detail, kSrc);

    // A reset asks nobody.
    start(Rig::copy(kSrc, kDst, kMiB));
    engine.reset();
    rig.run();
    EXPECT_TRUE(rig.done.empty());
    EXPECT_TRUE(rig.peer.asked.empty());

    rig.peer.fault = ORR_FAULT_PEER_DENIED;
    start(Rig::copy(kSrc, kDst, kMiB));
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(rig.done[0].detail, kSrc);
    rig.map(kSrc, 4096, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, Rig::kPeerNode);
    start(Rig::copy(kSrc, kDst, 8));
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PERMISSION);
}

TEST_F(Pull, WithoutRoomItWaitsAndWithoutATagItAsksAgain) {
    rig.peer.refusals_left = 1;
    start(Rig::copy(kSrc, kDst, 1000));
    EXPECT_EQ(rig.peer.waits, 1u);
    EXPECT_TRUE(rig.peer.asked.empty());
    rig.peer.let();
    rig.run();
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
    rig.peer.fault = ORR_FAULT_PEER_BUSY;
    rig.done.clear();
    ASSERT_TRUE(engine.start(Rig::words_of(Rig::copy(kSrc, kDst, 1000)), 1));
    rig.run(10);
    EXPECT_TRUE(engine.busy());
    rig.peer.fault = ORR_FAULT_NONE;
    rig.run();
    answer();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_OK);
}

// Where it goes may be gone when the bytes come.
TEST_F(Pull, TheDestinationIsLookedUpWhenTheyCome) {
    start(Rig::copy(kSrc, kDst, 64 << 10));
    rig.unmap(kDst);
    rig.peer.give();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(rig.done[0].detail, kDst);
    EXPECT_EQ(rig.vram.data()[0], 0);
}

}  // namespace
}  // namespace orrery::emu::test
