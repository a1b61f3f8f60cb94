#include <gtest/gtest.h>

#include <random>

#include "emulator/engines/save_area.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kSrc = 0x10'0000'0000, kDst = 0x20'0000'0000;

class CopyEngineTest : public testing::Test {
  protected:
    CopyEngineTest() : engine(5, rates, rig.context) {
        std::mt19937_64 random(1);
        for (std::uint64_t i = 0; i < (4u << 20); i += 8) {
            const std::uint64_t word = random();
            std::memcpy(rig.host_data + i, &word, 8);
        }
    }
    static orr_desc_copy copy(std::uint64_t bytes) { return Rig::copy(kSrc, kDst, bytes); }
    orr_desc_copy fill(std::uint64_t bytes, unsigned pattern_bytes, std::uint64_t pattern) const {
        orr_desc_copy desc = copy(bytes);
        desc.op = ORR_DESC_FILL;
        desc.src = 0;
        desc.pattern_bytes = static_cast<std::uint16_t>(pattern_bytes);
        desc.pattern = pattern;
        return desc;
    }
    void map_both(std::uint64_t bytes) {
        rig.map(kSrc, bytes, ORR_TARGET_HOST, Rig::kHostBase, ORR_PTE_READ);
        rig.map(kDst, bytes, ORR_TARGET_VRAM, 0, ORR_PTE_WRITE);
    }
    void expect_bad(const orr_desc_copy& desc) {
        EXPECT_EQ(rig.run_one(engine, desc).status, ORR_DONE_BAD_DESC);
        EXPECT_FALSE(engine.busy());
    }

    CopyRates rates{};
    Rig rig;
    CopyEngine engine;
};

TEST_F(CopyEngineTest, CopiesHostToVramUnaligned) {
    map_both(4 << 20);
    orr_desc_copy desc = copy((3u << 20) + 17);
    desc.src += 5;
    desc.dst += 4093;
    const Completion done = rig.run_one(engine, desc);
    EXPECT_EQ(done.status, ORR_DONE_OK);
    EXPECT_EQ(done.port, 5u);
    EXPECT_EQ(done.tag, 77u);
    EXPECT_EQ(std::memcmp(rig.vram.data() + 4093, rig.host_data + 5, desc.row_bytes), 0);
    EXPECT_EQ(rig.vram.data()[4092], 0);
    EXPECT_EQ(rig.vram.data()[4093 + desc.row_bytes], 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_JOBS), 1u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), desc.row_bytes);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BUSY_PS), done.end_ps - done.start_ps);
}

TEST_F(CopyEngineTest, TakesTheModelTimeOfTheSlowestMemory) {
    map_both(1 << 20);
    const Completion done = rig.run_one(engine, copy(1 << 20));
    const ModelTime bytes_ps =
        (std::uint64_t{1} << 20) * 1'000'000'000'000 / rig.memory.config().pcie_bytes_per_second;
    EXPECT_NEAR(static_cast<double>(done.end_ps - done.start_ps),
                static_cast<double>(rates.setup_ps + bytes_ps), 512);
    EXPECT_EQ(done.end_ps, rig.events.now());
}

TEST_F(CopyEngineTest, SameRunGivesSameTimes) {
    map_both(4 << 20);
    const Completion first = rig.run_one(engine, copy(4 << 20));
    Rig other;
    other.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase, ORR_PTE_READ);
    other.map(kDst, 4 << 20, ORR_TARGET_VRAM, 0, ORR_PTE_WRITE);
    CopyEngine again(5, rates, other.context);
    EXPECT_EQ(other.run_one(again, copy(4 << 20)).end_ps, first.end_ps);
}

