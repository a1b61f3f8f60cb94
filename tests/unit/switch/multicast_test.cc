// Multicasts of a switch: exact times, order, what one member lacks, and cards that lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/switch/star.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint32_t kAll = 900;  // the number of a multicast

// To all others from card `from` on, member n with its base.
void join(
    Star& star, unsigned from, std::uint32_t epoch = 0,
    const std::function<std::uint64_t(unsigned)>& base = [](unsigned) { return 0; }) {
    NetCard& card = star[from];
    card.route(kAll, 0, epoch);
    ASSERT_EQ(card.ports[0]->member(kAll, 0, 0), ORR_FAULT_NONE);
    for (unsigned to = 0; to < star.cards.size(); ++to) {
        if (to != from) {
            ASSERT_EQ(card.ports[0]->member(kAll, to + 1, base(to)), ORR_FAULT_NONE);
        }
    }
}

class Multicast : public testing::TestWithParam<unsigned> {};

TEST_P(Multicast, TimesAreThoseOfOneCopy) {
    const unsigned number = GetParam();
    Star star;
    star.make(number);
    ASSERT_TRUE(star.up());
    join(star, 0, 0, [](unsigned to) { return to * std::uint64_t{0x1000}; });
    star.run();
    ModelTime at = 100'000 * kPsPerNs;
    for (const std::uint64_t bytes : {8ull, 4096ull, 100'001ull, 256ull << 10}) {
        for (auto& card : star.cards) {
            card->events.advance_to(at);
            card->arrivals.clear();
        }
        const std::uint64_t sent = star[0].ports[0]->counts().tx_messages.get();
        ASSERT_EQ(star[0].write(kAll, 0x100, bytes, static_cast<std::uint8_t>(bytes)).bytes, bytes);
        ASSERT_EQ(star[0].signal(kAll, kSem, at), ORR_FAULT_NONE);
        star.run();
        EXPECT_EQ(star[0].ports[0]->counts().tx_messages.get(), sent + 2);
        const ModelTime end = at + 2 * kLatency + kHop + on_wire(bytes);
        for (unsigned to = 1; to < number; ++to) {
            ASSERT_EQ(star[to].arrivals.size(), 2u);
            EXPECT_EQ(star[to].arrivals[0], end) << bytes << " to " << to;
            EXPECT_EQ(star[to].semaphore(kSem + to * 0x1000).time_ps, end + on_wire(64));
            EXPECT_EQ(star[to].byte(to * 0x1000 + 0x100), static_cast<std::uint8_t>(bytes));
            EXPECT_EQ(star[to].byte(to * 0x1000 + 0x100 + bytes - 1), static_cast<std::uint8_t>(bytes));
        }
        EXPECT_TRUE(star[0].arrivals.empty());
        at += 1'000'000 * kPsPerNs;
    }
    EXPECT_EQ(star.switches[0]->counters().get(ORR_CTR_LINK_FORWARDED), 8 * (number - 1));
    EXPECT_EQ(star.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED) + star.sum(ORR_CTR_LINK_DENIED), 0u);
}
INSTANTIATE_TEST_SUITE_P(Ports, Multicast, testing::Values(2u, 4u, 8u));

// When the last of seven has it, from the first byte on.
ModelTime to_seven(bool at_once) {
    constexpr std::uint64_t kBytes = 4 << 20;
    Star star;
    star.make(8);
    EXPECT_TRUE(star.up());
    join(star, 0);
    star.run();
    const ModelTime began = star.line_up();
    std::vector<std::unique_ptr<Sender>> senders;
    if (at_once) senders.push_back(std::make_unique<Sender>(star[0], kAll, 0, kBytes, 1));
    for (unsigned to = 1; to < 8 && !at_once; ++to)
        senders.push_back(std::make_unique<Sender>(star[0], to + 1, 0, kBytes, 1));
    star.run();
    ModelTime last = 0;
    for (unsigned to = 1; to < 8; ++to) {
        const orr_semaphore done = star[to].semaphore(kSem + 16);
        EXPECT_EQ(done.value, 1u);
        EXPECT_EQ(star[to].byte(kBytes - 1), 1);
        last = std::max(last, done.time_ps);
    }
    return last - began;
}

