#include "tools/topology/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::topology {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Limits kThree{3, 16, 8};

Topology read(const std::string& toml, const Limits& limits) {
    auto topology = parse(toml, "t.toml", limits);
    EXPECT_TRUE(topology) << topology.error().text;
    return topology ? *topology : Topology{};
}

std::string error_of(const std::string& toml, const Limits& limits = kThree) {
    const auto topology = parse(toml, "t.toml", limits);
    return topology ? "" : topology.error().text;
}

TEST(TopologyFile, LinksOneByOne) {
    const Topology topology = read(R"(links = [["card2:7", "card0:1"], ["card1:0", "card2:0"]])", kThree);
    EXPECT_EQ(topology.shape, Shape::kListed);
    EXPECT_EQ(topology.cards, 3U);
    EXPECT_THAT(topology.links, ElementsAre(Link{{0, 1}, {2, 7}}, Link{{1, 0}, {2, 0}}));
    EXPECT_TRUE(read("links = []", kThree).links.empty());
}

TEST(TopologyFile, AShape) {
    EXPECT_EQ(read("shape = 'ring'", kThree).links, make(Shape::kRing, 3)->links);
    EXPECT_EQ(read("shape = 'torus'\ntorus = [3, 4]", {12, 16, 8}).sides, (Sides{3, 4}));
    EXPECT_EQ(read("shape = 'torus'", {12, 16, 8}).sides, (Sides{4, 3}));
}

TEST(TopologyFile, IsWrittenAsItIsRead) {
    for (const Shape shape : {Shape::kPair, Shape::kChain, Shape::kRing, Shape::kMesh, Shape::kTorus,
                              Shape::kSwitch, Shape::kFatTree}) {
        const unsigned cards = shape == Shape::kPair ? 2 : shape == Shape::kTorus ? 9 : 4;
        const auto made = make(shape, cards);
        ASSERT_TRUE(made) << shape_name(shape);
        const Topology again = read(text_of(*made), {std::nullopt, 16, 8});
        EXPECT_EQ(again.cards, cards) << shape_name(shape);
        EXPECT_EQ(again.links, made->links) << text_of(*made);
        ASSERT_EQ(again.switches.size(), made->switches.size());
        for (std::size_t i = 0; i < again.switches.size(); ++i) {
            EXPECT_EQ(again.switches[i].ports, made->switches[i].ports);
            EXPECT_EQ(again.switches[i].level, made->switches[i].level);
        }
    }
    EXPECT_TRUE(read(text_of(Topology{.cards = 2, .links = {}}), {std::nullopt, 16, 8}).links.empty());
}

TEST(TopologyFile, ItMaySayHowManyCardsThereAre) {
    const Limits open{{}, 16, 8};
    EXPECT_EQ(read("shape = 'mesh'\ncards = 5", open).cards, 5U);
    EXPECT_EQ(read("cards = 3\nlinks = [['card0:0', 'card2:0']]", open).cards, 3U);
    EXPECT_EQ(read("shape = 'torus'\ntorus = [3, 4]", open).cards, 12U);
    EXPECT_EQ(read("shape = 'pair'", open).cards, 2U);
    EXPECT_EQ(read("shape = 'chain'", open).cards, 1U);
    EXPECT_EQ(read("shape = 'ring'\ncards = 3", kThree).cards, 3U);
}

TEST(TopologyFile, AShapeByItsName) {
    EXPECT_EQ(named(Shape::kRing, {4, 16, 8})->links, make(Shape::kRing, 4)->links);
    EXPECT_EQ(named(Shape::kPair, {{}, 16, 8})->cards, 2U);
    EXPECT_THAT(named(Shape::kRing, {{}, 16, 8}).error().text, HasSubstr("--cards says how many"));
    EXPECT_THAT(named(Shape::kTorus, {{}, 16, 8}).error().text, StartsWith("torus: how many cards? --cards"));
    EXPECT_EQ(named(Shape::kMesh, {8, 16, 4}).error().text,
              "mesh: card 0 would need a port 4, and its SKU has 4 (link.ports)");
}

