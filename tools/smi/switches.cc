#include "tools/smi/switches.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <orrery/hw/link.h>
#include <orrery/hw/switches.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace orrery::smi {
namespace {

// Something changes for ever somewhere in a large fabric: a picture of two moments is better than none.
constexpr unsigned kTries = 8;

template <class Value>
std::optional<Value> read_value(const ReadSwitches& read, std::uint64_t offset) {
    Value value{};
    if (!read(offset, &value, sizeof value)) return std::nullopt;
    return value;
}

orrLinkState state_of(std::uint32_t state) {
    switch (state) {
        case ORR_LINK_DOWN:
            return orrLinkStateDown;
        case ORR_LINK_TRAINING:
            return orrLinkStateTraining;
        case ORR_LINK_UP:
            return orrLinkStateUp;
        case ORR_LINK_DEGRADED:
            return orrLinkStateDegraded;
        default:
            return orrLinkStateUnknown;
    }
}

std::optional<SwitchPort> read_port(const ReadSwitches& read, std::uint64_t at, unsigned number) {
    std::array<std::uint32_t, ORR_SWITCH_PORT(1) / 4 - ORR_SWITCH_PORT(0) / 4> words{};
    if (!read(at, words.data(), sizeof words)) return std::nullopt;
    const std::uint32_t how = words[ORR_SWITCH_PORT_STATE / 4];
    return SwitchPort{.number = number,
                      .state = state_of(how & ORR_SWITCH_PORT_LINK),
                      .to_switch = (how & ORR_SWITCH_PORT_TO_SWITCH) != 0,
                      .peer_uid = words[ORR_SWITCH_PORT_PEER / 4] |
                                  std::uint64_t{words[ORR_SWITCH_PORT_PEER / 4 + 1]} << 32,
                      .peer_port = how >> ORR_SWITCH_PORT_PEER_PORT_SHIFT & 0xff,
                      .lanes = how >> ORR_SWITCH_PORT_LANES_SHIFT & 0xff,
                      .gbps = words[ORR_SWITCH_PORT_MBPS / 4] / 1000,
                      .latency_ns = words[ORR_SWITCH_PORT_LATENCY_NS / 4],
                      .losses = words[ORR_SWITCH_PORT_LOSSES / 4]};
}

// Nothing: behind the last, or it cannot be read.
std::optional<Switch> read_switch(const ReadSwitches& read, std::uint64_t at) {
    const auto uid = read_value<std::uint64_t>(read, at + ORR_SWITCH_UID);
    const auto level = read_value<std::uint32_t>(read, at + ORR_SWITCH_LEVEL);
    const auto ports = read_value<std::uint32_t>(read, at + ORR_SWITCH_PORTS);
    if (!uid || *uid == 0 || !level || !ports) return std::nullopt;
    Switch one{*uid, *level, std::min(*ports, ORR_SWITCH_MAX_PORTS), {}};
    for (unsigned number = 0; number < one.port_count; ++number) {
        const auto port = read_port(read, at + ORR_SWITCH_PORT(number), number);
        if (port && (port->state != orrLinkStateDown || port->losses != 0)) one.ports.push_back(*port);
    }
    return one;
}

}  // namespace

std::vector<Switch> parse_switches(const ReadSwitches& read) {
    std::vector<Switch> all;
    for (unsigned tries = 0; tries < kTries; ++tries) {
        const auto before = read_value<std::uint32_t>(read, ORR_SWITCHES_VERSION);
        if (!before) return {};
        all.clear();
        for (unsigned place = 0; place < ORR_SWITCHES_PLACES; ++place) {
            auto one = read_switch(read, ORR_SWITCHES_PLACE(place));
            if (!one) break;
            all.push_back(*std::move(one));
        }
        if (read_value<std::uint32_t>(read, ORR_SWITCHES_VERSION) == before) break;
    }
    return all;
}

std::vector<Switch> read_switches(const std::string& address, std::size_t port) {
    const std::string name = fmt::format("/sys/bus/pci/devices/{}/links/{}/switches", address, port);
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    auto all = parse_switches([file](std::uint64_t offset, void* to, std::size_t bytes) {
        return ::pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
    });
    ::close(file);
    return all;
}

std::vector<Switch> merged(std::vector<Switch> all) {
    std::ranges::sort(all, {}, [](const Switch& one) { return std::tuple(one.level, one.uid); });
    const auto same = std::ranges::unique(all, {}, &Switch::uid);
    all.erase(same.begin(), same.end());
    return all;
}

}  // namespace orrery::smi