TEST_F(CopyEngineTest, GathersScatteredPages) {
    for (unsigned page = 0; page < 64; ++page) {
        const std::uint64_t from = std::uint64_t{63 - page} * 4096, to = std::uint64_t{page * 7 % 64} * 4096;
        rig.map(kSrc + page * 4096u, 4096, ORR_TARGET_HOST, Rig::kHostBase + from);
        rig.map(kDst + page * 4096u, 4096, ORR_TARGET_VRAM, to);
    }
    orr_desc_copy desc = copy(64 * 4096 - 200);
    desc.src += 100;
    desc.dst += 40;
    ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    for (std::uint64_t i = 0; i < desc.row_bytes; ++i) {
        const std::uint64_t s = 100 + i, d = 40 + i;
        ASSERT_EQ(rig.vram.data()[d / 4096 * 7 % 64 * 4096 + d % 4096],
                  rig.host_data[(63 - s / 4096) * 4096 + s % 4096])
            << i;
    }
}

TEST_F(CopyEngineTest, CopiesRows) {
    map_both(1 << 20);
    orr_desc_copy desc = copy(100);
    desc.rows = 1000;
    desc.src_pitch = 300;
    desc.dst_pitch = 128;
    ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    for (unsigned row = 0; row < 1000; ++row) {
        ASSERT_EQ(std::memcmp(rig.vram.data() + row * 128u, rig.host_data + row * 300u, 100), 0) << row;
        ASSERT_EQ(rig.vram.data()[row * 128u + 100], 0);
    }
}

TEST_F(CopyEngineTest, RefusesRowsThatWrap) {
    // A pitch is unsigned: what wraps is refused and not taken as negative.
    map_both(1 << 20);
    orr_desc_copy desc = copy(16);
    desc.rows = 2;
    desc.dst_pitch = ~0ull - 15;
    const Completion done = rig.run_one(engine, desc);
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.fault, ORR_FAULT_NON_CANONICAL);
}