// Each owner has a key of its own for the sender; the switch knows them from him, and from nobody else.
TEST(Multicasts, CopiesCarryTheKeysOfTheirOwners) {
    Star star;
    star.make(4);
    ASSERT_TRUE(star.up());
    for (unsigned to = 1; to < 4; ++to) {
        LinkPort& port = *star[to].ports[0];
        ASSERT_TRUE(port.set_grant(1, 0, star[to].vram.size(), 1, {.key = 0x1000 + to}));
        star[0].peers.set_key(to + 1, to == 3 ? 0x1000 : 0x1000 + to);
    }
    join(star, 0);
    ASSERT_EQ(star[0].write(kAll, 0, 64, 9).bytes, 64u);
    ASSERT_EQ(star[0].signal(kAll, kSem, 1), ORR_FAULT_NONE);
    star.run();
    for (unsigned to = 1; to < 4; ++to) {
        EXPECT_EQ(star[to].byte(0), to == 3 ? 0 : 9);
        EXPECT_EQ(star[to].semaphore(kSem).value, to == 3 ? 0u : 1u);
        EXPECT_EQ(star[to].ports[0]->counts().bad_keys.get(), to == 3 ? 2u : 0u);
    }
    EXPECT_EQ(star[0].ports[0]->counts().refused.get(), 2u);
}

TEST(Multicasts, OneIsSixTimesAsFastAsSevenCopies) {
    const ModelTime one = to_seven(true), seven = to_seven(false);
    std::printf("4 MiB to seven: %.1f us by one multicast, %.1f us by seven copies, %.2f times\n",
                static_cast<double>(one) * 1e-6, static_cast<double>(seven) * 1e-6,
                static_cast<double>(seven) / static_cast<double>(one));
    EXPECT_GE(static_cast<double>(seven) / static_cast<double>(one), 6.0);
}

// Each to all others all the time: what waits for one port waits for no other's, and all of it ends.
TEST(Multicasts, AllToAllEndsInOrderAndTheSameEachTime) {
    constexpr std::uint64_t kBytes = 700 << 10;
    std::vector<ModelTime> first;
    for (int play = 0; play < 2; ++play) {
        Star star;
        star.make(8);
        ASSERT_TRUE(star.up());
        for (unsigned from = 0; from < 8; ++from)
            join(star, from);
        star.run();
        std::vector<std::unique_ptr<Sender>> senders;
        for (unsigned from = 0; from < 8; ++from)
            senders.push_back(std::make_unique<Sender>(star[from], kAll, from * kBytes, kBytes, from + 1));
        star.run();
        std::vector<ModelTime> times;
        for (unsigned from = 0; from < 8; ++from) {
            for (unsigned to = 0; to < 8; ++to) {
                if (from == to) continue;
                EXPECT_EQ(star[to].byte(from * kBytes), from + 1);
                EXPECT_EQ(star[to].byte((from + 1) * kBytes - 1), from + 1);
                const orr_semaphore done = star[to].semaphore(kSem + 16 * (from + 1));
                EXPECT_EQ(done.value, 1u) << from << " to " << to;
                times.push_back(done.time_ps);
            }
        }
        EXPECT_EQ(star.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
        EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED) + star.sum(ORR_CTR_LINK_DENIED), 0u);
        if (play == 0) first = times;
        EXPECT_EQ(times, first);
    }
    const double ideal = 7.0 * kBytes / kRate * 1e12;
    std::printf("8 multicasts to seven each: %.3f of the ports\n",
                ideal / static_cast<double>(*std::ranges::max_element(first)));
}

