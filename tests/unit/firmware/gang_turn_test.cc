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
    explicit GangsTurn(bool areas = true) : TwoCards(areas) {}
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

class GangsTurnWithoutAreas : public GangsTurn {
  protected:
    GangsTurnWithoutAreas() : GangsTurn(false) {}
};

// One that cannot be preempted. Longer than ports are ever held, and other work goes on meanwhile.
TEST_F(GangsTurnWithoutAreas, AnothersGangOnOneCardIsWaitedFor) {
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
    // The last attempt that there is, and what only a lie can be.
    for (const std::uint64_t last : {ORR_GANG_ROUND / 8 - 2, ORR_GANG_ROUND / 8 - 1}) {
        const auto round = last - ORR_GANG_ROUND / 8 + 3;
        // Of another user each time, who does not pause.
        const auto user = static_cast<std::uint32_t>(round);
        const std::uint32_t number = 20 * user;
        ProcessQueue own = make(0, number, user);
        card.set_shared(0x1000 + 16, said(round, 1, last));
        card.submit(own, {gang(1, round, 0, 2), resident(8)});
        EXPECT_EQ(card.soc.busy_ports().size(), 0u);
        ProcessQueue other = make(0, number + 1, 3 - user);
        card.submit(other, {gang(1, round, 0, 1, kBoard + 0x400), resident(2)});
        for (int ms = 0; ms < 110; ++ms)
            pass_time(0, 1'000);
        EXPECT_EQ(card.status(number).error, ORR_QERR_GANG) << "there is no further attempt";
        EXPECT_EQ(busy(0), 1u);
        finish(0);
        for (const Flight& flight : flights)
            EXPECT_LT(flight.value, (round + 1) * ORR_GANG_ROUND) << "nothing of the next round";
        flights.clear();
    }
}

// Whatever anybody does meanwhile, a gang that lets others go first is looked at every millisecond.
TEST_F(GangsTurn, ALookIsNotPutOff) {
    Bench& card = *cards[0];
    ProcessQueue high = make(0, 21, 2, kLongLimitUs, ORR_PRIORITY_HIGH);
    card.submit(high, {dispatch(0x9000)});
    fill_cores(0);
    ProcessQueue own = make(0, 20, 1);
    card.submit(own, {gang(1, 1, 0, 1), resident(8)});
    std::uint64_t halves = 0;
    for (; halves < 100 && !runs(0, 0x1000); ++halves) {
        // A gang that is never complete comes and goes.
        ProcessQueue churn = make(0, 23, 2);
        card.submit(churn, {gang(2, halves + 1, 0, 1, kBoard + 0x400)});
        EXPECT_EQ(card.call(ORR_MBOX_QUEUE_DESTROY, {23}).status, ORR_STATUS_OK);
        pass_time(0, 500);
    }
    EXPECT_LE(halves, 14u) << "the bound is 5 ms";
    for (int n = 0; n < 2; ++n)
        finish(0);
}

// When a peer begins a further attempt, this card pays for the turn that it had, not for one of that attempt.
TEST_F(GangsTurn, WhoFollowsPaysForTheTurnThatItHad) {
    Bench& card = *cards[0];
    for (const std::uint64_t attempts : {1u, 5u}) {
        const auto number = static_cast<std::uint32_t>(20 * attempts);
        ProcessQueue own = make(0, number, 1);
        card.set_shared(0x1000 + 16, said(attempts, 1));
        card.submit(own, {gang(1, attempts, 0, 2), resident(8)});
        ProcessQueue other = make(0, number + 1, 2);
        card.submit(other, {gang(1, attempts, 0, 1, kBoard + 0x400), resident(2, 0xa000)});
        EXPECT_FALSE(runs(0, 0xa000)) << "the card is locked";
        pass_time(0, 100);
        card.set_shared(0x1000 + 16, said(attempts, 1, attempts));
        card.soc.poke(kBoardPage + 16);
        card.run();
        EXPECT_TRUE(runs(0, 0xa000));
        finish(0);
        card.set_shared(0x1000 + 16, said(attempts, 3, attempts));
        card.soc.poke(kBoardPage + 16);
        card.run();
        pass_time(0, 2'000);
        EXPECT_TRUE(runs(0, 0x1000)) << "0.1 ms are less than what is for nothing; attempts " << attempts;
        finish(0);
        flights.clear();
    }
}

// Who waits for the lock behind a gang that runs here, and is not preempted, could not start: nobody gives up
// the lock for him, until he could.
TEST_F(GangsTurnWithoutAreas, TheLockIsNotGivenUpForWhoCouldNotHaveIt) {
    Bench& card = *cards[0];
    ProcessQueue small = make(0, 21, 2);
    card.submit(small, {gang(1, 1, 0, 1, kBoard + 0x400), resident(1, 0xa000)});
    fill_cores(0, 1);
    ProcessQueue own = make(0, 20, 1);
    card.set_shared(0x1000 + 16, said(1, 1));
    card.submit(own, {gang(1, 1, 0, 2), resident(4)});
    ProcessQueue whole = make(0, 22, 2);
    card.submit(whole, {gang(1, 2, 0, 1, kBoard + 0x600), resident(8, 0xb000)});
    pass_time(0, 300'000);
    for (const Flight& flight : flights)
        EXPECT_LT(flight.value, said(1, 0, 1)) << "there is no further attempt";
    finish(0);
    EXPECT_FALSE(runs(0, 0xb000));
    pass_time(0, 2'000);
    EXPECT_TRUE(runs(0, 0xb000));
    finish(0);
    flights.clear();
}

// Limits whose seventeenfold is more than 64 bits hold.
TEST_F(GangsTurn, ALimitOfMonthsIsLong) {
    ProcessQueue own = make(0, 20, 1, ~std::uint64_t{0} / 17 / 1'000'000 + 10);
    cards[0]->set_shared(0x1000 + 16, said(1, 1));
    cards[0]->submit(own, {gang(1, 1, 0, 2), resident(8)});
    pass_time(0, 2'000'000);
    EXPECT_EQ(cards[0]->status(20).error, ORR_QERR_NONE);
    EXPECT_EQ(cards[0]->call(ORR_MBOX_QUEUE_DESTROY, {20}).status, ORR_STATUS_OK);
    flights.clear();
}

// Of three cards: 2 was late, and 0 has followed it before 1 looks.
TEST_F(GangsTurn, TheCardThatWasLateIsNamed) {
    Bench& card = *cards[0];
    ProcessQueue own = make(0, 20, 1);
    card.set_shared(0x1000, said(1, ORR_GANG_ROUND - 1));
    card.set_shared(0x1000 + 32, said(1, ORR_GANG_ROUND - 2));
    card.set_shared(0x2000, kPeerVa);
    card.set_shared(0x2010, kPeerVa + 0x200);
    card.submit(own, {gang(1, 1, 1, 3), resident(8)});
    EXPECT_EQ(card.status(20).error, ORR_QERR_GANG);
    EXPECT_EQ(card.status(20).error_detail, 2ull << 32 | ORR_GANG_PRECEDED);
    flights.clear();
}

// A kernel that cannot be preempted, as there are no save areas, does not go first: it has not made room.
TEST_F(GangsTurn, WhatMakesNoRoomDoesNotGoFirst) {
    Bench bare{chip()};
    ASSERT_TRUE(bare.boot());
    for (const std::uint32_t context : {1u, 2u})
        bare.create_context(context, context, context);
    bare.soc.map_peer(1, kPeerVa, [](std::uint64_t, std::uint64_t) {});
    bare.set_shared(0x2008, kPeerVa);
    ProcessQueue other = bare.create_queue(21, 2, 16, kLongLimitUs);
    bare.submit(other, {dispatch(0x9000)});
    for (const std::uint32_t port : bare.soc.busy_ports())
        bare.soc.engines[port].active = 8;
    ProcessQueue own = bare.create_queue(20, 1, 16, kLongLimitUs);
    bare.set_shared(0x1000 + 16, said(1, 3));
    bare.submit(own, {gang(1, 1, 0, 2), resident(8)});
    const std::uint64_t until = bare.soc.time + 2 * kGangCrossHoldPs;
    while (bare.soc.timer <= until) {
        bare.soc.time = std::max(bare.soc.time, bare.soc.timer);
        bare.run();
    }
    EXPECT_EQ(bare.status(20).error, ORR_QERR_GANG);
    EXPECT_EQ(bare.status(20).error_detail, 1u) << "this card lacked, and nothing went first";
    for (const std::uint32_t port : bare.soc.busy_ports())
        bare.soc.finish(port);
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
    // Two queues of the first user's, each with a gang of all cores whenever the one before has ended.
    struct Row {
        explicit Row(Bench& bench)
            : bench(bench),
              queue{bench.create_queue(20, 1, 16, kLongLimitUs),
                    bench.create_queue(21, 1, 16, kLongLimitUs)} {}
        void go_on() {
            for (std::uint32_t n = 0; n < 2; ++n) {
                if (bench.status(20 + n).completed < 2 * given[n]) continue;
                ++given[n];
                bench.submit(queue[n], {gang(1, ++round), resident(8)});
            }
        }
        Bench& bench;
        ProcessQueue queue[2];
        std::uint64_t round = 0, given[2] = {};
    };
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
    Row row(bench);
    ProcessQueue other = bench.create_queue(22, 2, 16, kLongLimitUs);
    const std::uint64_t begin = bench.soc.time;
    std::uint64_t kernels = 0;
    while (bench.soc.time < begin + 1'000'000'000'000) {
        row.go_on();
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
    Row row(bench);
    ProcessQueue other = bench.create_queue(22, 2, 16, kLongLimitUs);
    bench.submit(other, {dispatch(0x9000)});
    const std::uint64_t begin = bench.soc.time;
    std::uint64_t ran = 0;
    while (bench.soc.time < begin + 400'000'000'000) {
        row.go_on();
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