TEST_F(CopyEngineTest, FillsWithEveryPatternSize) {
    rig.map(kDst, 1 << 20, ORR_TARGET_VRAM, 0);
    for (unsigned size : {1u, 2u, 4u, 8u}) {
        std::memset(rig.vram.data(), 0xee, 1 << 20);
        const std::uint64_t pattern = 0x1122334455667788;
        orr_desc_copy desc = fill(200'000, size, pattern);
        desc.dst += 8;
        desc.rows = 3;
        desc.dst_pitch = 200'003;  // rows that start anywhere
        ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
        for (unsigned row = 0; row < 3; ++row) {
            for (std::uint64_t i = 0; i < 200'000; ++i) {
                ASSERT_EQ(rig.vram.data()[8 + row * 200'003 + i], (pattern >> (i % size * 8) & 0xff)) << i;
            }
        }
        ASSERT_EQ(rig.vram.data()[7], 0xee);
        ASSERT_EQ(rig.vram.data()[8 + 200'000], 0xee);
    }
}

TEST_F(CopyEngineTest, ReportsTheFirstBadAddressAndKeepsWhatWasCopied) {
    map_both(64 << 10);
    rig.unmap(kDst + 0x5000);
    Completion done = rig.run_one(engine, copy(64 << 10));
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.fault, ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(done.detail, kDst + 0x5000);
    EXPECT_EQ(std::memcmp(rig.vram.data(), rig.host_data, 0x5000), 0);
    EXPECT_EQ(rig.vram.data()[0x5000], 0);

    rig.map(kDst + 0x5000, 4096, ORR_TARGET_VRAM, 0x5000, ORR_PTE_READ);
    done = rig.run_one(engine, copy(64 << 10));
    EXPECT_EQ(done.fault, ORR_FAULT_PERMISSION);
    EXPECT_EQ(done.detail, kDst + 0x5000);

    rig.map(kDst + 0x5000, 4096, ORR_TARGET_VRAM, 0x5000, ORR_PTE_WRITE);
    rig.map(kSrc + 0x3000, 4096, ORR_TARGET_HOST, 0x7000'0000'0000);
    done = rig.run_one(engine, copy(64 << 10));
    EXPECT_EQ(done.fault, ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(done.detail, kSrc + 0x3000);

    orr_desc_copy wrong = copy(16);
    wrong.asid = 2;
    EXPECT_EQ(rig.run_one(engine, wrong).fault, ORR_FAULT_NO_CONTEXT);
    wrong.asid = 0xffffffff;
    EXPECT_EQ(rig.run_one(engine, wrong).fault, ORR_FAULT_NO_CONTEXT);
    wrong = copy(16);
    wrong.src = 0xffff'ffff'ffff'fff0;
    EXPECT_EQ(rig.run_one(engine, wrong).fault, ORR_FAULT_NON_CANONICAL);
}

TEST_F(CopyEngineTest, RefusesBadDescriptors) {
    map_both(1 << 20);
    orr_desc_copy desc = copy(16);
    desc.op = ORR_DESC_KERNEL;
    expect_bad(desc);
    desc = copy(16);
    desc.op = 0;
    expect_bad(desc);
    desc = copy(16);
    desc.pattern = 1;
    expect_bad(desc);
    desc = copy(16);
    desc.rows = 0;
    expect_bad(desc);
    desc = copy(16);
    desc.pattern_bytes = 1;
    expect_bad(desc);
    desc = copy((1ull << 40) + 1);
    expect_bad(desc);
    desc = copy(1ull << 39);
    desc.rows = 0x8000'0000;
    expect_bad(desc);
    for (unsigned size : {0u, 3u, 16u, 0x8000u})
        expect_bad(fill(48, size, 1));
    expect_bad(fill(6, 4, 1));
    desc = fill(16, 4, 1);
    desc.dst += 2;
    expect_bad(desc);
    desc = fill(16, 4, 1);
    desc.src = 8;
    expect_bad(desc);
    desc = fill(16, 4, 1);
    desc.src_pitch = 8;
    expect_bad(desc);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 0u);
}

TEST_F(CopyEngineTest, CopiesNothingWhenAskedForNothing) {
    orr_desc_copy desc = copy(0);
    desc.rows = 0xffffffff;
    EXPECT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    EXPECT_LT(rig.events.fired(), 4u);
}

TEST_F(CopyEngineTest, IsBusyUntilItsCompletionAndTakesOneAtATime) {
    map_both(1 << 20);
    ASSERT_TRUE(engine.start(Rig::words_of(copy(1 << 20)), 1));
    EXPECT_TRUE(engine.busy());
    EXPECT_FALSE(engine.start(Rig::words_of(copy(16)), 2));
    bool restarted = false;
    rig.context.done = [&](const Completion& completion) {
        rig.done.push_back(completion);
        EXPECT_FALSE(engine.busy());
        if (!restarted) restarted = engine.start(Rig::words_of(copy(16)), 3);
    };
    rig.run();
    ASSERT_EQ(rig.done.size(), 2u);
    EXPECT_EQ(rig.done[0].tag, 1u);
    EXPECT_EQ(rig.done[1].tag, 3u);
    EXPECT_EQ(rig.done[1].start_ps, rig.done[0].end_ps);
}

TEST_F(CopyEngineTest, AbortStopsItBeforeTheNextChunk) {
    map_both(4 << 20);
    ASSERT_TRUE(engine.start(Rig::words_of(copy(4 << 20)), 1));
    rig.run(2);
    const std::uint64_t copied = rig.counters.get(ORR_CTR_COPY_BYTES);
    EXPECT_GT(copied, 0u);
    engine.abort();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), copied);
    engine.abort();  // idle: nothing
    EXPECT_EQ(rig.run(), 0u);
}

TEST_F(CopyEngineTest, ResetForgetsWithoutCompletion) {
    map_both(4 << 20);
    ASSERT_TRUE(engine.start(Rig::words_of(copy(4 << 20)), 1));
    rig.run(2);
    engine.reset();
    EXPECT_FALSE(engine.busy());
    rig.run();
    EXPECT_TRUE(rig.done.empty());
    EXPECT_EQ(rig.run_one(engine, copy(16)).status, ORR_DONE_OK);
}

TEST_F(CopyEngineTest, LetsGoOfHostMemoryThatGoes) {
    map_both(4 << 20);
    ASSERT_TRUE(engine.start(Rig::words_of(copy(4 << 20)), 1));
    rig.run(3);
    rig.mmu.flush_host();
    ASSERT_TRUE(rig.host.remove(Rig::kHostBase, 64 << 20).has_value());  // unmapped: a touch would crash
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_FAULT);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(rig.done[0].detail, kSrc + rig.counters.get(ORR_CTR_COPY_BYTES));
}

TEST_F(CopyEngineTest, WritesToThePeerInPiecesThatTheLinkTakes) {
    rig.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kDst, 4 << 20, ORR_TARGET_PEER, 0x100000, ORR_PTE_WRITE, 3);
    rig.peer.max_bytes = 10'000;
    const Completion done = rig.run_one(engine, copy(3 << 20));
    EXPECT_EQ(done.status, ORR_DONE_OK);
    EXPECT_EQ(std::memcmp(rig.peer.memory.data() + 0x100000, rig.host_data, 3 << 20), 0);
    EXPECT_GT(rig.peer.writes, 300u);
    EXPECT_GE(done.end_ps, (3u << 20) * 20u);
}

// A link without room parks the copy: no event of its own until there is room, so the card goes on with what
// else there is. Then the copy catches up.
TEST_F(CopyEngineTest, WaitingForCreditsCostsNoModelTime) {
    rig.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kDst, 4 << 20, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, 3);
    const ModelTime free_run = rig.run_one(engine, copy(3 << 20)).end_ps;

    Rig other;
    other.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    other.map(kDst, 4 << 20, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, 3);
    CopyEngine stalled(5, rates, other.context);
    ASSERT_TRUE(stalled.start(Rig::words_of(copy(3 << 20)), 77));
    unsigned ticks = 0;
    struct Clock {
        EventQueue& events;
        unsigned& ticks;
        Event event{[](void* self, ModelTime now) { static_cast<Clock*>(self)->tick(now); }, this};
        void tick(ModelTime now) {
            ++ticks;
            events.schedule(event, now + 5'000 * kPsPerNs);
        }
    } clock{.events = other.events, .ticks = ticks};
    for (int i = 0; i < 10'000 && other.done.empty(); ++i) {
        if (i < 60 && i % 3 == 0) other.peer.refusals = 1;
        // With nothing else to come the clock stands; else it goes on.
        if (i == 30) other.events.schedule(clock.event, other.events.now());
        if (other.peer.parked.empty()) {
            other.events.run_next(kNever - 1);
            continue;
        }
        EXPECT_EQ(other.events.size(), i < 30 ? 0u : 1u);
        other.events.run_next(kNever - 1);
        other.peer.let();
    }
    ASSERT_EQ(other.done.size(), 1u);
    EXPECT_GT(other.peer.waits, 5u);
    EXPECT_GT(ticks, 3u);
    EXPECT_LE(other.done[0].end_ps, free_run + 5'000 * kPsPerNs);
}

TEST_F(CopyEngineTest, DoesNotGoOnWithAnotherPeer) {
    rig.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kDst, 4 << 20, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, 3);
    ASSERT_TRUE(engine.start(Rig::words_of(copy(3 << 20)), 1));
    rig.run(4);
    EXPECT_GT(rig.peer.writes, 0u);
    ++rig.peer.sessions;  // the link went down, and somebody else came
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(rig.run_one(engine, copy(4096)).status, ORR_DONE_OK);
}

TEST_F(CopyEngineTest, GoesOnByNoOtherWay) {
    FakePeer other(rig.events, 8 << 20);
    rig.peers.attach(4, &other);
    rig.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kDst, 4 << 20, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, 3);
    ASSERT_TRUE(engine.start(Rig::words_of(copy(3 << 20)), 1));
    rig.run(4);
    EXPECT_TRUE(rig.peers.set_route(3, ORR_ROUTE_VALID | 4));
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(other.writes, 0u);
    EXPECT_EQ(rig.run_one(engine, copy(4096)).status, ORR_DONE_OK);
    EXPECT_GT(other.writes, 0u);
}

