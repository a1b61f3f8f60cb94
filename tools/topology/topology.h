// Which ports of which cards are joined, by the name of a shape or one by one.
#pragma once

#include <orrery/hw/link.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/text/result.h"

namespace orrery::topology {

inline constexpr unsigned kMaxPorts = ORR_LINK_MAX_PORTS;  // of a card
inline constexpr unsigned kMaxCards = 64;                  // that anybody here thinks about
inline constexpr unsigned kMaxSwitchPorts = 32;            // of a switch
inline constexpr unsigned kMaxSwitches = 16;

// Of a card, or of a switch: those are numbered from the number of cards on.
struct Port {
    unsigned card = 0;
    unsigned port = 0;
    auto operator<=>(const Port&) const = default;
};

// Between two cards or switches; the first has the lower number.
struct Link {
    Port first, second;
    bool operator==(const Link&) const = default;
};

enum class Shape : std::uint8_t {
    kListed,  // links one by one
    kPair,
    kChain,
    kRing,
    kMesh,     // each card with each other
    kTorus,    // rings in two directions
    kSwitch,   // all cards on one switch
    kFatTree,  // leaves that have some cards each, and as many spines, each joined to all leaves
};

struct SwitchPlace {
    std::string name;    // as the file has it, or "switch 0"
    unsigned ports = 0;  // that it has
    unsigned level = 0;  // 0: it has cards; those of a higher one join those of lower ones
    bool operator==(const SwitchPlace&) const = default;
};

// Cards of a torus are numbered row by row: card y * columns + x.
struct Sides {
    unsigned columns = 0, rows = 0;
    bool operator==(const Sides&) const = default;
};

struct Topology {
    Shape shape = Shape::kListed;
    unsigned cards = 0;
    Sides sides{};  // of a torus
    std::vector<Link> links;
    std::vector<SwitchPlace> switches{};
};

std::string_view shape_name(Shape shape);
// Not kListed, which is no name for people.
std::optional<Shape> shape_named(std::string_view name);
// "pair, chain, ring, mesh, torus, switch or fat-tree"
std::string shape_names();

// The links of a shape. Which port leads where is part of what a shape is (docs/vm.md):
//   pair, chain, mesh  links in the order of their cards, each at the lowest ports that are free
//   ring               0 to the next card, 1 to the one before
//   torus              0 to x + 1, 1 to x - 1, 2 to y + 1, 3 to y - 1
//   switch             0 of card N to port N
//   fat-tree           0 to its leaf, which has its cards (2, or 4 of more than 8) at its first ports, then
//   its
//                      spines, of which there are as many
// A torus without sides gets those that are closest to a square. Fails if so many cards do not make this
// shape with two cards joined once at most.
text::Result<Topology> make(Shape shape, unsigned cards, std::optional<Sides> sides = {});

// The first port of a card that one with so many of them does not have.
std::optional<Port> port_beyond(const Topology& topology, unsigned ports);

// The first two cards that links join only over cables and switches on one way, which is none: a way is over
// cables or over switches (docs/switch.md).
std::optional<std::pair<unsigned, unsigned>> joined_by_mixture(const Topology& topology);

}  // namespace orrery::topology
