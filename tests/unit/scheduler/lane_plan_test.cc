#include "umd/scheduler/lane_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>

namespace orrery::umd {
namespace {

using ::testing::HasSubstr;

// What a plan makes of the order: executes it in every legal way at once, by closing it transitively.
class Order {
  public:
    Order(std::span<const PlanNode> nodes, const LanePlan& plan) {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index;
        for (std::uint32_t lane = 0; lane < plan.lanes.size(); ++lane) {
            for (std::uint32_t i = 0; i < plan.lanes[lane].nodes.size(); ++i) {
                index[{lane, i}] = vertices_++;
                const std::uint32_t node = plan.lanes[lane].nodes[i].node;
                if (node != kArrival) vertex_[node] = index[{lane, i}];
            }
        }
        before_.assign(vertices_, std::vector<bool>(vertices_));
        for (std::uint32_t lane = 0; lane < plan.lanes.size(); ++lane) {
            for (std::uint32_t i = 0; i < plan.lanes[lane].nodes.size(); ++i) {
                if (i != 0) before_[index[{lane, i}]][index[{lane, i - 1}]] = true;
                for (const LaneWait& wait : plan.lanes[lane].nodes[i].waits) {
                    before_[index[{lane, i}]][index.at({wait.lane, wait.position})] = true;
                }
            }
        }
        for (std::size_t k = 0; k < vertices_; ++k) {
            for (std::size_t i = 0; i < vertices_; ++i) {
                if (!before_[i][k]) continue;
                for (std::size_t j = 0; j < vertices_; ++j)
                    if (before_[k][j]) before_[i][j] = true;
            }
        }
        for (std::uint32_t i = 0; i < nodes.size(); ++i)
            EXPECT_TRUE(vertex_.contains(i)) << "node " << i << " is lost";
        for (std::size_t i = 0; i < vertices_; ++i)
            EXPECT_FALSE(before_[i][i]) << "a cycle";
    }
    bool after(std::uint32_t node, std::uint32_t other) const {
        return before_[vertex_.at(node)][vertex_.at(other)];
    }

  private:
    std::size_t vertices_ = 0;
    std::map<std::uint32_t, std::size_t> vertex_;
    std::vector<std::vector<bool>> before_;
};

std::vector<PlanNode> random_graph(std::mt19937& random, std::size_t count, int devices, bool host,
                                   bool writes) {
    std::vector<PlanNode> nodes(count);
    for (std::size_t i = 0; i < count; ++i) {
        nodes[i].device = static_cast<int>(random() % static_cast<unsigned>(devices));
        if (host && random() % 8 == 0) nodes[i].device = kHostLane;
        if (writes && nodes[i].device != kHostLane && random() % 4 == 0) {
            nodes[i].writes_to =
                (1ull << (random() % static_cast<unsigned>(devices))) & ~(1ull << nodes[i].device);
        }
        const std::size_t edges = i == 0 ? 0 : random() % 4;
        for (std::size_t e = 0; e < edges; ++e) {
            const std::size_t span = std::min<std::size_t>(i, 12);
            nodes[i].after.push_back(static_cast<std::uint32_t>(i - 1 - random() % span));
        }
    }
    return nodes;
}

std::vector<std::vector<bool>> closure(std::span<const PlanNode> nodes) {
    std::vector<std::vector<bool>> before(nodes.size(), std::vector<bool>(nodes.size()));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const std::uint32_t u : nodes[i].after) {
            before[i][u] = true;
            for (std::size_t j = 0; j < nodes.size(); ++j)
                if (before[u][j]) before[i][j] = true;
        }
    }
    return before;
}

TEST(LanePlan, KeepsExactlyTheOrderOfTheGraph) {
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        const auto nodes =
            random_graph(random, 5 + random() % 60, 1 + static_cast<int>(random() % 3), false, false);
        const auto plan = plan_lanes(nodes, 1000);
        ASSERT_TRUE(plan) << plan.error().text;
        const Order order(nodes, *plan);
        const auto before = closure(nodes);
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            for (std::uint32_t j = 0; j < nodes.size(); ++j)
                ASSERT_EQ(order.after(i, j), before[i][j]) << "seed " << seed << ", " << i << " after " << j;
        }
    }
}

