// Barriers of several cards: exact times, rounds, failures, and what others may not.
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/time/rate.h"
#include "tests/unit/link/net.h"
#include "tests/unit/link/raw_peer.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kSem = 0x700000, kKey = 0x1234'5678'9abc'def0;
constexpr std::uint64_t kFar = 10'000 * kPsPerNs;
const ModelTime kWord = duration_ps(link::kLeastBytes, kRate);  // on the wire

std::uint64_t lost_word(unsigned member) {
    return 0x4100 + member;
}
std::uint64_t reset_word(unsigned member) {
    return 0x4200 + member;
}
std::uint64_t failed(std::uint64_t word) {
    return word | ORR_SEM_FAILED;
}

// A barrier of all cards of a net; card n uses slot n of its own, so that numbers are not mixed up.
class Barrier {
  public:
    explicit Barrier(Net& net, std::vector<unsigned> members) : net_(net), members_(std::move(members)) {}
    explicit Barrier(Net& net) : net_(net) {
        for (unsigned n = 0; n < net.cards.size(); ++n)
            members_.push_back(n);
    }
    void arm_one(unsigned n, std::uint64_t key = kKey) {
        for (const unsigned other : members_) {
            if (other == n) continue;
            ASSERT_EQ(
                net_[n].barriers.add(n, (other + 1) | other << ORR_BARRIER_SLOT_SHIFT, lost_word(other)),
                ORR_FAULT_NONE);
        }
        ASSERT_EQ(net_[n].barriers.arm(n, key, kSem, reset_word(n)), ORR_FAULT_NONE);
    }
    void arm() {
        for (const unsigned n : members_)
            arm_one(n);
    }
    std::uint32_t arrive(unsigned n, std::uint64_t round) { return net_[n].barriers.arrive(n, round); }
    orr_semaphore at(unsigned n) { return net_[n].semaphore(kSem); }
    bool all_have(std::uint64_t value) {
        return std::ranges::all_of(members_, [&](unsigned n) { return at(n).value == value; });
    }
    std::uint32_t state(unsigned n) const { return net_[n].barriers.states() >> 4 * n & 15; }
    const std::vector<unsigned>& members() const { return members_; }

  private:
    Net& net_;
    std::vector<unsigned> members_;
};

void at_once(Net& net, ModelTime at) {
    for (auto& card : net.cards)
        card->events.advance_to(at);
}

struct Figure {
    Shape shape;
    unsigned cards;
    unsigned links;  // of the longest way
};
class Latency : public testing::TestWithParam<Figure> {};

// The words of one card are one behind the other where they go by the same link; nothing else is added to the
// longest way.
TEST_P(Latency, IsTheLongestWay) {
    const auto [shape, number, links] = GetParam();
    Net net(number, shape);
    ASSERT_TRUE(net.up());
    net.forward();
    Barrier barrier(net);
    barrier.arm();
    const ModelTime way = links * kLatency + (links - 1) * kSwitching + kWord;
    ModelTime at = kFar;
    for (std::uint64_t round = 1; round <= 3; ++round, at += 100 * kFar) {
        at_once(net, at);
        for (unsigned n = 0; n < number; ++n)
            ASSERT_EQ(barrier.arrive(n, round), ORR_FAULT_NONE);
        net.run();
        ASSERT_TRUE(barrier.all_have(round));
        ModelTime last = 0;
        for (unsigned n = 0; n < number; ++n)
            last = std::max(last, barrier.at(n).time_ps);
        // What shares a wire with others, and no more: each word takes its bytes' time there.
        const unsigned most = shape == Shape::kMesh ? 1 : number - 1;
        EXPECT_GE(last - at, way);
        EXPECT_LE(last - at, way + (most - 1) * kWord) << "links " << links;
        EXPECT_LE(last - at, way + way / 50);
        if (shape == Shape::kMesh || number == 2) EXPECT_EQ(last - at, way);
    }
    EXPECT_EQ(net.sum(ORR_CTR_LINK_STRAGGLERS) + net.sum(ORR_CTR_LINK_DENIED), 0u);
    EXPECT_EQ(net.sum(ORR_CTR_BARRIER_RELEASES), 3u * number);
    for (unsigned n = 0; n < number; ++n)
        EXPECT_EQ(net[n].pokes, std::vector<std::uint64_t>(3, kSem));
}

