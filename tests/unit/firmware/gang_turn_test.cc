// Who goes first when gangs and other work want the same ports: by class and by what tenants have had; who
// waits for that neither fails nor pays.
#include <algorithm>

#include "tests/unit/firmware/trace_reader.h"
#include "tests/unit/firmware/two_cards.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint64_t kLongLimitUs = 100'000'000;

// Two cards, on which a gang of the first user's wants both.
class GangsTurn : public TwoCards {
  protected:
    ProcessQueue make(std::uint32_t card, std::uint32_t number, std::uint32_t context,
                      std::uint64_t limit_us = kLongLimitUs, std::uint64_t level = ORR_PRIORITY_NORMAL) {
        ProcessQueue queue = cards[card]->create_queue(number, context, 16, limit_us);
        if (level != ORR_PRIORITY_NORMAL) {
            EXPECT_EQ(cards[card]->call(ORR_MBOX_QUEUE_SET, {number, level, 0}).status, ORR_STATUS_OK);
        }
        return queue;
    }
    // All its groups have cores.
    void fill_cores(std::uint32_t card, std::uint64_t groups = 8) {
        for (const std::uint32_t port : cards[card]->soc.busy_ports())
            cards[card]->soc.engines[port].active = groups;
    }
    void launch(ProcessQueue (&queues)[2], std::uint64_t round, std::uint32_t groups = 8) {
        for (std::uint16_t c = 0; c < 2; ++c)
            cards[c]->submit(queues[c], {gang(1, round, c, 2), resident(groups)});
        deliver();
    }
    void pass(std::uint64_t ms) {
        for (std::uint64_t n = 0; n < ms; ++n) {
            for (const std::uint32_t c : {0u, 1u})
                pass_time(c, 1'000);
            deliver();
        }
    }
    bool runs(std::uint32_t card, std::uint64_t entry) const {
        FakeSoc& soc = cards[card]->soc;
        return std::ranges::any_of(soc.busy_ports(), [&](std::uint32_t port) {
            return soc.engines[port].as<orr_desc_kernel>().entry == entry;
        });
    }
    // It neither failed nor has to wait for having waited.
    void expect_starts(std::uint32_t number) {
        pass(2);
        for (const std::uint32_t c : {0u, 1u}) {
            EXPECT_EQ(cards[c]->status(number).error, ORR_QERR_NONE) << "card " << c;
            EXPECT_TRUE(runs(c, 0x1000)) << "card " << c;
        }
    }
};

// Longer than ports are ever held, and other work goes on meanwhile.
TEST_F(GangsTurn, AnothersGangOnOneCardIsWaitedFor) {
    ProcessQueue in_the_way = make(1, 21, 2);
    cards[1]->submit(in_the_way, {gang(1, 1, 0, 1, kBoard + 0x200), resident(8, 0x9000)});
    fill_cores(1);
    ProcessQueue own[] = {make(0, 20, 1), make(1, 20, 1)};
    launch(own, 1);
    cards[0]->submit(queues[0][2], {dispatch(0x9000)});
    EXPECT_TRUE(runs(0, 0x9000)) << "nothing is held";
    finish(0);
    pass(300);
    EXPECT_FALSE(runs(0, 0x1000) || runs(1, 0x1000));
    finish(1);
    expect_starts(20);
}

// Whether it was there first, or came when this card had been locked.
TEST_F(GangsTurn, RealtimeOnOneCardIsWaitedFor) {
    for (const bool first : {true, false}) {
        const std::uint32_t number = first ? 20 : 30;
        ProcessQueue realtime = make(0, number + 1, 2, kLongLimitUs, ORR_PRIORITY_REALTIME);
        const auto come = [&] {
            cards[0]->submit(realtime, {dispatch(0x9000)});
            EXPECT_TRUE(runs(0, 0x9000));
            fill_cores(0);
        };
        ProcessQueue own[] = {make(0, number, 1), make(1, number, 1)};
        const std::uint64_t round = first ? 1 : 2;
        if (first) come();
        cards[1]->submit(own[1], {gang(1, round, 1, 2), resident(8)});
        deliver();
        // Card 0 locks, and hears of the other's lock a little later.
        cards[0]->submit(own[0], {gang(1, round, 0, 2), resident(8)});
        if (!first) come();
        deliver();
        pass(300);
        EXPECT_FALSE(runs(0, 0x1000) || runs(1, 0x1000));
        cards[1]->submit(queues[1][2], {dispatch(0x9000)});
        EXPECT_TRUE(runs(1, 0x9000)) << "nothing is held";
        finish(1);
        finish(0);
        expect_starts(number);
        finish(0);
        finish(1);
    }
}

// HIGH, which nobody needs a privilege for, goes first as long as a class may starve: of another user's, who
// is beyond his share sooner, and of one's own.
TEST_F(GangsTurn, HighGoesFirstForTheBoundOnly) {
    for (const std::uint32_t context : {2u, 1u}) {
        const std::uint32_t number = 20 * context;
        ProcessQueue high = make(1, number + 1, context, kLongLimitUs, ORR_PRIORITY_HIGH);
        cards[1]->submit(high, {dispatch(0x9000)});
        fill_cores(1);
        ProcessQueue own[] = {make(0, number, 1), make(1, number, 1)};
        launch(own, 3 - context);
        pass(3);
        EXPECT_TRUE(runs(1, 0x9000)) << "it has its slice at least";
        EXPECT_FALSE(runs(0, 0x1000));
        cards[0]->submit(queues[0][2], {dispatch(0x9000)});
        EXPECT_TRUE(runs(0, 0x9000)) << "nothing is held";
        finish(0);
        pass(4);
        expect_starts(number);
        finish(0);
        finish(1);
        finish(1);
        EXPECT_EQ(cards[1]->status(number + 1).completed, 1u);
    }
}

// A gang that is locked on one card, and waits for another, lets others have the card after a while, and
// starts itself when it can.
TEST_F(GangsTurn, WhoWaitsForAPeerLetsOthersHaveTheCard) {
    ProcessQueue in_the_way = make(1, 21, 2);
    cards[1]->submit(in_the_way, {gang(1, 1, 0, 1, kBoard + 0x200), resident(8, 0x9000)});
    fill_cores(1);
    ProcessQueue own[] = {make(0, 20, 1), make(1, 20, 1)};
    launch(own, 1);
    ProcessQueue other = make(0, 22, 2);
    for (std::uint64_t round = 1; round <= 20; ++round) {
        cards[0]->submit(other, {gang(1, round, 0, 1, kBoard + 0x200), resident(8, 0xa000)});
        for (int ms = 0; !runs(0, 0xa000); ++ms) {
            ASSERT_LE(ms, 200) << "round " << round;
            pass(1);
        }
        finish(0);
        EXPECT_EQ(cards[0]->status(22).completed, 2 * round);
    }
    EXPECT_EQ(cards[0]->status(20).error | cards[1]->status(20).error, ORR_QERR_NONE);
    finish(1);
    const auto from = cards[0]->soc.time;
    while (!runs(0, 0x1000) && cards[0]->soc.time < from + 5'000'000'000'000)
        pass(1);
    EXPECT_LT(cards[0]->soc.time - from, kGangPause * kGangCrossHoldPs) << "as long as it may pause";
    expect_starts(20);
}

// No wait is without an end, and each card says what was in the way, and on which.
TEST_F(GangsTurn, WhatNeverEndsIsWaitedForSixteenLimits) {
    ProcessQueue realtime = make(1, 21, 2, kLongLimitUs, ORR_PRIORITY_REALTIME);
    cards[1]->submit(realtime, {dispatch(0x9000)});
    fill_cores(1);
    ProcessQueue own[] = {make(0, 20, 1, 10'000), make(1, 20, 1, 10'000)};
    launch(own, 1);
    pass(10 * ORR_GANG_LIMITS - 2);
    EXPECT_EQ(cards[0]->status(20).error | cards[1]->status(20).error, ORR_QERR_NONE);
    pass(4);
    for (const std::uint32_t c : {0u, 1u}) {
        EXPECT_EQ(cards[c]->status(20).error, ORR_QERR_GANG) << "card " << c;
        EXPECT_EQ(cards[c]->status(20).error_detail >> 32, 1u) << "card 1 lacks";
        EXPECT_NE(cards[c]->status(20).error_detail & ORR_GANG_PRECEDED, 0u) << "card " << c;
    }
    finish(1);
    // It is as if nothing had been: the next one does not pause.
    ProcessQueue next[] = {make(0, 30, 1), make(1, 30, 1)};
    cards[0]->submit(queues[0][2], {dispatch(0x9000)});
    launch(next, 2);
    expect_starts(30);
}

// A board on which a card says that it begins anew, again and again.
TEST_F(GangsTurn, AttemptsEnd) {
    Bench& card = *cards[0];
    ProcessQueue own = make(0, 20, 1);
    constexpr std::uint64_t kLast = ORR_GANG_ROUND / 8 - 2;
    card.set_shared(0x1000 + 16, said(1, 1, kLast));
    card.submit(own, {gang(1, 1, 0, 2), resident(8)});
    EXPECT_EQ(card.soc.busy_ports().size(), 0u);
    ProcessQueue other = make(0, 21, 2);
    card.submit(other, {gang(1, 1, 0, 1, kBoard + 0x400), resident(2)});
    pass(110);
    EXPECT_EQ(card.status(20).error, ORR_QERR_GANG) << "there is no further attempt";
    EXPECT_EQ(busy(0), 1u);
    finish(0);
}

// One card: the first user's gangs follow each other without a gap, beside another tenant's kernels.
class GangsInARow : public testing::TestWithParam<bool> {
  protected:
    static constexpr std::uint64_t kStepPs = 50'000'000;
    void SetUp() override {
        give_areas(bench);
        ASSERT_TRUE(bench.boot());
        const bool of_one_user = GetParam();
        bench.create_context(1, 0, 1, 1);
        bench.create_context(2, 1, of_one_user ? 1 : 2, 2);
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
    }
    static bool is_gang(const FakeSoc::Engine& engine) {
        return engine.as<orr_desc_kernel>().entry == 0x1000;
    }
    // A step in which one dispatch has all cores, a gang first. What has had its time ends.
    void step(std::uint64_t gang_ps, std::uint64_t kernel_ps) {
        bench.soc.time += kStepPs;
        const auto ports = bench.soc.busy_ports();
        FakeSoc::Engine* runs = nullptr;
        std::uint32_t at = 0;
        for (const std::uint32_t port : ports) {
            auto& engine = bench.soc.engines[port];
            if (engine.used == kEmpty) engine.used = 0;
            engine.active = 0;
            if (runs != nullptr && !is_gang(engine)) continue;
            runs = &engine;
            at = port;
        }
        if (runs != nullptr) {
            const bool gang = is_gang(*runs);
            runs->active = 8;
            runs->used += 8 * kStepPs;
            worked[gang ? 0 : 1] += kStepPs;
            if (runs->used >= 8 * (gang ? gang_ps : kernel_ps)) bench.soc.finish(at);
        }
        bench.run();
        while (bench.soc.timer <= bench.soc.time)
            bench.run();
    }
    Bench bench{chip()};
    std::uint64_t worked[2] = {};  // of gangs, of others
};

TEST_P(GangsInARow, LeaveOthersTheirShare) {
    ProcessQueue own[] = {bench.create_queue(20, 1, 16, kLongLimitUs),
                          bench.create_queue(21, 1, 16, kLongLimitUs)};
    ProcessQueue other = bench.create_queue(22, 2, 16, kLongLimitUs);
    const std::uint64_t begin = bench.soc.time;
    std::uint64_t round = 0, given[2] = {}, kernels = 0;
    while (bench.soc.time < begin + 1'000'000'000'000) {
        for (std::uint32_t n = 0; n < 2; ++n) {
            if (bench.status(20 + n).completed < 2 * given[n]) continue;
            ++given[n];
            bench.submit(own[n], {gang(1, ++round), resident(8)});
        }
        for (; kernels < bench.status(22).completed + 3; ++kernels)
            bench.submit(other, {dispatch(0x9000)});
        step(10'000'000'000, 100'000'000);
    }
    const std::uint64_t passed = bench.soc.time - begin;
    EXPECT_GT(worked[0], passed * 4 / 10);
    EXPECT_GT(worked[1], passed * 4 / 10);
    EXPECT_EQ(bench.status(20).error | bench.status(21).error, ORR_QERR_NONE);
}

// A kernel of one core is never as much as a gang of all: others have half of the time, not of the cores.
TEST_P(GangsInARow, DoNotWaitLongerThanTheyRan) {
    ProcessQueue own[] = {bench.create_queue(20, 1, 16, kLongLimitUs),
                          bench.create_queue(21, 1, 16, kLongLimitUs)};
    ProcessQueue other = bench.create_queue(22, 2, 16, kLongLimitUs);
    bench.submit(other, {dispatch(0x9000)});
    const std::uint64_t begin = bench.soc.time;
    std::uint64_t round = 0, given[2] = {}, ran = 0;
    while (bench.soc.time < begin + 400'000'000'000) {
        for (std::uint32_t n = 0; n < 2; ++n) {
            if (bench.status(20 + n).completed < 2 * given[n]) continue;
            ++given[n];
            bench.submit(own[n], {gang(1, ++round), resident(8)});
        }
        bench.soc.time += kStepPs;
        bool gangs = false;
        for (const std::uint32_t port : bench.soc.busy_ports()) {
            auto& engine = bench.soc.engines[port];
            if (engine.used == kEmpty) engine.used = 0;
            const bool gang = is_gang(engine);
            gangs |= gang;
            engine.active = gang ? 8 : 1;
            engine.used += (gang ? 8 : 1) * kStepPs;
            if (gang && engine.used >= 8 * 10'000'000'000ull) bench.soc.finish(port);
        }
        if (gangs) ran += kStepPs;
        bench.run();
        while (bench.soc.timer <= bench.soc.time)
            bench.run();
    }
    EXPECT_GT(ran, (bench.soc.time - begin) * 4 / 10);
}

// A gang of a short limit does not wait long; what it was let off, the next one waits for.
TEST_P(GangsInARow, AShortLimitSavesNothing) {
    ProcessQueue whole = bench.create_queue(20, 1, 16, kLongLimitUs);
    ProcessQueue small = bench.create_queue(21, 1, 16, 100);
    ProcessQueue other = bench.create_queue(22, 2, 16, kLongLimitUs);
    const std::uint64_t begin = bench.soc.time;
    std::uint64_t round = 0, given = 0, kernels = 0;
    while (bench.soc.time < begin + 1'000'000'000'000) {
        if (bench.status(20).completed == 2 * given && bench.status(21).completed == 2 * given) {
            ++given;
            bench.submit(small, {gang(1, ++round), resident(8, 0x1000)});
            bench.submit(whole, {gang(1, ++round), resident(8, 0x1000)});
        }
        for (; kernels < bench.status(22).completed + 3; ++kernels)
            bench.submit(other, {dispatch(0x9000)});
        const auto ports = bench.soc.busy_ports();
        const bool is_small = std::ranges::any_of(ports, [&](std::uint32_t port) {
            const auto& engine = bench.soc.engines[port];
            return engine.as<orr_desc_kernel>().entry == 0x1000 && bench.status(21).completed < 2 * given;
        });
        step(is_small ? kStepPs : 10'000'000'000, 100'000'000);
    }
    EXPECT_GT(worked[1], (bench.soc.time - begin) * 4 / 10);
}

INSTANTIATE_TEST_SUITE_P(Of, GangsInARow, testing::Values(false, true),
                         [](const auto& of) { return of.param ? "TwoProcesses" : "TwoUsers"; });

// Of two gangs that wait, the one whose user has had less goes first, whoever came first.
TEST_F(GangsTurn, TheGangOfWhoHasHadLessGoesFirst) {
    Bench& card = *cards[0];
    ProcessQueue a[] = {make(0, 20, 1), make(0, 21, 1)};
    ProcessQueue b = make(0, 22, 2);
    card.submit(a[0], {gang(1, 1, 0, 1, kBoard), resident(8)});
    ASSERT_TRUE(runs(0, 0x1000));
    fill_cores(0);
    card.submit(a[1], {gang(1, 1, 0, 1, kBoard + 0x200), resident(8, 0x2000)});
    card.submit(b, {gang(1, 1, 0, 1, kBoard + 0x400), resident(8, 0x3000)});
    card.soc.time += 10'000'000'000;
    for (const std::uint32_t port : card.soc.busy_ports())
        card.soc.engines[port].used = 8ull * 10'000'000'000;
    finish(0);
    EXPECT_TRUE(runs(0, 0x3000));
    EXPECT_FALSE(runs(0, 0x2000));
    fill_cores(0);
    finish(0);
    pass(20);
    EXPECT_TRUE(runs(0, 0x2000));
    finish(0);
}

}  // namespace
}  // namespace orrery::fw::test
