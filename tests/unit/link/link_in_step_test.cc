// Links of cards that keep step: nothing depends on when a message is seen, or on where buffers end.
#include <gtest/gtest.h>

#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {
namespace {

class LinkInStep : public testing::Test {
  protected:
    LinkInStep() : a(0xa, true, folder.file("link"), 2), b(0xb, false, folder.file("link"), 5) {
        a.in_step = b.in_step = true;
    }
    void bring_up() {
        ASSERT_TRUE(connect(a, b));
        ASSERT_TRUE(b.port->set_grant(0, 0, 8 << 20, kA));
    }
    TempFolder folder;
    LinkCard a, b;
};

TEST_F(LinkInStep, ClocksStayAsTheyAre) {
    a.events.advance_to(10 * kPsPerSecond);
    bring_up();
    EXPECT_EQ(b.events.system_now(), 0u);
    b.idle = true;
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    ASSERT_EQ(a.sent.size(), 1u);
    for (int i = 0; i < 10; ++i)
        b.port->poll();
    EXPECT_EQ(b.events.system_now(), 0u);
    EXPECT_EQ(b.events.next_time(), a.sent[0]);
    EXPECT_TRUE(b.port->prepare_sleep()) << "when it comes is for the others to say";
}

// What arrives comes before what the card has to do at the same moment, however late it is seen.
TEST_F(LinkInStep, WhatArrivesComesFirstOfItsMoment) {
    bring_up();
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    const ModelTime arrival = a.sent.at(0);
    for (const bool late : {false, true}) {
        struct Own {
            LinkCard& card;
            std::size_t pokes = 0;
        } own{b};
        Event event(
            [](void* to, ModelTime) {
                static_cast<Own*>(to)->pokes = static_cast<Own*>(to)->card.pokes.size();
            },
            &own);
        const ModelTime when = late ? a.sent.back() : arrival;
        b.events.schedule(event, when);
        if (late) b.events.advance_to(when);
        EXPECT_TRUE(b.port->poll());
        const std::size_t before = b.pokes.size();
        while (b.events.run_next(kNever - 1)) {
        }
        EXPECT_EQ(own.pokes, before + 1) << late;
        EXPECT_EQ(b.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
        ASSERT_EQ(a.port->signal(kB, 0, 2), ORR_FAULT_NONE);
    }
}

// The times of a write depend on its size, and not on what went before.
TEST_F(LinkInStep, WritesAreCutByTheirSizeAlone) {
    bring_up();
    const std::size_t bytes = (1 << 20) + 12345;
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>(i * 31 >> 3);
    for (int round = 0; round < 9; ++round) {  // more than twice the area
        a.sent.clear();
        std::size_t sent = 0;
        for (int tries = 0; sent < bytes && tries < 100; ++tries)
            sent += a.port->write(kB, sent, std::span(data).subspan(sent)).bytes;
        ASSERT_EQ(sent, bytes);
        EXPECT_EQ(a.sent.size(), 5u) << round;
        while (b.round() || b.events.run_next(kNever - 1)) {
        }
        a.events.advance_to(b.events.now() + 500 * kPsPerNs);
        EXPECT_EQ(std::memcmp(b.vram.data(), data.data(), bytes), 0) << round;
        std::memset(b.vram.data(), 0, bytes);
    }
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
}

// However early or late the hosts have both look: room is there the peer's latency after the time at which
// the peer gave it, and whoever waits is called then.
TEST_F(LinkInStep, RoomComesALatencyAfterItsTime) {
    // The peer's, for it is what that one promises the others.
    b.config.latency_ns = 1000;
    b.open();
    bring_up();
    std::vector<std::byte> data(256 << 10);
    for (const bool late : {false, true}) {
        const ModelTime now = b.events.now() + 100'000 * kPsPerNs;
        a.events.advance_to(now);
        b.events.advance_to(now);
        a.sent.clear();
        int writes = 0;
        while (a.port->write(kB, 0, data).bytes != 0)
            ++writes;
        EXPECT_EQ(writes, 16);
        const ModelTime arrival = a.sent.at(0);
        struct Waits {
            LinkCard& card;
            std::vector<ModelTime> called;
        } waits{a, {}};
        Event event(
            [](void* to, ModelTime at) {
                auto& self = *static_cast<Waits*>(to);
                self.called.push_back(at);
            },
            &waits);
        const auto take_first = [&] {
            b.port->poll();
            EXPECT_TRUE(b.events.run_next(arrival));
        };
        if (late) take_first();
        b.sent.clear();
        EXPECT_EQ(a.port->write(kB, 0, data).bytes, 0u);
        a.port->wait_for_room(kB, event);
        if (!late) {
            EXPECT_EQ(a.events.next_time(), kNever) << "the peer has given nothing";
            take_first();
            // It has said so, for a clock that may have nothing else to wait for.
            ASSERT_EQ(b.sent.size(), 1u);
            EXPECT_EQ(b.sent[0], arrival + 1000 * kPsPerNs);
            a.port->poll();
        }
        EXPECT_TRUE(waits.called.empty());
        EXPECT_EQ(a.port->write(kB, 0, data).bytes, 0u) << "it is not here yet";
        while (waits.called.empty() && a.events.run_next(kNever - 1)) {
        }
        ASSERT_EQ(waits.called, std::vector{arrival + 1000 * kPsPerNs}) << late;
        EXPECT_NE(a.port->write(kB, 0, data).bytes, 0u);
        while (b.round() || b.events.run_next(kNever - 1) || a.idle_round()) {
        }
    }
}

// What nobody waits for is told nobody.
TEST_F(LinkInStep, WhoDoesNotWaitIsNotTold) {
    bring_up();
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    while (b.round() || b.events.run_next(kNever - 1)) {
    }
    EXPECT_EQ(b.pokes.size(), 1u);
    EXPECT_TRUE(b.sent.empty());
}

// Signals without room wait their turn, and are not refused; what the peer's core holds up comes when it has
// room.
TEST_F(LinkInStep, SignalsWaitForRoom) {
    bring_up();
    b.poke_lane_full = true;
    constexpr unsigned kMost = 16384 + 1024;
    for (unsigned n = 0; n < kMost + 10; ++n)
        ASSERT_EQ(a.port->signal(kB, 0, 1 + n), n < kMost ? ORR_FAULT_NONE : ORR_FAULT_PEER_BUSY) << n;
    b.port->poll();
    while (b.events.run_next(kNever - 1)) {
    }
    EXPECT_TRUE(b.pokes.empty());
    EXPECT_TRUE(a.port->congested());
    b.poke_lane_full = false;
    b.port->poke_room();
    for (int i = 0; i < 100'000 && (b.round() || b.events.run_next(kNever - 1) || a.idle_round()); ++i) {
    }
    EXPECT_FALSE(a.port->congested());
    EXPECT_EQ(b.pokes.size(), std::size_t{kMost});
}

// Sends messages of one size without end, and waits for room when there is none.
struct Stream {
    Stream(LinkCard& its_card, std::uint64_t bytes) : card(its_card), data(bytes) {
        card.events.schedule(event, card.events.now());
    }
    void on(ModelTime) {
        while (card.port->write(kB, 0, data).bytes != 0)
            ++sent;
        card.port->wait_for_room(kB, event);
    }
    LinkCard& card;
    std::vector<std::byte> data;
    Event event = Event::of<&Stream::on>(this);
    unsigned sent = 0;
};

// Room that comes back a little at a time is not all taken by those who need little.
TEST_F(LinkInStep, WhoNeedsMuchRoomGetsItsTurn) {
    bring_up();
    Stream little(a, 4096), much(a, 256 << 10), other(a, 4096);
    a.round();
    EXPECT_EQ(little.sent, 1024u) << "4 MiB";
    for (int i = 0; i < 400'000 && much.sent < 20; ++i) {
        // Each time as much as one message gives back.
        b.port->poll();
        b.events.run_next(kNever - 1);
        a.idle_round();
    }
    EXPECT_GE(much.sent, 20u);
    EXPECT_GT(little.sent, 1024u);
    EXPECT_GT(other.sent, 0u);
    for (Stream* stream : {&little, &much, &other}) {
        a.port->forget(stream->event);
        a.events.cancel(stream->event);
    }
}

}  // namespace
}  // namespace orrery::emu::test
