// What a switch says of a node (wire.h), taken apart.
#pragma once

#include <algorithm>
#include <cstdint>

#include <orrery/hw/bar0.h>

#include "emulator/link/grants.h"
#include "emulator/link/wire.h"

namespace orrery::emu::link {

struct Route {
    bool valid = false;
    std::uint32_t links = 0;  // from the switch on
    std::uint32_t port = 0;   // of the last switch, to which the card is joined
    std::uint32_t losses = 0;
    std::uint32_t latency_ns = 0;
    std::uint64_t fabric = 0;  // that switch
    std::uint32_t mbps = 0;
    bool operator==(const Route&) const = default;
};

inline Reach reach_of(const Route& route) {
    if (!route.valid) return {};
    const std::uint64_t how = ORR_REACH_VALID |
                              std::min<std::uint32_t>(route.links, ORR_REACH_LINKS) << ORR_REACH_LINKS_SHIFT |
                              (route.port & ORR_REACH_PORT) << ORR_REACH_PORT_SHIFT |
                              (route.losses & 0xffffu) << ORR_REACH_LOSSES_SHIFT;
    return {how | std::uint64_t{route.latency_ns} << 32, route.fabric, route.mbps};
}

inline Route route_of(const Reach& reach) {
    Route route;
    route.valid = (reach.how & ORR_REACH_VALID) != 0;
    if (!route.valid) return {};
    route.links = reach.how >> ORR_REACH_LINKS_SHIFT & ORR_REACH_LINKS;
    route.port = reach.how >> ORR_REACH_PORT_SHIFT & ORR_REACH_PORT;
    route.losses = reach.how >> ORR_REACH_LOSSES_SHIFT & 0xffff;
    route.latency_ns = static_cast<std::uint32_t>(reach.how >> 32);
    route.fabric = reach.fabric;
    route.mbps = static_cast<std::uint32_t>(reach.mbps);
    return route;
}

inline Reach load_reach(Reach& from) {
    return {load_acquire(from.how), load_relaxed(from.fabric), load_relaxed(from.mbps)};
}
inline void store_reach(Reach& to, const Reach& reach) {
    std::atomic_ref(to.fabric).store(reach.fabric, std::memory_order_relaxed);
    std::atomic_ref(to.mbps).store(reach.mbps, std::memory_order_relaxed);
    store_release(to.how, reach.how);
}

}  // namespace orrery::emu::link