TEST(Multicasts, WhatIsSentToOneComesBehindWhatWasSentToAll) {
    Star star;
    star.make(4);
    ASSERT_TRUE(star.up());
    join(star, 0);
    for (std::uint8_t round = 1; round < 100; ++round) {
        ASSERT_EQ(star[0].write(kAll, 0, 4096, round).bytes, 4096u);
        ASSERT_EQ(star[0].signal(3, kSem, round), ORR_FAULT_NONE);
        bool behind = true;
        star[2].on_arrival = [&](std::uint64_t offset, std::uint64_t) {
            if (offset == kSem) behind = star[2].byte(4095) == round;
        };
        star.run();
        EXPECT_TRUE(behind);
        EXPECT_EQ(star[2].semaphore(kSem).value, round);
    }
}

TEST(Multicasts, OverATreeToo) {
    Star star;
    star.make_tree(2, 2, 2);
    ASSERT_TRUE(star.up());
    join(star, 0);
    star.run();
    ASSERT_EQ(star[0].write(kAll, 0, 4096, 7).bytes, 4096u);
    ASSERT_EQ(star[0].signal(kAll, kSem, 1), ORR_FAULT_NONE);
    star.run();
    for (unsigned to = 1; to < 4; ++to) {
        EXPECT_EQ(star[to].byte(4095), 7);
        EXPECT_EQ(star[to].semaphore(kSem).value, 1u);
    }
}

// Its grants judge, as of a write for it alone, and the sender hears who it was.
TEST(Multicasts, AMemberThatRefusesIsTold) {
    Star star;
    star.make(4);
    ASSERT_TRUE(star.up());
    join(star, 0, 0, [](unsigned to) { return to == 2 ? 0x10000 : 0; });
    ASSERT_TRUE(star[2].ports[0]->set_grant(1, 0, 0x10000, 1));
    ASSERT_EQ(star[0].write(kAll, 0, 64, 7).bytes, 64u);
    star.run();
    EXPECT_EQ(star[1].byte(0), 7);
    EXPECT_EQ(star[2].byte(0), 0);
    EXPECT_EQ(star[2].byte(0x10000), 0);
    EXPECT_EQ(star[3].byte(0), 7);
    EXPECT_EQ(star[0].ports[0]->refused_by(3).count, 1u);
    EXPECT_EQ(star[0].ports[0]->refused_by(3).fault, std::uint32_t{ORR_FAULT_PEER_DENIED});
    EXPECT_EQ(star[0].ports[0]->refused_by(2).count + star[0].ports[0]->refused_by(4).count, 0u);
    // One behind the end of its memory, and one that wraps.
    join(star, 0, 0, [](unsigned to) { return to == 1 ? ~std::uint64_t{0xfff} : 8 << 20; });
    ASSERT_EQ(star[0].write(kAll, 0x800, 0x1000, 9).bytes, 0x1000u);
    star.run();
    for (unsigned to = 1; to < 4; ++to)
        EXPECT_EQ(star[0].ports[0]->refused_by(to + 1).count, to == 2 ? 2u : 1u);
    EXPECT_EQ(star[1].byte(0), 7);
}

// The third message at port 1 is lost: nothing follows there until that pair begins anew; others have it all.
TEST(Multicasts, NothingFollowsAtTheMemberThatLost) {
    Star star;
    star.make(3, plan("link port=1 first=2 count=1 drop"));
    ASSERT_TRUE(star.up());
    join(star, 0);
    const std::uint32_t before = star.reach(0, 2).losses, other = star.reach(0, 3).losses;
    ASSERT_EQ(star[0].write(kAll, 0, 64, 7).bytes, 64u);
    ASSERT_EQ(star[0].write(kAll, 0, 64, 8).bytes, 64u);
    ASSERT_EQ(star[0].signal(kAll, kSem, 1), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(2, kSem, 2), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].byte(0), 7);
    EXPECT_EQ(star[1].semaphore(kSem).value, 0u);
    EXPECT_EQ(star[2].byte(0), 8);
    EXPECT_EQ(star[2].semaphore(kSem).value, 1u);
    EXPECT_NE(star.reach(0, 2).losses, before);
    EXPECT_EQ(star.reach(0, 3).losses, other);
    // The pair alone begins anew: the multicast is still of the old epoch there.
    star[0].route(2, 0, 1);
    star[1].route(1, 0, 1);
    ASSERT_EQ(star[0].signal(kAll, kSem, 3), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 0u);
    join(star, 0, 1);
    ASSERT_EQ(star[0].signal(kAll, kSem, 4), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 4u);
    EXPECT_EQ(star[2].semaphore(kSem).value, 4u);
}

