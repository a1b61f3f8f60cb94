// Kernels that load, store and do atomics in another card's memory: what they get, when, what is asked for
// and how often, and what ends them.
#include <algorithm>
#include <numeric>
#include <random>

#include "emulator/engines/peer_access.h"
#include "emulator/engines/save_area.h"
#include "emulator/time/rate.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kPeer = 0x50'0000'0000, kPeerBytes = 4 << 20;
constexpr std::uint64_t kArea = 32 << 20, kOut = 1 << 20;
constexpr ModelTime kLatency = 1'000 * kPsPerNs, kUs = 1'000'000;

class PeerAccessTest : public VectorUnitTest {
  protected:
    PeerAccessTest() {
        VectorConfig with = config();
        with.vlen = 1024;
        with.l1_bytes = 16 << 10;
        unit = std::make_unique<VectorUnit>(with, rig.context);
        rig.map(kPeer, kPeerBytes, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode);
        std::iota(peer(), peer() + kPeerBytes / 8, 1000);
    }
    std::uint64_t* peer(std::uint64_t at = 0) {
        return reinterpret_cast<std::uint64_t*>(rig.peer.memory.data() + at);
    }
    orr_desc_kernel with_args(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups,
                              std::uint16_t items = 1) {
        std::ranges::copy(args, data());
        return desc(kernel, kData, groups, items);
    }
    // The other card answers kLatency after it was asked.
    void run_until(ModelTime until) {
        for (;;) {
            const ModelTime next = rig.events.next_time();
            const ModelTime answer = rig.peer.asked.empty() ? kNever : rig.peer.asked.front().at + kLatency;
            if (std::min(next, answer) > until || std::min(next, answer) == kNever) break;
            if (answer <= next) {
                rig.events.advance_to(answer);
                most_ = std::max(most_, rig.peer.asked.size());
                rig.peer.give();
            } else {
                rig.events.run_next(until);
            }
        }
        if (until != kNever - 1) rig.events.advance_to(until);
    }
    void start(const orr_desc_kernel& kernel, std::uint32_t port = 0) {
        rig.done.clear();
        ASSERT_TRUE(unit->port(port).start(Rig::words_of(kernel), 1));
    }
    Completion end() {
        run_until(kNever - 1);
        EXPECT_EQ(rig.done.size(), 1u);
        return rig.done.empty() ? Completion{} : rig.done.front();
    }
    Completion all(const orr_desc_kernel& kernel) {
        start(kernel);
        return end();
    }
    std::size_t most_ = 0;  // requests that were on their way at once
};

TEST_F(PeerAccessTest, ALoadWaitsForItsAnswer) {
    const auto took = [](const Completion& done) { return done.end_ps - done.start_ps; };
    const Completion near = all(desc(kLoad, kData, 1, 1));
    const Completion far = all(desc(kLoad, kPeer + 8, 1, 1));
    expect_end(far, ORR_DONE_OK, 0, 0);
    // The instruction is come to twice.
    const ModelTime expected = took(near) + kLatency + duration_ps(1, config().hz);
    EXPECT_GE(took(far), expected);
    EXPECT_LE(took(far), expected + 1) << "two parts of its time are rounded";
    EXPECT_EQ(rig.peer.last_tag, 1u);
    EXPECT_EQ(rig.peer.abandoned, 0u);
}

TEST_F(PeerAccessTest, CoresWaitSideBySide) {
    constexpr std::uint64_t kWords = 4000;
    const Completion done = all(with_args(kSum, {kPeer + 24, kWords, kData + kOut}, 8));
    expect_end(done, ORR_DONE_OK, 0, 0);
    const std::uint64_t sum = std::accumulate(data(kOut), data(kOut) + 8, std::uint64_t{0});
    EXPECT_EQ(sum, std::accumulate(peer(24), peer(24) + kWords, std::uint64_t{0}));
    EXPECT_EQ(rig.peer.last_tag, kWords);
    EXPECT_EQ(most_, 8u);
    const ModelTime took = done.end_ps - done.start_ps;
    EXPECT_GE(took, kWords / 8 * kLatency);
    EXPECT_LE(took, kWords / 8 * kLatency * 11 / 10);
    EXPECT_GE(rig.counters.get(ORR_CTR_VECTOR_BUSY_PS), kWords * kLatency);
}

