// The switches behind the cards, as they tell of themselves (orrery/hw/switches.h).
#pragma once

#include <orrery/device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace orrery::smi {

struct SwitchPort {
    unsigned number = 0;
    orrLinkState state = orrLinkStateUnknown;
    bool to_switch = false;  // what is there, while it is up
    std::uint64_t peer_uid = 0;
    std::uint32_t peer_port = 0, lanes = 0, gbps = 0, latency_ns = 0;
    std::uint32_t losses = 0;
    bool operator==(const SwitchPort&) const = default;
};

struct Switch {
    std::uint64_t uid = 0;
    unsigned level = 0, port_count = 0;
    std::vector<SwitchPort> ports;  // that have a link, or had one
    bool operator==(const Switch&) const = default;
};

// Reads so many bytes of links/PORT/switches from an offset on; false: there are not so many.
using ReadSwitches = std::function<bool(std::uint64_t offset, void* to, std::size_t bytes)>;
// What stands there; of one moment, if that can be had. Nothing: nobody tells anything.
std::vector<Switch> parse_switches(const ReadSwitches& read);
// Of the port of a card.
std::vector<Switch> read_switches(const std::string& address, std::size_t port);
// Each once, by level and uid.
std::vector<Switch> merged(std::vector<Switch> all);

}  // namespace orrery::smi
