// Large copies on host threads beside the card's: the same memory and the same times, and no thread holds a
// pointer once the card has let go of it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <random>

#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kSrc = 0x10'0000'0000, kDst = 0x20'0000'0000;
constexpr std::uint64_t kBytes = 8 << 20;
constexpr std::uint64_t kArea = 48 << 20;

// A rig with threads, two engines, and memory that is random.
struct Threaded {
    explicit Threaded(unsigned threads) : workers(threads) {
        rig.context.workers = &workers;
        rig.mmu.before_change([this] { workers.quiesce(); });
        rig.map(kSrc, kBytes, ORR_TARGET_HOST, Rig::kHostBase);
        rig.map(kDst, kBytes, ORR_TARGET_VRAM, 0);
        std::mt19937_64 random(3);
        for (std::uint64_t i = 0; i < kBytes; i += 8) {
            const std::uint64_t word = random();
            std::memcpy(rig.host_data + i, &word, 8);
            std::memcpy(rig.vram.data() + i, &word, 8);
        }
    }
    void start(CopyEngine& engine, const orr_desc_copy& desc) {
        ASSERT_TRUE(engine.start(Rig::words_of(desc), 1));
    }

    Rig rig;
    Workers workers;
    CopyEngine first{0, CopyRates{}, rig.context}, second{1, CopyRates{}, rig.context};
};

struct Outcome {
    std::vector<std::uint8_t> vram, host;
    std::vector<ModelTime> ends;
    bool operator==(const Outcome&) const = default;
};

// Two engines at once, of which one reads what it and the other write.
Outcome work(unsigned threads) {
    Threaded t(threads);
    t.start(t.first, Rig::copy(kSrc, kDst + 4096, kBytes / 2));
    t.start(t.second, Rig::copy(kDst, kDst + kBytes / 2 - 12345, kBytes / 2));
    t.rig.run();
    orr_desc_copy fill{};
    fill.op = ORR_DESC_FILL;
    fill.asid = 1;
    fill.dst = kSrc + 8;
    fill.row_bytes = 2 << 20;
    fill.rows = 1;
    fill.pattern = 0x0123456789abcdef;
    fill.pattern_bytes = 8;
    t.start(t.first, fill);
    // Rows that overlap each other, downwards and upwards.
    orr_desc_copy rows = Rig::copy(kSrc + kBytes / 2, kSrc + kBytes / 2 + 1000, 128 << 10);
    rows.rows = 20;
    rows.src_pitch = rows.dst_pitch = 100 << 10;
    t.start(t.second, rows);
    t.rig.run();
    Outcome outcome{
        {t.rig.vram.data(), t.rig.vram.data() + kBytes}, {t.rig.host_data, t.rig.host_data + kBytes}, {}};
    for (const Completion& one : t.rig.done) {
        EXPECT_EQ(one.status, ORR_DONE_OK);
        outcome.ends.push_back(one.end_ps);
    }
    return outcome;
}

TEST(WorkersTest, MemoryAndTimesDoNotDependOnTheNumberOfThreads) {
    const Outcome alone = work(0);
    ASSERT_EQ(alone.ends.size(), 4u);
    for (const unsigned threads : {1u, 2u, 4u})
        EXPECT_EQ(work(threads), alone) << threads;
}

TEST(WorkersTest, WhenACopyIsToldItIsThere) {
    Threaded t(2);
    for (int round = 0; round < 8; ++round) {
        std::memset(t.rig.vram.data(), round, kBytes);
        ASSERT_EQ(t.rig.run_one(t.first, Rig::copy(kSrc, kDst, kBytes)).status, ORR_DONE_OK);
        ASSERT_EQ(std::memcmp(t.rig.vram.data(), t.rig.host_data, kBytes), 0) << round;
    }
}

// The memory of a range that goes is taken away as soon as the unmap returns: who reads it then crashes.
TEST(WorkersTest, NobodyTouchesMemoryThatHasGone) {
    for (unsigned events = 1; events < 40; events += 6) {
        Threaded t(2);
        t.start(t.first, Rig::copy(kSrc, kDst, kBytes));
        t.start(t.second, Rig::copy(kDst, kSrc + kBytes / 2, kBytes / 2));
        t.rig.run(events);
        auto range = t.rig.host.remove(Rig::kHostBase, 64 << 20);
        ASSERT_TRUE(range);
        t.rig.mmu.flush_host();
        range.reset();
        t.rig.run();
        ASSERT_EQ(t.rig.done.size(), 2u);
        for (const Completion& one : t.rig.done)
            EXPECT_EQ(one.status, ORR_DONE_FAULT);
    }
}