// One that is late holds all, each for its own way from there.
TEST_P(Latency, IsCountedFromTheLast) {
    const auto [shape, number, links] = GetParam();
    Net net(number, shape);
    ASSERT_TRUE(net.up());
    net.forward();
    Barrier barrier(net);
    barrier.arm();
    at_once(net, kFar);
    for (unsigned n = 1; n < number; ++n)
        ASSERT_EQ(barrier.arrive(n, 1), ORR_FAULT_NONE);
    net.run();
    EXPECT_TRUE(barrier.all_have(0));
    const ModelTime at = 100 * kFar;
    at_once(net, at);
    ASSERT_EQ(barrier.arrive(0, 1), ORR_FAULT_NONE);
    net.run();
    ASSERT_TRUE(barrier.all_have(1));
    EXPECT_EQ(barrier.at(0).time_ps, at) << "all others are there";
    ModelTime last = 0;
    for (unsigned n = 1; n < number; ++n)
        last = std::max(last, barrier.at(n).time_ps);
    const ModelTime way = links * kLatency + (links - 1) * kSwitching + kWord;
    EXPECT_GE(last - at, way);
    EXPECT_LE(last - at, way + (number - 2) * kWord);
}
INSTANTIATE_TEST_SUITE_P(Shapes, Latency,
                         testing::Values(Figure{Shape::kChain, 2, 1}, Figure{Shape::kChain, 4, 3},
                                         Figure{Shape::kChain, 8, 7}, Figure{Shape::kRing, 4, 2},
                                         Figure{Shape::kRing, 8, 4}, Figure{Shape::kMesh, 2, 1},
                                         Figure{Shape::kMesh, 4, 1}, Figure{Shape::kMesh, 8, 1}));

class BarrierTest : public testing::Test {
  protected:
    void bring_up(unsigned number = 3, Shape shape = Shape::kChain) {
        net_.emplace(number, shape);
        ASSERT_TRUE(net_->up());
        net_->forward();
        at_once(*net_, kFar);
        barrier_.emplace(*net_);
    }
    Net& net() { return *net_; }
    Barrier& barrier() { return *barrier_; }
    std::optional<Net> net_;
    std::optional<Barrier> barrier_;
};

TEST_F(BarrierTest, WhoIsAheadWaitsForNobody) {
    bring_up();
    barrier().arm();
    for (std::uint64_t round = 1; round <= 5; ++round)
        ASSERT_EQ(barrier().arrive(0, round), ORR_FAULT_NONE);
    ASSERT_EQ(barrier().arrive(1, 2), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(0));
    ASSERT_EQ(barrier().arrive(2, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(1));
    ASSERT_EQ(barrier().arrive(2, 9), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(2)) << "of which the second has the lowest";
    ASSERT_EQ(barrier().arrive(2, 3), ORR_FAULT_NONE) << "back, which says nothing";
    ASSERT_EQ(barrier().arrive(1, 4), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(4));
}

TEST_F(BarrierTest, BarriersDoNotMix) {
    bring_up();
    barrier().arm();
    // A second one of two of the cards, in other slots.
    for (const unsigned n : {0u, 2u}) {
        const unsigned other = 2 - n;
        ASSERT_EQ(net()[n].barriers.add(9, (other + 1) | 9 << ORR_BARRIER_SLOT_SHIFT, 7), ORR_FAULT_NONE);
        ASSERT_EQ(net()[n].barriers.arm(9, 1, kSem + 16, 7), ORR_FAULT_NONE);
        ASSERT_EQ(net()[n].barriers.arrive(9, 1), ORR_FAULT_NONE);
    }
    net().run();
    EXPECT_EQ(net()[0].semaphore(kSem + 16).value, 1u);
    EXPECT_EQ(net()[2].semaphore(kSem + 16).value, 1u);
    EXPECT_TRUE(barrier().all_have(0));
    // One that fails leaves the other alone.
    ASSERT_EQ(net()[0].barriers.arrive(9, failed(5)), ORR_FAULT_NONE);
    for (const unsigned n : barrier().members())
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(1));
    EXPECT_EQ(net()[2].semaphore(kSem + 16).value, 1u) << "for this round both were there";
    ASSERT_EQ(net()[2].barriers.arrive(9, 2), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(net()[2].semaphore(kSem + 16).value, failed(5));
}

TEST_F(BarrierTest, AMemberThatFailsTellsAllTheFirstCause) {
    bring_up(4, Shape::kRing);
    barrier().arm();
    for (const unsigned n : {0u, 1u, 3u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    ASSERT_EQ(barrier().arrive(2, failed(0x77)), ORR_FAULT_NONE);
    ASSERT_EQ(barrier().arrive(2, failed(0x78)), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(0x77)));
    const ModelTime way = 2 * kLatency + kSwitching + 3 * kWord;
    for (const unsigned n : barrier().members()) {
        EXPECT_LE(barrier().at(n).time_ps, kFar + way);
        EXPECT_EQ(barrier().state(n), ORR_BARRIER_LOST);
        EXPECT_EQ(barrier().arrive(n, 2), ORR_FAULT_NONE) << "who waits learns why";
    }
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(0x77)));
    EXPECT_EQ(net().sum(ORR_CTR_BARRIER_FAILURES), 4u);
}