TEST(LanePlan, WithHostNodesWritesAndFewLanesNothingIsLost) {
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed + 1000);
        const auto nodes = random_graph(random, 5 + random() % 60, 3, true, true);
        const auto plan = plan_lanes(nodes, 2);
        ASSERT_TRUE(plan) << plan.error().text;
        const Order order(nodes, *plan);
        const auto before = closure(nodes);
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            for (std::uint32_t j = 0; j < nodes.size(); ++j)
                if (before[i][j])
                    ASSERT_TRUE(order.after(i, j)) << "seed " << seed << ", " << i << " after " << j;
        }
        std::map<int, int> lanes;
        for (const auto& lane : plan->lanes)
            if (lane.device != kHostLane) EXPECT_LE(++lanes[lane.device], 2);
    }
}

// No wait can be taken away: each is the only way by which its lane learns of the node.
TEST(LanePlan, EveryWaitIsNeeded) {
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
        std::mt19937 random(seed + 7);
        const auto nodes = random_graph(random, 5 + random() % 30, 2, false, false);
        const auto plan = plan_lanes(nodes, 1000);
        ASSERT_TRUE(plan);
        const auto before = closure(nodes);
        for (std::uint32_t lane = 0; lane < plan->lanes.size(); ++lane) {
            for (std::uint32_t i = 0; i < plan->lanes[lane].nodes.size(); ++i) {
                for (std::size_t w = 0; w < plan->lanes[lane].nodes[i].waits.size(); ++w) {
                    LanePlan less = *plan;
                    auto& waits = less.lanes[lane].nodes[i].waits;
                    waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(w));
                    const Order order(nodes, less);
                    bool lost = false;
                    for (std::uint32_t a = 0; a < nodes.size(); ++a)
                        for (std::uint32_t b = 0; b < nodes.size(); ++b)
                            lost = lost || (before[a][b] && !order.after(a, b));
                    ASSERT_TRUE(lost) << "seed " << seed;
                }
            }
        }
    }
}

TEST(LanePlan, ChainNeedsOneLaneAndNoWait) {
    std::vector<PlanNode> chain(100);
    for (std::uint32_t i = 0; i < chain.size(); ++i) {
        chain[i].device = 0;
        for (std::uint32_t j = 0; j < i; ++j)
            chain[i].after.push_back(j);  // all edges that a chain implies
    }
    const auto plan = plan_lanes(chain);
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->lanes.size(), 1u);
    EXPECT_EQ(plan->waits, 0u);
    EXPECT_EQ(plan->signals, 0u);
    EXPECT_EQ(plan->edges, 4950u);
    EXPECT_TRUE(plan->lanes[0].starts);
    EXPECT_TRUE(plan->lanes[0].ends);
}

TEST(LanePlan, DiamondNeedsTwoLanesAndTwoWaits) {
    std::vector<PlanNode> nodes(4);
    for (auto& node : nodes)
        node.device = 0;
    nodes[1].after = {0};
    nodes[2].after = {0};
    nodes[3].after = {0, 1, 2};
    const auto plan = plan_lanes(nodes);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->lanes.size(), 2u);
    EXPECT_EQ(plan->waits, 2u);
    EXPECT_EQ(plan->signals, 2u);
}

TEST(LanePlan, WritesToAThirdCardAreAnnouncedByThatCard) {
    // 0 writes to card 2; card 1 goes on behind it; then card 2 behind card 1.
    std::vector<PlanNode> nodes(3);
    nodes[0].device = 0;
    nodes[0].writes_to = 1 << 2;
    nodes[1] = {1, {0}, 0};
    nodes[2] = {2, {1}, 0};
    const auto plan = plan_lanes(nodes);
    ASSERT_TRUE(plan);
    int arrivals = 0;
    for (const auto& lane : plan->lanes) {
        for (const auto& node : lane.nodes) {
            if (node.node != kArrival) continue;
            ++arrivals;
            EXPECT_EQ(lane.device, 2);
            EXPECT_NE(node.signals & 1 << 1, 0u) << "card 1 waits for card 2's word";
        }
    }
    EXPECT_EQ(arrivals, 1);
}

TEST(LanePlan, NamesCyclesAndWrongNumbers) {
    std::vector<PlanNode> nodes(3);
    nodes[0].after = {2};
    nodes[1].after = {0};
    nodes[2].after = {1};
    auto plan = plan_lanes(nodes);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, orrErrorInvalidValue);
    EXPECT_THAT(plan.error().text, HasSubstr("cycle"));
    nodes[0].after = {9};
    EXPECT_FALSE(plan_lanes(nodes));
}

}  // namespace
}  // namespace orrery::umd
