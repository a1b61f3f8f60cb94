// Messages that pass through cards: exact times, room, gaps, epochs, and what bad peers make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/time/rate.h"
#include "tests/unit/link/net.h"
#include "tests/unit/link/raw_peer.h"
#include "tests/unit/link/sender.h"

namespace orrery::emu::test {
namespace {

TEST(Forward, TimesAreExact) {
    Net net(4, false);
    ASSERT_TRUE(net.up());
    net.forward();
    ModelTime at = 10'000 * kPsPerNs;
    for (unsigned to = 1; to < 4; ++to) {
        for (const std::uint64_t bytes : {8ull, 64ull, 4096ull, 100'001ull, 256ull << 10}) {
            for (auto& card : net.cards)
                card->events.advance_to(at);
            net[to].arrivals.clear();
            ASSERT_EQ(net[0].write(to + 1, 0, bytes, 1).bytes, bytes);
            ASSERT_EQ(net[0].signal(to + 1, kSem, at), ORR_FAULT_NONE);
            net.run();
            const ModelTime end = at + to * kLatency + (to - 1) * kSwitching + on_wire(bytes);
            ASSERT_EQ(net[to].arrivals.size(), 2u);
            EXPECT_EQ(net[to].arrivals[0], end) << to << " links, " << bytes;
            // The signal takes its 64 bytes behind.
            EXPECT_EQ(net[to].semaphore(kSem).time_ps, end + on_wire(64)) << to << " links, " << bytes;
            at += 1'000'000 * kPsPerNs;
        }
    }
    EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DROPPED) + net.sum(ORR_CTR_LINK_DENIED), 0u);
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_FORWARDED), 20u);
}

// Also one behind the other.
TEST(Forward, AStreamTakesItsBytesAndTheWay) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    constexpr std::uint64_t kBytes = 10'007;
    for (int i = 0; i < 100; ++i)
        ASSERT_EQ(net[0].write(3, 0, kBytes, 1).bytes, kBytes);
    net.run();
    EXPECT_EQ(net[2].arrivals.size(), 100u);
    EXPECT_EQ(net[2].arrivals.back(), duration_ps(100 * kBytes, kRate) + 2 * kLatency + kSwitching);
}

class AllToAll : public testing::TestWithParam<std::pair<unsigned, bool>> {};

TEST_P(AllToAll, ArrivesInOrderAndTheSameEachTime) {
    constexpr std::uint64_t kBytes = 900 << 10;
    const auto [number, ring] = GetParam();
    std::vector<ModelTime> first;
    for (int play = 0; play < 2; ++play) {
        Net net(number, ring);
        ASSERT_TRUE(net.up());
        net.forward();
        std::vector<std::unique_ptr<Sender>> senders;
        for (unsigned from = 0; from < number; ++from)
            for (unsigned to = 0; to < number; ++to)
                if (from != to)
                    senders.push_back(std::make_unique<Sender>(net[from], to + 1,
                                                               from * std::uint64_t{1 << 20}, kBytes,
                                                               value_of(from + 1, to + 1)));
        net.run();
        std::vector<ModelTime> times;
        for (unsigned from = 0; from < number; ++from) {
            for (unsigned to = 0; to < number; ++to) {
                if (from == to) continue;
                const auto value = static_cast<std::uint8_t>(0x10 * (from + 1) + to + 1);
                EXPECT_EQ(net[to].byte(from * std::uint64_t{1 << 20}), value);
                EXPECT_EQ(net[to].byte(from * std::uint64_t{1 << 20} + kBytes - 1), value);
                const orr_semaphore semaphore = net[to].semaphore(kSem + 16 * (from + 1));
                EXPECT_EQ(semaphore.value, 1u) << from << " to " << to;
                times.push_back(semaphore.time_ps);
            }
        }
        EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
        EXPECT_EQ(net.sum(ORR_CTR_LINK_DROPPED) + net.sum(ORR_CTR_LINK_DENIED), 0u);
        if (play == 0) first = times;
        EXPECT_EQ(times, first);
    }
}
INSTANTIATE_TEST_SUITE_P(Shapes, AllToAll,
                         testing::Values(std::pair(3u, false), std::pair(4u, false), std::pair(3u, true),
                                         std::pair(4u, true)));

