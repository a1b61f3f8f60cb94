// Gangs: all members start, or none; on one card, and on two that see each other's boards.
#include <orrery/fw/failure.h>

#include <random>

#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint64_t kBoard = kSharedVa + 0x1000;
constexpr std::uint64_t kPeers = kSharedVa + 0x2000;  // table of VAs
constexpr std::uint64_t kPeerVa = 0x50000000;         // pages of the other card

orr_packet gang(std::uint16_t members, std::uint64_t round = 1, std::uint16_t card = 0,
                std::uint16_t cards = 1, std::uint64_t board = kBoard) {
    orr_packet_gang p{};
    p.header.opcode = ORR_PKT_GANG;
    p.board = board;
    p.peers = cards > 1 ? kPeers + (board - kBoard) : 0;
    p.round = round;
    p.card = card;
    p.cards = cards;
    p.members = members;
    return as_packet(p);
}

orr_packet resident(std::uint32_t groups, std::uint64_t entry = 0x1000) {
    orr_packet_dispatch p = dispatch_of(entry, ORR_PKT_F_RESIDENT);
    p.grid_x = groups;
    p.grid_y = p.grid_z = 1;
    return as_packet(p);
}

FakeSoc::Config chip() {
    FakeSoc::Config config;
    config.vector_ports = 4;
    return config;
}

void give_areas(Bench& bench) {
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_areas), std::uint64_t{8} << 32);
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_base), 0x900000);
}

std::size_t running(Bench& bench) {
    return bench.soc.busy_ports().size();
}

class GangTest : public testing::Test {
  protected:
    void SetUp() override {
        give_areas(bench);
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        for (std::uint32_t n = 0; n < 8; ++n)
            queues.push_back(bench.create_queue(n, n < 5 ? 1 : 2, 16, 1000));
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
        if (running(bench) == 0) {
            EXPECT_EQ(bench.soc.timer, kEmpty) << "a forgotten alarm makes the idle clock jump";
        }
    }
    void finish_all() {
        for (int n = 0; n < 20; ++n) {
            for (const std::uint32_t port : bench.soc.busy_ports())
                bench.soc.finish(port);
            bench.run();
        }
    }
    void pass_time(std::uint64_t us) {
        const std::uint64_t until = bench.soc.time + us * 1'000'000;
        for (int n = 0; n < 1000 && bench.soc.timer <= until; ++n) {
            if (bench.soc.time < bench.soc.timer) bench.soc.time = bench.soc.timer;
            bench.run();
        }
        if (bench.soc.time < until) bench.soc.time = until;
        bench.run();
    }
    void expect_gang_error(std::uint32_t n, std::uint64_t detail) {
        EXPECT_EQ(bench.status(n).error, ORR_QERR_GANG) << "queue " << n;
        EXPECT_EQ(bench.status(n).error_detail, detail) << "queue " << n;
    }
    Bench bench{chip()};
    std::vector<ProcessQueue> queues;
};

TEST_F(GangTest, MembersStartTogether) {
    bench.submit(queues[0], {gang(3), resident(2), nop()});
    bench.submit(queues[1], {gang(3), resident(2)});
    EXPECT_EQ(running(bench), 0u);
    EXPECT_EQ(bench.status(0).completed, 1u) << "the GANG packet itself";
    bench.submit(queues[2], {gang(3), resident(4)});
    ASSERT_EQ(running(bench), 3u);
    for (const std::uint32_t port : bench.soc.busy_ports())
        EXPECT_EQ(bench.soc.engines[port].desc[0] >> 16 & 0xffff, ORR_DESC_F_RESIDENT);
    finish_all();
    EXPECT_EQ(bench.status(0).completed, 3u);
    EXPECT_EQ(bench.status(1).completed, 2u);
    EXPECT_EQ(bench.status(2).completed, 2u);
    std::vector<std::uint32_t> steps;
    for (const TraceRecord& record : trace_records(bench.soc, ORR_TRACE_GANG)) {
        steps.push_back(record.b);
        EXPECT_EQ(record.words, (std::vector<std::uint64_t>{1, ORR_VRAM_WINDOW + kSharedMemory + 0x1000}));
    }
    EXPECT_EQ(steps, (std::vector<std::uint32_t>{ORR_GANG_JOINED, ORR_GANG_JOINED, ORR_GANG_JOINED,
                                                 ORR_GANG_HELD, ORR_GANG_GO, ORR_GANG_GO, ORR_GANG_GO}));
}

