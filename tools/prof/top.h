// orrery-prof top: what the cards do now, again and again.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cards/cards.h"

namespace orrery::prof {

// What went on between two looks of the same system. Shares are of the cards' own, modelled time.
std::string top_text(const cards::System& before, const cards::System& now);

struct TopOptions {
    double seconds = 1;  // from look to look
    std::uint64_t times =
        0;  // tables, one after the other; 0: without end, on the whole screen if there is one
};

// Until q, Ctrl-C or SIGTERM, or as often as was asked for. The exit status; to be called before there are
// other threads.
int run_top(const TopOptions& options);

}  // namespace orrery::prof
