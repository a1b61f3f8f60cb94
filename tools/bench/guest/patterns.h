// Copies of several cards at once, and over several links, in model time, beside what the links allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/topology/graph.h"

namespace orrery::bench {

// The links of this system.
struct Links {
    unsigned cards = 0;
    std::vector<topology::Edge> edges;
    unsigned forward_ns = 0;  // of a card that passes on
};

struct Pattern {
    std::string name;    // "copies over 3 links"
    std::string detail;  // which cards
    const char* unit;
    double measured = 0, expected = 0;
    std::optional<double> goal = {};  // at least this share of what is expected
    // Of each of those that share a port, in per mille of all; the goal is within 20.
    std::vector<double> shares = {};

    bool holds() const;
    bool shares_hold() const;
};

// `bytes`: of one copy. Who cannot be reached is left out.
std::vector<Pattern> measure_patterns(const Links& links, std::size_t bytes);

}  // namespace orrery::bench