TEST_F(BarrierTest, ALinkThatGoesDownFailsItForAll) {
    bring_up(4);
    barrier().arm();
    // Others are no members, and notice nothing.
    for (const unsigned n : {0u, 1u}) {
        const unsigned other = 1 - n;
        ASSERT_EQ(net()[n].barriers.add(9, (other + 1) | 9 << ORR_BARRIER_SLOT_SHIFT, 7), ORR_FAULT_NONE);
        ASSERT_EQ(net()[n].barriers.arm(9, 1, kSem + 16, 7), ORR_FAULT_NONE);
    }
    for (const unsigned n : {0u, 1u, 2u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    // Between the third and the fourth.
    net()[2].ports[1]->unplug();
    net()[3].ports[0]->service();
    net().run();
    EXPECT_EQ(barrier().at(2).value, failed(lost_word(3)));
    EXPECT_EQ(barrier().at(0).value, failed(lost_word(3))) << "told by the third";
    EXPECT_EQ(barrier().at(1).value, failed(lost_word(3)));
    EXPECT_EQ(barrier().at(3).value, 0u) << "it waits for nothing";
    ASSERT_EQ(barrier().arrive(3, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(barrier().at(3).value, failed(lost_word(0))) << "the first of those that it has lost";
    for (const unsigned n : {0u, 1u})
        ASSERT_EQ(net()[n].barriers.arrive(9, 1), ORR_FAULT_NONE);
    net().run();
    for (const unsigned n : {0u, 1u})
        EXPECT_EQ(net()[n].semaphore(kSem + 16).value, 1u);
}

// What was on its way may be lost, wherever it was; software says so with another route.
TEST_F(BarrierTest, AWayThatIsAnotherFailsIt) {
    for (const std::uint32_t more : {0u, ORR_ROUTE_HOLD}) {
        bring_up(3, Shape::kMesh);
        barrier().arm();
        net()[0].route(3, 1, 0, 0);
        net().run();
        EXPECT_EQ(barrier().state(0), ORR_BARRIER_ARMED) << "the same";
        for (const unsigned n : {0u, 1u})
            ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
        net().run();
        net()[0].route(3, 1, more == 0 ? 1 : 0, more);
        net().run();
        EXPECT_EQ(barrier().at(0).value, failed(lost_word(2)));
        EXPECT_EQ(barrier().at(1).value, failed(lost_word(2)));
        ASSERT_EQ(barrier().arrive(2, 1), ORR_FAULT_NONE);
        EXPECT_EQ(barrier().state(2), ORR_BARRIER_LOST) << "told by the second";
        net().run();
        EXPECT_EQ(barrier().at(2).value, failed(lost_word(2)));
    }
}

// The first that is lost is the cause, whatever the order of the members, and also of ways that are acted on
// at once.
TEST_F(BarrierTest, TheFirstThatIsLostIsTheCause) {
    for (const bool at_once : {false, true}) {
        bring_up(3, Shape::kMesh);
        barrier().arm();
        for (const unsigned other : {2u, 1u}) {
            net()[0].route(other + 1, other - 1, 0, ORR_ROUTE_HOLD);
            if (!at_once) net().run();
        }
        net().run();
        ASSERT_EQ(barrier().arrive(0, 1), ORR_FAULT_NONE);
        net().run();
        EXPECT_EQ(barrier().at(0).value, failed(lost_word(2)));
    }
}

TEST_F(BarrierTest, AWordThatIsLostOnTheWireFailsIt) {
    bring_up();
    barrier().arm();
    ASSERT_TRUE(net()[0].faults.add("link port=1 first=1 drop"));
    ASSERT_EQ(barrier().arrive(0, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(barrier().at(0).value, failed(lost_word(1)));
    // Those at the other ends of the ways hear of it, the one that has lost it too.
    for (const unsigned n : {1u, 2u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(lost_word(1))));
}

// Who has failed says no arrival at that round any more: it would release the others for a moment.
TEST_F(BarrierTest, AnArrivalThatIsLostReleasesNobody) {
    bring_up(2);
    barrier().arm();
    ASSERT_TRUE(net()[0].faults.add("link port=1 first=1 drop"));
    for (const unsigned n : {1u, 0u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(lost_word(1))));
    EXPECT_EQ(net()[1].counters.get(ORR_CTR_BARRIER_RELEASES), 0u);
}

// Also the word that it has failed, some times in a row.
TEST_F(BarrierTest, AWordOfFailureThatIsLostIsSaidAgain) {
    bring_up(2);
    barrier().arm();
    ASSERT_TRUE(net()[0].faults.add("link port=1 first=1 count=5 drop"));
    for (const unsigned n : {1u, 0u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(lost_word(1))));
    // A wire that loses all there is ends.
    bring_up(2);
    barrier().arm();
    ASSERT_TRUE(net()[0].faults.add("link port=1 first=1 count=all drop"));
    for (const unsigned n : {1u, 0u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(barrier().at(0).value, failed(lost_word(1)));
    EXPECT_EQ(barrier().at(1).value, 0u);
}

TEST_F(BarrierTest, ClearedItFailsForTheOthersAndIsFree) {
    bring_up();
    barrier().arm();
    ASSERT_EQ(net()[1].barriers.clear(1, 0x55), ORR_FAULT_NONE);
    EXPECT_EQ(barrier().at(1).value, failed(0x55)) << "before the command is done";
    EXPECT_EQ(barrier().state(1), ORR_BARRIER_FREE);
    EXPECT_EQ(barrier().arrive(1, 1), ORR_FAULT_PAGE_RANGE);
    for (const unsigned n : {0u, 2u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(0x55)));
    // What comes for the older life has another key, or no member.
    const orr_semaphore none{};
    std::memcpy(net()[1].vram.at(kSem, sizeof none), &none, sizeof none);
    barrier().arm_one(1, kKey + 1);
    for (const unsigned n : {0u, 2u}) {
        ASSERT_EQ(net()[n].barriers.clear(n, 0x56), ORR_FAULT_NONE);
        EXPECT_EQ(barrier().state(n), ORR_BARRIER_FREE);
    }
    net().run();
    EXPECT_EQ(barrier().at(1).value, 0u);
    EXPECT_EQ(barrier().at(0).value, failed(0x55)) << "the first stays";
}

// Who has met all leaves nobody behind: what is on its way to others ends their round, also after that.
TEST_F(BarrierTest, WhoLeavesAfterARoundEndsItForNobody) {
    bring_up(4);
    barrier().arm();
    // The last to come is next to the first, and far from the fourth.
    for (const unsigned n : {0u, 1u, 3u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    ModelTime at = 100 * kFar;
    at_once(net(), at);
    ASSERT_EQ(barrier().arrive(2, 1), ORR_FAULT_NONE);
    // Its neighbour has gone on and left before the others hear of the last.
    net().run(at + kLatency + 10 * kWord);
    ASSERT_EQ(barrier().at(1).value, 1u);
    ASSERT_EQ(barrier().at(0).value, 0u);
    ASSERT_EQ(net()[1].barriers.clear(1, 0x55), ORR_FAULT_NONE);
    net().run();
    for (const unsigned n : {0u, 2u, 3u})
        EXPECT_EQ(barrier().at(n).value, 1u) << n;
    for (const unsigned n : {0u, 2u, 3u})
        ASSERT_EQ(barrier().arrive(n, 2), ORR_FAULT_NONE);
    net().run();
    for (const unsigned n : {0u, 2u, 3u})
        EXPECT_EQ(barrier().at(n).value, failed(0x55)) << "it does not come any more";
}

TEST_F(BarrierTest, ClearedWithoutAWordItIsGoneQuietly) {
    bring_up(2);
    barrier().arm();
    ASSERT_EQ(net()[0].barriers.clear(0, 0), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(0));
    ASSERT_EQ(barrier().arrive(1, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(barrier().at(1).value, 0u) << "which a limit of the wait ends";
    EXPECT_EQ(net()[0].counters.get(ORR_CTR_BARRIER_DENIED), 1u);
    EXPECT_EQ(net()[1].ports[0]->refused_by(1).count, 0u) << "nobody asked";
}

// Nobody has done anything that he may not.
TEST_F(BarrierTest, AllThatEndAtOnceDenyNothing) {
    bring_up();
    barrier().arm();
    for (const unsigned n : barrier().members())
        ASSERT_EQ(net()[n].barriers.clear(n, 0x55), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(net().sum(ORR_CTR_BARRIER_DENIED) + net().sum(ORR_CTR_LINK_DENIED), 0u);
}

TEST_F(BarrierTest, ACardThatIsResetTellsTheOthers) {
    bring_up();
    barrier().arm();
    ASSERT_EQ(barrier().arrive(1, 1), ORR_FAULT_NONE);
    net().run();
    net()[0].barriers.reset(true);
    EXPECT_EQ(net()[0].barriers.states(), 0u);
    net().run();
    EXPECT_EQ(barrier().at(0).value, 0u) << "nobody is left there who waits";
    EXPECT_EQ(barrier().at(1).value, failed(reset_word(0)));
    ASSERT_EQ(barrier().arrive(2, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(barrier().at(2).value, failed(reset_word(0)));
}

// One was told that it failed before it was armed.
TEST_F(BarrierTest, WhoIsArmedLateLearnsWhyWithItsFirstWord) {
    bring_up();
    barrier().arm_one(0);
    barrier().arm_one(1);
    ASSERT_EQ(barrier().arrive(0, failed(3)), ORR_FAULT_NONE);
    net().run();
    EXPECT_EQ(net()[2].counters.get(ORR_CTR_BARRIER_DENIED), 0u);
    barrier().arm_one(2);
    net().run();
    EXPECT_EQ(barrier().at(2).value, 0u);
    for (const unsigned n : {2u, 1u})
        ASSERT_EQ(barrier().arrive(n, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(3)));
}

TEST_F(BarrierTest, OnlyMembersAreHeard) {
    bring_up();
    Barrier two(net(), {0, 1});
    two.arm();
    ASSERT_EQ(two.arrive(0, 1), ORR_FAULT_NONE);
    net().run();
    // The third is none, though it knows the key; the second has another key, or names another slot.
    const auto say = [&](unsigned from, BarrierWord word) {
        PeerPort* port = net()[from].peers.towards(1);
        EXPECT_TRUE(port->tell(1, word).sent);
        net().run();
        EXPECT_EQ(two.at(0).value, 0u) << from;
    };
    say(2, {.slot = 0, .value = 1, .key = kKey});
    say(2, {.fails = true, .slot = 0, .value = failed(1), .key = kKey});
    say(1, {.slot = 0, .value = 1, .key = kKey + 1});
    say(1, {.fails = true, .slot = 0, .value = failed(1), .key = 0});
    say(1, {.slot = 5, .value = 1, .key = kKey});
    EXPECT_EQ(net()[0].counters.get(ORR_CTR_BARRIER_DENIED), 5u);
    EXPECT_EQ(net()[0].ports[1]->counts().bad_keys.get(), 2u);
    EXPECT_EQ(net()[0].counters.get(ORR_CTR_LINK_DENIED), 5u);
    EXPECT_EQ(net()[2].ports[0]->refused_by(1).count, 0u) << "nobody asked";
    ASSERT_EQ(two.arrive(1, 1), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(two.all_have(1));
}

TEST_F(BarrierTest, CommandsAreChecked) {
    bring_up(2);
    BarrierUnit& unit = net()[0].barriers;
    const auto member = [](std::uint32_t node, std::uint32_t slot) {
        return node | slot << ORR_BARRIER_SLOT_SHIFT;
    };
    EXPECT_EQ(unit.arm(0, kKey, kSem, 1), ORR_FAULT_PERMISSION) << "nobody is in it";
    EXPECT_EQ(unit.add(ORR_BARRIER_SLOTS, member(2, 0), 1), ORR_FAULT_PERMISSION);
    EXPECT_EQ(unit.add(0, member(0, 0), 1), ORR_FAULT_PERMISSION);
    EXPECT_EQ(unit.add(0, member(ORR_NODES, 0), 1), ORR_FAULT_PERMISSION);
    EXPECT_EQ(unit.add(0, member(2, ORR_BARRIER_SLOTS), 1), ORR_FAULT_PERMISSION);
    EXPECT_EQ(unit.add(0, member(2, 0), 1), ORR_FAULT_NONE);
    EXPECT_EQ(unit.add(0, member(2, 1), 1), ORR_FAULT_PERMISSION) << "twice";
    EXPECT_EQ(unit.arm(ORR_BARRIER_SLOTS, kKey, kSem, 1), ORR_FAULT_PERMISSION);
    EXPECT_EQ(unit.arm(0, kKey, kSem + 8, 1), ORR_FAULT_MISALIGNED);
    EXPECT_EQ(unit.arm(0, kKey, net()[0].vram.size(), 1), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(unit.arm(0, kKey, kSem, 1), ORR_FAULT_NONE);
    EXPECT_EQ(unit.arm(0, kKey, kSem, 1), ORR_FAULT_PERMISSION) << "armed";
    EXPECT_EQ(unit.add(0, member(3, 0), 1), ORR_FAULT_PERMISSION);
    EXPECT_EQ(unit.clear(ORR_BARRIER_SLOTS, 1), ORR_FAULT_PERMISSION);
    EXPECT_EQ(unit.arrive(ORR_BARRIER_SLOTS, 1), ORR_FAULT_PAGE_RANGE);
    EXPECT_EQ(unit.arrive(1, 1), ORR_FAULT_PAGE_RANGE);
    // A card that no route leads to, and as many as there may be.
    EXPECT_EQ(unit.add(1, member(7, 0), 1), ORR_FAULT_NONE);
    EXPECT_EQ(unit.arm(1, kKey, kSem, 1), ORR_FAULT_NO_ROUTE);
    EXPECT_EQ(unit.clear(1, 0), ORR_FAULT_NONE);
    for (std::uint32_t n = 1; n < ORR_BARRIER_MEMBERS; ++n)
        EXPECT_EQ(unit.add(1, member(10 + n, 0), 1), ORR_FAULT_NONE);
    EXPECT_EQ(unit.add(1, member(9, 0), 1), ORR_FAULT_PERMISSION);
    net()[0].route(2, 1, 0, ORR_ROUTE_HOLD);
    EXPECT_EQ(unit.add(2, member(2, 0), 1), ORR_FAULT_NONE);
    EXPECT_EQ(unit.arm(2, kKey, kSem, 1), ORR_FAULT_PEER_DOWN);
}

// Of many rounds that find no room the last is told when there is some.
TEST_F(BarrierTest, WhatFindsNoRoomIsSaidLater) {
    bring_up(2);
    barrier().arm();
    std::uint64_t round = 0;
    // The second does not look at its link.
    for (unsigned n = 0; n < link::kRingEntries + 100; ++n)
        ASSERT_EQ(barrier().arrive(0, ++round), ORR_FAULT_NONE);
    EXPECT_TRUE(net()[0].ports[1]->congested());
    // One that is cleared has more to say before it is free.
    net().run();
    EXPECT_FALSE(net()[0].ports[1]->congested());
    ASSERT_EQ(barrier().arrive(1, round), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(round));
}

TEST_F(BarrierTest, ItIsFreeOnceAllHaveBeenTold) {
    bring_up(2);
    barrier().arm();
    std::uint64_t round = 0;
    for (unsigned n = 0; n < link::kRingEntries + 1; ++n)
        ASSERT_EQ(barrier().arrive(0, ++round), ORR_FAULT_NONE);
    ASSERT_EQ(net()[0].barriers.clear(0, 0x55), ORR_FAULT_NONE);
    EXPECT_EQ(barrier().state(0), ORR_BARRIER_LEAVING);
    EXPECT_EQ(net()[0].barriers.add(0, 2, 1), ORR_FAULT_PERMISSION);
    net().run();
    EXPECT_EQ(barrier().state(0), ORR_BARRIER_FREE);
    ASSERT_EQ(barrier().arrive(1, round), ORR_FAULT_NONE);
    net().run();
    EXPECT_TRUE(barrier().all_have(failed(0x55)));
}

// One that does not take what it is told ends with its link.
TEST_F(BarrierTest, ALinkThatGoesDownEndsTheWaitForRoom) {
    bring_up(2);
    barrier().arm();
    std::uint64_t round = 0;
    for (unsigned n = 0; n < link::kRingEntries + 1; ++n)
        ASSERT_EQ(barrier().arrive(0, ++round), ORR_FAULT_NONE);
    net()[0].ports[1]->unplug();
    while (net()[0].events.run_next(kNever - 1)) {
    }
    EXPECT_EQ(barrier().at(0).value, failed(lost_word(1)));
    ASSERT_EQ(net()[0].barriers.clear(0, 0x55), ORR_FAULT_NONE);
    EXPECT_EQ(barrier().state(0), ORR_BARRIER_FREE);
}

// A peer that speaks by hand: words that make no sense take the link down.
TEST(BarrierPeer, WordsThatMakeNoSenseAreRefused) {
    const auto down_after = [](auto&& spoil) {
        TempFolder folder;
        LinkCard card(kA, true, folder.file("link"));
        RawPeer peer(folder.file("link"));
        EXPECT_TRUE(peer.handshake(card));
        link::Message m = peer.good();
        m.op = link::kOpArrive;
        m.bytes = 0;
        m.offset = 0;
        m.value = 1;
        m.payload_end = 0;
        spoil(m);
        peer.push(m);
        while (card.idle_round()) {
        }
        return !card.port->up();
    };
    EXPECT_FALSE(down_after([](auto&) {})) << "there is no barrier: denied";
    EXPECT_FALSE(down_after([](auto& m) { m.op = link::kOpLeave, m.value = failed(1); }));
    EXPECT_TRUE(down_after([](auto& m) { m.bytes = 1; }));
    EXPECT_TRUE(down_after([](auto& m) { m.payload_at = 1; }));
    EXPECT_TRUE(down_after([](auto& m) { m.offset = ORR_BARRIER_SLOTS; }));
    EXPECT_TRUE(down_after([](auto& m) { m.value = failed(1); }));
    EXPECT_TRUE(down_after([](auto& m) { m.op = link::kOpLeave; }));
    EXPECT_TRUE(down_after([](auto& m) { m.tag = 1; }));
    EXPECT_TRUE(down_after([](auto& m) { m.compare = 1; }));
    EXPECT_FALSE(down_after([](auto& m) { m.op = link::kOpLeave, m.value = failed(1), m.compare = 1; }));
    EXPECT_TRUE(down_after([](auto& m) { m.function = 1; }));
    EXPECT_TRUE(down_after([](auto& m) { m.status = 1; }));
    EXPECT_TRUE(down_after([](auto& m) { m.hops = link::kMostHops + 1; }));
}

}  // namespace
}  // namespace orrery::emu::test