// Writes to one place of a node without end.
struct Flood {
    Flood(NetCard& its_card, std::uint32_t its_to) : card(its_card), to(its_to) {
        card.events.schedule(event, 0);
    }
    void on(ModelTime) {
        const LinkSend sent = card.write(to, card.node * std::uint64_t{1 << 20}, data);
        ASSERT_EQ(sent.fault, ORR_FAULT_NONE);
        if (sent.bytes == 0) return card.peers.towards(to)->wait_for_room(to, event);
        card.events.schedule(event, sent.sent_ps);
    }
    NetCard& card;
    std::uint32_t to;
    std::vector<std::byte> data = std::vector<std::byte>(64 << 10);
    Event event = Event::of<&Flood::on>(this);
};

// All to one along a chain: who is further away gets as much, once the rooms on the way are full.
TEST(Forward, NodesShareAWireEvenlyHoweverFarTheyAre) {
    for (const unsigned number : {3u, 4u, 5u}) {
        Net net(number, false);
        ASSERT_TRUE(net.up());
        net.forward();
        std::vector<std::unique_ptr<Flood>> floods;
        std::vector<std::uint64_t> before, bytes(number);
        for (unsigned from = 1; from < number; ++from)
            floods.push_back(std::make_unique<Flood>(net[from], 1));
        // Each writes to a place of its own.
        net[0].on_arrival = [&](std::uint64_t offset, std::uint64_t count) {
            bytes.at((offset >> 20) - 1) += count;
        };
        constexpr ModelTime kSettled = 3'000'000 * kPsPerNs, kEnd = 9'000'000 * kPsPerNs;
        net.run(kSettled);
        before = bytes;
        net.run(kEnd);
        std::uint64_t all = 0;
        for (unsigned from = 1; from < number; ++from)
            all += bytes[from] - before[from];
        EXPECT_NEAR(static_cast<double>(all), static_cast<double>(kRate) * 6e-3,
                    static_cast<double>(kRate) * 6e-5);
        for (unsigned from = 1; from < number; ++from) {
            const double share =
                100.0 * static_cast<double>(bytes[from] - before[from]) / static_cast<double>(all);
            EXPECT_NEAR(share, 100.0 / (number - 1), 2) << "card " << from << " of " << number;
        }
        EXPECT_EQ(net.sum(ORR_CTR_LINK_DROPPED) + net.sum(ORR_CTR_LINK_DENIED), 0u);
    }
}

TEST(Forward, ACardWhoseCoreTakesNothingPassesOn) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    net[1].stuck = true;
    ASSERT_EQ(net[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    ASSERT_EQ(net[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    ASSERT_EQ(net[2].signal(1, kSem, 1), ORR_FAULT_NONE);
    // Its own channel may be full.
    while (net[0].signal(2, kSem, 2) == ORR_FAULT_NONE) {
    }
    ASSERT_EQ(net[0].write(3, 0, 4096, 7).bytes, 4096u);
    net.run();
    EXPECT_EQ(net[1].semaphore(kSem).value, 0u);
    EXPECT_EQ(net[2].semaphore(kSem).value, 1u);
    EXPECT_EQ(net[2].byte(4095), 7);
    EXPECT_EQ(net[0].semaphore(kSem).value, 1u);
    net[1].stuck = false;
    net[1].ports[0]->poke_room();
    net.run();
    EXPECT_EQ(net[1].semaphore(kSem).value, 2u);
}

TEST(Forward, WithoutRoomItWaitsAndGoesOn) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    net[2].stuck = true;
    ASSERT_EQ(net[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    std::uint64_t sent = 0;
    // Two areas of 4 MiB are full in the end.
    for (int i = 0; i < 100; ++i) {
        while (net[0].write(3, 0, 256 << 10, static_cast<std::uint8_t>(i + 1)).bytes != 0)
            ++sent;
        net.run();
    }
    EXPECT_EQ(sent, 32u);
    // Who is on the way is not held up.
    ASSERT_EQ(net[0].write(2, 0, 4096, 9).bytes, 4096u);
    ASSERT_EQ(net[0].signal(2, kSem, 3), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[1].byte(0), 9);
    EXPECT_EQ(net[1].semaphore(kSem).value, 3u);
    EXPECT_TRUE(net[1].ports[1]->congested());
    net[2].stuck = false;
    net[2].ports[0]->poke_room();
    net.run();
    ASSERT_EQ(net[0].signal(3, kSem, 2), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[2].semaphore(kSem).value, 2u);
    EXPECT_EQ(net[2].counters.get(ORR_CTR_LINK_RX_MESSAGES), 34u);
    EXPECT_FALSE(net[1].ports[1]->congested());
}

TEST(Forward, NotesGoToANodeWithoutARouteOfTheirSender) {
    Net net(4, false);
    ASSERT_TRUE(net.up());
    EXPECT_EQ(net[0].note(4, 1, 1), ORR_FAULT_NO_ROUTE);  // nobody passes on
    ASSERT_EQ(net[0].note(0, 1, 2), ORR_FAULT_NONE);
    net.forward();
    net[0].peers.set_route(4, 0);
    net[3].peers.set_route(1, 0);
    ASSERT_EQ(net[0].note(4, 1, 3), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[1].notes, (std::vector<NetCard::Noted>{{0, 1, false, std::byte{2}}}));
    EXPECT_EQ(net[3].notes, (std::vector<NetCard::Noted>{{0, 1, true, std::byte{3}}}));
    // Who passes on has the routes, and takes nothing from beside.
    net[1].peers.set_route(1, 0);
    ASSERT_EQ(net[0].note(4, 1, 4), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[3].notes.size(), 1u);
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_DENIED), 1u);
}

TEST(Forward, NothingGoesWithoutLeaveOrRoute) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    EXPECT_EQ(net[0].write(3, 0, 8, 1).fault, ORR_FAULT_NO_ROUTE) << "its own port may not either";
    net[0].ports[1]->set_forward(true);
    EXPECT_EQ(net[0].write(3, 0, 8, 1).bytes, 8u);
    net.run();
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_DROPPED), 1u);
    net.forward();
    net[1].peers.set_route(3, 0);
    EXPECT_EQ(net[0].write(3, 0, 8, 1).bytes, 8u);
    net.run();
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_DROPPED), 2u);
    EXPECT_EQ(net[2].byte(0), 0);
    net[0].route(3, 1, 0, ORR_ROUTE_HOLD);
    EXPECT_EQ(net[0].write(3, 0, 8, 1).fault, ORR_FAULT_PEER_DOWN);
}

