// What a card's links carried for a process.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/prof/model.h"

namespace orrery::prof {

struct LinkSums {
    std::vector<const LinkRecord*>
        ports;            // that lead to the same peer: which of them a copy took is not told
    double gb_per_s = 0;  // one direction, all of them together; 0: not known
    // Copies of either card between the two, with the time in which at least one of them ran.
    struct Way {
        std::uint64_t bytes = 0, ps = 0;
        double gb_per_s() const {
            return ps == 0 ? 0 : 1e3 * static_cast<double>(bytes) / static_cast<double>(ps);
        }
    };
    Way sent, received;

    const LinkRecord& first() const { return *ports.front(); }
    double share(const Way& way) const { return gb_per_s == 0 ? 0 : way.gb_per_s() / gb_per_s; }
};
// By peer, in the order of their first ports.
std::vector<LinkSums> link_sums(const Activity& activity, const DeviceModel& device);

// What all ports of the card carried for anybody, between the first and the last sample of these counters.
struct LinkCounts {
    std::uint64_t ps = 0, sent = 0, received = 0;  // bytes of payload
    std::uint64_t retries = 0, messages = 0;       // frames that were sent again; messages that were sent
    std::uint64_t credit_ps = 0;                   // in which a port had no room at the other end
};
std::optional<LinkCounts> link_counts(const Activity& activity, const DeviceModel& device);

}  // namespace orrery::prof
