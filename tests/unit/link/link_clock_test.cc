// Whose clock is ahead: jumps to it, and what an idle card skips.
#include <gtest/gtest.h>

#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {
namespace {

class LinkClockTest : public testing::Test {
  protected:
    LinkClockTest() : a(0xa, true, folder.file("link"), 2), b(0xb, false, folder.file("link"), 5) {}

    void bring_up() {
        ASSERT_TRUE(connect(a, b));
        ASSERT_TRUE(b.port->set_grant(0, 0, 1 << 20, kA));
    }
    TempFolder folder;
    LinkCard a, b;
};

// The card that is behind takes over the other's time when the link trains; by its own clock nothing has
// happened, so no deadline on it passes.
TEST_F(LinkClockTest, TheLaterClockWins) {
    a.events.advance_to(10 * kPsPerSecond);
    b.events.advance_to(kPsPerSecond / 10);
    bool fired = false;
    Event deadline([](void* to, ModelTime) { *static_cast<bool*>(to) = true; }, &fired);
    b.events.schedule(deadline, kPsPerSecond / 5);
    bring_up();
    ASSERT_TRUE(a.port->set_grant(0, 0, 4096, kB));
    EXPECT_EQ(b.events.now(), kPsPerSecond / 10);
    EXPECT_EQ(b.events.system_now(), a.events.system_now());
    EXPECT_EQ(a.events.skipped(), 0u);
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    for (int i = 0; i < 1000 && b.pokes.empty(); ++i)
        b.idle_round();
    EXPECT_FALSE(fired) << "the message comes at once, and the deadline is as far away as it was";
    EXPECT_LT(b.events.now(), kPsPerSecond / 10 + 1'000 * kPsPerNs);
    EXPECT_EQ(b.words(0)[1], b.events.system_now());
    ASSERT_EQ(b.port->signal(kA, 0, 1), ORR_FAULT_NONE);
    while (a.pokes.empty() && a.idle_round()) {
    }
    EXPECT_GT(a.words(0)[1], 10 * kPsPerSecond);
    EXPECT_EQ(a.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
}

TEST_F(LinkClockTest, AnIdleCardSkipsToItsNextMessage) {
    bring_up();
    bool fired = false;
    Event deadline([](void* to, ModelTime) { *static_cast<bool*>(to) = true; }, &fired);
    b.events.schedule(deadline, kPsPerSecond);
    a.events.advance_to(10 * kPsPerSecond);  // it was busy all the time
    b.idle = true;
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    for (int i = 0; i < 10 && b.pokes.empty(); ++i)
        b.round();
    EXPECT_EQ(b.pokes.size(), 1u);
    EXPECT_FALSE(fired);
    EXPECT_EQ(b.events.now(), 0u);
    EXPECT_EQ(b.words(0)[1], b.events.system_now());
}

// Whoever asked whether it may sleep has moved the clock to the message, which nobody tells it of again.
TEST_F(LinkClockTest, ACardDoesNotSleepOnAMessageThatItSkipsTo) {
    bring_up();
    a.events.advance_to(10 * kPsPerSecond);
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    b.round();
    EXPECT_GT(b.port->next_arrival(), 9 * kPsPerSecond);
    b.idle = true;
    EXPECT_FALSE(b.port->prepare_sleep());
    EXPECT_EQ(b.port->next_arrival(), b.events.now()) << "it is due";
    b.round();
    EXPECT_EQ(b.pokes.size(), 1u);
}

// What came while the card was busy is skipped to once it has nothing to do.
TEST_F(LinkClockTest, ACardThatFallsIdleSkipsToItsNextMessage) {
    bring_up();
    bool fired = false;
    Event deadline([](void* to, ModelTime) { *static_cast<bool*>(to) = true; }, &fired);
    b.events.schedule(deadline, kPsPerSecond);
    a.events.advance_to(10 * kPsPerSecond);
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    b.round();
    EXPECT_GT(b.port->next_arrival(), 9 * kPsPerSecond);
    b.idle = true;
    for (int i = 0; i < 10 && b.pokes.empty(); ++i)
        b.round();
    EXPECT_EQ(b.pokes.size(), 1u);
    EXPECT_FALSE(fired);
    EXPECT_EQ(b.events.now(), 0u);
    EXPECT_EQ(b.counters.get(ORR_CTR_LINK_STRAGGLERS), 0u);
}

// Two peers are ahead: the clock goes to one after the other, and neither comes late.
TEST_F(LinkClockTest, AJumpForAnotherPortBringsTheNextMessageNearer) {
    bring_up();
    a.events.advance_to(10 * kPsPerSecond);
    ASSERT_EQ(a.port->signal(kB, 0, 1), ORR_FAULT_NONE);
    b.round();
    const ModelTime arrival = b.events.to_system(b.port->next_arrival());
    b.events.jump_to(4 * kPsPerSecond);
    b.port->clock_jumped(4 * kPsPerSecond);
    EXPECT_EQ(b.events.to_system(b.port->next_arrival()), arrival);
    b.events.jump_to(20 * kPsPerSecond);
    b.port->clock_jumped(16 * kPsPerSecond);
    EXPECT_EQ(b.port->next_arrival(), b.events.now());
}

}  // namespace
}  // namespace orrery::emu::test
