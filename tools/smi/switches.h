// The switches behind the cards, as they tell of themselves (orrery/hw/switches.h).
#pragma once

#include <orrery/device.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/text/result.h"

namespace orrery::smi {

struct SwitchPort {
    unsigned number = 0;
    orrLinkState state = orrLinkStateUnknown;
    bool to_switch = false;  // what is there, while it is up
    std::uint64_t peer_uid = 0;
    std::uint32_t peer_port = 0, lanes = 0, gbps = 0, latency_ns = 0;
    std::uint32_t losses = 0;
    auto operator<=>(const SwitchPort&) const = default;
};

struct Switch {
    std::uint64_t uid = 0;
    unsigned level = 0, port_count = 0;
    std::vector<SwitchPort> ports{};  // that have a link, or had one
    bool first_hand = false;          // it says so itself, to a card; else others say it of it
    auto operator<=>(const Switch&) const = default;
};

// Reads so many bytes of links/PORT/switches from an offset on, or as many as there are.
using ReadSwitches =
    std::function<text::Result<std::size_t>(std::uint64_t offset, void* to, std::size_t bytes)>;
// What stands there, of one moment, where `peer` is what the card says is at its port; none: nobody tells
// anything.
text::Result<std::vector<Switch>> parse_switches(const ReadSwitches& read, std::uint64_t peer);
// Of the port of a card; none also of a driver that has no such file.
text::Result<std::vector<Switch>> read_switches(const std::string& address, std::size_t port,
                                                std::uint64_t peer);
// Each once, by level and uid. Of what is said of one its own word goes before those of others, and of these
// the lower level; the order in which they were heard does not matter.
std::vector<Switch> merged(std::vector<Switch> all);

}  // namespace orrery::smi
