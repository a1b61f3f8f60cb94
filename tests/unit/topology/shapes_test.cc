#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tools/topology/topology.h"

namespace orrery::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Where each port leads.
std::map<Port, Port> ways(const Topology& topology) {
    std::map<Port, Port> all;
    for (const Link& link : topology.links) {
        EXPECT_LT(link.first.card, link.second.card);
        EXPECT_TRUE(all.emplace(link.first, link.second).second);
        EXPECT_TRUE(all.emplace(link.second, link.first).second);
    }
    return all;
}

Topology made(Shape shape, unsigned cards, std::optional<Sides> sides = {}) {
    auto topology = make(shape, cards, sides);
    EXPECT_TRUE(topology) << topology.error().text;
    return topology ? *topology : Topology{};
}

std::string error_of(Shape shape, unsigned cards, std::optional<Sides> sides = {}) {
    const auto topology = make(shape, cards, sides);
    return topology ? "" : topology.error().text;
}

TEST(Shapes, HaveNames) {
    for (const Shape shape : {Shape::kPair, Shape::kChain, Shape::kRing, Shape::kMesh, Shape::kTorus})
        EXPECT_EQ(shape_named(shape_name(shape)), shape);
    EXPECT_EQ(shape_named("listed"), std::nullopt);
    EXPECT_EQ(shape_named(""), std::nullopt);
    EXPECT_EQ(shape_names(), "pair, chain, ring, mesh, torus, switch or fat-tree");
}

TEST(Shapes, NoShapeJoinsTwoCardsTwice) {
    for (const Shape shape : {Shape::kPair, Shape::kChain, Shape::kRing, Shape::kMesh, Shape::kTorus})
        for (unsigned cards = 0; cards <= kMaxCards; ++cards) {
            const auto topology = make(shape, cards);
            if (!topology) continue;
            EXPECT_EQ(topology->cards, cards);
            std::set<std::pair<unsigned, unsigned>> joined;
            for (const Link& link : topology->links)
                EXPECT_TRUE(joined.emplace(link.first.card, link.second.card).second)
                    << shape_name(shape) << " of " << cards;
            EXPECT_EQ(ways(*topology).size(), 2 * topology->links.size());
        }
}

TEST(Shapes, AChainLeadsBackByPort0) {
    EXPECT_TRUE(made(Shape::kChain, 0).links.empty());
    EXPECT_TRUE(made(Shape::kChain, 1).links.empty());
    EXPECT_THAT(made(Shape::kChain, 4).links,
                ElementsAre(Link{{0, 0}, {1, 0}}, Link{{1, 1}, {2, 0}}, Link{{2, 1}, {3, 0}}));
    EXPECT_EQ(made(Shape::kPair, 2).links, made(Shape::kChain, 2).links);
}

TEST(Shapes, ARingLeadsOnByPort0AndBackByPort1) {
    for (const unsigned cards : {3U, 4U, 16U}) {
        const auto way = ways(made(Shape::kRing, cards));
        EXPECT_EQ(way.size(), 2 * cards);
        for (unsigned card = 0; card < cards; ++card)
            EXPECT_EQ(way.at({card, 0}), (Port{(card + 1) % cards, 1}));
    }
}

TEST(Shapes, AMeshJoinsAllByPortsInTheOrderOfCards) {
    const auto way = ways(made(Shape::kMesh, 8));
    for (unsigned a = 0; a < 8; ++a)
        for (unsigned b = a + 1; b < 8; ++b)
            EXPECT_EQ(way.at({a, b - 1}), (Port{b, a}));
    EXPECT_EQ(way.size(), 8U * 7U);
    EXPECT_EQ(port_beyond(made(Shape::kMesh, 9), 8), std::nullopt);
    EXPECT_EQ(port_beyond(made(Shape::kMesh, 10), 8), (Port{0, 8}));
}