// A write that is lost on its way is not followed by its signal, however long that waits.
TEST(Forward, NothingIsCarriedOutBehindAGap) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    const unsigned before = net[1].interrupts;
    net[1].ports[1]->unplug();
    EXPECT_FALSE(net[1].ports[1]->forwards());
    EXPECT_EQ(net[1].interrupts, before + 1);
    ASSERT_EQ(net[0].write(3, 0, 4096, 1).bytes, 4096u);
    net.run();
    ASSERT_TRUE(net[1].ports[1]->plug());
    ASSERT_TRUE(net.up());
    ASSERT_EQ(net[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[2].semaphore(kSem).value, 0u);
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_DROPPED), 2u);
    // One more of the old epoch is on the way to the middle when the new one begins.
    ASSERT_EQ(net[0].signal(3, kSem, 2), ORR_FAULT_NONE);
    net[2].route(1, 0, 1);
    net[0].route(3, 1, 1, ORR_ROUTE_HOLD);
    net[1].ports[1]->set_forward(true);
    net[0].route(3, 1, 1);
    ASSERT_EQ(net[0].write(3, 0, 4096, 5).bytes, 4096u);
    ASSERT_EQ(net[0].signal(3, kSem + 16, 3), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[2].counters.get(ORR_CTR_LINK_DENIED), 1u);
    EXPECT_EQ(net[2].semaphore(kSem).value, 0u);
    EXPECT_EQ(net[2].semaphore(kSem + 16).value, 3u);
    EXPECT_EQ(net[2].byte(0), 5);
}

TEST(Forward, ALossByAFaultClosesThePort) {
    for (const unsigned at : {0u, 1u}) {
        Net net(3, false);
        ASSERT_TRUE(net.up());
        net.forward();
        ASSERT_TRUE(net[at].faults.add("link port=1 first=1 drop"));
        const unsigned before = net[at].interrupts;
        ASSERT_EQ(net[0].write(3, 0, 4096, 1).bytes, 4096u);
        const std::uint32_t fault = net[0].signal(3, kSem, 1);
        EXPECT_EQ(fault, at == 0 ? ORR_FAULT_NO_ROUTE : ORR_FAULT_NONE);
        net.run();
        EXPECT_FALSE(net[at].ports[1]->forwards());
        EXPECT_EQ(net[at].interrupts, before + 1);
        EXPECT_EQ(net[2].semaphore(kSem).value, 0u);
        EXPECT_EQ(net[at].ports[1]->state(), ORR_LINK_UP);
    }
}

