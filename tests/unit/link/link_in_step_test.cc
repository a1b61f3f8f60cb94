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
        EXPECT_EQ(std::memcmp(b.vram.data(), data.data(), bytes), 0) << round;
        std::memset(b.vram.data(), 0, bytes);
    }
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
}

// Time stands while the peer only has to run, and goes on if its control core has to do something first.
TEST_F(LinkInStep, TimeStandsForRoomThatComesByItself) {
    bring_up();
    std::vector<std::byte> data(256 << 10);
    int writes = 0;
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    while (a.port->write(kB, 0, data).bytes != 0)
        ++writes;
    EXPECT_EQ(writes, 16);
    EXPECT_FALSE(a.port->holds_time());
    Event waits([](void*, ModelTime) {}, nullptr);
    a.port->wait_for_room(kB, waits);
    EXPECT_FALSE(a.port->holds_time()) << "b may not execute the first of them before a goes on";
    a.events.advance_to(100 * kPsPerNs);
    EXPECT_TRUE(a.port->holds_time());
    // A signal waits its turn, and is not refused.
    for (int n = 0; n < 20'000; ++n)
        ASSERT_EQ(a.port->signal(kB, 0, 2), n < 16384 - 17 + 1024 ? ORR_FAULT_NONE : ORR_FAULT_PEER_BUSY)
            << n;
    b.poke_lane_full = true;
    b.port->poll();
    while (b.events.run_next(kNever - 1)) {
    }
    EXPECT_TRUE(b.pokes.empty());
    EXPECT_FALSE(a.port->holds_time()) << "its core has to make room";
    b.poke_lane_full = false;
    b.port->poke_room();
    for (int i = 0; i < 100'000 && (a.port->congested() || !b.round()); ++i) {
        a.round();
        b.events.run_next(kNever - 1);
    }
    EXPECT_FALSE(a.port->congested());
    a.port->forget(waits);
}

// Room that has come is heard when the others' clocks allow it, so until then time does not stand for it.
TEST_F(LinkInStep, TimeGoesOnToWhereRoomIsHeard) {
    bring_up();
    std::vector<std::byte> data(256 << 10);
    while (a.port->write(kB, 0, data).bytes != 0) {
    }
    Event waits([](void*, ModelTime) {}, nullptr);
    a.port->wait_for_room(kB, waits);
    a.events.advance_to(100'000 * kPsPerNs);
    ASSERT_TRUE(a.port->holds_time());
    for (int i = 0; i < 100 && b.counters.get(ORR_CTR_LINK_RX_MESSAGES) < 16; ++i) {
        b.port->poll();
        b.events.run_next(kNever - 1);
    }
    a.acts_at = 120'000 * kPsPerNs;
    a.port->poll();
    EXPECT_FALSE(a.port->holds_time()) << "the room is there, and is heard later";
    a.acts_at = 140'000 * kPsPerNs;
    ASSERT_TRUE(a.events.run_next(kNever - 1));
    EXPECT_EQ(a.events.now(), 120'000 * kPsPerNs);
    EXPECT_FALSE(a.port->holds_time()) << "who is called comes later";
    ASSERT_TRUE(a.events.run_next(kNever - 1));
    EXPECT_EQ(a.events.now(), 140'000 * kPsPerNs);
    a.port->forget(waits);
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
        a.round();
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
