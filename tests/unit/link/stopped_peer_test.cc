// Cards and their links when one of those that a read takes does not go on: which link goes down, and that
// none does whose card only sleeps, or has other things to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <initializer_list>
#include <map>

#include "emulator/link/followed.h"
#include "tests/unit/link/net.h"

namespace orrery::emu::test {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kSilenceMs = 300;
constexpr unsigned kLongMs = 3 * kSilenceMs;
constexpr unsigned kTries = 10'000;  // of 1 ms, far more than it takes

struct Ears final : Asker {
    void answered(std::uint32_t, const LinkAnswer& answer) override {
        ++calls;
        fault = answer.fault;
    }
    void ways_changed() override {}
    unsigned calls = 0;
    std::uint32_t fault = ORR_FAULT_NONE;
};

class StoppedPeer : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(net_.up());
        net_.forward();
        for (auto& owner : net_.cards)
            for (auto& from : net_.cards)
                for (auto& port : owner->ports)
                    if (port && from != owner)
                        ASSERT_TRUE(port->set_grant(from->node - 1, 0, owner->vram.size(), from->node,
                                                    {.rights = ORR_LINK_RIGHTS}));
    }
    void read(unsigned from) {
        PeerPort* const port = net_[0].peers.towards(from + 1);
        ASSERT_NE(port->read(from + 1, 0, got_, kNever, ears_).tag, 0u);
    }
    // As its thread does: it sleeps when there is nothing to do, and looks when it is woken.
    static void turn(NetCard& card) {
        bool awake = false;
        for (auto& port : card.ports) {
            if (!port) continue;
            awake |= !port->prepare_sleep();
            pollfd ready{port->poll_fd(), POLLIN, 0};
            awake |= ::poll(&ready, 1, 0) == 1;
        }
        if (!awake) return;
        for (auto& port : card.ports)
            if (port) port->after_sleep();
        for (bool did = true; did;) {
            did = card.events.run_next(kNever - 1);
            for (auto& port : card.ports)
                if (port) did |= port->poll();
        }
    }
    // For some time, or until a link is down.
    void go_on(std::initializer_list<unsigned> cards, unsigned most_ms) {
        for (unsigned ms = 0; ms < most_ms && net_down() == 0; ++ms) {
            for (const unsigned card : cards)
                turn(net_[card]);
            ::usleep(1000);
        }
    }
    unsigned net_down() {
        unsigned down = 0;
        for (auto& card : net_.cards)
            for (auto& port : card->ports)
                down += port && port->state() != ORR_LINK_UP ? 1 : 0;
        return down;
    }

    Net net_{3, Shape::kChain, kSilenceMs};
    Ears ears_;
    std::vector<std::byte> got_ = std::vector<std::byte>(64);
};

// It has taken nothing.
TEST_F(StoppedPeer, TwoLinksAwayLosesTheLinkToItsNeighbour) {
    read(2);
    go_on({0, 1}, kTries);
    EXPECT_EQ(net_[1].ports[1]->state(), ORR_LINK_DOWN);
    EXPECT_THAT(net_[1].ports[1]->down_reason(), HasSubstr("did not look at its link for 300 ms"));
    EXPECT_EQ(net_[0].ports[1]->state(), ORR_LINK_UP) << "its neighbour lives";
    EXPECT_EQ(ears_.calls, 0u) << "who asked hears of that by the driver";
    // As the driver does when it has heard of the link.
    net_[0].route(3, 1, 1);
    net_[0].ports[1]->routes_changed();
    EXPECT_EQ(ears_.calls, 1u);
    EXPECT_EQ(ears_.fault, ORR_FAULT_PEER_DOWN);
}

// It has taken the request, and passed it on.
TEST_F(StoppedPeer, BetweenARequestAndItsAnswerLosesTheLink) {
    read(2);
    for (unsigned tries = 0; tries < kTries && net_[1].counters.get(ORR_CTR_LINK_FORWARDED) == 0; ++tries)
        turn(net_[1]);
    ASSERT_EQ(net_[1].counters.get(ORR_CTR_LINK_FORWARDED), 1u);
    go_on({0, 2}, kTries);
    EXPECT_EQ(net_[0].ports[1]->state(), ORR_LINK_DOWN);
    EXPECT_THAT(net_[0].ports[1]->down_reason(), HasSubstr("did not look at its link for 300 ms"));
    EXPECT_EQ(ears_.calls, 1u);
    EXPECT_EQ(ears_.fault, ORR_FAULT_PEER_DOWN);
    EXPECT_EQ(net_[2].ports[0]->state(), ORR_LINK_UP) << "which waits for nobody";
}

