// A peer whose process does not look at its link while somebody waits for room there.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {
namespace {

using namespace std::chrono_literals;

class StandingPeer : public testing::Test {
  protected:
    void wait_for_room() {
        ASSERT_TRUE(connect(a_, b_));
        ASSERT_TRUE(b_.port->set_grant(0, 0, 1 << 20, kA));
        while (a_.port->signal(kB, 0, 1) == ORR_FAULT_NONE) {
        }
        a_.port->wait_for_room(kB, waiter_);
        ASSERT_TRUE(a_.port->congested());
    }
    // Asked as often as a card's thread does.
    bool stands(std::chrono::milliseconds later) {
        bool stands = false;
        for (const auto end = now_ + later; now_ < end; now_ += 20ms)
            stands = a_.port->peer_stands(now_);
        return stands;
    }

    TempFolder folder_;
    LinkCard a_{kA, true, folder_.file("link")}, b_{kB, false, folder_.file("link")};
    Event waiter_{[](void*, ModelTime) {}, nullptr};
    std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

TEST_F(StandingPeer, IsOneThatDidNotLookForAWhile) {
    wait_for_room();
    EXPECT_TRUE(stands(20ms)) << "it has not been seen at all";
    b_.port->after_sleep();
    EXPECT_FALSE(stands(100ms));
    EXPECT_TRUE(stands(100ms));
    EXPECT_TRUE(stands(1000ms));
    for (int i = 0; i < 10; ++i) {
        b_.port->after_sleep();  // by its socket's tick
        EXPECT_FALSE(stands(60ms));
    }
    EXPECT_TRUE(stands(100ms));
    for (int i = 0; i < 64; ++i)
        b_.port->poll();
    EXPECT_FALSE(stands(20ms));
}

TEST_F(StandingPeer, IsNoneIfNobodyWaits) {
    ASSERT_TRUE(connect(a_, b_));
    EXPECT_FALSE(stands(1000ms));
    wait_for_room();
    EXPECT_TRUE(stands(1000ms));
    a_.port->forget(waiter_);
    b_.port.reset();
    for (int i = 0; i < 2000 && a_.port->state() == ORR_LINK_UP; ++i)
        a_.wait(1);
    EXPECT_FALSE(stands(1000ms)) << "the link is down";
}

}  // namespace
}  // namespace orrery::emu::test