// A pair has begun anew and lost something since: what comes late of its old epoch does not bring it on.
TEST(Multicasts, WhatIsOfAnOlderEpochHidesNoLoss) {
    Star star;
    star.make(3, plan("link port=1 first=2 count=1 drop"));
    ASSERT_TRUE(star.up());
    join(star, 0);
    star[0].route(2, 0, 1);
    star[1].route(1, 0, 1);
    ASSERT_EQ(star[0].write(2, 0, 64, 7).bytes, 64u);
    ASSERT_EQ(star[0].write(2, 0, 64, 8).bytes, 64u);  // is lost
    ASSERT_EQ(star[0].write(kAll, 0x1000, 64, 9).bytes, 64u);
    ASSERT_EQ(star[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].byte(0), 7);
    EXPECT_EQ(star[1].byte(0x1000), 0);
    EXPECT_EQ(star[2].byte(0x1000), 9);
    EXPECT_EQ(star[1].semaphore(kSem).value, 0u);
    // The next after 65535 is 0.
    std::uint64_t value = 1;
    for (const std::uint32_t epoch : {0x7000u, 0xe000u, 0xffffu, 0u}) {
        star[0].route(2, 0, epoch);
        star[1].route(1, 0, epoch);
        ASSERT_EQ(star[0].signal(2, kSem, ++value), ORR_FAULT_NONE);
        star.run();
        EXPECT_EQ(star[1].semaphore(kSem).value, value) << epoch;
    }
}

// What is on its way when the members change belongs to those of before; what is of another epoch is lost to
// all.
TEST(Multicasts, AnotherEpochIsLostToAllMembers) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    join(star, 0);
    ASSERT_EQ(star[0].signal(kAll, kSem, 1), ORR_FAULT_NONE);
    star[0].route(kAll, 0, 5);
    ASSERT_EQ(star[0].signal(kAll, kSem, 2), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(2, kSem, 3), ORR_FAULT_NONE);
    ASSERT_EQ(star[2].signal(2, kSem + 16, 3), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 1u);
    EXPECT_EQ(star[2].semaphore(kSem).value, 1u);
    EXPECT_EQ(star[1].semaphore(kSem + 16).value, 3u);
}

// Card 0 of four has sent a message and a signal to all, of whom card 1 has room for neither.
void leave_no_room(Star& star, std::optional<Sender>& filler) {
    star.make(4);
    ASSERT_TRUE(star.up());
    join(star, 0);
    star[1].stuck = true;
    ASSERT_EQ(star[3].signal(2, kSem, 1), ORR_FAULT_NONE);
    star.run();
    // 4 MiB fill its inbox, behind the signal that waits there.
    filler.emplace(star[3], 2, 0, 4 << 20, 4);
    star.run();
    ASSERT_EQ(star[0].write(kAll, 0x600000, 256 << 10, 7).bytes, std::size_t{256 << 10});
    ASSERT_EQ(star[0].signal(kAll, kSem + 32, 2), ORR_FAULT_NONE);
    star.run();
}

