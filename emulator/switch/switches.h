// Which switches a switch tells its peers of. As with nodes (fabric.h) what is known goes up and then down:
// to a switch above a switch tells of itself and of those below, to all others also of those above, and to
// nobody what he has said himself. So nothing goes round, and what is gone is forgotten.
// What a peer says of itself goes before what others say of it, and no peer's hearsay takes the room of
// another's: it has as many places as each of them.
#pragma once

#include <array>
#include <vector>

#include "emulator/link/wire.h"

namespace orrery::emu {

// By a port to another switch.
struct HeardSwitches {
    std::uint64_t uid = 0;  // of that switch
    bool above = false;
    // Itself first; else nothing of it is believed.
    std::vector<link::SwitchWords> all{};
};
using SwitchesByPort = std::array<HeardSwitches, link::kMostSwitchPorts>;

// What the peer of port `to` is told, `own` first, each once.
std::vector<link::SwitchWords> switches_told(const link::SwitchWords& own, const SwitchesByPort& heard,
                                             unsigned to);

}  // namespace orrery::emu