// All that an instruction wants is asked for at once: pages apart, and lines once.
TEST_F(PeerAccessTest, VectorsAskForAllAtOnce) {
    constexpr std::uint64_t kWords = 1000;
    const orr_desc_kernel triad = with_args(kTriad, {kData + kOut, kPeer + 8, kData + 2 * kOut, kWords}, 2);
    std::iota(data(2 * kOut), data(2 * kOut) + 2 * kWords, 5);
    expect_end(all(triad), ORR_DONE_OK, 0, 0);
    for (std::uint64_t i = 0; i < 2 * kWords; ++i)
        ASSERT_EQ(data(kOut)[i], peer(8)[i] + data(2 * kOut)[i]) << i;
    // 128 words each, of which some straddle pages.
    EXPECT_GE(rig.peer.last_tag, 16u);
    EXPECT_LE(rig.peer.last_tag, 16u + 5);
    // Strided bytes, 17 apart: four of a line each.
    const std::uint32_t before = rig.peer.last_tag;
    most_ = 0;
    constexpr std::uint64_t kBytes8 = 0xc3;
    expect_end(all(with_args(kGather, {kPeer, 17, 1, 1, kBytes8, kData + kOut}, 1)), ORR_DONE_OK, 0, 0);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(peer());
    const auto* got = reinterpret_cast<const std::uint8_t*>(data(kOut));
    for (std::uint64_t i = 0; i < 1024; ++i)
        ASSERT_EQ(got[i], bytes[17 * i]) << i;
    EXPECT_LE(rig.peer.last_tag - before, 5u) << "neighbours are one request";
    // And a page apart each: no more than so many at a time.
    expect_end(all(with_args(kGather, {kPeer, 4096, 1, 1, kBytes8, kData + kOut}, 1)), ORR_DONE_OK, 0, 0);
    for (std::uint64_t i = 0; i < 1024; ++i)
        ASSERT_EQ(got[i], bytes[4096 * i]) << i;
    EXPECT_EQ(most_, PeerAccess::kMostReads);
}

// The first is here, and the rest on the other card; and what is masked off is nowhere.
TEST_F(PeerAccessTest, OnlySomeOfALoadIsFar) {
    rig.map(kPeer, 4096, ORR_TARGET_VRAM, kDataOffset + 3 * kOut);
    std::iota(data(3 * kOut), data(3 * kOut) + 512, 77);
    std::fill_n(data(2 * kOut), 512, 0);
    expect_end(all(with_args(kTriad, {kData + kOut, kPeer + 4096 - 32, kData + 2 * kOut, 100}, 1)),
               ORR_DONE_OK, 0, 0);
    for (std::uint64_t i = 0; i < 100; ++i)
        ASSERT_EQ(data(kOut)[i], i < 4 ? 77 + 508 + i : peer(4096)[i - 4]) << i;
    rig.unmap(kPeer + 3 * 4096);
    expect_end(all(with_args(kMasked, {kPeer + 3 * 4096 - 16, 3}, 1)), ORR_DONE_OK, 0, 0);
    const Completion done = all(with_args(kMasked, {kPeer + 3 * 4096 - 16, 0x15}, 1));
    expect_end(done, ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, kPeer + 3 * 4096);
}

TEST_F(PeerAccessTest, StoresArePostedInOrder) {
    constexpr std::uint64_t kWords = 1000;
    std::iota(data(2 * kOut), data(2 * kOut) + 2 * kWords, 5);
    const Completion done =
        all(with_args(kTriad, {kPeer + 8, kData + 2 * kOut, kData + 2 * kOut, kWords}, 2));
    expect_end(done, ORR_DONE_OK, 0, 0);
    for (std::uint64_t i = 0; i < 2 * kWords; ++i)
        ASSERT_EQ(peer(8)[i], 2 * (i + 5)) << i;
    EXPECT_EQ(peer()[0], 1000u);
    EXPECT_EQ(peer(8)[2 * kWords], 1000 + 2 * kWords + 1);
    EXPECT_EQ(rig.peer.last_tag, 0u) << "nothing was asked";
    EXPECT_LE(rig.peer.writes, 16u + 5);
    EXPECT_GE(done.end_ps - done.start_ps, duration_ps(2 * kWords * 8, rig.peer.bytes_per_second()))
        << "they have left";
}

