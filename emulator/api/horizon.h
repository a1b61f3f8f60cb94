// How far a card may go without being overtaken by what others may still send to it: the rule of
// conservative lockstep, for whoever drives several cards by their model times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "emulator/api/model_time.h"

namespace orrery::emu {

// What the others know of a card.
struct Promise {
    // It does nothing before this, neither by itself nor for what has been sent to it.
    ModelTime next = kNever;
    // What it sends arrives no earlier than this much later.
    ModelTime lookahead = 0;
};

// Nothing that card `self` does not know of yet arrives before this, unless it answers to what `self` sends
// from now on. Whoever is behind a card that sleeps until it is sent something is no nearer: the last hop
// alone takes a lookahead.
inline ModelTime horizon(std::span<const Promise> cards, std::size_t self) {
    ModelTime first = kNever;
    for (std::size_t n = 0; n < cards.size(); ++n)
        if (n != self) first = std::min(first, later(cards[n].next, cards[n].lookahead));
    return first;
}

}  // namespace orrery::emu