// One port has no room: the other members have the message all the same, and all comes once there is room.
TEST(Multicasts, OneMemberWithoutRoomHoldsBackNoOther) {
    Star star;
    std::optional<Sender> filler;
    ASSERT_NO_FATAL_FAILURE(leave_no_room(star, filler));
    EXPECT_EQ(star[1].byte(0x600000), 0);
    EXPECT_EQ(star[2].byte(0x600000), 7);
    EXPECT_EQ(star[3].byte(0x600000), 7);
    EXPECT_EQ(star[2].semaphore(kSem + 32).value, 0u);  // behind it
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    star.run();
    EXPECT_EQ(star[1].byte(0x600000), 7);
    for (unsigned to = 1; to < 4; ++to)
        EXPECT_EQ(star[to].semaphore(kSem + 32).value, 2u);
    EXPECT_EQ(star[1].semaphore(kSem + 16 * 4).value, 1u);
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED), 0u);
}

// A member takes nothing. Who drains its own port by force loses what is for that one, and nothing of the
// others'.
TEST(Multicasts, OneMemberWithoutRoomHoldsUpNoForcedDrain) {
    Star star;
    std::optional<Sender> filler;
    ASSERT_NO_FATAL_FAILURE(leave_no_room(star, filler));
    Sender other(star[2], 2, 0, 4 << 20, 4);  // waits for it by another port
    star.run();
    const std::uint32_t one = star.reach(0, 2).losses, two = star.reach(0, 3).losses;
    star[0].ports[0]->drain();
    star.run();
    EXPECT_EQ(star[0].drained, 0u);
    star[0].ports[0]->drain(true);
    star.run();
    EXPECT_EQ(star[0].drained, 2u);
    EXPECT_NE(star.reach(0, 2).losses, one);
    EXPECT_EQ(star.reach(0, 3).losses, two);
    for (unsigned to = 2; to < 4; ++to)
        EXPECT_EQ(star[to].semaphore(kSem + 32).value, 2u);
    // What is sent later waits again, and at that member nothing follows what was lost.
    ASSERT_EQ(star[0].signal(kAll, kSem + 0x100, 3), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(2, kSem + 0x110, 3), ORR_FAULT_NONE);
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    star.run();
    EXPECT_EQ(star[1].byte(0x600000), 0);
    EXPECT_EQ(star[1].semaphore(kSem + 32).value, 0u);
    EXPECT_EQ(star[1].semaphore(kSem + 0x100).value, 0u);
    EXPECT_EQ(star[1].semaphore(kSem + 0x110).value, 0u);
    EXPECT_EQ(star[2].semaphore(kSem + 0x100).value, 3u);
    EXPECT_EQ(star[3].semaphore(kSem + 0x100).value, 3u);
    EXPECT_EQ(star[1].semaphore(Sender::semaphore_of(3)).value, 1u);
    EXPECT_EQ(star[1].semaphore(Sender::semaphore_of(4)).value, 1u);
    star[0].ports[0]->drain();
    star.run();
    EXPECT_EQ(star[0].drained, 3u);
}

// What finds no room at a card that goes on taking is waited for, by force or not.
TEST(Multicasts, AForcedDrainLosesNothingForWhoIsBusy) {
    Star star;
    std::optional<Sender> filler;
    ASSERT_NO_FATAL_FAILURE(leave_no_room(star, filler));
    const auto fill_third = [&](std::uint64_t value) {
        star[2].stuck = true;
        ASSERT_EQ(star[3].signal(3, kSem, value), ORR_FAULT_NONE);
        Sender more(star[3], 3, 0, 4 << 20, 5);
        star.run();
    };
    ASSERT_NO_FATAL_FAILURE(fill_third(1));
    ASSERT_EQ(star[0].write(3, 0x640000, 256 << 10, 8).bytes, std::size_t{256 << 10});
    star[0].ports[0]->drain();
    star.run();
    star[2].stuck = false;
    star[2].ports[0]->poke_room();
    star.run();
    ASSERT_NO_FATAL_FAILURE(fill_third(2));
    const std::uint32_t busy = star.reach(0, 3).losses, deaf = star.reach(0, 2).losses;
    star[0].ports[0]->drain(true);
    star.run();
    EXPECT_EQ(star[0].drained, 0u);
    EXPECT_NE(star.reach(0, 2).losses, deaf);
    star[2].stuck = false;
    star[2].ports[0]->poke_room();
    star.run();
    EXPECT_EQ(star[0].drained, 2u);
    EXPECT_EQ(star.reach(0, 3).losses, busy);
    EXPECT_EQ(star[2].byte(0x640000), 8);
    EXPECT_EQ(star[2].semaphore(kSem + 32).value, 2u);
}

