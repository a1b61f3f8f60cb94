// What a switch knows of the cards behind its ports, and by which port each is reached. Nobody programs it:
// a card shows its node, and a switch what it reaches.
//
// Switches have levels, and a message goes up and then down: to a switch above only what is not reached
// below, and from there never up again. So no ring of switches waits for itself. All that goes to one node
// takes the same port, which its number picks out of those that are as good; so what one card sends another
// stays in order.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <orrery/hw/link.h>

#include "emulator/link/reach.h"
#include "emulator/link/wire.h"

namespace orrery::emu {

class Fabric {
  public:
    static constexpr unsigned kPorts = link::kMostSwitchPorts;
    static constexpr unsigned kNone = kPorts;

    // A port, as it is now.
    struct Port {
        bool up = false;
        bool is_switch = false;  // its peer
        std::uint32_t level = 0;
        std::uint64_t uid = 0;   // the peer's
        std::uint32_t node = 0;  // of a card, 0: it has none
        std::uint32_t mbps = 0;
    };
    struct Config {
        std::uint64_t uid = 0;
        std::uint32_t level = 0;
        std::uint32_t latency_ns = 0, forward_ns = 0;
    };
    explicit Fabric(const Config& config) : config_(config) {}

    using ReachOf = std::function<link::Route(unsigned port, std::uint32_t node)>;
    // Looks at everything again. `changed` hears of each node that was reached, and is not any more, or by
    // another port; `refused` of a card that shows another's node.
    void update(const std::array<Port, kPorts>& ports, const ReachOf& reach_of,
                const std::function<void(std::uint32_t node)>& changed,
                const std::function<void(unsigned port)>& refused);

    // By which port a node is reached; kNone: by none.
    unsigned port_of(std::uint32_t node) const { return node < ORR_NODES ? nodes_[node].port : kNone; }
    // Whether what that node sends may come by this port.
    bool comes_by(unsigned port, std::uint32_t node) const {
        return node < ORR_NODES && (nodes_[node].by >> port & 1) != 0;
    }
    // What the peer of a port is told of a node.
    link::Route shown(unsigned port, std::uint32_t node) const;
    // Something on the way to this node was lost here.
    void lost(std::uint32_t node) { nodes_[node].losses += 1; }

  private:
    struct Node {
        unsigned port = kNone;
        bool below = false;    // it is reached without going up
        std::uint32_t by = 0;  // a bit for each port by which it comes
        std::uint32_t losses = 0;
        link::Route route;  // from here on; losses are those beyond this switch
    };
    bool above(unsigned port) const { return ports_[port].is_switch && ports_[port].level > config_.level; }
    void find_owners(const std::function<void(unsigned port)>& refused);
    void find(std::uint32_t node, const ReachOf& reach_of);

    Config config_;
    std::array<Port, kPorts> ports_{};
    std::array<std::uint32_t, kPorts> owns_{};     // the node that is believed of the card at each port
    std::array<std::uint32_t, kPorts> refused_{};  // and the one that is not
    std::array<Node, ORR_NODES> nodes_{};
};

}  // namespace orrery::emu
