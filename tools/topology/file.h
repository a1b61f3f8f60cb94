// Topology files: TOML, one of
//   shape = "ring"             # pair, chain, ring, mesh, torus
//   torus = [4, 3]             # sides of a torus; without it they are as close to a square as can be
//   links = [ ["card0:0", "card1:0"], ["card0:1", "card2:0"] ]
//   links = [ ["card0:0", "leaf:0"], ["card1:0", "leaf:1"] ]
//   [[switch]]                 # one for each switch that a link names
//   name = "leaf"
//   ports = 8                  # that it has (32)
//   level = 0                  # 0: cards are joined to it; those that join these have 1 (from the links)
// and, with either,
//   cards = 4                  # how many there are
//   kind = "local"             # of the links: the only one so far
// docs/vm.md describes it.
#pragma once

#include <optional>
#include <string>

#include "tools/topology/topology.h"

namespace orrery::topology {

// What is known beside the file.
struct Limits {
    std::optional<unsigned> cards;  // as asked for (--cards); nothing: the file says it, or it is one
    unsigned most_cards = kMaxCards;
    unsigned ports = kMaxPorts;  // of each card
};

// Errors are "NAME:LINE: what is wrong".
text::Result<Topology> parse(const std::string& toml, const std::string& name, const Limits& limits);

// A file that says the same, link by link: parse() gives the cards, links and switches, and kListed. Switches
// without a name of a file are "switch0".
std::string text_of(const Topology& topology);

// A shape without a file; errors begin with its name.
text::Result<Topology> named(Shape shape, const Limits& limits);

}  // namespace orrery::topology