// A core that crashes while it starts a member blames that member, not whoever came last.
TEST_F(GangTest, EachMemberStartsOnItsOwnAccount) {
    std::vector<std::uint32_t> started;
    bench.soc.on_trace = [&](std::uint64_t word) {
        if (ORR_TRACE_TYPE(word) != ORR_TRACE_GANG || ORR_TRACE_B(word) != ORR_GANG_GO) return;
        started.push_back(ORR_TRACE_A(word));
        EXPECT_EQ(bench.tables->header.working, ORR_TRACE_A(word) + 1);
    };
    for (std::size_t n = 0; n < 3; ++n)
        bench.submit(queues[n], {gang(3), resident(2)});
    EXPECT_EQ(started.size(), 3u);
    finish_all();
}

TEST_F(GangTest, ABoardIsUsedAgainWithTheNextRound) {
    for (std::uint64_t round = 1; round <= 5; ++round) {
        for (const std::uint32_t n : {1u, 0u})
            bench.submit(queues[n], {gang(2, round), resident(1)});
        ASSERT_EQ(running(bench), 2u);
        finish_all();
    }
    EXPECT_EQ(bench.status(0).completed, 10u);
}

TEST_F(GangTest, WaitsUntilAllItsPortsAreFree) {
    bench.submit(queues[5], {dispatch(0x9000), dispatch(0x9100), dispatch(0x9200)});
    ASSERT_EQ(running(bench), 3u);
    bench.submit(queues[0], {gang(2), resident(2)});
    bench.submit(queues[1], {gang(2), resident(2)});
    // It asks the others to leave at a group's border; nobody new gets a port meanwhile.
    bench.submit(queues[6], {dispatch(0x9300)});
    EXPECT_EQ(running(bench), 3u);
    EXPECT_NE(bench.soc.engines[2].preempt, 0u);
    bench.soc.preempt(2);
    bench.run();
    EXPECT_EQ(trace_records(bench.soc, ORR_TRACE_GANG).back().b, ORR_GANG_GO);
    EXPECT_EQ(running(bench), 4u);
    finish_all();
    for (const std::uint32_t n : {0u, 1u, 5u, 6u})
        EXPECT_EQ(bench.status(n).completed, queues[n].producer) << "queue " << n;
}

TEST_F(GangTest, IsNotTornApartByOthers) {
    bench.submit(queues[0], {gang(2), resident(4)});
    bench.submit(queues[1], {gang(2), resident(4)});
    ASSERT_EQ(running(bench), 2u);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_SET, {5, ORR_PRIORITY_HIGH, 0}).status, ORR_STATUS_OK);
    bench.submit(queues[5], {dispatch(0x9000), dispatch(0x9100), dispatch(0x9200), dispatch(0x9300)});
    for (int n = 0; n < 20; ++n)
        pass_time(10);
    for (const std::uint32_t port : {2u, 3u})
        EXPECT_EQ(bench.soc.engines[port].preempt, 0u);
    finish_all();
}

TEST_F(GangTest, TwoGangsOneAfterTheOther) {
    // Each wants three of the four ports; members arrive mixed.
    bench.submit(queues[0], {gang(3), resident(2, 0xa00)});
    bench.submit(queues[5], {gang(3), resident(2, 0xb00)});
    bench.submit(queues[1], {gang(3), resident(2, 0xa00)});
    bench.submit(queues[6], {gang(3), resident(2, 0xb00)});
    bench.submit(queues[7], {gang(3), resident(2, 0xb00)});
    bench.submit(queues[2], {gang(3), resident(2, 0xa00)});
    ASSERT_EQ(running(bench), 3u);
    for (const std::uint32_t port : bench.soc.busy_ports())
        EXPECT_EQ(bench.soc.engines[port].as<orr_desc_kernel>().entry, 0xb00u) << "mixed up";
    for (const std::uint32_t port : bench.soc.busy_ports())
        bench.soc.finish(port);
    bench.run();
    ASSERT_EQ(running(bench), 3u);
    for (const std::uint32_t port : bench.soc.busy_ports())
        EXPECT_EQ(bench.soc.engines[port].as<orr_desc_kernel>().entry, 0xa00u);
    finish_all();
}