constexpr std::string_view kTwoLeaves = R"(
links = [
    ["card0:0", "a:0"], ["card1:0", "b:0"], ["card2:0", "b:1"],
    ["top:0", "a:7"], ["top:1", "b:7"],
]
[[switch]]
name = "top"
[[switch]]
name = "a"
ports = 8
[[switch]]
name = "b"
ports = 8
)";

TEST(TopologyFile, Switches) {
    const Topology topology = read(std::string(kTwoLeaves), kThree);
    EXPECT_THAT(topology.switches,
                ElementsAre(SwitchPlace{"top", 32, 1}, SwitchPlace{"a", 8, 0}, SwitchPlace{"b", 8, 0}));
    EXPECT_THAT(topology.links, ElementsAre(Link{{0, 0}, {4, 0}}, Link{{1, 0}, {5, 0}}, Link{{2, 0}, {5, 1}},
                                            Link{{3, 0}, {4, 7}}, Link{{3, 1}, {5, 7}}));
    const Topology one = *named(Shape::kSwitch, {4, 16, 8});
    EXPECT_EQ(one.switches.size(), 1U);
    EXPECT_EQ(one.links[3], (Link{{3, 0}, {4, 3}}));
    const Topology tree = *named(Shape::kFatTree, {8, 16, 4});
    EXPECT_EQ(tree.switches.size(), 6U);
    EXPECT_EQ(tree.links.size(), 16U);
    EXPECT_EQ(tree.links[8], (Link{{8, 2}, {12, 0}}));
    EXPECT_FALSE(named(Shape::kFatTree, {2, 16, 4}));
    EXPECT_FALSE(named(Shape::kSwitch, {1, 16, 4}));
}

TEST(TopologyFile, SwitchesThatContradictThemselves) {
    const std::string cards = "links = [['card0:0', 's:0'], ['card1:0', 's:1']]\n";
    EXPECT_EQ(error_of(cards + "[[switch]]\nname = 's'"), "");
    EXPECT_EQ(error_of(cards), "t.toml:1: an end of a link is written \"card0:0\" (card and port)");
    EXPECT_THAT(error_of(cards + "[[switch]]\nname = 'other'"),
                HasSubstr("'s:0': there is no card and no [[switch]] of this name"));
    EXPECT_THAT(error_of(cards + "[[switch]]\nname = 's'\n[[switch]]\nname = 's'"),
                StartsWith("t.toml:4: two switches have the name 's'"));
    EXPECT_THAT(error_of(cards + "[[switch]]\nname = 'card1'"), HasSubstr("which is no card's"));
    EXPECT_THAT(error_of(cards + "[[switch]]\nname = 's'\nports = 1"), HasSubstr("from 2 to 32"));
    EXPECT_THAT(error_of(cards + "[[switch]]\nname = 's'\nrate = 1"), HasSubstr("unknown key 'rate'"));
    EXPECT_THAT(
        error_of("links = [['card0:0', 's:2'], ['card1:0', 's:1']]\n[[switch]]\nname = 's'\nports = 2"),
        HasSubstr("this switch has ports 0 to 1"));
    EXPECT_THAT(error_of("links = [['card0:0', 's:0']]\n[[switch]]\nname = 's'"),
                HasSubstr("switch s joins nothing: it has 1 link"));
    EXPECT_THAT(error_of("links = [['card0:0', 's:0'], ['card0:1', 's:1']]\n[[switch]]\nname = 's'"),
                HasSubstr("card 0 and s are joined twice"));
    EXPECT_THAT(error_of("links = [['card0:0', 's:0'], ['card1:0', 't:0'], ['s:1', 't:1']]\n"
                         "[[switch]]\nname = 's'\n[[switch]]\nname = 't'"),
                HasSubstr("switches s and t are both of level 0: say which is above the other (level = 1)"));
    EXPECT_THAT(error_of("shape = 'ring'\n[[switch]]\nname = 's'"), HasSubstr("go with 'links'"));
}