// A driver begins to count anew: a switch between others does not know, and takes the first epochs for what
// they are.
TEST(Multicasts, NewLivesPassOverATree) {
    Star star;
    star.make_tree(2, 2, 2);
    ASSERT_TRUE(star.up());
    star.routes(0x100);
    ASSERT_EQ(star[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[2].semaphore(kSem).value, 1u);
    for (auto& card : star.cards) {
        card->ports[0]->set_node(0);
        card->ports[0]->set_node(card->node);
    }
    star.routes(1);
    ASSERT_EQ(star[0].write(3, 0, 64, 7).bytes, 64u);
    ASSERT_EQ(star[0].signal(3, kSem, 2), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[2].byte(0), 7);
    EXPECT_EQ(star[2].semaphore(kSem).value, 2u);
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED), 0u);
}

// Card 0 copies to card 1, which takes nothing: its own port is full, and copies wait for it.
void fill_own_port(Star& star, std::optional<Sender>& one, std::optional<Sender>& other) {
    star.make(3);
    ASSERT_TRUE(star.up());
    star[1].stuck = true;
    ASSERT_EQ(star[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    one.emplace(star[0], 2, 0, 6 << 20, 4);
    other.emplace(star[0], 2, 0, 6 << 20, 4);
    star.run();
}

// Its own port is full, and copies wait for it: members are taken all the same, behind what has gone.
TEST(Multicasts, AreMadeBesideAPortThatIsFull) {
    Star star;
    std::optional<Sender> one, other;
    ASSERT_NO_FATAL_FAILURE(fill_own_port(star, one, other));
    ASSERT_TRUE(star[0].ports[0]->congested());
    join(star, 0);
    star.run();
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    ASSERT_EQ(star[0].signal(kAll, kSem + 48, 3), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem + 48).value, 3u);
    EXPECT_EQ(star[2].semaphore(kSem + 48).value, 3u);
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED), 0u);
}

// So they are where stores wait, and then in order behind those.
TEST(Multicasts, AreMadeBehindStoresThatWait) {
    Star star;
    std::optional<Sender> one, other;
    ASSERT_NO_FATAL_FAILURE(fill_own_port(star, one, other));
    const std::vector<std::byte> eight(8, std::byte{9});
    while (star[0].ports[0]->post(2, 0x7f0000, eight) == ORR_FAULT_NONE) {
    }
    star[0].route(kAll, 0, 0);
    EXPECT_EQ(star[0].ports[0]->member(kAll, 0, 0), std::uint32_t{ORR_FAULT_PEER_BUSY});
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    star.run();
    star[1].stuck = true;
    ASSERT_EQ(star[0].signal(2, kSem, 2), ORR_FAULT_NONE);
    Sender again(star[0], 2, 0, 6 << 20, 5), more(star[0], 2, 0, 6 << 20, 5);
    star.run();
    ASSERT_EQ(star[0].ports[0]->post(2, 0x7f0000, eight), ORR_FAULT_NONE);
    join(star, 0);
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    star.run();
    ASSERT_EQ(star[0].signal(kAll, kSem + 48, 3), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem + 48).value, 3u);
    EXPECT_EQ(star[2].semaphore(kSem + 48).value, 3u);
}

