// How far a card may go without being overtaken by what others may still send to it: the rule of
// conservative lockstep, for whoever drives several cards by their model times.
#pragma once

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
    ModelTime reach() const { return later(next, lookahead); }
};

// Which other card could be the first to send something to card `self`; cards.size(): none ever does.
inline std::size_t nearest(std::span<const Promise> cards, std::size_t self) {
    std::size_t first = cards.size();
    ModelTime reach = kNever;
    for (std::size_t n = 0; n < cards.size(); ++n) {
        if (n == self || cards[n].reach() >= reach) continue;
        first = n;
        reach = cards[n].reach();
    }
    return first;
}

// Nothing that card `self` does not know of yet arrives before this, unless it answers to what `self` sends
// from now on. Whoever is behind a card that sleeps until it is sent something is no nearer: the last hop
// alone takes a lookahead.
inline ModelTime horizon(std::span<const Promise> cards, std::size_t self) {
    const std::size_t first = nearest(cards, self);
    return first == cards.size() ? kNever : cards[first].reach();
}

}  // namespace orrery::emu