TEST(TopologyFile, MistakesAreNamedWithTheirLine) {
    EXPECT_THAT(error_of("links = ["), StartsWith("t.toml:1: "));
    EXPECT_THAT(
        error_of(""),
        HasSubstr("neither 'shape' (pair, chain, ring, mesh, torus, switch or fat-tree) nor 'links'"));
    EXPECT_THAT(error_of("shape = 'ring'\n\nspeed = 3"), StartsWith("t.toml:3: unknown key 'speed'"));
    EXPECT_THAT(error_of("shape = 'ring'\n\"a\\u001b[1m\" = 3"), HasSubstr("unknown key 'a?[1m'"));
    EXPECT_THAT(error_of("shape = 'ring'\nshape = 'mesh'"), StartsWith("t.toml:2: "));
    EXPECT_THAT(error_of("shape = 'ring'\nkind = 'roce'"),
                StartsWith("t.toml:2: kind, that of the links, is \"local\": there is no other so far"));
    EXPECT_THAT(error_of("links = []\nshape = 'ring'"), StartsWith("t.toml:2: 'shape' says which links"));
}

TEST(TopologyFile, WrongShapes) {
    EXPECT_THAT(error_of("\nshape = 'star'"),
                StartsWith("t.toml:2: shape is pair, chain, ring, mesh, torus, switch or fat-tree"));
    EXPECT_THAT(error_of("shape = 7"), HasSubstr("shape is pair"));
    EXPECT_THAT(error_of("shape = 'pair'"), HasSubstr("a pair has 2 cards, not 3"));
    EXPECT_THAT(error_of("shape = 'ring'", {2, 16, 8}), HasSubstr("3 cards or more, not 2"));
    EXPECT_THAT(error_of("shape = 'ring'", {{}, 16, 8}), HasSubstr("not 1: "));
    EXPECT_THAT(error_of("shape = 'ring'", {{}, 16, 8}), HasSubstr("('cards' or --cards says"));
    EXPECT_THAT(error_of("shape = 'ring'\ncards = 2", {{}, 16, 8}), StartsWith("t.toml:2: a ring has"));
    EXPECT_THAT(error_of("shape = 'mesh'", {8, 16, 4}),
                StartsWith("t.toml:1: card 0 would need a port 4, and its SKU has 4"));
    EXPECT_THAT(error_of("shape = 'ring'", {4, 16, 1}), HasSubstr("card 1 would need a port 1"));
}

TEST(TopologyFile, WrongSides) {
    const Limits nine{9, 16, 8};
    EXPECT_THAT(error_of("shape = 'torus'\ntorus = [4, 3]", nine),
                StartsWith("t.toml:2: a torus of 4 x 3 has 12 cards, not 9"));
    EXPECT_THAT(error_of("shape = 'torus'\ntorus = [4, 2]", {8, 16, 8}),
                StartsWith("t.toml:2: a torus of 4 x 2: a side has 3 cards or more"));
    EXPECT_THAT(error_of("shape = 'torus'", {8, 16, 8}), HasSubstr("8 cards make no torus"));
    EXPECT_THAT(error_of("shape = 'torus'\ntorus = [5, 5]", {{}, 16, 8}),
                StartsWith("t.toml:2: these are 25 cards, and there can be 16"));
    for (const char* bad : {"3", "[3]", "[3, 3, 3]", "[]"})
        EXPECT_THAT(error_of(std::string("shape = 'torus'\ntorus = ") + bad, nine),
                    StartsWith("t.toml:2: torus is a pair"));
    for (const char* bad : {"[3.0, 3]", "[-3, 3]", "[0, 3]", "['3', 3]", "[3, 9223372036854775807]"})
        EXPECT_THAT(error_of(std::string("shape = 'torus'\ntorus = ") + bad, nine),
                    StartsWith("t.toml:2: a side of a torus is"));
    EXPECT_THAT(error_of("shape = 'ring'\ntorus = [3, 3]", nine), StartsWith("t.toml:2: 'torus' belongs"));
    EXPECT_THAT(error_of("links = []\ntorus = [3, 3]", nine), StartsWith("t.toml:2: 'torus' belongs"));
}

