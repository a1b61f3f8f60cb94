// Gangs over two cards that see each other's boards.
#include <vector>

#include "tests/unit/firmware/trace_reader.h"
#include "tests/unit/firmware/two_cards.h"

namespace orrery::fw::test {
namespace {

TEST_F(TwoCards, AllOrNone) {
    submit(0, 0, 2, 0);
    deliver();
    submit(1, 0, 1, 0);
    deliver();
    EXPECT_EQ(busy(0) + busy(1), 0u);
    submit(0, 1, 2, 0);
    EXPECT_EQ(busy(0), 0u) << "the other card does not know yet";
    deliver();
    EXPECT_EQ(busy(0), 2u);
    EXPECT_EQ(busy(1), 1u);
    finish(0);
    finish(1);
    // The next round on the same board.
    submit(1, 0, 1, 0, 2);
    submit(0, 1, 2, 0, 2);
    submit(0, 0, 2, 0, 2);
    deliver();
    EXPECT_EQ(busy(0), 2u);
    EXPECT_EQ(busy(1), 1u);
    finish(0);
    finish(1);
    EXPECT_EQ(cards[0]->soc.timer, kEmpty);
    EXPECT_EQ(cards[1]->soc.timer, kEmpty);
}

TEST_F(TwoCards, TwoGangsThatArriveInDifferentOrderDoNotDeadlock) {
    for (int order = 0; order < 16; ++order) {
        const auto round = static_cast<std::uint64_t>(order + 1);
        // Gang A: queue 0 of both cards, gang B: queue 2 of both; each wants all ports of its cards.
        const std::uint32_t first0 = (order & 1) != 0 ? 0u : 2u, first1 = (order & 2) != 0 ? 0u : 2u;
        const auto go = [&](std::uint32_t card, std::uint32_t queue) {
            submit(card, queue, 1, queue == 0 ? 0 : 0x200, round);
            if ((order & 4) != 0) deliver();
        };
        go(0, first0);
        if ((order & 8) != 0) go(1, first1);
        go(0, 2 - first0);
        if ((order & 8) == 0) go(1, first1);
        go(1, 2 - first1);
        deliver();
        for (int n = 0; n < 2; ++n) {
            ASSERT_EQ(busy(0), 1u) << "order " << order;
            ASSERT_EQ(busy(1), 1u) << "order " << order;
            const std::uint64_t asid =
                cards[0]->soc.engines[cards[0]->soc.busy_ports().front()].desc[0] >> 32;
            EXPECT_EQ(cards[1]->soc.engines[cards[1]->soc.busy_ports().front()].desc[0] >> 32, asid)
                << "halves of two gangs";
            finish(0);
            deliver();
            finish(1);
            deliver();
        }
    }
    for (const auto& card : cards) {
        EXPECT_EQ(card->status(0).error + card->status(2).error, 0u);
        EXPECT_EQ(card->status(0).completed, 32u);
    }
}

TEST_F(TwoCards, OneThatNeverComesHoldsNothingBack) {
    submit(0, 0, 1, 0);
    deliver();
    cards[0]->submit(queues[0][2], {dispatch(0x9000)});
    EXPECT_EQ(busy(0), 1u);
    finish(0);
    pass_time(0, 1100);
    EXPECT_EQ(cards[0]->status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[0]->status(0).error_detail, 1ull << 32) << "card 1";
    deliver();
    // Whoever comes later learns that it has failed.
    submit(1, 0, 1, 0);
    EXPECT_EQ(cards[1]->status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[1]->status(0).error_detail, 0u) << "card 0";
}

// A queue of card 1 stops before its GANG packet: card 0 learns it, whether it was there first or comes
// later.
TEST_F(TwoCards, AnUnreadGangPacketTellsTheOtherCard) {
    submit(0, 0, 1, 0);
    deliver();
    cards[1]->submit(queues[1][0], {packet(1234), gang(1, 1, 1, 2, kBoard), resident(2)});
    deliver();
    EXPECT_EQ(cards[0]->status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[0]->status(0).error_detail, 1ull << 32);
    cards[1]->submit(queues[1][1], {packet(1234), gang(1, 1, 1, 2, kBoard + 0x200), resident(2)});
    deliver();
    submit(0, 1, 1, 0x200);
    EXPECT_EQ(cards[0]->status(1).error, ORR_QERR_GANG);
    // One that was not complete here, and will not be.
    submit(1, 2, 2, 0, 2);
    submit(0, 2, 1, 0, 2);
    deliver();
    cards[1]->submit(queues[1][3], {packet(1234), gang(2, 2, 1, 2, kBoard), resident(2)});
    deliver();
    EXPECT_EQ(cards[1]->status(2).error, ORR_QERR_POISON);
    EXPECT_EQ(cards[0]->status(2).error, ORR_QERR_GANG);
}

TEST_F(TwoCards, ForgedBoardsHarmTheirOwnGangOnly) {
    // The process writes steps of a card that never had the gang; the card must not stand idle for long.
    cards[0]->set_shared(0x1000 + 16, said(1, 2));
    submit(0, 0, 1, 0);
    EXPECT_EQ(busy(0), 0u);
    cards[0]->submit(queues[0][2], {dispatch(0x9000)});
    EXPECT_EQ(busy(0), 0u) << "the ports are held";
    pass_time(0, kGangCrossHoldPs / 1'000'000 + 10);
    EXPECT_EQ(cards[0]->status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(busy(0), 1u);
    finish(0);
    EXPECT_EQ(cards[0]->status(2).completed, 1u);
    // The next one with the same idea has to wait: nineteen parts of twenty belong to the others.
    cards[0]->set_shared(0x1200 + 16, said(1, 2));
    submit(0, 1, 1, 0x200);
    cards[0]->submit(queues[0][2], {dispatch(0x9000)});
    EXPECT_EQ(busy(0), 1u) << "held again at once";
    finish(0);
}

// One that starts just before it would have failed has kept the ports from others as long as one that fails.
TEST_F(TwoCards, WhoHoldsPortsAndStartsPausesToo) {
    constexpr std::uint64_t kHeldUs = kGangCrossHoldPs / 1'000'000 - 5'000;
    Bench& card = *cards[0];
    ProcessQueue liar = card.create_queue(20, 1, 16, 1'000'000'000);
    std::uint64_t idle = 0, round = 0;
    const std::uint64_t begin = card.soc.time;
    while (card.soc.time < begin + 200 * kHeldUs * 1'000'000) {
        ++round;
        // Card 1 has locked, says the process; and when others have waited for long, that it holds.
        card.set_shared(0x1000 + 16, said(round, 2));
        card.submit(liar, {gang(1, round, 0, 2), resident(2)});
        const std::uint64_t from = card.soc.time;
        card.submit(queues[0][2], {dispatch(0x9000)});
        for (std::uint64_t us = 0; us < kHeldUs && busy(0) == 0; us += 1'000)
            pass_time(0, 1'000);
        idle += card.soc.time - from;
        const bool held = trace_records(card.soc, ORR_TRACE_GANG).back().b == ORR_GANG_HELD;
        card.set_shared(0x1000 + 16, said(round, 3));
        card.soc.poke(kBoardPage + 16);
        card.run();
        if (held) EXPECT_EQ(trace_records(card.soc, ORR_TRACE_GANG).back().b, ORR_GANG_GO);
        // Till the gang has had its turn.
        for (int n = 0; n < 10'000 && card.status(20).completed < 2 * round; ++n) {
            finish(0);
            if (card.status(20).completed < 2 * round) pass_time(0, 1'000);
        }
        ASSERT_EQ(card.status(20).completed, 2 * round);
        finish(0);
    }
    EXPECT_GT(idle, kHeldUs * 1'000'000) << "it never held anything";
    EXPECT_LT(idle, (card.soc.time - begin) / 18) << "of the time that passed";
}

// To the quota of its context, as to its queue, process and user: holding costs whether the gang starts or
// not.
TEST_F(TwoCards, HeldPortsCostAlsoIfTheGangFails) {
    Bench& card = *cards[0];
    constexpr std::uint64_t kTenthOfASecond = 100 | std::uint64_t{1'000'000} << 32;
    std::uint32_t number = 20;
    for (const bool fails : {false, true}) {
        const std::uint32_t context = fails ? 4 : 3;
        card.create_context(context, context, context);
        card.soc.map_peer(context, kPeerVa, [](std::uint64_t, std::uint64_t) {});
        ASSERT_EQ(card.call(ORR_MBOX_QUOTA_SET, {context, kTenthOfASecond}).status, ORR_STATUS_OK);
        const std::uint32_t liar_number = number++;
        ProcessQueue liar = card.create_queue(liar_number, context, 16, 100'000'000);
        ProcessQueue after = card.create_queue(number++, context, 16, 100'000'000);
        // Of its 100 ms for this second the context holds ports for 98.
        pass_time(0, 1'000'000 - card.soc.time / 1'000'000 % 1'000'000);
        const std::uint64_t round = fails ? 2 : 1;
        card.set_shared(0x1000 + 16, said(round, 2));
        card.submit(liar, {gang(1, round, 0, 2), resident(2)});
        pass_time(0, 98'000);
        ASSERT_EQ(trace_records(card.soc, ORR_TRACE_GANG).back().b, ORR_GANG_HELD);
        if (fails) {
            EXPECT_EQ(card.call(ORR_MBOX_QUEUE_DESTROY, {liar_number}).status, ORR_STATUS_OK);
        } else {
            card.set_shared(0x1000 + 16, said(round, 3));
            card.soc.poke(kBoardPage + 16);
            card.run();
            ASSERT_EQ(busy(0), 1u);
            finish(0);
        }
        // 4 ms of all cores are too much then.
        card.submit(after, {dispatch(0x9000)});
        ASSERT_EQ(busy(0), 1u);
        for (const std::uint32_t port : card.soc.busy_ports())
            card.soc.engines[port].used = 8ull * 4'000'000'000;
        pass_time(0, 5'000);
        finish(0);
        card.submit(after, {dispatch(0x9000)});
        EXPECT_EQ(busy(0), 0u) << (fails ? "failed" : "started");
        pass_time(0, 1'000'000);
        finish(0);
    }
}

// The other card is said to have arrived, and never locks: that is a lie of the process, which writes the
// board.
TEST_F(TwoCards, ALiarHasTheLockForOneTurn) {
    ProcessQueue liar = cards[0]->create_queue(20, 1, 16, 1'000'000'000);
    cards[0]->set_shared(0x1000 + 16, said(1, 1));
    cards[0]->submit(liar, {gang(1, 1, 0, 2, kBoard), resident(2)});
    // Other work does not notice, a gang of one card waits for the lock.
    cards[0]->submit(queues[0][2], {gang(1, 1, 0, 1, kBoard + 0x400), resident(2)});
    EXPECT_EQ(busy(0), 0u);
    pass_time(0, kGangTurnPs / 1'000'000 + 10);
    EXPECT_EQ(busy(0), 1u) << "the honest gang";
    EXPECT_EQ(cards[0]->status(20).error, ORR_QERR_NONE) << "it may be true";
    finish(0);
    // The next one has the card at once: the liar pauses.
    cards[0]->submit(queues[0][2], {gang(1, 2, 0, 1, kBoard + 0x400), resident(2)});
    EXPECT_EQ(busy(0), 1u);
    finish(0);
}

// A part that runs on while the other card's is over: the next gang of its user waits as long as its limit
// allows, and when that ends nobody has to wait for it.
TEST_F(TwoCardsWithoutAreas, TheNextOneWaitsForWhatAPeerStillRuns) {
    constexpr std::uint64_t kHoldUs = kGangCrossHoldPs / 1'000'000;
    struct Pair {
        ProcessQueue queue[2];
    };
    const auto make = [&](std::uint32_t number, std::uint64_t limit_us) {
        return Pair{cards[0]->create_queue(number, 1, 16, limit_us),
                    cards[1]->create_queue(number, 1, 16, limit_us)};
    };
    const auto launch = [&](Pair pair, std::uint64_t board, std::uint64_t round) {
        for (std::uint16_t c = 0; c < 2; ++c)
            cards[c]->submit(pair.queue[c], {gang(1, round, c, 2, kBoard + board), resident(2)});
        deliver();
    };
    const auto pass_holds = [&](std::uint64_t holds) {
        for (const std::uint32_t c : {0u, 1u})
            pass_time(c, holds * kHoldUs);
    };
    launch(make(20, 100 * kHoldUs), 0, 1);
    finish(0);
    launch(make(21, 100 * kHoldUs), 0x200, 1);
    pass_holds(3);
    EXPECT_EQ(cards[0]->status(21).error, ORR_QERR_NONE);
    cards[0]->submit(queues[0][2], {dispatch(0x9000)});
    EXPECT_EQ(busy(0), 1u) << "other work has the ports meanwhile";
    finish(0);
    finish(1);
    deliver();
    EXPECT_EQ(busy(0), 1u);
    EXPECT_EQ(busy(1), 1u);
    // Sixteen times the limit ends it.
    finish(0);
    launch(make(22, 3 * kHoldUs), 0, 2);
    pass_holds(ORR_GANG_LIMITS * 3 - 1);
    EXPECT_EQ(cards[1]->status(22).error, ORR_QERR_NONE);
    pass_holds(2);
    deliver();
    EXPECT_EQ(cards[0]->status(22).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[0]->status(22).error_detail, 1ull << 32 | ORR_GANG_PRECEDED) << "card 1";
    EXPECT_EQ(cards[1]->status(22).error, ORR_QERR_GANG);
    finish(1);
    launch(make(23, 100 * kHoldUs), 0, 3);
    EXPECT_EQ(busy(0), 1u) << "it kept nobody out";
    EXPECT_EQ(busy(1), 1u);
    finish(0);
    finish(1);
}

// No two cards have the same clock, and a message takes the receiver's to the sender's.
TEST_F(TwoCards, JumpsOfTheClockAreNoTime) {
    for (std::uint64_t round = 1; round <= 3; ++round) {
        submit(0, 0, 1, 0, round);
        deliver(5 * kGangCrossHoldPs);
        submit(1, 0, 1, 0, round);
        deliver(5 * kGangCrossHoldPs);
        ASSERT_EQ(busy(0), 1u);
        ASSERT_EQ(busy(1), 1u);
        finish(0);
        finish(1);
        deliver();
    }
}

TEST_F(TwoCards, OneWithoutAPlaceEndsOnTheOtherCardToo) {
    for (std::uint32_t n = 0; n < ORR_GANG_MAX_OF_CONTEXT; ++n) {
        ProcessQueue waiting = cards[1]->create_queue(20 + n, 1, 16, 1000);
        cards[1]->submit(waiting, {gang(2, n + 1, 0, 1, kBoard + 0x400), resident(1)});
    }
    submit(0, 0, 1, 0);
    deliver();
    submit(1, 0, 1, 0);
    EXPECT_EQ(cards[1]->status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[1]->status(0).error_detail, ORR_GANG_NO_PLACE);
    EXPECT_EQ(cards[0]->status(0).error, ORR_QERR_NONE);
    deliver();
    EXPECT_EQ(cards[0]->status(0).error, ORR_QERR_GANG) << "without waiting for its limit";
    EXPECT_EQ(cards[0]->status(0).error_detail, 1ull << 32);
}

TEST_F(TwoCards, AnUnreachablePeerEndsIt) {
    cards[0]->set_shared(0x2000 + 8, 0x66660000);
    submit(0, 0, 1, 0);
    EXPECT_EQ(cards[0]->status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[0]->status(0).error_detail, 1ull << 32);
    cards[0]->set_shared(0x2200 + 8, ~0ull);
    submit(0, 1, 1, 0x200);
    EXPECT_EQ(cards[0]->status(1).error, ORR_QERR_GANG);
}

}  // namespace
}  // namespace orrery::fw::test
