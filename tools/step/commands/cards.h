// Several recordings under one prompt: those of linked cards.
//
// Each card has a clock of its own. Its *system time* is that clock and what the card skipped to follow its
// peers (docs/links.md): no message of a peer has an effect before it was sent. Nothing else holds the cards'
// times together, so they are put on one time line by system time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/step/commands/debugger.h"

namespace orrery::step {

struct Cards {
    std::vector<std::unique_ptr<Debugger>> all;
    std::size_t current = 0;  // that commands are about

    Debugger& now() { return *all[current]; }
};
std::string card_name(std::size_t card);  // "card 0"

// From a moment of the card's own clock to system time; for many of them. Knows nothing of the session later.
std::function<Time(Time own)> system_clock(const Session& session);
Time system_time(const Session& session, Time own);
// The last moment of its own clock that is not after this system time.
Time own_time(const Session& session, Time system);

}  // namespace orrery::step