TEST_F(GangTest, WhoDoesNotComeEndsItAfterTheLimit) {
    bench.submit(queues[0], {gang(3), resident(2), nop()});
    bench.submit(queues[1], {gang(3)});
    bench.submit(queues[5], {dispatch(0x9000)});
    EXPECT_EQ(running(bench), 1u) << "an incomplete gang holds nothing back";
    finish_all();
    EXPECT_EQ(bench.status(5).completed, 1u);
    pass_time(900);
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    pass_time(200);
    expect_gang_error(0, 1);
    expect_gang_error(1, 1);
    expect_error(bench, queues[0], ORR_QERR_GANG, 1, kBoard, 1);
}

TEST_F(GangTest, WhatIsWrongHarmsItsOwnMembersOnly) {
    bench.submit(queues[5], {gang(2), resident(2)});
    // Other numbers for the same board; one too many; no dispatch behind it; not resident; more than the card
    // has.
    bench.submit(queues[0], {gang(2), resident(2)});
    bench.submit(queues[1], {gang(3), resident(2)});
    EXPECT_EQ(bench.status(1).error, ORR_QERR_GANG);
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    bench.submit(queues[2], {gang(2), copy(0x1000)});
    EXPECT_EQ(bench.status(2).error, ORR_QERR_BAD_PACKET);
    expect_gang_error(0, 1);
    bench.submit(queues[3], {gang(1, 1, 0, 1, kBoard + 0x100), dispatch(0x1000)});
    EXPECT_EQ(bench.status(3).error, ORR_QERR_BAD_PACKET);
    bench.submit(queues[4], {gang(1), resident(9)});
    expect_gang_error(4, 0);
    bench.submit(queues[6], {gang(2), resident(2)});
    EXPECT_EQ(running(bench), 2u) << "the other context's gang, same board address";
    finish_all();
    EXPECT_EQ(bench.status(5).completed, 2u);
    EXPECT_EQ(bench.status(6).completed, 2u);
}

TEST_F(GangTest, MalformedPackets) {
    const auto refused = [&](std::uint32_t n, const orr_packet& p, std::uint64_t word) {
        bench.submit(queues[n], {p, resident(1)});
        EXPECT_EQ(bench.status(n).error, ORR_QERR_BAD_PACKET);
        EXPECT_EQ(bench.status(n).error_detail, word);
    };
    refused(0, gang(0), 4);
    refused(1, gang(9), 4);
    refused(2, gang(1, 0), 3);
    refused(3, gang(1, 1, 1, 1), 4);
    refused(4, gang(5), 4);  // it has four ports
    orr_packet odd = gang(1);
    odd.word[0] += 8;
    refused(5, odd, 1);
    odd = gang(1);
    odd.word[1] = kPeers;
    refused(6, odd, 2);
    odd = gang(1);
    odd.word[6] = 1;
    refused(7, odd, 7);
}

TEST_F(GangTest, OneWithoutAPlaceIsToldSo) {
    for (std::uint32_t n = 8; n <= 8 + ORR_GANG_MAX_OF_CARD; ++n) {
        const std::uint32_t context = 3 + (n - 8) / (ORR_GANG_MAX_OF_CONTEXT + 1);
        if ((n - 8) % (ORR_GANG_MAX_OF_CONTEXT + 1) == 0) bench.create_context(context, context);
        queues.push_back(bench.create_queue(n, context, 16, 1000));
    }
    std::uint32_t waiting = 0;
    const auto wait_for_a_second = [&](std::uint32_t n) {
        bench.submit(queues[n], {gang(2, n + 1), resident(1)});
        const bool waits = bench.status(n).error == ORR_QERR_NONE;
        if (!waits) expect_gang_error(n, ORR_GANG_NO_PLACE);
        waiting += waits ? 1 : 0;
        return waits;
    };
    for (std::uint32_t n = 0; n < 5; ++n)
        EXPECT_EQ(wait_for_a_second(n), n < ORR_GANG_MAX_OF_CONTEXT) << n;
    for (std::uint32_t n = 8; n <= 8 + ORR_GANG_MAX_OF_CARD; ++n) {
        const bool own = (n - 8) % (ORR_GANG_MAX_OF_CONTEXT + 1) < ORR_GANG_MAX_OF_CONTEXT;
        const bool place = own && waiting < ORR_GANG_MAX_OF_CARD;
        EXPECT_EQ(wait_for_a_second(n), place) << n;
    }
    EXPECT_EQ(waiting, ORR_GANG_MAX_OF_CARD);
    pass_time(1100);
}