TEST(Shapes, ATorusHasRingsInTwoDirections) {
    for (const Sides sides : {Sides{4, 3}, Sides{3, 3}, Sides{3, 5}}) {
        const auto [columns, rows] = sides;
        const auto torus = made(Shape::kTorus, columns * rows, sides);
        EXPECT_EQ(torus.sides, sides);
        const auto way = ways(torus);
        EXPECT_EQ(way.size(), 4U * torus.cards);
        for (unsigned y = 0; y < rows; ++y)
            for (unsigned x = 0; x < columns; ++x) {
                EXPECT_EQ(way.at({y * columns + x, 0}), (Port{y * columns + (x + 1) % columns, 1}));
                EXPECT_EQ(way.at({y * columns + x, 2}), (Port{(y + 1) % rows * columns + x, 3}));
            }
    }
}

TEST(Shapes, ATorusWithoutSidesIsAlmostSquare) {
    EXPECT_EQ(made(Shape::kTorus, 9).sides, (Sides{3, 3}));
    EXPECT_EQ(made(Shape::kTorus, 12).sides, (Sides{4, 3}));
    EXPECT_EQ(made(Shape::kTorus, 16).sides, (Sides{4, 4}));
    EXPECT_EQ(made(Shape::kTorus, 15).sides, (Sides{5, 3}));
}

TEST(Shapes, WhatMakesNoneIsNamed) {
    EXPECT_THAT(error_of(Shape::kPair, 3), HasSubstr("a pair has 2 cards, not 3"));
    EXPECT_THAT(error_of(Shape::kRing, 2), HasSubstr("3 cards or more, not 2"));
    EXPECT_THAT(error_of(Shape::kMesh, 1), HasSubstr("2 cards or more, not 1"));
    EXPECT_THAT(error_of(Shape::kTorus, 8), HasSubstr("8 cards make no torus"));
    EXPECT_THAT(error_of(Shape::kTorus, 0), HasSubstr("make no torus"));
    EXPECT_THAT(error_of(Shape::kTorus, 8, Sides{4, 2}), HasSubstr("a torus of 4 x 2: a side has 3"));
    EXPECT_THAT(error_of(Shape::kTorus, 4, Sides{4, 1}), HasSubstr("a side has 3"));
    EXPECT_THAT(error_of(Shape::kTorus, 8, Sides{3, 3}), HasSubstr("has 9 cards, not 8"));
    EXPECT_THAT(error_of(Shape::kTorus, 4, Sides{~0U, ~0U}), HasSubstr("cards, not 4"));
    EXPECT_THAT(error_of(Shape::kChain, kMaxCards + 1), HasSubstr("64 cards at most"));
}

TEST(Shapes, CardsThatOnlyAMixtureJoins) {
    for (const Shape shape : {Shape::kRing, Shape::kSwitch, Shape::kFatTree})
        EXPECT_FALSE(joined_by_mixture(*make(shape, 4))) << shape_name(shape);
    const SwitchPlace a{"a", 4, 0}, b{"b", 4, 0};
    // Cards 0 and 1 on a switch, which is node 3, and card 2 by a cable at card 1.
    Topology topology{
        .cards = 3, .links = {{{0, 0}, {3, 0}}, {{1, 0}, {3, 1}}, {{1, 1}, {2, 0}}}, .switches = {a}};
    EXPECT_EQ(joined_by_mixture(topology), (std::pair{0U, 2U}));
    // A cable from 0 to 1 too: then cables join all.
    topology.links.push_back({{0, 1}, {1, 2}});
    EXPECT_FALSE(joined_by_mixture(topology));
    // Card 1 is on two switches, and passes nothing on between them.
    topology = {.cards = 3,
                .links = {{{0, 0}, {3, 0}}, {{1, 0}, {3, 1}}, {{1, 1}, {4, 0}}, {{2, 0}, {4, 1}}},
                .switches = {a, b}};
    EXPECT_EQ(joined_by_mixture(topology), (std::pair{0U, 2U}));
    // Who is joined to nobody was not meant to be.
    topology = {.cards = 3, .links = {{{0, 0}, {3, 0}}, {{1, 0}, {3, 1}}}, .switches = {a}};
    EXPECT_FALSE(joined_by_mixture(topology));
}

}  // namespace
}  // namespace orrery::topology
