// A hand at the cables of a card or a switch (docs/faults.md).
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace orrery::emu {

class LinkPort;

// Pulls the cable of a port out, or plugs it in. `port`: null if there is none of that number.
std::expected<void, std::string> move_cable(LinkPort* port, std::uint64_t number, bool in);

}  // namespace orrery::emu
