#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tools/topology/topology.h"

namespace orrery::topology {
namespace {

constexpr std::array<std::pair<Shape, std::string_view>, 7> kNames = {{
    {Shape::kPair, "pair"},
    {Shape::kChain, "chain"},
    {Shape::kRing, "ring"},
    {Shape::kMesh, "mesh"},
    {Shape::kTorus, "torus"},
    {Shape::kSwitch, "switch"},
    {Shape::kFatTree, "fat-tree"},
}};

constexpr unsigned kShortestRing = 3;  // of two the way round would join the same cards once more

Link ordered(Port a, Port b) {
    return a < b ? Link{a, b} : Link{b, a};
}

// Each link at the lowest port that is free on either side.
class LowestFree {
  public:
    explicit LowestFree(Topology& topology)
        : topology_(topology), used_(topology.cards + topology.switches.size()) {}
    void join(unsigned a, unsigned b) {
        topology_.links.push_back(ordered({a, used_[a]++}, {b, used_[b]++}));
    }

  private:
    Topology& topology_;
    std::vector<unsigned> used_;
};

// What `a` reaches by port p reaches `a` by port p + 1.
void join_onwards(Topology& topology, unsigned a, unsigned b, unsigned port) {
    topology.links.push_back(ordered({a, port}, {b, port + 1}));
}

std::optional<Sides> squarest(unsigned cards) {
    std::optional<Sides> best;
    for (unsigned rows = kShortestRing; rows * rows <= cards; ++rows)
        if (cards % rows == 0) best = Sides{cards / rows, rows};
    return best;
}

text::Result<Topology> torus(unsigned cards, std::optional<Sides> sides) {
    if (!sides) {
        sides = squarest(cards);
        if (!sides)
            return text::fail(
                "{} cards make no torus with sides of {} or more; 9, 12, 15 and 16 are the first that do",
                cards, kShortestRing);
    }
    const auto [columns, rows] = *sides;
    if (columns < kShortestRing || rows < kShortestRing)
        return text::fail(
            "a torus of {} x {}: a side has {} cards or more, as on one of two the way round joins the same "
            "two cards again",
            columns, rows, kShortestRing);
    if (std::uint64_t{columns} * rows != cards)
        return text::fail("a torus of {} x {} has {} cards, not {}", columns, rows,
                          std::uint64_t{columns} * rows, cards);
    Topology made{Shape::kTorus, cards, *sides, {}, {}};
    for (unsigned card = 0; card < cards; ++card) {
        const unsigned x = card % columns, y = card / columns;
        join_onwards(made, card, y * columns + (x + 1) % columns, 0);
        join_onwards(made, card, (y + 1) % rows * columns + x, 2);
    }
    return made;
}

text::Result<Topology> one_switch(unsigned cards) {
    if (cards < 2 || cards > kMaxSwitchPorts)
        return text::fail("a switch joins 2 to {} cards, not {}", kMaxSwitchPorts, cards);
    Topology made{Shape::kSwitch, cards, {}, {}, {{"switch 0", kMaxSwitchPorts, 0}}};
    for (unsigned card = 0; card < cards; ++card)
        made.links.push_back({{card, 0}, {cards, card}});
    return made;
}

text::Result<Topology> fat_tree(unsigned cards) {
    const unsigned below = cards <= 8 ? 2 : 4, leaves = (cards + below - 1) / below;
    if (leaves < 2) return text::fail("a fat tree has 3 cards or more, not {}: fewer are on one leaf", cards);
    if (leaves + below > kMaxSwitches)
        return text::fail("a fat tree has {} cards at most, not {}", 4 * (kMaxSwitches - 4), cards);
    Topology made{Shape::kFatTree, cards, {}, {}, {}};
    for (unsigned leaf = 0; leaf < leaves; ++leaf)
        made.switches.push_back({fmt::format("leaf {}", leaf), kMaxSwitchPorts, 0});
    for (unsigned spine = 0; spine < below; ++spine)
        made.switches.push_back({fmt::format("spine {}", spine), kMaxSwitchPorts, 1});
    for (unsigned card = 0; card < cards; ++card)
        made.links.push_back({{card, 0}, {cards + card / below, card % below}});
    for (unsigned leaf = 0; leaf < leaves; ++leaf)
        for (unsigned spine = 0; spine < below; ++spine)
            made.links.push_back({{cards + leaf, below + spine}, {cards + leaves + spine, leaf}});
    return made;
}

}  // namespace

std::string_view shape_name(Shape shape) {
    const auto found = std::ranges::find(kNames, shape, &std::pair<Shape, std::string_view>::first);
    return found == kNames.end() ? "listed" : found->second;
}

std::optional<Shape> shape_named(std::string_view name) {
    const auto found = std::ranges::find(kNames, name, &std::pair<Shape, std::string_view>::second);
    if (found == kNames.end()) return std::nullopt;
    return found->first;
}

std::string shape_names() {
    std::string names;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (i != 0) names += i + 1 == kNames.size() ? " or " : ", ";
        names += kNames[i].second;
    }
    return names;
}