// Pages that a flush has freed are another's at once.
TEST(WorkersTest, NobodyWritesToPagesThatAreAnothers) {
    for (unsigned events = 1; events < 40; events += 6) {
        Threaded t(2);
        t.start(t.first, Rig::copy(kSrc, kDst, kBytes));
        t.rig.run(events);
        for (std::uint64_t at = 0; at < kBytes; at += ORR_PAGE_SIZE)
            *t.rig.entry(kDst + at, 0) = 0;
        t.rig.mmu.flush_asid(1);
        std::memset(t.rig.vram.data(), 0x5a, kBytes);
        t.rig.run();
        ASSERT_EQ(t.rig.done.size(), 1u);
        EXPECT_EQ(t.rig.done[0].status, ORR_DONE_FAULT);
        EXPECT_EQ(std::count(t.rig.vram.data(), t.rig.vram.data() + kBytes, 0x5a),
                  static_cast<std::ptrdiff_t>(kBytes));
    }
}

enum class End : std::uint8_t { kAbort, kPreempt, kReset, kDestroy };

// After its end nothing is written any more, and what a preempted copy resumes with is all there.
void end_in_the_middle(End how, unsigned events) {
    Threaded t(2);
    auto engine = std::make_unique<CopyEngine>(5, CopyRates{}, t.rig.context);
    t.start(*engine, Rig::copy(kSrc, kDst, kBytes));
    t.rig.run(events);
    if (how == End::kAbort) engine->abort();
    if (how == End::kPreempt) {
        ASSERT_TRUE(engine->preempt(Preempt::kNow, kArea));
    }
    if (how == End::kReset) engine->reset();
    if (how == End::kDestroy) {
        engine->reset();
        engine.reset();
    }
    t.rig.run();
    const std::vector<std::uint8_t> left(t.rig.vram.data(), t.rig.vram.data() + kBytes);
    t.workers.quiesce();
    EXPECT_EQ(std::memcmp(left.data(), t.rig.vram.data(), kBytes), 0);
    if (how == End::kReset || how == End::kDestroy) {
        EXPECT_TRUE(t.rig.done.empty());
        return;
    }
    ASSERT_EQ(t.rig.done.size(), 1u);
    if (how == End::kAbort) {
        EXPECT_EQ(t.rig.done[0].status, ORR_DONE_ABORTED);
        return;
    }
    ASSERT_EQ(t.rig.done[0].status, ORR_DONE_PREEMPTED);
    std::memset(t.rig.host_data, 0, 4096);  // it is not copied again
    ASSERT_TRUE(t.second.resume(kArea, 2));
    t.rig.run();
    EXPECT_EQ(t.rig.done[1].status, ORR_DONE_OK);
    EXPECT_NE(std::memcmp(t.rig.vram.data(), t.rig.host_data, 4096), 0);
    EXPECT_EQ(std::memcmp(t.rig.vram.data() + 4096, t.rig.host_data + 4096, kBytes - 4096), 0);
}

TEST(WorkersTest, AbortPreemptionAndResetWaitForThem) {
    for (const End how : {End::kAbort, End::kPreempt, End::kReset, End::kDestroy}) {
        for (const unsigned events : {2u, 9u, 30u})
            end_in_the_middle(how, events);
    }
}

// The second engine is faster: it overtakes the first, whose pieces it sends just after they were posted.
std::pair<std::vector<std::byte>, std::vector<std::uint8_t>> send(unsigned threads) {
    constexpr std::uint64_t kPeer = 0x30'0000'0000;
    Threaded t(threads);
    t.rig.map(kPeer, kBytes, ORR_TARGET_PEER, 0, Rig::kRights, 3);
    for (const unsigned head_start : {2u, 4u, 8u, 16u}) {
        t.start(t.first, Rig::copy(kSrc, kDst, kBytes));
        t.rig.run(head_start);
        t.start(t.second, Rig::copy(kDst, kPeer, kBytes));
        t.rig.run();
        std::rotate(t.rig.host_data, t.rig.host_data + 1, t.rig.host_data + kBytes);
    }
    return {t.rig.peer.memory, {t.rig.vram.data(), t.rig.vram.data() + kBytes}};
}

TEST(WorkersTest, WhatGoesToAPeerHasBeenWritten) {
    EXPECT_EQ(send(2), send(0));
}

// Each alone, on pieces so large that they are certainly under way.
TEST(WorkersTest, EachWayOfWaitingWaits) {
    Workers workers(2);
    constexpr std::size_t kPiece = 32 << 20;
    std::vector<std::byte> from(kPiece), to(kPiece);
    std::uint8_t round = 0;
    const auto post = [&] {
        std::memset(from.data(), ++round, kPiece);
        workers.move(7, {to.data(), from.data(), kPiece, nullptr}, true);
    };
    const auto there = [&] { return std::memcmp(from.data(), to.data(), kPiece) == 0; };
    post();
    workers.join(7);
    EXPECT_TRUE(there());
    post();
    workers.settle(to.data() + kPiece - 1, 1);
    EXPECT_TRUE(there());
    post();
    workers.quiesce();
    EXPECT_TRUE(there());
    post();
    // A piece that reads what the other writes comes after it, small as it is.
    std::byte last{};
    workers.move(8, {&last, to.data() + kPiece - 1, 1, nullptr}, false);
    EXPECT_EQ(std::to_integer<std::uint8_t>(last), round);
    workers.join(7);
}

}  // namespace
}  // namespace orrery::emu::test