// Hardware 1.2 tells its cores elsewhere.
TEST(GangOnAnOlderCard, HasAllItsCores) {
    FakeSoc::Config older = chip();
    older.tells_kinds = false;
    Bench bench(older);
    give_areas(bench);
    ASSERT_TRUE(bench.boot());
    bench.create_context(1, 0);
    auto queue = bench.create_queue(0, 1, 16, 1000);
    bench.submit(queue, {gang(1), resident(older.vector_cores)});
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    EXPECT_EQ(running(bench), 1u);
}

TEST_F(GangTest, DestroyingAMemberEndsTheOthers) {
    bench.submit(queues[0], {gang(3), resident(2)});
    bench.submit(queues[1], {gang(3), resident(2)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {0}).status, ORR_STATUS_OK);
    EXPECT_EQ(bench.status(1).error, ORR_QERR_GANG);
    bench.submit(queues[2], {gang(1), resident(2)});
    EXPECT_EQ(running(bench), 1u) << "the record is free again";
    finish_all();
}

// One of two stops before it comes to its GANG packet: the other, who is there, who comes later, learns it.
TEST_F(GangTest, AnUnreadGangPacketOfAStoppedQueueEndsTheGang) {
    bench.submit(queues[0], {gang(3), resident(2)});
    bench.submit(queues[1], {packet(1234), gang(3), resident(2)});
    expect_error(bench, queues[0], ORR_QERR_POISON, 1, kBoard,
                 ORR_FAILURE_WORD(ORR_QERR_BAD_OPCODE, bench.soc.reg(SOC_UID) & 0xff, 1, 0));
    bench.submit(queues[2], {gang(3), resident(2)});
    EXPECT_EQ(bench.status(2).error, ORR_QERR_GANG);
    // Another round is another gang.
    bench.submit(queues[3], {gang(2, 2), resident(1)});
    bench.submit(queues[4], {gang(2, 2), resident(1)});
    EXPECT_EQ(running(bench), 2u);
    finish_all();
}

TEST_F(GangTest, RealtimeDoesNotWaitForAGangThatMakesRoom) {
    bench.submit(queues[5], {dispatch(0x9000), dispatch(0x9100), dispatch(0x9200)});
    bench.submit(queues[0], {gang(2), resident(2)});
    bench.submit(queues[1], {gang(2), resident(2)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_SET, {6, ORR_PRIORITY_REALTIME, 0}).status, ORR_STATUS_OK);
    bench.submit(queues[6], {dispatch(0x9900)});
    EXPECT_EQ(running(bench), 4u);
    finish_all();
    for (const std::uint32_t n : {0u, 1u, 5u, 6u})
        EXPECT_EQ(bench.status(n).completed, queues[n].producer) << "queue " << n;
}