TEST(Forward, WhatIsDrainedHasBeenPassedOn) {
    Net net(4, false);
    ASSERT_TRUE(net.up());
    net.forward();
    ASSERT_EQ(net[0].write(4, 0, 4096, 1).bytes, 4096u);
    ASSERT_EQ(net[0].signal(4, kSem, 1), ORR_FAULT_NONE);
    // Hop by hop, long before its time.
    for (unsigned n = 1; n < 3; ++n) {
        net[n].ports[0]->drain();
        net.run(0);
        EXPECT_EQ(net[n].drained, 1u);
        EXPECT_EQ(net[n].counters.get(ORR_CTR_LINK_FORWARDED), 2u);
    }
    ASSERT_TRUE(net[3].ports[0]->clear_grant(0));
    EXPECT_EQ(net[3].byte(4095), 1);
    EXPECT_EQ(net[3].semaphore(kSem).value, 1u);
    EXPECT_EQ(net[3].semaphore(kSem).time_ps, 3 * kLatency + 2 * kSwitching + on_wire(4096) + on_wire(64));
    net.run();
    ASSERT_EQ(net[0].write(4, 0, 8, 2).bytes, 8u);
    net.run();
    EXPECT_EQ(net[3].counters.get(ORR_CTR_LINK_DENIED), 1u);
    // Nothing there: at once.
    net[1].ports[0]->drain();
    EXPECT_EQ(net[1].drained, 2u);
}

TEST(Forward, ADrainWaitsForRoomOrTheEndOfTheLink) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    net[2].stuck = true;
    ASSERT_EQ(net[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    for (int i = 0; i < 40; ++i) {
        net[0].write(3, 0, 256 << 10, 1);
        net.run();
    }
    net[1].ports[0]->drain();
    net.run();
    EXPECT_EQ(net[1].drained, 0u);
    // What cannot be passed on any more is dropped.
    net[1].ports[1]->unplug();
    net.run();
    EXPECT_EQ(net[1].drained, 1u);
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_DROPPED), 16u);
}

TEST(Forward, ADrainEndsWithTheLeaveToPassOn) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    net.forward();
    net[2].stuck = true;
    ASSERT_EQ(net[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    for (int i = 0; i < 40; ++i) {
        net[0].write(3, 0, 256 << 10, 1);
        net.run();
    }
    net[1].ports[0]->drain();
    net.run();
    EXPECT_EQ(net[1].drained, 0u);
    net[1].ports[1]->set_forward(false);
    net.run();
    EXPECT_EQ(net[1].drained, 1u);
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_DROPPED), 16u);
    EXPECT_EQ(net[1].ports[1]->state(), ORR_LINK_UP);
}

