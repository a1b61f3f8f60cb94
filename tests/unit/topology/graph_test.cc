#include "tools/topology/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::topology {
namespace {

using testing::ElementsAre;

std::vector<Edge> edges_of(const Topology& topology, unsigned gbps = 400, unsigned latency_ns = 500) {
    std::vector<Edge> edges;
    for (const Link& link : topology.links)
        edges.push_back({link.first, link.second, 4, gbps, latency_ns});
    return edges;
}

Form form(Shape shape, unsigned cards, std::optional<Sides> sides = {}) {
    return form_of(cards, edges_of(make(shape, cards, sides).value()));
}

TEST(WaysBetweenCards, AreTheShortest) {
    const Ways chain(4, edges_of(make(Shape::kChain, 4).value()));
    EXPECT_EQ(chain.between(0, 0), std::nullopt);
    EXPECT_EQ(chain.between(0, 1), (Way{1, 400, 500}));
    EXPECT_EQ(chain.between(0, 3), (Way{3, 400, 1500}));
    EXPECT_EQ(chain.between(3, 0), (Way{3, 400, 1500}));
    const Ways ring(5, edges_of(make(Shape::kRing, 5).value()));
    EXPECT_EQ(ring.between(0, 4)->links, 1U);
    EXPECT_EQ(ring.between(0, 3)->links, 2U);
    EXPECT_EQ(Ways(12, edges_of(make(Shape::kTorus, 12).value())).between(0, 6)->links, 3U);
    EXPECT_EQ(Ways(64, edges_of(make(Shape::kChain, 64).value())).between(63, 0)->links, 63U);
}

TEST(WaysBetweenCards, GoByTheirSlowestLinkAndPreferTheFastest) {
    // 0 to 3 by 1 (slow) or by 2, and a long way round by 4 and 5 that is faster still.
    const std::vector<Edge> edges = {{{0, 0}, {1, 0}, 4, 400, 10}, {{1, 1}, {3, 0}, 4, 100, 10},
                                     {{0, 1}, {2, 0}, 4, 200, 20}, {{2, 1}, {3, 1}, 4, 400, 20},
                                     {{0, 2}, {4, 0}, 4, 800, 1},  {{4, 1}, {5, 0}, 4, 800, 1},
                                     {{3, 2}, {5, 1}, 4, 800, 1}};
    const Ways ways(6, edges);
    EXPECT_EQ(ways.between(0, 3), (Way{2, 200, 40}));
    EXPECT_EQ(ways.between(3, 0), (Way{2, 200, 40}));
    EXPECT_EQ(ways.between(0, 5), (Way{2, 800, 2}));
}

// Of one of two links to card 2 lanes have failed for what card 1 sends: back it is the better one.
TEST(WaysBetweenCards, HaveTheRateOfTheirDirection) {
    const std::vector<Edge> edges = {
        {{0, 0}, {1, 0}, 4, 400, 10}, {{1, 1}, {2, 0}, 4, 300, 10}, {{1, 2}, {2, 1}, 4, 100, 10, 400}};
    EXPECT_EQ(edges[2].back().gbps, 400U);
    EXPECT_EQ(edges[2].back().back().gbps, 100U);
    EXPECT_EQ(edges[1].back().gbps, 300U);
    const Ways ways(3, edges);
    EXPECT_EQ(ways.between(0, 2), (Way{2, 300, 20}));
    EXPECT_EQ(ways.between(2, 0), (Way{2, 400, 20}));
}

TEST(WaysBetweenCards, NothingLeadsToCardsApart) {
    const Ways ways(4, {{{0, 0}, {1, 0}, 4, 400, 500}, {{2, 0}, {9, 0}, 4, 400, 500}});
    EXPECT_TRUE(ways.between(1, 0));
    EXPECT_FALSE(ways.between(0, 2));
    EXPECT_FALSE(ways.between(3, 2));
}

TEST(FormsOfCards, AreRecognised) {
    EXPECT_EQ(form(Shape::kPair, 2).shape, Shape::kPair);
    for (const unsigned cards : {3U, 4U, 16U}) {
        EXPECT_EQ(form(Shape::kChain, cards).shape, Shape::kChain);
        EXPECT_EQ(form(Shape::kRing, cards).shape, Shape::kRing);
    }
    EXPECT_EQ(form(Shape::kMesh, 3).shape, Shape::kRing);
    EXPECT_EQ(form(Shape::kMesh, 4).shape, Shape::kMesh);
    EXPECT_EQ(form(Shape::kMesh, 8).shape, Shape::kMesh);
    for (const Sides sides : {Sides{3, 3}, Sides{4, 3}, Sides{3, 4}, Sides{4, 4}, Sides{5, 3}}) {
        const Form torus = form(Shape::kTorus, sides.columns * sides.rows, sides);
        EXPECT_EQ(torus.shape, Shape::kTorus);
        EXPECT_EQ(torus.sides, sides);
    }
}

TEST(FormsOfCards, HaveTheCardsInTheOrderOfTheirLinks) {
    const auto by_hand = [](unsigned cards, std::vector<std::pair<unsigned, unsigned>> pairs) {
        std::vector<Edge> edges;
        for (unsigned i = 0; i < pairs.size(); ++i)
            edges.push_back({{pairs[i].first, i}, {pairs[i].second, i}});
        return form_of(cards, edges);
    };
    EXPECT_THAT(by_hand(4, {{3, 1}, {1, 0}, {0, 2}}).order, ElementsAre(2, 0, 1, 3));
    EXPECT_THAT(by_hand(4, {{0, 2}, {2, 1}, {1, 3}, {3, 0}}).order, ElementsAre(0, 2, 1, 3));
    // Two rings, a star, a ring with one of its cards outside, and nothing.
    EXPECT_EQ(by_hand(6, {{0, 1}, {1, 2}, {0, 2}, {3, 4}, {4, 5}, {3, 5}}).shape, Shape::kListed);
    EXPECT_EQ(by_hand(4, {{0, 1}, {0, 2}, {0, 3}}).shape, Shape::kListed);
    EXPECT_EQ(by_hand(5, {{0, 1}, {1, 2}, {0, 2}, {3, 4}}).shape, Shape::kListed);
    EXPECT_EQ(by_hand(3, {}).shape, Shape::kListed);
    EXPECT_THAT(by_hand(3, {}).order, ElementsAre(0, 1, 2));
    EXPECT_EQ(by_hand(1, {}).shape, Shape::kListed);
    EXPECT_EQ(by_hand(0, {}).shape, Shape::kListed);
    // A second link between two cards makes no other form.
    EXPECT_EQ(by_hand(3, {{0, 1}, {0, 1}, {1, 2}}).shape, Shape::kChain);
}

}  // namespace
}  // namespace orrery::topology
