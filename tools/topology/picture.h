// A picture of cards and their links: an SVG file that needs nothing beside it.
#pragma once

#include <string>
#include <vector>

#include "tools/topology/graph.h"

namespace orrery::topology {

enum class LinkState : std::uint8_t { kUp, kDegraded, kTraining, kDown };

struct PictureLink {
    Edge edge;
    LinkState state = LinkState::kUp;
};

// A port that leads to no card of the picture, as far as anybody knows.
struct PicturePort {
    Port port;
    LinkState state = LinkState::kDown;
    std::string note;  // at the end of its line; without one a port that is down has no line
};

struct Picture {
    struct Card {
        std::string name, address, kind;  // a line each
        int level = -1;                   // of a switch; cards stand below all of them
    };
    std::vector<Card> cards;
    std::vector<PictureLink> links;
    std::vector<PicturePort> ports;
};

// What a topology says, as it is when all links are up: each has the numbers of `link`.
Picture planned(const Topology& topology, const std::string& kind, const Edge& link, unsigned ports);

// "4 cards in a ring"
std::string title_of(const Picture& picture, const Form& form);

// Cards of a chain, a ring or a torus stand as their name says, all others in a circle.
std::string svg_of(const Picture& picture);

}  // namespace orrery::topology