text::Result<Topology> make(Shape shape, unsigned cards, std::optional<Sides> sides) {
    if (cards > kMaxCards) return text::fail("there are {} cards at most, not {}", kMaxCards, cards);
    if (shape == Shape::kTorus) return torus(cards, sides);
    if (shape == Shape::kSwitch) return one_switch(cards);
    if (shape == Shape::kFatTree) return fat_tree(cards);
    Topology made{shape, cards, {}, {}, {}};
    LowestFree free(made);
    switch (shape) {
        case Shape::kPair:
            if (cards != 2) return text::fail("a pair has 2 cards, not {}", cards);
            free.join(0, 1);
            break;
        case Shape::kChain:
            for (unsigned card = 0; card + 1 < cards; ++card)
                free.join(card, card + 1);
            break;
        case Shape::kRing:
            if (cards < kShortestRing)
                return text::fail(
                    "a ring has {} cards or more, not {}: of two the way round joins the same cards again "
                    "(two "
                    "are a pair)",
                    kShortestRing, cards);
            for (unsigned card = 0; card < cards; ++card)
                join_onwards(made, card, (card + 1) % cards, 0);
            break;
        case Shape::kMesh:
            if (cards < 2) return text::fail("a mesh has 2 cards or more, not {}", cards);
            for (unsigned card = 0; card < cards; ++card)
                for (unsigned other = card + 1; other < cards; ++other)
                    free.join(card, other);
            break;
        case Shape::kTorus:
        case Shape::kSwitch:
        case Shape::kFatTree:
        case Shape::kListed:
            break;
    }
    return made;
}

std::optional<Port> port_beyond(const Topology& topology, unsigned ports) {
    for (const Link& link : topology.links)
        for (const Port& end : {link.first, link.second})
            if (end.card < topology.cards && end.port >= ports) return end;
    return std::nullopt;
}

std::optional<std::pair<unsigned, unsigned>> joined_by_mixture(const Topology& topology) {
    if (topology.switches.empty()) return std::nullopt;
    const unsigned cards = topology.cards;
    const auto nodes = cards + static_cast<unsigned>(topology.switches.size());
    // Nodes with the same number are joined by those links that `counts` takes.
    const auto groups = [&](auto&& counts) {
        std::vector<unsigned> group(nodes);
        for (unsigned node = 0; node < nodes; ++node)
            group[node] = node;
        for (const Link& link : topology.links) {
            if (!counts(link)) continue;
            const unsigned from = group[link.first.card], to = group[link.second.card];
            std::ranges::replace(group, from, to);
        }
        return group;
    };
    const auto all = groups([](const Link&) { return true; });
    const auto cables = groups([&](const Link& link) { return link.second.card < cards; });
    // A card passes nothing on from switch to switch.
    const auto fabrics = groups([&](const Link& link) { return link.first.card >= cards; });
    const auto at = [&](unsigned card) {
        std::vector<unsigned> found;
        for (const Link& link : topology.links)
            if (link.first.card == card && link.second.card >= cards)
                found.push_back(fabrics[link.second.card]);
        return found;
    };
    for (unsigned one = 0; one < cards; ++one) {
        const auto here = at(one);
        for (unsigned other = one + 1; other < cards; ++other) {
            if (all[one] != all[other] || cables[one] == cables[other]) continue;
            const auto there = at(other);
            if (std::ranges::find_first_of(here, there) == here.end()) return std::pair{one, other};
        }
    }
    return std::nullopt;
}

}  // namespace orrery::topology
