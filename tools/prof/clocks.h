// When, by the host's clock, a card's clock showed a time; and how far the clocks of two hosts are apart.
//
// Nothing is assumed but that clocks do not go back: a card that is idle stands still, and one at work goes
// as fast as the host computes it. So all that is known of a moment lies between two moments of the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/prof/format.h"

namespace orrery::prof {

// Of one card, in one process. Fill it, then settle() it.
class HostClock {
  public:
    struct Moment {
        std::uint64_t least_ns = 0, most_ns = 0;
        std::uint64_t at_ns() const { return least_ns + (most_ns - least_ns) / 2; }
        // The truth is at most so far from at_ns().
        std::uint64_t error_ns() const { return most_ns - least_ns - (most_ns - least_ns) / 2; }
    };

    // The card's clock had not passed ps at ns, or had come to it.
    void not_passed(std::uint64_t ns, std::uint64_t ps) { before_.emplace_back(ps, ns); }
    void reached(std::uint64_t ns, std::uint64_t ps) { after_.emplace_back(ps, ns); }
    void add(const ClockRecord& clock);
    void settle();

    // Nothing: it was never read before or behind that, or what was read contradicts itself.
    std::optional<Moment> host_of(std::uint64_t ps) const;
    bool empty() const { return before_.empty() || after_.empty(); }

    // By the card's time; each later one has a later host's time too.
    using Points = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    const Points& before() const { return before_; }
    const Points& after() const { return after_; }

  private:
    Points before_, after_;
};

// How far the host's clock of one machine is ahead of another's.
struct HostOffset {
    std::int64_t ns = 0;
    std::uint64_t error_ns = 0;
};
// What a machine's cards that keep step did: work that had not begun when it was submitted (card's time,
// host's time), and what its clocks had come to when it was looked.
struct StepTimes {
    HostClock::Points begun, reached;
};
// Of cards that keep step none does anything before the others have come near to that time. Nothing: what is
// known does not bound it from both sides, or contradicts itself.
std::optional<HostOffset> host_offset(const StepTimes& reference, const StepTimes& machine);

}  // namespace orrery::prof
