// Which ports of which cards are joined.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/vm/result.h"

namespace orrery::vm {

inline constexpr unsigned kPortsPerCard = 8;

struct PortName {
    unsigned card = 0;
    unsigned port = 0;
    auto operator<=>(const PortName&) const = default;
};

// The card with the lower number starts first and listens.
struct Link {
    PortName listener;
    PortName connector;
};

// The default: a chain. Port 1 of a card (port 0 of card 0) leads to port 0 of the next one.
std::vector<Link> chain(unsigned cards);

// A file of this form, checked against the number of cards; a port is in one link at most.
//   links = [ ["card0:0", "card1:0"], ["card0:1", "card2:0"] ]
Result<std::vector<Link>> load_topology(const std::filesystem::path& file, unsigned cards);
Result<std::vector<Link>> parse_topology(const std::string& text, const std::string& name, unsigned cards);

}  // namespace orrery::vm