// Where the file or the shape says how many cards there are, nobody is asked for their number.
TEST(TopologyFile, OnlyWhoHasNotSaidHowManyCardsIsAskedForIt) {
    const Limits open{{}, 16, 8};
    EXPECT_EQ(error_of("shape = 'torus'\ntorus = [4, 2]", open),
              "t.toml:2: a torus of 4 x 2: a side has 3 cards or more, as on one of two the way round joins "
              "the same two cards again");
    EXPECT_EQ(error_of("shape = 'pair'\ncards = 3", open), "t.toml:2: a pair has 2 cards, not 3");
    EXPECT_THAT(error_of("shape = 'torus'", open), StartsWith("t.toml:1: how many cards? "));
    EXPECT_THAT(error_of("shape = 'mesh'", open),
                StartsWith("t.toml:1: a mesh has 2 cards or more, not 1 ('cards' or --cards says"));
}

TEST(TopologyFile, WrongNumbersOfCards) {
    EXPECT_EQ(error_of("shape = 'ring'\ncards = 4"), "t.toml:2: the file is for 4 cards, and --cards says 3");
    for (const char* bad : {"0", "17", "-1", "3.0", "'3'", "[3]", "true"})
        EXPECT_THAT(error_of(std::string("shape = 'ring'\ncards = ") + bad),
                    StartsWith("t.toml:2: cards is a whole number from 1 to 16"));
}

TEST(TopologyFile, WrongLinks) {
    EXPECT_THAT(error_of("links = 3"), HasSubstr("a list of pairs"));
    EXPECT_THAT(error_of(R"(links = ["card0:0"])"), HasSubstr("a pair"));
    EXPECT_THAT(error_of(R"(links = [["card0:0"]])"), HasSubstr("a pair"));
    EXPECT_THAT(error_of("links = [\n[\"card0:0\", \"card1:0\"],\n[\"card0:1\", 7]]"),
                StartsWith("t.toml:3: an end of a link is written \"card0:0\""));
    for (const char* bad : {"card0", "0:0", "card:0", "card0:", "card0:x", "card-1:0", "card99999999999:0",
                            "card0:0:0", " card0:0"})
        EXPECT_THAT(error_of(std::string("links = [[\"") + bad + "\", \"card1:0\"]]"),
                    HasSubstr("card and port"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card3:0"]])"), HasSubstr("there are 3 cards"));
    EXPECT_EQ(error_of(R"(links = [["card0:0", "card1:0"]])", {{}, 16, 8}),
              "t.toml:1: 'card1:0': say how many cards there are: cards = N, or --cards");
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card1:0"]])", {1, 16, 8}), HasSubstr("there is 1 card"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card1:8"]])"), HasSubstr("ports 0 to 7"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card1:4"]])", {3, 16, 4}), HasSubstr("its SKU has 4"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card1:0"], ["card0:0", "card2:0"]])"),
                HasSubstr("'card0:0' is in two links"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card0:1"]])"), HasSubstr("not card 0 with itself"));
    EXPECT_THAT(error_of(R"(links = [["card0:0", "card0:0"]])"), HasSubstr("'card0:0' is in two links"));
    EXPECT_THAT(error_of("links = [[\"card0:0\", \"card1:0\"],\n[\"card1:1\", \"card0:1\"]]"),
                StartsWith("t.toml:2: cards 0 and 1 are joined twice"));
}

}  // namespace
}  // namespace orrery::topology