TEST_F(CopyEngineTest, ReportsWhatTheLinkSays) {
    rig.map(kSrc, 1 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kDst, 1 << 20, ORR_TARGET_PEER, 0, ORR_PTE_READ | ORR_PTE_WRITE, 3);
    rig.peer.fault = ORR_FAULT_PEER_DENIED;
    Completion done = rig.run_one(engine, copy(4096));
    EXPECT_EQ(done.fault, ORR_FAULT_PEER_DENIED);
    EXPECT_EQ(done.detail, kDst);
    rig.peer.fault = ORR_FAULT_PEER_DOWN;
    EXPECT_EQ(rig.run_one(engine, copy(4096)).fault, ORR_FAULT_PEER_DOWN);
    rig.map(kDst, 1 << 20, ORR_TARGET_PEER, 0, ORR_PTE_READ | ORR_PTE_WRITE, 6);
    EXPECT_EQ(rig.run_one(engine, copy(4096)).fault, ORR_FAULT_NO_ROUTE);
    EXPECT_TRUE(rig.peers.set_route(6, ORR_ROUTE_VALID | 5));
    EXPECT_EQ(rig.run_one(engine, copy(4096)).fault, ORR_FAULT_PEER_DOWN) << "no such port";
}

TEST_F(CopyEngineTest, APreemptedCopyGoesOnWhereItWas) {
    constexpr std::uint64_t kArea = 48 << 20;
    map_both(4 << 20);
    orr_desc_copy desc = copy(5000);
    desc.rows = 700;
    desc.src_pitch = 5123;
    desc.dst_pitch = 5003;
    CopyEngine other(6, rates, rig.context);
    EnginePort* ports[] = {&engine, &other};
    std::mt19937 random(7);
    unsigned preempted = 0;
    for (unsigned round = 0; round < 20; ++round) {
        std::memset(rig.vram.data(), 0, 4 << 20);
        rig.done.clear();
        unsigned at = 0;
        ASSERT_TRUE(engine.start(Rig::words_of(desc), round));
        for (;;) {
            rig.run(random() % 8);
            ASSERT_TRUE(ports[at]->preempt(Preempt::kNow, kArea));
            rig.run();
            ASSERT_EQ(rig.done.size(), 1u);
            const Completion done = rig.done[0];
            EXPECT_EQ(done.port, 5 + at);
            EXPECT_EQ(done.used_ps, done.end_ps - done.start_ps);
            rig.done.clear();
            if (done.status == ORR_DONE_OK) break;
            ASSERT_EQ(done.status, ORR_DONE_PREEMPTED);
            ++preempted;
            at = random() % 2;
            ASSERT_TRUE(ports[at]->resume(kArea, 1));
        }
        for (std::uint64_t row = 0; row < desc.rows; ++row) {
            ASSERT_EQ(std::memcmp(rig.vram.data() + row * 5003, rig.host_data + row * 5123, 5000), 0) << row;
        }
    }
    EXPECT_GT(preempted, 20u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_PREEMPTIONS), preempted);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_JOBS), 20u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 20u * 700 * 5000) << "no byte twice";
}