TEST_F(GangTest, ARestartStartsNobodyAlone) {
    bench.submit(queues[0], {gang(2), resident(2)});
    orr_mbox_message command{};
    command.opcode = ORR_MBOX_CRASH;
    command.sequence = 77;
    command.arg[0] = ~0ull;
    bench.send(command);
    bench.run();
    ASSERT_TRUE(bench.restart());
    bench.run();
    EXPECT_EQ(bench.status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(running(bench), 0u);
}

// Two cards: each sees the page with the other's boards.
class TwoCards : public testing::Test {
  protected:
    static constexpr std::uint64_t kBoardPage = kSharedMemory + 0x1000;

    struct Flight {
        std::uint32_t to;
        std::uint64_t offset, value;
    };

    void SetUp() override {
        for (std::uint32_t c = 0; c < 2; ++c) {
            cards.push_back(std::make_unique<Bench>(chip()));
            Bench& card = *cards.back();
            give_areas(card);
            ASSERT_TRUE(card.boot());
            for (std::uint32_t context = 1; context <= 2; ++context) {
                card.create_context(context, context, context);  // of two users
                card.soc.map_peer(context, kPeerVa, [this, c](std::uint64_t offset, std::uint64_t value) {
                    flights.push_back({1 - c, offset, value});
                });
            }
            // Boards at 0 and 0x200 of the page; their tables of peers.
            for (std::uint64_t b = 0; b < 2; ++b)
                card.set_shared(0x2000 + 0x200 * b + 8 * (1 - c), kPeerVa + 0x200 * b);
            for (std::uint32_t n = 0; n < 4; ++n)
                queues[c].push_back(card.create_queue(n, 1 + n / 2, 16, 1000));
        }
    }
    void TearDown() override {
        for (const auto& card : cards)
            EXPECT_TRUE(card->soc.violations().empty()) << card->soc.violations().front();
    }
    // What is on the link arrives, from cards whose clocks are ahead.
    void deliver(std::uint64_t ahead_ps = 0) {
        while (!flights.empty()) {
            const Flight flight = flights.front();
            flights.pop_front();
            Bench& card = *cards[flight.to];
            card.soc.time += ahead_ps;
            if (card.soc.memory(kBoardPage + flight.offset) < flight.value)
                card.soc.set_memory(kBoardPage + flight.offset, flight.value);
            card.soc.poke(kBoardPage + flight.offset);
            card.run();
        }
    }
    void submit(std::uint32_t card, std::uint32_t queue, std::uint16_t members, std::uint64_t board,
                std::uint64_t round = 1) {
        ProcessQueue& q = queues[card][queue];
        cards[card]->submit(
            q, {gang(members, round, static_cast<std::uint16_t>(card), 2, kBoard + board), resident(2)});
    }
    void finish(std::uint32_t card) {
        for (const std::uint32_t port : cards[card]->soc.busy_ports())
            cards[card]->soc.finish(port);
        cards[card]->run();
    }
    void pass_time(std::uint32_t c, std::uint64_t us) {
        Bench& card = *cards[c];
        const std::uint64_t until = card.soc.time + us * 1'000'000;
        while (card.soc.timer <= until) {
            if (card.soc.time < card.soc.timer) card.soc.time = card.soc.timer;
            card.run();
        }
        card.soc.time = std::max(card.soc.time, until);
    }
    std::size_t busy(std::uint32_t card) { return running(*cards[card]); }

    std::vector<std::unique_ptr<Bench>> cards;
    std::vector<ProcessQueue> queues[2];
    std::deque<Flight> flights;
};

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
    cards[0]->set_shared(0x1000 + 16, 1 * 8 + 2);
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
    cards[0]->set_shared(0x1200 + 16, 1 * 8 + 2);
    submit(0, 1, 1, 0x200);
    cards[0]->submit(queues[0][2], {dispatch(0x9000)});
    EXPECT_EQ(busy(0), 1u) << "held again at once";
    finish(0);
}

// The other card is said to have arrived, and never locks: that is a lie of the process, which writes the
// board.
TEST_F(TwoCards, ALiarHasTheLockForATenthOfASecond) {
    ProcessQueue liar = cards[0]->create_queue(20, 1, 16, 1'000'000'000);
    cards[0]->set_shared(0x1000 + 16, 1 * 8 + 1);
    cards[0]->submit(liar, {gang(1, 1, 0, 2, kBoard), resident(2)});
    // Other work does not notice, a gang of one card waits for the lock.
    cards[0]->submit(queues[0][2], {gang(1, 1, 0, 1, kBoard + 0x400), resident(2)});
    EXPECT_EQ(busy(0), 0u);
    pass_time(0, kGangCrossHoldPs / 1'000'000 + 10);
    EXPECT_EQ(cards[0]->status(20).error, ORR_QERR_GANG);
    EXPECT_EQ(busy(0), 1u) << "the honest gang";
}

// A part that runs on while the other card's is over: the next gang of its user waits as long as its limit
// allows, and when that ends nobody has to wait for it.
TEST_F(TwoCards, TheNextOneWaitsForWhatAPeerStillRuns) {
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
    // Now the limit ends it.
    finish(0);
    launch(make(22, 3 * kHoldUs), 0, 2);
    pass_holds(4);
    deliver();
    EXPECT_EQ(cards[0]->status(22).error, ORR_QERR_GANG);
    EXPECT_EQ(cards[0]->status(22).error_detail, 1ull << 32) << "card 1";
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
