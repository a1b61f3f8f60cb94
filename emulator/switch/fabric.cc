#include "emulator/switch/fabric.h"

#include <algorithm>
#include <limits>

namespace orrery::emu {

namespace {

// Of another port: never the same number as before because a switch began to count anew.
constexpr std::uint32_t kOtherWay = 257;

std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return a > std::numeric_limits<std::uint32_t>::max() - b ? std::numeric_limits<std::uint32_t>::max()
                                                             : a + b;
}

}  // namespace

// Who has shown a node first keeps it, as long as it does. Another port of the same card may show it too.
void Fabric::find_owners(const std::function<void(unsigned port)>& refused) {
    for (unsigned p = 0; p < kPorts; ++p)
        if (!ports_[p].up || ports_[p].is_switch || ports_[p].node != owns_[p]) owns_[p] = 0;
    for (unsigned p = 0; p < kPorts; ++p) {
        const Port& port = ports_[p];
        if (!port.up || port.is_switch || port.node == 0 || owns_[p] != 0) {
            refused_[p] = 0;
            continue;
        }
        bool taken = false;
        for (unsigned other = 0; other < kPorts; ++other)
            taken |= owns_[other] == port.node && ports_[other].uid != port.uid;
        if (!taken) {
            owns_[p] = port.node;
        } else if (refused_[p] != port.node) {
            refused_[p] = port.node;
            refused(p);
        }
    }
}

void Fabric::find(std::uint32_t n, const ReachOf& reach_of) {
    Node& node = nodes_[n];
    std::array<link::Route, kPorts> routes{};
    std::array<unsigned, kPorts> best{};
    unsigned number = 0;
    std::uint32_t by = 0;
    bool below = false;
    // Below first; what is there does not come from above.
    for (const bool up : {false, true}) {
        std::uint32_t links = ORR_REACH_LINKS;
        for (unsigned p = 0; p < kPorts; ++p) {
            const Port& port = ports_[p];
            if (!port.up || above(p) != up) continue;
            link::Route& route = routes[p];
            if (!port.is_switch) {
                if (owns_[p] != n) continue;
                route = {.valid = true, .links = 1, .port = p, .fabric = config_.uid};
                route.latency_ns = sum(config_.forward_ns, config_.latency_ns);
                route.mbps = port.mbps;
            } else {
                route = reach_of(p, n);
                if (!route.valid || route.links == 0) continue;
                route.links = sum(route.links, 1);
                route.latency_ns = sum(route.latency_ns, sum(config_.forward_ns, config_.latency_ns));
                route.mbps = std::min(route.mbps, port.mbps);
            }
            by |= 1u << p;
            if (route.links >= links && number == 0) continue;
            if (route.links < links) number = 0;
            links = std::min(links, route.links);
            if (route.links == links) best[number++] = p;
        }
        below = !up;
        if (number != 0) break;
    }
    node.by = by;
    node.below = below && number != 0;
    node.port = number == 0 ? kNone : best[n % number];
    node.route = number == 0 ? link::Route{} : routes[node.port];
}

void Fabric::update(const std::array<Port, kPorts>& ports, const ReachOf& reach_of,
                    const std::function<void(std::uint32_t node)>& changed,
                    const std::function<void(unsigned port)>& refused) {
    ports_ = ports;
    find_owners(refused);
    for (std::uint32_t n = 1; n < ORR_NODES; ++n) {
        const unsigned before = nodes_[n].port;
        find(n, reach_of);
        if (before == kNone || nodes_[n].port == before) continue;
        nodes_[n].losses += kOtherWay;
        changed(n);
    }
}

link::Route Fabric::shown(unsigned port, std::uint32_t n) const {
    const Node& node = nodes_[n];
    // Not what leads back there, and to the top only what is below.
    if (node.port == kNone || (node.by >> port & 1) != 0 || (above(port) && !node.below)) return {};
    link::Route route = node.route;
    route.losses += node.losses;
    return route;
}

}  // namespace orrery::emu
