// What follows from links alone, whoever made them: how far cards are from each other, and what shape it is.
#pragma once

#include <optional>
#include <vector>

#include "tools/topology/topology.h"

namespace orrery::topology {

// A link that is up.
struct Edge {
    Port first, second;  // of two different cards
    unsigned lanes = 0, gbps = 0, latency_ns = 0;
    // From the second to the first, if lanes have failed one way; 0: the same.
    unsigned gbps_back = 0, lanes_back = 0;
    Edge back() const {
        return {second,
                first,
                lanes_back != 0 ? lanes_back : lanes,
                gbps_back != 0 ? gbps_back : gbps,
                latency_ns,
                gbps,
                lanes};
    }
    bool same_both_ways() const { return back().gbps == gbps && back().lanes == lanes; }
};

// The shortest way between two cards; of several with as many links, the fastest.
struct Way {
    unsigned links = 0;
    unsigned gbps = 0;        // of its slowest link, this way
    unsigned latency_ns = 0;  // of all links together, without what passing on takes
    bool operator==(const Way&) const = default;
};

class Ways {
  public:
    // Edges with a card beyond `cards` are left out.
    Ways(unsigned cards, const std::vector<Edge>& edges);
    // Nothing if no links lead there, or if it is the same card.
    const std::optional<Way>& between(unsigned from, unsigned to) const { return all_[from * cards_ + to]; }

  private:
    unsigned cards_;
    std::vector<std::optional<Way>> all_;
};

// kListed if it is none of them; a mesh of three is a ring, and one of two a pair.
struct Form {
    Shape shape = Shape::kListed;
    Sides sides{};                // of a torus, whose cards are numbered row by row
    std::vector<unsigned> order;  // of a chain or a ring: one behind the other; else by number
};
Form form_of(unsigned cards, const std::vector<Edge>& edges);

}  // namespace orrery::topology
