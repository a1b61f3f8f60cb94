// Where a card's work stands on a timeline of the host: with the lengths and the order of the card's own
// time, and as near to the host's as these allow.
//
// A card's clock stands still while it is idle, and goes as fast as the host computes it while it works. So
// its time is laid on the host's in stretches, in which all is as far apart as on the card: work that
// overlaps, as long as what is known of the clock allows that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/prof/clocks.h"

namespace orrery::prof {

struct Stretch {
    std::uint64_t begin_ps = 0;
    std::uint64_t end_ps = 0;  // of all until then, so it may lie behind the next one's begin
    std::uint64_t begin_ns = 0;

    std::uint64_t ns(std::uint64_t ps) const {
        if (ps >= begin_ps) return begin_ns + (ps - begin_ps) / 1000;
        const std::uint64_t before = (begin_ps - ps) / 1000 + ((begin_ps - ps) % 1000 != 0 ? 1 : 0);
        return begin_ns - (before < begin_ns ? before : begin_ns);
    }
    // The same from `origin_ns` on, with what is less than a nanosecond.
    double us(std::uint64_t ps, std::uint64_t origin_ns) const {
        return static_cast<double>(static_cast<std::int64_t>(begin_ns - origin_ns)) / 1e3 +
               static_cast<double>(static_cast<std::int64_t>(ps - begin_ps)) / 1e6;
    }
};

struct Stretches {
    std::vector<Stretch> all = std::vector<Stretch>(1);  // by begin_ps; without work nothing is known
    std::uint64_t worst_ns = 0;  // the truth of when work began, or a wait ended, is at most so far away

    // The one that work is in. A wait begins whenever its queue comes to it, and ends by what it is for: it
    // stands where it ends.
    const Stretch& of(std::uint64_t begin_ps, std::uint64_t end_ps, bool waits) const;
    // Of any moment, never earlier than of one before it; nothing: `clock` does not know it.
    std::optional<std::uint64_t> ns(const HostClock& clock, std::uint64_t ps) const;
};

struct TimedWork {
    std::uint64_t begin_ps = 0, end_ps = 0, submitted_ns = 0;
    bool waits = false;
};
// Of all work of a card; the clock knows all these moments. What has ended on the card before other work
// began has here as well, and nothing but waits begins before it was submitted.
Stretches stretches_of(const HostClock& clock, const std::vector<TimedWork>& work);

}  // namespace orrery::prof