// A revoke for one node does not bring forward what others sent.
TEST(Forward, AClearedGrantHurriesItsNodeAlone) {
    Net net(3, false);
    ASSERT_TRUE(net.up());
    ASSERT_EQ(net[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    ASSERT_EQ(net[2].signal(2, kSem + 16, 1), ORR_FAULT_NONE);
    for (auto& port : net[1].ports)
        if (port) EXPECT_TRUE(port->clear_grant(0));
    EXPECT_EQ(net[1].semaphore(kSem).value, 1u);
    EXPECT_EQ(net[1].semaphore(kSem + 16).value, 0u);
    for (auto& port : net[1].ports)
        if (port) EXPECT_TRUE(port->clear_grant(7)) << "empty";
    EXPECT_EQ(net[1].semaphore(kSem + 16).value, 0u);
    net.run();
    EXPECT_EQ(net[1].semaphore(kSem + 16).value, 1u);
}

// Card 0 of a chain of two has a peer at port 3 that says anything.
class BadForward : public testing::Test {
  protected:
    BadForward() : net(2, false) {
        net[0].add(3, true, folder.file("link"));
        net[0].route(kBad, 3);
        net[1].route(kBad, 0);
        net[1].grant_all(5, kBad);
        net[1].grant_all(6, kOther);
        peer = std::make_unique<RawPeer>(folder.file("link"));
    }
    void bring_up() {
        for (int i = 0; i < 1000 && !peer->outbox; ++i) {
            net[0].ports[3]->service();
            peer->take(kBad);
            ::usleep(1000);
        }
        ASSERT_TRUE(net.up());
        net.forward();
    }
    link::Message message(std::uint64_t value) {
        link::Message made = peer->good_far(value);
        made.source = kBad;
        made.destination = 2;
        return made;
    }
    static constexpr std::uint16_t kBad = 0xb, kOther = 0xc;
    TempFolder folder;
    Net net;
    std::unique_ptr<RawPeer> peer;
};

TEST_F(BadForward, ForgedSourcesAndEpochsAndHops) {
    bring_up();
    peer->push_far(message(1));
    net.run();
    EXPECT_EQ(net[1].semaphore(0x100).value, 1u) << "a good one";
    for (const std::uint16_t source : {std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{kOther}}) {
        link::Message forged = message(2);
        forged.source = source;
        peer->push_far(forged);
        net.run();
    }
    EXPECT_EQ(net[0].counters.get(ORR_CTR_LINK_DENIED), 3u) << "from beside";
    link::Message stale = message(3);
    stale.epoch = 9;
    peer->push_far(stale);
    net.run();
    EXPECT_EQ(net[1].counters.get(ORR_CTR_LINK_DENIED), 1u);
    link::Message old = message(4);
    old.hops = link::kMostHops;
    peer->push_far(old);
    link::Message back = message(5);
    back.destination = kBad;
    peer->push_far(back);
    link::Message nowhere = message(6);
    nowhere.destination = 77;
    peer->push_far(nowhere);
    net.run();
    EXPECT_EQ(net[0].counters.get(ORR_CTR_LINK_DROPPED), 3u);
    link::Message mine = message(7);
    mine.destination = 1;
    peer->push_far(mine);
    net.run();
    EXPECT_EQ(net[0].counters.get(ORR_CTR_LINK_DROPPED), 4u) << "what is for this card has its own channel";
    EXPECT_EQ(net[1].semaphore(0x100).value, 1u);
    EXPECT_TRUE(net[0].ports[1]->forwards()) << "a bad peer closes no port";
    EXPECT_EQ(net[0].ports[3]->state(), ORR_LINK_UP);
    old.hops = link::kMostHops + 1;
    old.index = peer->next_far;
    peer->push_far(old);
    net.run();
    EXPECT_EQ(net[0].ports[3]->state(), ORR_LINK_DOWN);
    EXPECT_THAT(net[0].ports[3]->down_reason(), testing::HasSubstr("passed on too often"));
}

// It would arrive at a time that no card takes from another, but for the drain.
TEST_F(BadForward, WhatComesFromTheEndOfTimeHurtsNoOtherLink) {
    bring_up();
    link::Message late = message(1);
    late.send_ps = late.head_ps = late.arrival_ps = kLatestSystemTime - 1;
    peer->push_far(late);
    net[0].ports[3]->drain();
    net.run();
    EXPECT_EQ(net[1].semaphore(0x100).value, 1u);
    EXPECT_EQ(net[0].ports[1]->state(), ORR_LINK_UP);
    ASSERT_EQ(net[0].signal(2, 0x200, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[1].semaphore(0x200).value, 1u);
    EXPECT_LT(net[1].semaphore(0x200).time_ps, kPsPerSecond);
}

// A card that is an hour ahead: what is drained of it does not have the wire of others until then.
TEST_F(BadForward, WhatIsDrainedFarAheadBooksNoWire) {
    bring_up();
    link::Message late = message(1);
    late.send_ps = late.head_ps = late.arrival_ps = 3600 * kPsPerSecond;
    peer->push_far(late);
    net[0].ports[3]->drain();
    net.run();
    EXPECT_EQ(net[0].drained, 1u);
    ASSERT_EQ(net[0].signal(2, 0x200, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net[1].semaphore(0x200).value, 1u);
    EXPECT_LT(net[1].semaphore(0x200).time_ps, kPsPerSecond / 100);
    EXPECT_EQ(net[1].semaphore(0x100).value, 1u) << "nor is it lost";
}

// What comes without end takes model time.
TEST_F(BadForward, AFloodOfWhatIsDroppedTakesTime) {
    bring_up();
    for (unsigned n = 0; n < 1000; ++n) {
        link::Message nowhere = message(1);
        nowhere.destination = 77;
        peer->push_far(nowhere);
    }
    net.run();
    EXPECT_EQ(net[0].counters.get(ORR_CTR_LINK_DROPPED), 1000u);
    EXPECT_GE(net[0].events.now(), 900 * on_wire(64));
}

// Routes that lead in a circle: what comes again comes from beside.
TEST(Forward, ALoopEnds) {
    Net net(3, true);
    ASSERT_TRUE(net.up());
    net.forward();
    for (unsigned n = 0; n < 3; ++n)
        net[n].route(9, 1);
    ASSERT_EQ(net[0].signal(9, kSem, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DENIED) + net.sum(ORR_CTR_LINK_DROPPED), 1u);
    // And if every card takes it from behind, by the number of its hops.
    net[0].route(1, 0);
    net[1].route(1, 0);
    net[2].route(1, 0);
    ASSERT_EQ(net[0].signal(9, kSem, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_EQ(net.sum(ORR_CTR_LINK_DROPPED), 1u);
    EXPECT_GE(net.sum(ORR_CTR_LINK_FORWARDED), std::uint64_t{link::kMostHops});
}

}  // namespace
}  // namespace orrery::emu::test
