#include "tools/topology/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace orrery::topology {
namespace {

using testing::HasSubstr;
using testing::Not;

Picture picture(Shape shape, unsigned cards) {
    Picture made;
    for (unsigned card = 0; card < cards; ++card)
        made.cards.push_back(
            {fmt::format("card {}", card), fmt::format("0000:{:02x}:00.0", card + 1), "Orrery 1"});
    for (const Link& link : make(shape, cards)->links)
        made.links.push_back({{link.first, link.second, 4, 400, 500}, LinkState::kUp});
    return made;
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++found;
    return found;
}

// Elements are closed in the order in which they were opened, and every place is in the picture.
void expect_sound(const std::string& svg) {
    std::vector<std::string> open;
    const std::regex tag("<(/?)([a-z]+)([^<>]*?)(/?)>");
    for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
        if (!(*it)[1].str().empty()) {
            ASSERT_FALSE(open.empty());
            EXPECT_EQ(open.back(), (*it)[2].str());
            open.pop_back();
        } else if ((*it)[4].str().empty()) {
            open.push_back((*it)[2].str());
        }
    }
    EXPECT_TRUE(open.empty());
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    double left = 0, top = 0, width = 0, height = 0;
    ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("viewBox"), "viewBox=\"%lf %lf %lf %lf\"", &left, &top,
                          &width, &height),
              4);
    const std::regex place(" c?([xy])[12]?=\"(-?[0-9.]+)\"");
    for (std::sregex_iterator it(svg.begin(), svg.end(), place), end; it != end; ++it) {
        const double at = std::stod((*it)[2]);
        const bool across = (*it)[1] == "x";
        EXPECT_GE(at, across ? left - 0.1 : top - 0.1);
        EXPECT_LE(at, across ? left + width : top + height);
    }
}

TEST(Pictures, ShowCardsPortsAndRates) {
    const std::string svg = svg_of(picture(Shape::kRing, 4));
    expect_sound(svg);
    for (unsigned card = 0; card < 4; ++card) {
        EXPECT_EQ(count(svg, fmt::format(">card {}<", card)), 1U);
        EXPECT_EQ(count(svg, fmt::format(">0000:{:02x}:00.0<", card + 1)), 1U);
    }
    EXPECT_EQ(count(svg, "<circle class=\"badge up\""), 8U);
    EXPECT_EQ(count(svg, "class=\"label\""), 4U);
    EXPECT_EQ(count(svg, "<line class=\"up\""), 4U);
    EXPECT_THAT(svg, HasSubstr("<title>4 cards in a ring</title>"));
    EXPECT_THAT(svg, HasSubstr("Each link: 4 lanes, 400 Gbit/s each way, 500 ns."));
}

TEST(Pictures, OfEveryShapeAreSound) {
    for (const Shape shape : {Shape::kPair, Shape::kChain, Shape::kRing, Shape::kMesh, Shape::kTorus})
        for (unsigned cards = 0; cards <= 17; ++cards)
            if (make(shape, cards)) expect_sound(svg_of(picture(shape, cards)));
}

TEST(Pictures, SayTheRateOfManyLinksOnce) {
    Picture mesh = picture(Shape::kMesh, 8);
    EXPECT_EQ(count(svg_of(mesh), "class=\"label\""), 0U);
    mesh.links[5].edge.gbps = 200;
    const std::string svg = svg_of(mesh);
    EXPECT_EQ(count(svg, "class=\"label\""), 1U);
    EXPECT_THAT(svg, HasSubstr(">200 Gbit/s<"));
    EXPECT_THAT(svg, HasSubstr("Links without a label: 4 lanes, 400 Gbit/s each way, 500 ns."));
}

TEST(Pictures, SayWhichWayALinkHasLostLanes) {
    Picture mesh = picture(Shape::kMesh, 8);
    mesh.links[5].edge.gbps_back = 100;
    mesh.links[5].edge.lanes_back = 1;
    mesh.links[5].state = LinkState::kDegraded;
    std::string svg = svg_of(mesh);
    EXPECT_EQ(count(svg, "class=\"label\""), 2U);
    EXPECT_THAT(svg, HasSubstr(">400 Gbit/s from card 0, 100 from card 6<"));
    EXPECT_THAT(svg, HasSubstr(">4 lanes from card 0, 1 from card 6<"));
    EXPECT_THAT(svg, HasSubstr("Links without a label: 4 lanes, 400 Gbit/s each way, 500 ns."));
    Picture ring = picture(Shape::kRing, 4);
    for (PictureLink& link : ring.links)
        link.edge.gbps_back = 200;
    svg = svg_of(ring);
    expect_sound(svg);
    EXPECT_THAT(svg, Not(HasSubstr("each way")));
}