TEST_F(PeerAccessTest, EveryAtomicIsDoneThere) {
    expect_end(all(with_args(kEveryAtomic, {kData + 4096, kData + kOut}, 1)), ORR_DONE_OK, 0, 0);
    const std::vector<std::uint64_t> near(data(kOut), data(kOut) + 22);
    expect_end(all(with_args(kEveryAtomic, {kPeer + 4096, kData + kOut}, 1)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(std::vector(data(kOut), data(kOut) + 22), near);
    EXPECT_EQ(peer(4096)[0], data(4096)[0]);
    EXPECT_EQ(peer(4096)[1] & 0xffff'ffff, data(4096)[1] & 0xffff'ffff);
    // An owner that says more than it was asked for.
    rig.peer.upper = 0xdead'beef'0000'0000;
    std::iota(peer(), peer() + kPeerBytes / 8, 1000);
    std::fill_n(data(4096), 2, 0);
    std::copy_n(peer(4096), 2, data(4096));
    expect_end(all(with_args(kEveryAtomic, {kData + 4096, kData + kOut}, 1)), ORR_DONE_OK, 0, 0);
    const std::vector<std::uint64_t> same(data(kOut), data(kOut) + 22);
    expect_end(all(with_args(kEveryAtomic, {kPeer + 4096, kData + kOut}, 1)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(std::vector(data(kOut), data(kOut) + 22), same);
}

TEST_F(PeerAccessTest, NoAtomicIsLostBetweenCores) {
    peer()[0] = peer()[1] = 0;
    peer()[2] = 20;
    // The arguments are there, too.
    expect_end(all(desc(kAtomics, kPeer, 8, 2)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(peer()[0], 8u * 2 * 20);
    EXPECT_EQ(peer()[1], 8u * 2 * 20);
}

TEST_F(PeerAccessTest, RightsAndFaults) {
    const auto ends = [&](Kernel kernel, std::uint64_t va, std::uint64_t fault) {
        const Completion done = all(desc(kernel, va, 1, 1));
        expect_end(done, ORR_DONE_FAULT, fault, va);
        const std::uint64_t pc = kernel == kJump ? va : entry(kernel);
        EXPECT_EQ(done.other & ~std::uint64_t{7}, pc & ~std::uint64_t{7});
        EXPECT_EQ(done.item, 0u);
    };
    rig.map(kPeer, 4096, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, Rig::kPeerNode);
    ends(kLoad, kPeer, ORR_FAULT_PERMISSION);
    rig.map(kPeer, 4096, ORR_TARGET_PEER, 0, ORR_PTE_READ, Rig::kPeerNode);
    ends(kStore, kPeer, ORR_FAULT_PERMISSION);
    ends(kJump, kPeer, ORR_FAULT_PERMISSION);
    rig.map(kPeer, 4096, ORR_TARGET_PEER, 0, ORR_PTE_READ | ORR_PTE_EXEC, Rig::kPeerNode);
    ends(kJump, kPeer, ORR_FAULT_PEER_READ);
    rig.map(kPeer, 4096, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode);
    for (const std::uint32_t fault : {ORR_FAULT_PEER_DOWN, ORR_FAULT_PEER_DENIED}) {
        rig.peer.fault = fault;
        ends(kLoad, kPeer, fault);
        ends(kStore, kPeer, fault);
    }
    rig.peer.fault = ORR_FAULT_NONE;
    for (const std::uint32_t fault : {ORR_FAULT_PEER_DOWN, ORR_FAULT_PEER_DENIED, ORR_FAULT_PEER_KEY}) {
        start(desc(kLoad, kPeer + 72, 8, 1));
        rig.run();
        ASSERT_EQ(rig.peer.asked.size(), 8u);
        rig.peer.give();
        rig.peer.give(fault);
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        expect_end(rig.done[0], ORR_DONE_FAULT, fault, kPeer + 72);
        EXPECT_TRUE(rig.peer.asked.empty()) << "nobody waits for the others";
    }
    rig.map(kPeer, 4096, ORR_TARGET_PEER, 0, Rig::kRights, 9);
    ends(kLoad, kPeer, ORR_FAULT_NO_ROUTE);
    ends(kStore, kPeer, ORR_FAULT_NO_ROUTE);
    rig.map(kPeer, 4096, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode);
    expect_end(all(desc(kMisalignedAtomic, kPeer, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_MISALIGNED, kPeer + 2);
    expect_end(all(desc(kLoad, kPeer, 1, 1)), ORR_DONE_OK, 0, 0);
}

// What comes later goes by the way by which the first went, or not at all.
TEST_F(PeerAccessTest, AnotherWayEndsTheKernel) {
    for (const bool while_it_waits : {true, false}) {
        start(with_args(kSum, {kPeer, 1000, kData + kOut}, 1));
        run_until(rig.events.now() + 20 * kLatency + kLatency / 2);
        ASSERT_TRUE(rig.done.empty());
        if (!while_it_waits) {
            rig.peer.give();
        }
        ++rig.peer.sessions;
        if (while_it_waits) rig.peer.asked.front().asker->ways_changed();
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PEER_DOWN);
        EXPECT_EQ(rig.done[0].status, ORR_DONE_FAULT);
        EXPECT_TRUE(rig.peer.asked.empty());
    }
}

TEST_F(PeerAccessTest, WithoutRoomItWaits) {
    rig.peer.refusals_left = 1;
    start(desc(kLoad, kPeer, 1, 1));
    rig.run();
    EXPECT_EQ(rig.peer.waits, 1u);
    rig.peer.let();
    expect_end(end(), ORR_DONE_OK, 0, 0);
    rig.peer.refusals = 1;
    start(desc(kStore, kPeer, 1, 1));
    rig.run();
    EXPECT_EQ(rig.peer.waits, 2u);
    rig.peer.let();
    expect_end(end(), ORR_DONE_OK, 0, 0);
    // Aborted meanwhile, it is forgotten.
    for (const Kernel kernel : {kLoad, kStore}) {
        rig.peer.refusals = rig.peer.refusals_left = 1;
        start(desc(kernel, kPeer, 1, 1));
        rig.run();
        ASSERT_EQ(rig.peer.parked.size(), 1u);
        unit->port(0).abort();
        EXPECT_TRUE(rig.peer.parked.empty());
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
        rig.peer.refusals = rig.peer.refusals_left = 0;
    }
    // Too many requests: it tries again by itself.
    rig.peer.fault = ORR_FAULT_PEER_BUSY;
    start(desc(kLoad, kPeer, 1, 1));
    rig.run(1000);
    EXPECT_TRUE(rig.done.empty());
    rig.peer.fault = ORR_FAULT_NONE;
    expect_end(end(), ORR_DONE_OK, 0, 0);
}

TEST_F(PeerAccessTest, AbortAndResetAbandonWhatIsOnItsWay) {
    start(with_args(kSum, {kPeer, 1000, kData + kOut}, 8));
    run_until(rig.events.now() + 20 * kLatency + kLatency / 2);
    EXPECT_EQ(rig.peer.asked.size(), 8u);
    unit->port(0).abort();
    EXPECT_TRUE(rig.peer.asked.empty());
    EXPECT_EQ(end().status, ORR_DONE_ABORTED);
    start(with_args(kSum, {kPeer, 1000, kData + kOut}, 8));
    run_until(rig.events.now() + 20 * kLatency + kLatency / 2);
    EXPECT_EQ(rig.peer.asked.size(), 8u);
    unit->reset();
    EXPECT_TRUE(rig.peer.asked.empty());
    expect_end(all(desc(kLoad, kPeer, 1, 1)), ORR_DONE_OK, 0, 0);
}

// Wherever it is taken off its cores, every atomic is done once and every load has its answer.
TEST_F(PeerAccessTest, PreemptedItGoesOn) {
    constexpr std::uint64_t kRounds = 12;
    const orr_desc_kernel atomics = desc(kAtomics, kPeer, 10, 1);
    const auto clear = [&] {
        peer()[0] = peer()[1] = 0;
        peer()[2] = kRounds;
    };
    clear();
    const Completion whole = all(atomics);
    const ModelTime length = whole.end_ps - whole.start_ps;
    unsigned preempted = 0;
    for (unsigned point = 1; point < 60; point += 3) {
        clear();
        start(atomics, point % 4);
        for (unsigned turns = 0;; ++turns) {
            ASSERT_LT(turns, 1000u) << "it gets nowhere";
            // Long enough for a load.
            run_until(rig.events.now() + 3 * kLatency + length * point / 200);
            ASSERT_TRUE(unit->port(point % 4).preempt(Preempt::kNow, kArea));
            const ModelTime asked = rig.events.now();
            const Completion done = end();
            if (done.status != ORR_DONE_PREEMPTED) break;
            EXPECT_LE(done.end_ps - asked, 4 * kUs);
            EXPECT_TRUE(rig.peer.asked.empty());
            ++preempted;
            rig.done.clear();
            ASSERT_TRUE(unit->port(point % 4).resume(kArea, 1));
        }
        expect_end(rig.done.at(0), ORR_DONE_OK, 0, 0);
        ASSERT_EQ(peer()[0], 10 * kRounds) << point;
        ASSERT_EQ(peer()[1], 10 * kRounds) << point;
    }
    EXPECT_GT(preempted, 100u);
}

// A load alone is no reason to wait: its answer may never come.
TEST_F(PeerAccessTest, PreemptedItDoesNotWaitForLoads) {
    start(with_args(kTriad, {kData + kOut, kPeer, kPeer, 1000}, 8));
    run_until(rig.events.now() + 5 * kUs + kLatency / 2);
    ASSERT_EQ(rig.peer.asked.size(), 8u);
    ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
    EXPECT_TRUE(rig.peer.asked.size() == 8u);
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    EXPECT_TRUE(rig.peer.asked.empty());
    rig.done.clear();
    ASSERT_TRUE(unit->port(1).resume(kArea, 1));
    expect_end(end(), ORR_DONE_OK, 0, 0);
    for (std::uint64_t i = 0; i < 8000; ++i)
        ASSERT_EQ(data(kOut)[i], 2 * peer()[i]) << i;
}

// Nor is an atomic, which is not sent again for that.
TEST_F(PeerAccessTest, AnAtomicThatIsNotAnsweredHoldsUpNobody) {
    constexpr std::uint64_t kRounds = 3;
    peer()[0] = peer()[1] = 0;
    peer()[2] = kRounds;
    start(desc(kAtomics, kPeer, 8, 1));
    rig.run();
    for (unsigned i = 0; i < 8; ++i)
        rig.peer.give();
    rig.run();
    ASSERT_EQ(rig.peer.asked.size(), 8u);
    ASSERT_EQ(peer()[0], 8u);
    for (const std::uint32_t port : {0u, 1u, 2u}) {
        ASSERT_TRUE(unit->port(port).preempt(Preempt::kNow, kArea));
        const ModelTime asked = rig.events.now();
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
        EXPECT_LE(rig.done[0].end_ps - asked, 4 * kUs);
        EXPECT_EQ(rig.peer.asked.size(), 8u - port) << "they are waited for, and loads are not";
        // All cores are others'.
        rig.done.clear();
        ASSERT_TRUE(unit->port(3).start(Rig::words_of(with_args(kSum, {kData + 64, 8, kData + kOut}, 8)), 1));
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        expect_end(rig.done[0], ORR_DONE_OK, 0, 0);
        // Some answers come while the group is on no core.
        rig.peer.give();
        rig.done.clear();
        ASSERT_TRUE(unit->port(port + 1).resume(kArea, 1));
        rig.run();
        ASSERT_EQ(rig.peer.asked.size(), 8u);
        EXPECT_EQ(peer()[0], 8u);
    }
    expect_end(end(), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(peer()[0], 8 * kRounds);
    EXPECT_EQ(peer()[1], 8 * kRounds);
}

// Nor a store that finds no room: it goes when the group goes on, once.
TEST_F(PeerAccessTest, AStoreWithoutRoomHoldsUpNobody) {
    constexpr std::uint64_t kWords = 1000;
    std::iota(data(2 * kOut), data(2 * kOut) + kWords, 5);
    const orr_desc_kernel triad =
        with_args(kTriad, {kPeer + 8, kData + 2 * kOut, kData + 2 * kOut, kWords}, 1);
    rig.peer.max_bytes = 72;
    expect_end(all(triad), ORR_DONE_OK, 0, 0);
    const unsigned once = std::exchange(rig.peer.writes, 0);
    std::fill_n(peer(8), kWords, 0);
    start(triad);
    for (std::uint32_t port = 0; rig.peer.writes < once; ++port) {
        ASSERT_LT(port, 1000u) << "it gets nowhere";
        run_until(rig.events.now() + 2 * kUs);
        if (rig.peer.writes == once) break;
        rig.peer.refusals = 1000;
        rig.run();
        ASSERT_TRUE(rig.done.empty());
        ASSERT_TRUE(unit->port(port % 4).preempt(Preempt::kNow, kArea));
        const ModelTime asked = rig.events.now();
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        ASSERT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
        EXPECT_LE(rig.done[0].end_ps - asked, 4 * kUs);
        EXPECT_TRUE(rig.peer.parked.empty());
        rig.done.clear();
        rig.peer.refusals = 0;
        ASSERT_TRUE(unit->port((port + 1) % 4).resume(kArea, 1));
        run_until(rig.events.now() + 2 * kUs + port % 7 * kUs / 7);
        if (!rig.done.empty()) break;
    }
    expect_end(end(), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(rig.peer.writes, once) << "each once";
    for (std::uint64_t i = 0; i < kWords; ++i)
        ASSERT_EQ(peer(8)[i], 2 * (i + 5)) << i;
}

// One that has ended with a fault ends at once, whatever it had stored before.
TEST_F(PeerAccessTest, AStoppedOneWithoutRoomHoldsUpNobody) {
    rig.unmap(kPeer + 4096);
    start(with_args(kTriad, {kPeer + 4096 - 64, kData + kOut, kData + kOut, 100}, 1));
    rig.peer.refusals = 1'000'000;
    rig.run();
    ASSERT_TRUE(rig.done.empty());
    ASSERT_EQ(rig.peer.parked.size(), 1u);
    ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
    const ModelTime asked = rig.events.now();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    expect_end(rig.done[0], ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, kPeer + 4096);
    EXPECT_LE(rig.done[0].end_ps - asked, 4 * kUs);
    EXPECT_TRUE(rig.peer.parked.empty());
}

// Whose group never goes on waits for nothing, and who says that another's is its own gets nothing.
TEST_F(PeerAccessTest, WhatASavedGroupOwesGoesWithIt) {
    const auto begin = [&] {
        peer()[2] = 100;
        start(desc(kAtomics, kPeer, 4, 1));
        rig.run();
        ASSERT_GE(rig.peer.asked.size(), 4u);
        std::rotate(rig.peer.asked.begin(), rig.peer.asked.end() - 4, rig.peer.asked.end());
        for (unsigned i = 0; i < 4; ++i)
            rig.peer.give();
        rig.run();
    };
    const auto save = [&] {
        begin();
        ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        ASSERT_EQ(rig.peer.asked.size(), 4u);
        rig.done.clear();
    };
    save();
    unit->reset();
    EXPECT_TRUE(rig.peer.asked.empty());
    // Aborted as it goes on, and while it is saved.
    save();
    ASSERT_TRUE(unit->port(1).resume(kArea, 1));
    unit->port(1).abort();
    rig.run();
    EXPECT_TRUE(rig.peer.asked.empty());
    rig.done.clear();
    begin();
    ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
    rig.run(5);
    unit->port(0).abort();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
    EXPECT_TRUE(rig.peer.asked.empty());
    // Jobs that are dropped while they are saved: the area is another's then.
    rig.done.clear();
    for (unsigned n = 0; n < 3; ++n) {
        save();
        EXPECT_GE(rig.peer.put_aside_, 4);
    }
    // One that goes on, is saved again before its groups have cores, and is aborted then.
    ASSERT_TRUE(unit->port(1).resume(kArea, 1));
    ASSERT_TRUE(unit->port(1).preempt(Preempt::kNow, kArea));
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(rig.peer.asked.size(), 4u);
    ASSERT_TRUE(unit->port(1).resume(kArea, 1));
    ASSERT_TRUE(unit->port(1).preempt(Preempt::kNow, kArea));
    unit->port(1).abort();
    rig.run();
    EXPECT_TRUE(rig.peer.asked.empty());
    rig.done.clear();
    // Its process ends: seen when the next group is saved.
    save();
    rig.mmu.set_root(1, 0);
    rig.mmu.set_root(1, rig.root());
    save();
    // A record that says what is not so.
    auto* const record = reinterpret_cast<orr_save_group*>(rig.vram.data() + kArea + kSavePage);
    record->owed += 1000;
    const std::uint64_t pc = record->hart.pc;
    ASSERT_TRUE(unit->port(2).resume(kArea, 1));
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    expect_end(rig.done[0], ORR_DONE_FAULT, ORR_FAULT_PEER_DOWN, 0);
    EXPECT_EQ(rig.done[0].other, pc);
    EXPECT_EQ(rig.done[0].item >> ORR_DONE_ITEM_BITS, record->group);
}

// What was stored by a way that went, before or after the group was saved, may be lost.
TEST_F(PeerAccessTest, AReleaseBehindAWayThatWentFails) {
    for (const bool saved : {false, true}) {
        start(with_args(kPublish, {kPeer, kData + kOut, 77, 1}, 1));
        rig.run();
        ASSERT_EQ(rig.peer.asked.size(), 1u) << "the owner is asked";
        ASSERT_EQ(rig.peer.asked[0].to.size(), 0u);
        if (saved) {
            ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
            rig.run();
            ASSERT_EQ(rig.done.size(), 1u);
            ASSERT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
            rig.done.clear();
            ++rig.peer.sessions;
            ASSERT_TRUE(unit->port(0).resume(kArea, 1));
        } else {
            ++rig.peer.sessions;
            rig.peer.asked.front().asker->ways_changed();
        }
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        expect_end(rig.done[0], ORR_DONE_FAULT, ORR_FAULT_PEER_DOWN, kPeer);
        EXPECT_TRUE(rig.peer.asked.empty());
    }
    // And so it does if the owner's answer is lost.
    start(with_args(kPublish, {kPeer, kData + kOut, 77, 2}, 1));
    rig.run();
    rig.peer.give(ORR_FAULT_PEER_DOWN);
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    expect_end(rig.done[0], ORR_DONE_FAULT, ORR_FAULT_PEER_DOWN, kPeer);
}

class PeerAhead : public PeerAccessTest {
  protected:
    static constexpr std::uint64_t kRow = 1024, kLines = 64;
    PeerAhead() { unit = with_lines(kLines); }
    std::unique_ptr<VectorUnit> with_lines(std::uint64_t lines) {
        VectorConfig with = config();
        with.vlen = 1024;
        with.l1_bytes = 16 << 10;
        with.in_flight = lines;
        return std::make_unique<VectorUnit>(with, rig.context);
    }
    Completion with_room() {
        do {
            rig.peer.let();
            run_until(kNever - 1);
        } while (!rig.peer.parked.empty());
        EXPECT_EQ(rig.done.size(), 1u);
        return rig.done.empty() ? Completion{} : rig.done.front();
    }
};

// So many lines of rows that follow each other are on their way beside the row that the core waits for.
TEST_F(PeerAhead, RowsAreAskedForBeforeTheCoreComesToThem) {
    constexpr std::uint64_t kRows = 100;
    std::vector<ModelTime> took;
    for (const std::uint64_t lines : {std::uint64_t{0}, kLines, 4 * kLines}) {
        unit = with_lines(lines);
        std::fill_n(data(kOut), kRows * kRow / 8, 0);
        most_ = 0;
        const Completion done = all(with_args(kCopyRows, {kData + kOut, kPeer + 40, kRows, 0}, 1));
        expect_end(done, ORR_DONE_OK, 0, 0);
        EXPECT_TRUE(std::equal(peer(40), peer(40) + kRows * kRow / 8, data(kOut)));
        took.push_back(done.end_ps - done.start_ps);
        EXPECT_LE(most_, lines == 0 ? 2 : 2 * (1 + lines * 64 / kRow));
    }
    EXPECT_GE(took[0], kRows * kLatency);
    EXPECT_LE(took[1], took[0] / 3);
    EXPECT_LE(took[2], took[0] / 8);
}

TEST_F(PeerAhead, AnythingGoes) {
    std::mt19937 random(1);
    for (unsigned round = 0; round < 150; ++round) {
        const std::uint64_t words = 1 + random() % 3000, groups = 1 + random() % 9;
        const std::uint64_t a = 8 * (random() % 2000), b = 8 * (random() % 200'000);
        rig.peer.refusals_left = random() % 4;
        start(with_args(kTriad, {kData + kOut, kPeer + a, kPeer + b, words},
                        static_cast<std::uint32_t>(groups)));
        run_until(rig.events.now() + random() % (20 * kUs));
        rig.peer.let();
        ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
        Completion done = with_room();
        if (done.status == ORR_DONE_PREEMPTED) {
            rig.done.clear();
            rig.peer.refusals_left = random() % 2;
            ASSERT_TRUE(unit->port(1).resume(kArea, 1));
            done = with_room();
        }
        expect_end(done, ORR_DONE_OK, 0, 0);
        for (std::uint64_t i = 0; i < words * groups; ++i)
            ASSERT_EQ(data(kOut)[i], peer(a)[i] + peer(b)[i]) << round << ", " << i;
        EXPECT_TRUE(rig.peer.asked.empty());
    }
}

// Each row is stored to just before it is loaded.
TEST_F(PeerAhead, ACoreSeesItsOwnStores) {
    constexpr std::uint64_t kRows = 50;
    expect_end(all(with_args(kCopyRows, {kPeer + kRow, kPeer, kRows, 0}, 1)), ORR_DONE_OK, 0, 0);
    for (std::uint64_t i = 0; i < (kRows + 1) * kRow / 8; ++i)
        ASSERT_EQ(peer()[i], 1000 + i % (kRow / 8)) << i;
}

// What another card writes is seen behind the next fence; without one, what was asked for ahead is older.
TEST_F(PeerAhead, NothingThatCameAheadIsUsedBehindAFence) {
    constexpr std::uint64_t kRows = 60, kWords = kRow / 8;
    unit = with_lines(4 * kLines);
    // Rows that are older than they were in the memory when the core came to them, of each moment the most.
    const auto most_old = [&](std::uint64_t behind) {
        std::ptrdiff_t most = 0;
        for (unsigned moment = 0; moment < 20; ++moment) {
            std::fill_n(data(kOut), kRows * kWords, 0);
            std::fill_n(peer(), kRows * kWords, 1);
            start(with_args(kCopyRows, {kData + kOut, kPeer, kRows, behind}, 1));
            while (data(kOut)[16 * kWords] == 0)
                run_until(rig.events.now() + kLatency / 8);
            run_until(rig.events.now() + moment * kLatency / 20);
            const auto* const row = std::find(data(kOut), data(kOut) + kRows * kWords, 0);
            std::fill_n(peer(), kRows * kWords, 2);
            expect_end(end(), ORR_DONE_OK, 0, 0);
            const auto* const last = data(kOut) + kRows * kWords;
            most = std::max(most, std::count(row, last, 1) / static_cast<std::ptrdiff_t>(kWords));
            EXPECT_EQ(std::count(row, last, 1) + std::count(row, last, 2), last - row);
        }
        return most;
    };
    EXPECT_GT(most_old(0), 3);
    for (const std::uint64_t behind : {1u, 2u, 3u})
        EXPECT_LE(most_old(behind), 1) << "which the core had come to";
}

// The end of what is mapped, or granted, is no fault before the core comes to it.
TEST_F(PeerAhead, NobodyFaultsForWhatNobodyLoads) {
    rig.unmap(kPeer + 8 * 4096);
    const std::uint64_t faults = rig.counters.get(ORR_CTR_MMU_FAULTS);
    expect_end(all(with_args(kCopyRows, {kData + kOut, kPeer, 32, 0}, 1)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_MMU_FAULTS), faults);
    expect_end(all(with_args(kCopyRows, {kData + kOut, kPeer, 33, 0}, 1)), ORR_DONE_FAULT,
               ORR_FAULT_NOT_MAPPED, kPeer + 8 * 4096);
}

TEST_F(PeerAhead, AWayThatGoesIsNoticedWhenItMatters) {
    start(with_args(kCopyRows, {kData + kOut, kPeer, 100, 0}, 1));
    run_until(rig.events.now() + 4 * kLatency);
    ASSERT_GT(rig.peer.asked.size(), 2u);
    ++rig.peer.sessions;
    run_until(kNever - 1);
    ASSERT_EQ(rig.done.size(), 1u);
    expect_end(rig.done[0], ORR_DONE_FAULT, ORR_FAULT_PEER_DOWN, rig.done[0].detail);
    EXPECT_TRUE(rig.peer.asked.empty());
}

// Time stands while it does steps, so one that has to wait for an answer does not get beyond that.
TEST_F(PeerAccessTest, UnderADebugger) {
    KernelDebugger& debugger = unit->debugger();
    debugger.attach();
    const auto resume = [&] {
        debugger.resume();
        while (!debugger.stopped() && (!rig.peer.asked.empty() || !rig.events.empty())) {
            if (rig.events.empty() || !rig.events.run_next(kNever - 1)) rig.peer.give();
        }
    };
    start(with_args(kSum, {kPeer + 80, 3, kData + kOut}, 1));
    resume();
    ASSERT_EQ(debugger.stop().kind, KernelStop::Kind::kLaunch);
    std::uint64_t pc = 0;
    for (unsigned steps = 0; pc != debugger.state(0).pc && steps < 1000; ++steps) {
        pc = debugger.state(0).pc;
        debugger.step(0);
        EXPECT_EQ(debugger.stop().kind, KernelStop::Kind::kStep);
    }
    EXPECT_TRUE(rig.peer.asked.empty()) << "its time has not come";
    debugger.step(0);
    EXPECT_EQ(debugger.state(0).pc, pc);
    std::uint8_t byte = 0;
    EXPECT_FALSE(debugger.read(0, kPeer + 80, {&byte, 1}));
    // A watched word stops it behind the load, with what came.
    const KernelWatch watch{.range = {.address = kPeer + 88, .bytes = 8, .on_read = true}, .owner = 1};
    debugger.set_watches({&watch, 1});
    resume();
    ASSERT_EQ(debugger.stop().kind, KernelStop::Kind::kWatchpoint);
    EXPECT_EQ(debugger.stop().address, kPeer + 88);
    debugger.set_watches({});
    resume();
    ASSERT_EQ(rig.done.size(), 1u);
    expect_end(rig.done[0], ORR_DONE_OK, 0, 0);
    EXPECT_EQ(data(kOut)[0], peer()[10] + peer()[11] + peer()[12]);
    debugger.detach();
}

// Who moves it away from an atomic that was sent leaves nothing there.
TEST_F(PeerAccessTest, ADebuggerMovesItOffAnAtomic) {
    KernelDebugger& debugger = unit->debugger();
    debugger.attach();
    peer()[0] = peer()[1] = 0;
    peer()[2] = 3;
    start(desc(kAtomics, kPeer, 1, 1));
    debugger.resume();
    while (peer()[0] == 0) {
        if (debugger.stopped()) debugger.resume();
        if (!rig.events.run_next(kNever - 1)) rig.peer.give();
    }
    ASSERT_EQ(rig.peer.asked.size(), 1u);
    debugger.stop_now();
    HartState state = debugger.state(0);
    // The same one at another place.
    const auto* const code = rig.vram.data() + (state.pc - kImageBase);
    std::memcpy(rig.vram.data() + (60 << 10), code, 4);
    state.pc = kImageBase + (60 << 10);
    ASSERT_TRUE(debugger.set_state(0, state));
    EXPECT_TRUE(rig.peer.asked.empty());
    debugger.resume();
    debugger.detach();
    rig.run();
    EXPECT_EQ(peer()[0], 2u) << "it is not the one that was sent";
    ASSERT_EQ(rig.peer.asked.size(), 1u);
    ASSERT_TRUE(unit->port(0).preempt(Preempt::kNow, kArea));
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
}

// Others compute ahead beside it, and it in the order of model time.
TEST_F(PeerAccessTest, ThreadsChangeNothing) {
    std::vector<ModelTime> took;
    for (const unsigned threads : {0u, 1u, 2u}) {
        VectorConfig with = config();
        with.vlen = 1024;
        with.l1_bytes = 16 << 10;
        with.threads = threads;
        unit = std::make_unique<VectorUnit>(with, rig.context);
        rig.mmu.before_change([this] { unit->settle(); });
        std::fill_n(data(kOut), 24'000, 0);
        const Completion done = all(with_args(kTriad, {kData + kOut, kPeer + 64, kPeer + 64, 1000}, 24));
        expect_end(done, ORR_DONE_OK, 0, 0);
        took.push_back(done.end_ps - done.start_ps);
        for (std::uint64_t i = 0; i < 24'000; ++i)
            ASSERT_EQ(data(kOut)[i], 2 * peer(64)[i]) << i;
    }
    EXPECT_EQ(took[0], took[1]);
    EXPECT_EQ(took[0], took[2]);
    took.clear();
    for (const unsigned threads : {0u, 1u, 2u}) {
        VectorConfig with = config();
        with.l1_bytes = 16 << 10;
        with.threads = threads;
        unit = std::make_unique<VectorUnit>(with, rig.context);
        rig.mmu.before_change([this] { unit->settle(); });
        peer()[0] = peer()[1] = 0;
        peer()[2] = 10;
        const Completion done = all(desc(kAtomics, kPeer, 24, 1));
        expect_end(done, ORR_DONE_OK, 0, 0);
        took.push_back(done.end_ps - done.start_ps);
        EXPECT_EQ(peer()[0], 240u);
        EXPECT_EQ(peer()[1], 240u);
    }
    EXPECT_EQ(took[0], took[1]);
    EXPECT_EQ(took[0], took[2]);
}

}  // namespace
}  // namespace orrery::emu::test