TEST_F(CopyEngineTest, PreemptionTakesLittleTime) {
    map_both(4 << 20);
    ASSERT_TRUE(engine.start(Rig::words_of(copy(4 << 20)), 1));
    rig.run(5);
    const ModelTime asked = rig.events.now();
    ASSERT_TRUE(engine.preempt(Preempt::kGroup, 48 << 20));
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(rig.done[0].detail, 4096u);
    EXPECT_LE(rig.done[0].end_ps - asked, 2'100 * kPsPerNs);
    EXPECT_GT(rig.done[0].end_ps, asked);
}

TEST_F(CopyEngineTest, ASavedFillKeepsItsPatternInStep) {
    rig.map(kDst, 4 << 20, ORR_TARGET_VRAM, 0, ORR_PTE_WRITE);
    ASSERT_TRUE(engine.start(Rig::words_of(fill(4 << 20, 8, 0x0102030405060708)), 1));
    unsigned preempted = 0;
    for (;;) {
        rig.run(2);
        ASSERT_TRUE(engine.preempt(Preempt::kNow, 48 << 20));
        rig.run();
        ASSERT_EQ(rig.done.size(), 1u);
        if (rig.done[0].status == ORR_DONE_OK) break;
        rig.done.clear();
        ++preempted;
        ASSERT_TRUE(engine.resume(48 << 20, 1));
    }
    EXPECT_GT(preempted, 2u);
    for (std::uint64_t i = 0; i < (4u << 20); i += 8)
        ASSERT_EQ(*reinterpret_cast<std::uint64_t*>(rig.vram.data() + i), 0x0102030405060708u) << i;
}

TEST_F(CopyEngineTest, ASaveAreaIsCheckedAndAbortEndsASave) {
    constexpr std::uint64_t kArea = 48 << 20;
    map_both(4 << 20);
    auto* header = reinterpret_cast<orr_save_header*>(rig.vram.data() + kArea);
    const auto save = [&] {
        rig.done.clear();
        ASSERT_TRUE(engine.start(Rig::words_of(copy(4 << 20)), 1));
        rig.run(3);
        ASSERT_TRUE(engine.preempt(Preempt::kNow, kArea));
    };
    const auto resume = [&] {
        rig.done.clear();
        EXPECT_TRUE(engine.resume(kArea, 2));
        rig.run();
        EXPECT_EQ(rig.done.size(), 1u);
        return rig.done.at(0).status;
    };
    save();
    engine.abort();
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
    EXPECT_EQ(resume(), ORR_DONE_BAD_DESC);
    save();
    rig.run();
    EXPECT_EQ(rig.done.at(0).status, ORR_DONE_PREEMPTED);
    const orr_save_header good = *header;
    const auto expect_refused = [&](const char* what) {
        EXPECT_EQ(resume(), ORR_DONE_BAD_DESC) << what;
        *header = good;
    };
    header->kind = ORR_ENGINE_VECTOR, expect_refused("kind");
    header->row = 1, expect_refused("row");
    header->column = 4 << 20, expect_refused("column");
    header->column = ~0ull, expect_refused("column far away");
    header->version = 1, expect_refused("version");
    header->groups = 1, expect_refused("groups of a copy");
    header->next_group = 1, expect_refused("a next group of a copy");
    header->descriptor[0] = 77, expect_refused("descriptor");
    header->descriptor[2] = ~0ull, expect_refused("a range that wraps");
    EXPECT_EQ(resume(), ORR_DONE_OK);
    EXPECT_EQ(std::memcmp(rig.vram.data(), rig.host_data, 4 << 20), 0);
    EXPECT_EQ(resume(), ORR_DONE_BAD_DESC) << "an area serves once";
    EXPECT_TRUE(engine.preempt(Preempt::kNow, 1)) << "idle: nothing to do, nothing wrong";
    ASSERT_TRUE(engine.start(Rig::words_of(copy(4 << 20)), 1));
    EXPECT_FALSE(engine.preempt(Preempt::kNow, kArea + 1));
    EXPECT_FALSE(engine.preempt(Preempt::kNow, rig.vram.size()));
    EXPECT_FALSE(engine.resume(kArea, 3)) << "busy";
}

TEST_F(CopyEngineTest, AbortEndsAWaitForCredits) {
    rig.map(kSrc, 1 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kDst, 1 << 20, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, 3);
    rig.peer.refusals = ~0u;
    ASSERT_TRUE(engine.start(Rig::words_of(copy(4096)), 1));
    EXPECT_EQ(rig.run(1000), 1u) << "it waits without events";
    EXPECT_EQ(rig.peer.parked.size(), 1u);
    engine.abort();
    EXPECT_TRUE(rig.peer.parked.empty());
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
}

TEST_F(CopyEngineTest, PreemptionEndsAWaitForCredits) {
    rig.map(kSrc, 1 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kDst, 1 << 20, ORR_TARGET_PEER, 0, ORR_PTE_WRITE, 3);
    rig.peer.refusals = ~0u;
    ASSERT_TRUE(engine.start(Rig::words_of(copy(4096)), 1));
    rig.run();
    ASSERT_TRUE(engine.preempt(Preempt::kNow, 32 << 20));
    EXPECT_TRUE(rig.peer.parked.empty());
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_PREEMPTED);
    rig.peer.refusals = 0;
    ASSERT_TRUE(engine.resume(32 << 20, 2));
    rig.run();
    EXPECT_EQ(rig.done.back().status, ORR_DONE_OK);
}

}  // namespace
}  // namespace orrery::emu::test