TEST(Pictures, ATorusLeadsRoundAtItsBorders) {
    const std::string svg = svg_of(picture(Shape::kTorus, 12));
    EXPECT_THAT(svg, HasSubstr("<title>12 cards in a torus of 4 x 3</title>"));
    // 17 links inside, 7 that are cut in two.
    EXPECT_EQ(count(svg, "<line class=\"up\""), 17U + 14U);
    EXPECT_EQ(count(svg, "class=\"label\">"), 0U);
    EXPECT_THAT(svg, HasSubstr(">to card 8<"));
}

TEST(Pictures, WhatIsDownIsDashed) {
    Picture ring = picture(Shape::kRing, 4);
    EXPECT_THAT(svg_of(ring), Not(HasSubstr("class=\"down\"")));
    ring.links[0].state = LinkState::kDegraded;
    ring.links[0].edge.lanes = 2;
    ring.links[0].edge.gbps = 200;
    ring.ports = {{{0, 2}, LinkState::kDown, "down, lost once"},
                  {{1, 2}, LinkState::kTraining, "training"},
                  {{2, 3}, LinkState::kDown, ""}};
    const std::string svg = svg_of(ring);
    expect_sound(svg);
    EXPECT_THAT(svg, HasSubstr(".down { stroke: #b8433b; stroke-dasharray:"));
    EXPECT_EQ(count(svg, "<line class=\"down\""), 2U);  // one of them in the legend
    EXPECT_EQ(count(svg, "<line class=\"training\""), 2U);
    EXPECT_EQ(count(svg, "<line class=\"degraded\""), 2U);
    EXPECT_THAT(svg, HasSubstr(">down, lost once<"));
    EXPECT_THAT(svg, HasSubstr(">2 lanes<"));
    EXPECT_THAT(svg, HasSubstr("grey ones lead nowhere"));
}

TEST(Pictures, OfWhatATopologySays) {
    const Topology ring = *make(Shape::kRing, 4);
    const Picture made = planned(ring, "Orrery 1", {{}, {}, 4, 400, 500}, 3);
    ASSERT_EQ(made.links.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(made.links[i].edge.first, ring.links[i].first);
        EXPECT_EQ(made.links[i].edge.second, ring.links[i].second);
        EXPECT_EQ(made.links[i].edge.gbps, 400U);
    }
    ASSERT_EQ(made.ports.size(), 4U);  // of each card the third
    for (unsigned card = 0; card < 4; ++card)
        EXPECT_EQ(made.ports[card].port, (Port{card, 2}));
    const std::string svg = svg_of(made);
    expect_sound(svg);
    EXPECT_THAT(svg, HasSubstr("4 cards in a ring"));
    EXPECT_THAT(svg, Not(HasSubstr("class=\"address\"")));
    EXPECT_EQ(count(svg, "class=\"badge free\""), 4U);
}

// Names come from cards and from the system.
TEST(Pictures, NamesAreText) {
    Picture pair = picture(Shape::kPair, 2);
    pair.cards[0].kind = "</text><script>&\x1b\"";
    pair.ports = {{{1, 1}, LinkState::kTraining, "<b>"}};
    const std::string svg = svg_of(pair);
    expect_sound(svg);
    EXPECT_THAT(svg, HasSubstr("&lt;/text&gt;&lt;script&gt;&amp;?\""));
    EXPECT_THAT(svg, HasSubstr("&lt;b&gt;"));
}

TEST(Pictures, OfNothingAndOfWhatIsNotThere) {
    expect_sound(svg_of({}));
    Picture pair = picture(Shape::kPair, 2);
    pair.links.push_back({{{0, 1}, {7, 0}}, LinkState::kUp});
    pair.links.push_back({{{1, 1}, {1, 2}}, LinkState::kUp});
    pair.ports.push_back({{9, 0}, LinkState::kDown, "x"});
    expect_sound(svg_of(pair));
    EXPECT_EQ(count(svg_of(pair), "<circle"), 2U);
}

}  // namespace
}  // namespace orrery::topology