// Its port goes down while the message waits for room there: it is lost to that one alone.
TEST(Multicasts, AMemberThatGoesMeanwhileIsWaitedForNoLonger) {
    Star star;
    std::optional<Sender> filler;
    ASSERT_NO_FATAL_FAILURE(leave_no_room(star, filler));
    ASSERT_EQ(star[2].semaphore(kSem + 32).value, 0u);
    const std::uint32_t before = star.reach(0, 2).losses;
    star[1].ports[0]->unplug();
    for (int i = 0; i < 100 && star.switches[0]->port(1)->up(); ++i) {
        star.switches[0]->port(1)->service();
        ::usleep(1000);
    }
    star.run();
    EXPECT_EQ(star[2].semaphore(kSem + 32).value, 2u);
    EXPECT_EQ(star[3].semaphore(kSem + 32).value, 2u);
    ASSERT_TRUE(star[1].ports[0]->plug());
    star[1].stuck = false;
    ASSERT_TRUE(star.up());
    EXPECT_NE(star.reach(0, 2).losses, before);
    ASSERT_EQ(star[0].signal(kAll, kSem + 48, 3), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem + 48).value, 0u);
    EXPECT_EQ(star[2].semaphore(kSem + 48).value, 3u);
}

struct Ears final : Asker {
    void answered(std::uint32_t, const LinkAnswer& answer) override { faults.push_back(answer.fault); }
    void ways_changed() override {}
    std::vector<std::uint32_t> faults;
};

TEST(Multicasts, ReadsAndAtomicsHaveNoRouteThere) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    join(star, 0);
    Ears ears;
    std::vector<std::byte> to(64);
    ASSERT_NE(star[0].ports[0]->read(kAll, 0, to, kNever, ears).tag, 0u);
    ASSERT_NE(star[0].ports[0]->atomic(kAll, 0, {.function = ORR_ATOMIC_ADD, .operand = 1}, kNever, ears).tag,
              0u);
    star.run();
    EXPECT_THAT(ears.faults, testing::ElementsAre(ORR_FAULT_NO_ROUTE, ORR_FAULT_NO_ROUTE));
}

TEST(Multicasts, AreLimitedAndEnd) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    LinkPort& port = *star[0].ports[0];
    for (std::uint32_t n = 0; n <= ORR_MULTICASTS; ++n) {
        star[0].route(kAll + n, 0);
        ASSERT_EQ(port.member(kAll + n, n == ORR_MULTICASTS ? 3 : 2, 0), ORR_FAULT_NONE);
    }
    ASSERT_EQ(port.member(kAll, 3, 0), ORR_FAULT_NONE);
    ASSERT_EQ(port.member(kAll, 3, 0x1000), ORR_FAULT_NONE);  // it is one already
    const std::uint32_t before = star.reach(0, 2).losses, other = star.reach(0, 3).losses;
    star.run();
    // Who counts on what was refused hears of a loss, and nothing follows there.
    EXPECT_EQ(star.reach(0, 2).losses, before);
    EXPECT_NE(star.reach(0, 3).losses, other);
    ASSERT_EQ(star[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[2].semaphore(kSem).value, 0u);
    EXPECT_EQ(star.switches[0]->errors().count(ErrorKind::kGuestError), 2u);
    EXPECT_EQ(star.switches[0]->counters().get(ORR_CTR_LINK_DROPPED), 3u);
    ASSERT_EQ(star[0].signal(kAll + ORR_MULTICASTS - 1, kSem, 1), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(kAll + ORR_MULTICASTS, kSem, 2), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 1u);
    // One that ends makes room, and leads nowhere any more.
    ASSERT_EQ(port.member(kAll, 0, 0), ORR_FAULT_NONE);
    ASSERT_EQ(port.member(kAll + ORR_MULTICASTS, 2, 0), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(kAll, kSem, 3), ORR_FAULT_NONE);
    star[0].route(kAll + ORR_MULTICASTS, 0, 1);
    ASSERT_EQ(star[0].signal(kAll + 1, kSem, 4), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 4u);
    // So does the link, when it has been down.
    port.unplug();
    for (int i = 0; i < 100 && star.switches[0]->port(0)->up(); ++i) {
        star.switches[0]->port(0)->service();
        ::usleep(1000);
    }
    star.run();
    ASSERT_TRUE(port.plug());
    ASSERT_TRUE(star.up());
    star.routes(1);
    ASSERT_EQ(star[0].signal(kAll + 1, kSem, 5), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 4u);
}