// A signal for which its core has no room is before the request.
TEST_F(StoppedPeer, IsNoneThatAnswersLater) {
    net_[2].stuck = true;
    ASSERT_EQ(net_[0].signal(3, 0x1000, 1), ORR_FAULT_NONE);
    read(2);
    go_on({0, 1, 2}, kLongMs);
    ASSERT_EQ(net_down(), 0u) << net_[1].ports[1]->down_reason() << net_[0].ports[1]->down_reason();
    ASSERT_EQ(ears_.calls, 0u);
    net_[2].stuck = false;
    net_[2].ports[0]->poke_room();
    net_.run();
    EXPECT_EQ(ears_.calls, 1u);
    EXPECT_EQ(ears_.fault, ORR_FAULT_NONE);
    // And nobody waits for it any more, so it may stop.
    go_on({0, 1}, kLongMs);
    EXPECT_EQ(net_down(), 0u);
}

link::Message request(std::uint16_t source, std::uint16_t destination, std::uint32_t tag) {
    link::Message message{};
    message.op = link::kOpRead;
    message.source = source;
    message.destination = destination;
    message.tag = tag;
    return message;
}

TEST(Followed, EndWithTheirAnswersInAnyOrderOfPairs) {
    link::Followed all;
    EXPECT_FALSE(all.any());
    link::Message write = request(1, 2, 0);
    write.op = link::kOpWrite;
    all.add(write);
    EXPECT_FALSE(all.any()) << "nobody answers it";
    all.add(request(1, 3, 7));
    all.add(request(2, 3, 7));
    all.add(request(1, 3, 8));
    all.answered(request(3, 2, 9));
    all.answered(request(3, 2, 8));
    EXPECT_TRUE(all.any());
    all.answered(request(3, 2, 7));
    all.answered(request(3, 1, 7));
    EXPECT_TRUE(all.any());
    all.answered(request(3, 1, 8));
    EXPECT_FALSE(all.any());
}

TEST(Followed, EndWithALaterAnswerToTheSameNode) {
    link::Followed all;
    for (const std::uint32_t tag : {5u, 6u, 7u})
        all.add(request(1, 3, tag));
    all.add(request(2, 3, 5));
    all.answered(request(3, 1, 6));
    all.answered(request(3, 2, 5));
    EXPECT_TRUE(all.any()) << "the last of the first";
    all.answered(request(3, 1, 7));
    EXPECT_FALSE(all.any());
}

// Who lies takes no room of other pairs' before all is taken, and nobody's memory.
TEST(Followed, AreNoMoreThanThereIsRoomFor) {
    link::Followed all;
    std::uint16_t source = 0;
    for (std::size_t count = 0; count < link::Followed::kMost; count += link::Followed::kMostOfAPair) {
        ++source;
        for (std::uint32_t tag = 1; tag <= link::Followed::kMostOfAPair + 1; ++tag)
            all.add(request(source, 300, tag));
    }
    all.add(request(299, 300, 1));
    for (std::uint16_t each = 1; each <= source; ++each) {
        EXPECT_TRUE(all.any()) << each;
        all.answered(request(300, each, link::Followed::kMostOfAPair + 1));
        all.answered(request(300, each, link::Followed::kMostOfAPair));
    }
    EXPECT_FALSE(all.any()) << "neither the last of each pair nor the last pair had room";
}

// Its answer came by another port, or nobody waits for it any more.
TEST(Followed, EndWhenThePeerHasLivedForLong) {
    link::Followed all;
    all.add(request(1, 3, 1));
    for (std::uint64_t lives = 0; lives < link::Followed::kLives; ++lives)
        all.alive();
    EXPECT_TRUE(all.any());
    all.add(request(1, 3, 2));
    all.add(request(2, 3, 1));
    all.alive();
    all.answered(request(3, 2, 1));
    EXPECT_TRUE(all.any()) << "the second";
    all.answered(request(3, 1, 1));
    EXPECT_TRUE(all.any());
    all.answered(request(3, 1, 2));
    EXPECT_FALSE(all.any());
}

}  // namespace
}  // namespace orrery::emu::test
