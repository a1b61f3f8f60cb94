// Gangs that have started, and leave for others as a whole.
#include <algorithm>

#include <orrery/fw/failure.h>

#include "tests/unit/firmware/trace_reader.h"
#include "tests/unit/firmware/two_cards.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint64_t kLongUs = 100'000'000;
// What a gang of 0x1000 is beside: another user's, on one card, of all its cores.
constexpr std::uint64_t kOther = 0xa000;

class GangsLeave : public TwoCards {
  protected:
    explicit GangsLeave(bool areas = true) : TwoCards(areas) {}
    ProcessQueue make(std::uint32_t card, std::uint32_t number, std::uint32_t context,
                      std::uint64_t limit_us = kLongUs) {
        return cards[card]->create_queue(number, context, 16, limit_us);
    }
    // What runs has had all cores since it started.
    void work(std::uint32_t card) {
        FakeSoc& soc = cards[card]->soc;
        for (const std::uint32_t port : soc.busy_ports()) {
            auto& engine = soc.engines[port];
            engine.active =
                engine.as<orr_desc_kernel>().entry == 0x9000 ? 8 : engine.as<orr_desc_kernel>().grid_x;
            engine.used = engine.active * (soc.time - engine.start_ps);
        }
    }
    void pass(std::uint64_t ms) {
        for (std::uint64_t n = 0; n < ms; ++n) {
            for (const std::uint32_t c : {0u, 1u}) {
                work(c);
                pass_time(c, 1'000);
            }
            deliver();
        }
    }
    // For so many ms of card 0 alone, if the other user's kernels do not run there before.
    void await_other(int most_ms) {
        for (int ms = 0; ms < most_ms && running_of(0, kOther) == 0; ++ms) {
            work(0);
            pass_time(0, 1'000);
        }
    }
    // Queue 20 has a gang on that card, which makes room for the other user.
    void expect_short_slice() {
        launch_other(0);
        await_other(10);
        EXPECT_EQ(running_of(0, kOther), 1u);
        EXPECT_EQ(cards[0]->call(ORR_MBOX_QUEUE_DESTROY, {20}).status, ORR_STATUS_OK);
        finish(0);
        flights.clear();
    }
    std::size_t running_of(std::uint32_t card, std::uint64_t entry) const {
        FakeSoc& soc = cards[card]->soc;
        return static_cast<std::size_t>(std::ranges::count_if(soc.busy_ports(), [&](std::uint32_t port) {
            return soc.engines[port].as<orr_desc_kernel>().entry == entry;
        }));
    }
    void finish_of(std::uint32_t card, std::uint64_t entry) {
        FakeSoc& soc = cards[card]->soc;
        work(card);
        for (const std::uint32_t port : soc.busy_ports()) {
            if (soc.engines[port].as<orr_desc_kernel>().entry == entry) soc.finish(port);
        }
        cards[card]->run();
    }
    // Over both cards, of the first user.
    void launch(std::uint32_t number = 20, std::uint64_t limit_us = kLongUs) {
        for (std::uint16_t c = 0; c < 2; ++c) {
            own.push_back(make(c, number, 1, limit_us));
            cards[c]->submit(own.back(), {gang(1, 1, c, 2), resident(8), nop()});
        }
        deliver();
        ASSERT_EQ(running_of(0, 0x1000) + running_of(1, 0x1000), 2u);
    }
    void launch_other(std::uint32_t card, std::uint32_t number = 30) {
        ProcessQueue other = make(card, number, 2);
        cards[card]->submit(other, {gang(1, number, 0, 1, kBoard + 0x400), resident(8, kOther)});
    }
    // Until the other one has the card, and the first has left both.
    void expect_left() {
        for (int ms = 0; ms < 20 && running_of(0, kOther) == 0; ++ms)
            pass(1);
        EXPECT_EQ(running_of(0, kOther), 1u);
        EXPECT_EQ(running_of(0, 0x1000) + running_of(1, 0x1000), 0u);
    }
    void SetUpAgain() {
        cards.clear();
        own.clear();
        for (auto& of_card : queues)
            of_card.clear();
        TwoCards::SetUp();
    }
    std::vector<ProcessQueue> own;
};

TEST_F(GangsLeave, BothCardsAndResumeOnBoth) {
    launch();
    pass(3);
    launch_other(0);
    EXPECT_EQ(running_of(0, 0x1000), 1u) << "it has a slice";
    expect_left();
    // What it left on the other card is not kept idle.
    cards[1]->submit(queues[1][2], {dispatch(0x9000)});
    EXPECT_EQ(running_of(1, 0x9000), 1u);
    finish_of(1, 0x9000);
    finish_of(0, kOther);
    for (int ms = 0; ms < 30 && running_of(0, 0x1000) == 0; ++ms)
        pass(1);
    EXPECT_EQ(running_of(0, 0x1000), 1u);
    EXPECT_EQ(running_of(1, 0x1000), 1u);
    for (const std::uint32_t c : {0u, 1u}) {
        for (const std::uint32_t port : cards[c]->soc.busy_ports())
            EXPECT_TRUE(cards[c]->soc.engines[port].resumed);
        finish(c);
    }
    deliver();
    for (const std::uint32_t c : {0u, 1u})
        EXPECT_EQ(cards[c]->status(20).completed, 3u);
    EXPECT_EQ(cards[0]->status(30).completed, 2u);
}

TEST_F(GangsLeave, APartThatHasEndedIsNotWaitedFor) {
    launch();
    finish_of(1, 0x1000);
    deliver();
    launch_other(0);
    expect_left();
    finish_of(0, kOther);
    for (int ms = 0; ms < 30 && running_of(0, 0x1000) == 0; ++ms)
        pass(1);
    EXPECT_EQ(running_of(0, 0x1000), 1u);
    EXPECT_EQ(running_of(1, 0x1000), 0u);
    finish(0);
    EXPECT_EQ(cards[0]->status(20).completed, 3u);
}

// It ends while the other card asks it to leave.
TEST_F(GangsLeave, APartThatEndsMeanwhileIsNotWaitedFor) {
    launch();
    launch_other(0);
    for (int ms = 0; ms < 20 && running_of(0, 0x1000) != 0; ++ms) {
        work(0);
        pass_time(0, 1'000);
    }
    ASSERT_EQ(running_of(0, kOther), 1u);
    finish_of(1, 0x1000);
    deliver();
    finish_of(0, kOther);
    for (int ms = 0; ms < 30 && running_of(0, 0x1000) == 0; ++ms)
        pass(1);
    EXPECT_EQ(running_of(0, 0x1000), 1u);
    finish(0);
}

// Whose queue goes, or stops, ends the others with the cause: also in the middle of a resume.
TEST_F(GangsLeave, OneThatGoesEndsTheOthersAtOnce) {
    launch();
    launch_other(0);
    expect_left();
    EXPECT_EQ(cards[1]->call(ORR_MBOX_QUEUE_DESTROY, {20}).status, ORR_STATUS_OK);
    deliver();
    EXPECT_EQ(cards[0]->status(20).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[0]->status(20).error_index, 1u) << "its dispatch";
    EXPECT_EQ(cards[0]->status(20).error_detail, 1ull << 32 | ORR_GANG_STARTED) << "card 1";
    finish(0);
    EXPECT_EQ(cards[0]->status(30).completed, 2u);
}

TEST_F(GangsLeave, OneThatGoesEndsItsNeighbours) {
    Bench& card = *cards[0];
    ProcessQueue a = make(0, 20, 1), b = make(0, 21, 1);
    card.submit(a, {gang(2, 1, 0, 1), resident(4)});
    card.submit(b, {gang(2, 1, 0, 1), resident(4)});
    ASSERT_EQ(running_of(0, 0x1000), 2u);
    launch_other(0);
    expect_left();
    EXPECT_EQ(card.call(ORR_MBOX_QUEUE_ABORT, {20}).status, ORR_STATUS_OK);
    EXPECT_EQ(card.status(21).error, ORR_QERR_POISON);
    EXPECT_EQ(card.status(21).error_detail,
              ORR_FAILURE_WORD(ORR_QERR_ABORTED, card.soc.reg(SOC_UID) & 0xff, 20, 1));
    finish(0);
}

// The other card says nothing any more.
TEST_F(GangsLeave, ASilentCardIsWaitedForSixteenLimits) {
    launch(20, 10'000);
    launch_other(0);
    await_other(9);
    ASSERT_EQ(running_of(0, kOther), 1u);
    finish_of(0, kOther);
    flights.clear();
    pass_time(0, 1'000);
    EXPECT_EQ(running_of(0, 0x1000), 0u);
    ProcessQueue others = make(0, 31, 2);
    for (std::uint64_t ms = 0; ms < 10 * ORR_GANG_LIMITS - 10; ++ms) {
        if (ms % 20 == 0) {
            // It is in nobody's way.
            cards[0]->submit(others, {dispatch(0x9000)});
            EXPECT_EQ(running_of(0, 0x9000), 1u);
            finish_of(0, 0x9000);
        }
        pass_time(0, 1'000);
    }
    EXPECT_EQ(cards[0]->status(20).error, ORR_QERR_NONE);
    pass_time(0, 40'000);
    EXPECT_EQ(cards[0]->status(20).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[0]->status(20).error_detail >> 32, 1u) << "card 1";
    EXPECT_NE(cards[0]->status(20).error_detail & ORR_GANG_STARTED, 0u);
    flights.clear();
    finish(1);
    flights.clear();
}

// Whatever the board says while a part is being saved, it is first saved, and then resumes or ends as a
// whole.
TEST(GangThatIsSaved, LeavesItsPortsFirst) {
    for (const bool fails : {false, true}) {
        FakeSoc::Config config = chip();
        config.preempt_at_once = false;
        Bench card{config};
        give_areas(card);
        ASSERT_TRUE(card.boot());
        card.create_context(1, 1, 1);
        card.soc.map_peer(1, kPeerVa, [](std::uint64_t, std::uint64_t) {});
        card.set_shared(0x2008, kPeerVa);
        const auto say = [&](std::uint64_t value) {
            card.set_shared(0x1000 + 16, value);
            card.soc.poke(kSharedMemory + 0x1000 + 16);
            card.run();
        };
        ProcessQueue queues[] = {card.create_queue(20, 1, 16, kLongUs),
                                 card.create_queue(21, 1, 16, kLongUs)};
        card.set_shared(0x1000 + 16, said(1, 3));
        for (ProcessQueue& queue : queues)
            card.submit(queue, {gang(2, 1, 0, 2), resident(4)});
        const auto ports = card.soc.busy_ports();
        ASSERT_EQ(ports.size(), 2u);
        card.soc.time += 1'000'000'000;
        say(said(1, 1, 1));
        EXPECT_NE(card.soc.engines[ports[0]].preempt, 0u);
        card.soc.preempt(ports[0]);
        card.run();
        say(said(1, 3, 3));
        if (fails) say(said(1, ORR_GANG_ROUND - 1));
        EXPECT_EQ(running(card), 1u) << "one has not left yet";
        card.soc.preempt(ports[1]);
        card.run();
        EXPECT_EQ(running(card), fails ? 0u : 2u);
        for (const std::uint32_t port : card.soc.busy_ports()) {
            EXPECT_TRUE(card.soc.engines[port].resumed);
            card.soc.finish(port);
        }
        card.run();
        for (const std::uint32_t number : {20u, 21u})
            EXPECT_EQ(card.status(number).error, fails ? ORR_QERR_GANG : ORR_QERR_NONE);
        EXPECT_TRUE(card.soc.violations().empty());
    }
}

// A board that says of attempts what is not so: the liar's gang stops and goes; whoever else is there has his
// part.
TEST_F(GangsLeave, LiesCostTheLiarAlone) {
    Bench& card = *cards[0];
    launch();
    ProcessQueue others = make(0, 31, 2);
    std::uint64_t rounds = 0;
    for (std::uint64_t attempt = 1; attempt < 500; ++attempt) {
        card.set_shared(0x1000 + 16, said(1, 3, attempt));
        card.soc.poke(kBoardPage + 16);
        card.run();
        if (card.status(31).completed == rounds) {
            card.submit(others, {dispatch(0x9000)});
            ++rounds;
        }
        work(0);
        pass_time(0, 1'000);
        if (running_of(0, 0x9000) != 0) finish_of(0, 0x9000);
    }
    EXPECT_GT(rounds, 200u);
    // There is no such attempt.
    card.set_shared(0x1000 + 16, said(1, 3, ORR_GANG_ROUND / 8 - 2));
    card.soc.poke(kBoardPage + 16);
    card.run();
    launch_other(0);
    await_other(200);
    EXPECT_EQ(running_of(0, kOther), 1u) << "it does not become one that is not preempted";
    flights.clear();
    finish(0);
    finish(1);
    flights.clear();
}

// Nor has it longer slices for them.
TEST_F(GangsLeave, ALieDoesNotMakeSlicesLong) {
    Bench& card = *cards[0];
    card.set_shared(0x1000 + 16, said(1, 3, 256));
    own.push_back(make(0, 20, 1));
    card.submit(own.back(), {gang(1, 1, 0, 2), resident(8)});
    ASSERT_EQ(running_of(0, 0x1000), 1u);
    expect_short_slice();
}

// It says late, while nobody waits, that it holds: it does not pause for that, and has no long slice for it.
TEST_F(GangsLeave, ALateWordDoesNotMakeSlicesLong) {
    Bench& card = *cards[0];
    card.set_shared(0x1000 + 16, said(1, 2));
    own.push_back(make(0, 20, 1));
    card.submit(own.back(), {gang(1, 1, 0, 2), resident(8)});
    EXPECT_EQ(running_of(0, 0x1000), 0u);
    for (int ms = 0; ms < 6; ++ms)
        pass_time(0, 1'000);
    card.set_shared(0x1000 + 16, said(1, 3));
    card.soc.poke(kBoardPage + 16);
    card.run();
    ASSERT_EQ(running_of(0, 0x1000), 1u);
    expect_short_slice();
}

// Card 1 cannot save anything: it runs on, and is ready whenever the others are.
TEST_F(GangsLeave, CardsMayDifferInWhatTheyCanSave) {
    cards[1] = std::make_unique<Bench>(chip());
    ASSERT_TRUE(cards[1]->boot());
    queues[1].clear();
    for (const std::uint32_t context : {1u, 2u}) {
        cards[1]->create_context(context, context, context);
        cards[1]->soc.map_peer(context, kPeerVa, [this](std::uint64_t offset, std::uint64_t value) {
            flights.push_back({0, offset, value});
        });
    }
    cards[1]->set_shared(0x2000, kPeerVa);
    launch();
    launch_other(0);
    for (int ms = 0; ms < 20 && running_of(0, kOther) == 0; ++ms)
        pass(1);
    EXPECT_EQ(running_of(0, kOther), 1u);
    EXPECT_EQ(running_of(0, 0x1000), 0u);
    EXPECT_EQ(running_of(1, 0x1000), 1u);
    finish_of(0, kOther);
    for (int ms = 0; ms < 30 && running_of(0, 0x1000) == 0; ++ms)
        pass(1);
    EXPECT_EQ(running_of(0, 0x1000), 1u);
    for (const std::uint32_t c : {0u, 1u})
        finish(c);
    deliver();
    for (const std::uint32_t c : {0u, 1u})
        EXPECT_EQ(cards[c]->status(20).completed, 3u);
}

// A gang has locked the card and waits for its other one: what runs leaves for others all the same.
TEST_F(GangsLeave, WhileAnotherHasTheLock) {
    for (const bool for_gang : {true, false}) {
        SCOPED_TRACE(for_gang ? "a gang waits" : "kernels wait");
        SetUpAgain();
        Bench& card = *cards[0];
        card.create_context(3, 3, 3);
        ProcessQueue runs = make(0, 30, 2);
        card.submit(runs, {gang(1, 1, 0, 1, kBoard + 0x400), resident(7, kOther)});
        ASSERT_EQ(running_of(0, kOther), 1u);
        card.set_shared(0x1000 + 16, said(1, 1));  // card 1 has arrived, and never locks
        ProcessQueue locks = make(0, 20, 1);
        card.submit(locks, {gang(1, 1, 0, 2), resident(1)});
        EXPECT_EQ(running_of(0, 0x1000), 0u);
        std::vector<ProcessQueue> others;
        if (for_gang) {
            others.push_back(make(0, 40, 3));
            card.submit(others.back(), {gang(1, 1, 0, 1, kBoard + 0x600), resident(8)});
        } else {
            for (std::uint32_t n = 0; n < 4; ++n) {
                others.push_back(make(0, 40 + n, n < 3 ? 3 : 1));
                orr_packet_dispatch small = dispatch_of(0x9100);
                small.grid_x = small.grid_y = small.grid_z = 1;
                card.submit(others.back(), {as_packet(small)});
            }
        }
        bool left = false;
        for (int ms = 0; ms < 20 && !left; ++ms) {
            work(0);
            pass_time(0, 1'000);
            left = running_of(0, kOther) == 0;
        }
        EXPECT_TRUE(left);
        flights.clear();
        for (const std::uint32_t number : {20u, 30u})
            EXPECT_EQ(card.call(ORR_MBOX_QUEUE_DESTROY, {number}).status, ORR_STATUS_OK);
        flights.clear();
    }
}

// However many gangs there are, a newcomer finds an area, and those that are saved resume and end.
TEST_F(GangsLeave, SavedOnesLeaveAreasToOthers) {
    Bench& card = *cards[0];
    for (std::uint32_t context = 3; context < 12; ++context)
        card.create_context(context, context, context);
    for (std::uint32_t n = 0; n < 9; ++n) {
        ProcessQueue queue = make(0, 20 + n, 3 + n);
        card.submit(queue, {gang(1, 1, 0, 1, kBoard + 0x400 + 0x40 * n), resident(8)});
    }
    pass(60);
    std::size_t saved = 0;
    for (const Suspended& job : card.tables->suspended)
        saved += job.used ? 1 : 0;
    EXPECT_GE(saved, 3u);
    EXPECT_LE(saved + running(card), 6u) << "of seven, which is a quarter less";
    ProcessQueue newcomer = make(0, 40, 2);
    card.submit(newcomer, {dispatch(0x9000)});
    for (int ms = 0; ms < 20 && card.status(40).completed == 0; ++ms) {
        finish_of(0, 0x9000);
        pass(1);
    }
    EXPECT_EQ(card.status(40).completed, 1u);
    for (int n = 0; n < 400; ++n) {
        pass(1);
        finish(0);
    }
    for (std::uint32_t n = 0; n < 9; ++n)
        EXPECT_EQ(card.status(20 + n).completed, 2u) << n;
}

// All areas but a few are one user's: another's gang waits for its limit, and starts without any of its own.
TEST_F(GangsLeave, WhoOwnsNoAreasWaitsForThemNoLongerThanHisLimit) {
    Bench& card = *cards[0];
    std::vector<ProcessQueue> members;
    for (std::uint32_t n = 0; n < 8; ++n) {
        const std::uint32_t context = 1 + n / 4;
        members.push_back(make(0, 20 + n, context, context == 1 ? kLongUs : 10'000));
        card.submit(members.back(), {gang(4, 1, 0, 1, kBoard + 0x200 * context),
                                     resident(2, context == 1 ? 0x1000 : kOther)});
    }
    EXPECT_EQ(running_of(0, 0x1000), 4u);
    pass(9);
    EXPECT_EQ(running_of(0, kOther), 0u);
    pass(4);
    EXPECT_EQ(running_of(0, kOther), 4u);
    EXPECT_EQ(running_of(0, 0x1000), 0u);
    finish_of(0, kOther);
    pass(4);
    EXPECT_EQ(running_of(0, 0x1000), 4u);
    finish(0);
}

// What it waits is not time on the engine.
TEST_F(GangsLeave, SavedTimeIsNoTimeAgainstTheLimit) {
    Bench& card = *cards[0];
    ProcessQueue a = make(0, 20, 1, 10'000), b = make(0, 21, 2, 10'000);
    card.submit(a, {gang(1, 1, 0, 1), resident(8)});
    card.submit(b, {gang(1, 1, 0, 1, kBoard + 0x200), resident(8, kOther)});
    pass(17);
    EXPECT_EQ(card.status(20).error | card.status(21).error, ORR_QERR_NONE);
    pass(10);
    EXPECT_EQ(card.status(20).error, ORR_QERR_TIMEOUT);
    EXPECT_EQ(card.status(21).error, ORR_QERR_TIMEOUT);
}

TEST_F(GangsLeave, AQuotaIsOneOfTheWholeGang) {
    Bench& card = *cards[0];
    launch();
    EXPECT_EQ(card.call(ORR_MBOX_QUOTA_SET, {1, 250 | 20'000ull << 32}).status, ORR_STATUS_OK);
    std::uint64_t on[2] = {}, apart = 0;
    for (int ms = 0; ms < 200; ++ms) {
        pass(1);
        for (const std::uint32_t c : {0u, 1u})
            on[c] += running_of(c, 0x1000);
        apart += running_of(0, 0x1000) != running_of(1, 0x1000) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(on[0]), 50, 15);
    EXPECT_NEAR(static_cast<double>(on[1]), 60, 15) << "it hears of it up to a step later";
    EXPECT_LE(apart, 20u);
    EXPECT_EQ(card.status(20).error, ORR_QERR_NONE);
    for (const std::uint32_t c : {0u, 1u})
        EXPECT_EQ(cards[c]->call(ORR_MBOX_QUEUE_DESTROY, {20}).status, ORR_STATUS_OK);
}

// The link is full at the moment when a slice ends.
TEST_F(GangsLeave, AFullLinkEndsNoGang) {
    launch();
    launch_other(0);
    cards[0]->soc.busy_signals = 100;
    expect_left();
    EXPECT_EQ(cards[0]->soc.busy_signals, 0u);
    finish_of(0, kOther);
    for (int ms = 0; ms < 30 && running_of(0, 0x1000) == 0; ++ms)
        pass(1);
    for (const std::uint32_t c : {0u, 1u}) {
        EXPECT_EQ(running_of(c, 0x1000), 1u);
        finish(c);
    }
    deliver();
    for (const std::uint32_t c : {0u, 1u})
        EXPECT_EQ(cards[c]->status(20).completed, 3u);
}

// However short its periods are: they make it leave without end, and it does not fail for that.
TEST_F(GangsLeave, AQuotaOfShortPeriodsMakesNoGangFail) {
    launch();
    EXPECT_EQ(cards[0]->call(ORR_MBOX_QUOTA_SET, {1, 250 | 1'000ull << 32}).status, ORR_STATUS_OK);
    pass(60'000);
    for (const std::uint32_t c : {0u, 1u}) {
        EXPECT_EQ(cards[c]->status(20).error, ORR_QERR_NONE) << "card " << c;
        EXPECT_EQ(cards[c]->call(ORR_MBOX_QUEUE_DESTROY, {20}).status, ORR_STATUS_OK);
    }
}

TEST_F(GangsLeave, AQuotaOfShortPeriodsIsUsedUp) {
    Bench& card = *cards[0];
    own.push_back(make(0, 20, 1));
    card.submit(own.back(), {gang(1, 1, 0, 1), resident(8)});
    EXPECT_EQ(card.call(ORR_MBOX_QUOTA_SET, {1, 250 | 300ull << 32}).status, ORR_STATUS_OK);
    std::uint64_t on = 0;
    for (int n = 0; n < 10'000; ++n) {
        work(0);
        pass_time(0, 3);
        on += running_of(0, 0x1000);
    }
    EXPECT_NEAR(static_cast<double>(on) / 10'000, 0.25, 0.05);
    EXPECT_EQ(card.call(ORR_MBOX_QUEUE_DESTROY, {20}).status, ORR_STATUS_OK);
}

// After a restart each goes on by itself, as others do.
TEST_F(GangsLeave, WhatIsSavedSurvivesARestart) {
    Bench& card = *cards[0];
    ProcessQueue a = make(0, 20, 1), b = make(0, 21, 1);
    card.submit(a, {gang(2, 1, 0, 1), resident(4)});
    card.submit(b, {gang(2, 1, 0, 1), resident(4)});
    launch_other(0);
    expect_left();
    orr_mbox_message command{};
    command.opcode = ORR_MBOX_CRASH;
    command.sequence = 77;
    command.arg[0] = ~0ull;
    card.send(command);
    card.run();
    ASSERT_TRUE(card.restart());
    card.run();
    for (int n = 0; n < 10; ++n) {
        pass(1);
        finish(0);
    }
    for (const std::uint32_t number : {20u, 21u, 30u})
        EXPECT_EQ(card.status(number).completed, 2u) << number;
}

}  // namespace
}  // namespace orrery::fw::test