// Its driver gives it a node again, the same, and the switch has not looked between.
TEST(Multicasts, AreForgottenWithTheLifeOfTheirCard) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    LinkPort& port = *star[0].ports[0];
    for (std::uint32_t n = 0; n < ORR_MULTICASTS; ++n) {
        star[0].route(kAll + n, 0);
        ASSERT_EQ(port.member(kAll + n, 2, 0), ORR_FAULT_NONE);
    }
    star.run();
    port.set_node(0);
    port.set_node(1);
    star[0].route(kAll + ORR_MULTICASTS, 0);
    ASSERT_EQ(port.member(kAll + ORR_MULTICASTS, 2, 0), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(kAll + ORR_MULTICASTS, kSem, 1), ORR_FAULT_NONE);
    // An old number is another card's node now.
    star[2].ports[0]->set_node(kAll);
    star[2].route(1, 0);
    ASSERT_EQ(star[2].signal(1, kSem, 1), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 1u);
    ASSERT_EQ(star[0].write(kAll, 0, 64, 7).bytes, 64u);
    ASSERT_EQ(star[0].signal(kAll, kSem, 2), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[2].byte(0), 7);
    EXPECT_EQ(star[2].semaphore(kSem).value, 2u);
    EXPECT_EQ(star[1].byte(0), 0);
    EXPECT_EQ(star[1].semaphore(kSem).value, 1u);
    EXPECT_EQ(star.switches[0]->counters().get(ORR_CTR_LINK_DROPPED), 0u);
}

// Two of three members have a message when they are forgotten; the next one to all is for all.
TEST(Multicasts, AreForgottenWithWhatWasHalfCopied) {
    Star star;
    std::optional<Sender> filler;
    ASSERT_NO_FATAL_FAILURE(leave_no_room(star, filler));
    star[0].ports[0]->set_node(0);
    star[0].ports[0]->set_node(1);
    star[1].stuck = false;
    star[1].ports[0]->poke_room();
    star.run();
    EXPECT_EQ(star[1].byte(0x600000), 0);
    join(star, 0);
    ASSERT_EQ(star[0].write(kAll, 0x600000, 64, 9).bytes, 64u);
    star.run();
    for (unsigned to = 1; to < 4; ++to)
        EXPECT_EQ(star[to].byte(0x600000), 9) << to;
}

TEST(Multicasts, ACardMakesNoneForAnother) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    star[2].ports[0]->set_node(1);  // it says that it is card 0
    star.run();
    join(star, 0);
    star[2].route(kAll, 0);
    ASSERT_EQ(star[2].ports[0]->member(kAll, 0, 0), ORR_FAULT_NONE);
    ASSERT_EQ(star[2].ports[0]->member(kAll, 2, 0x1000), ORR_FAULT_NONE);
    ASSERT_EQ(star[2].signal(kAll, kSem, 9), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(kAll, kSem + 16, 1), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 0u);
    EXPECT_EQ(star[1].semaphore(kSem + 0x1000).value, 0u);
    EXPECT_EQ(star[1].semaphore(kSem + 16).value, 1u);
    EXPECT_EQ(star.switches[0]->counters().get(ORR_CTR_LINK_DENIED), 3u);
}

// Between two cards nobody copies: there is no such thing to ask for, and who sends it all the same is
// denied.
TEST(Multicasts, NeedASwitch) {
    Net net(2, false);
    ASSERT_TRUE(net.up());
    net[0].route(kAll, 1);
    EXPECT_EQ(net[0].ports[1]->member(kAll, 2, 0), std::uint32_t{ORR_FAULT_NO_ROUTE});
}

}  // namespace
}  // namespace orrery::emu::test
