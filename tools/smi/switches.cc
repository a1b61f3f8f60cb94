#include "tools/smi/switches.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <orrery/hw/link.h>
#include <orrery/hw/switches.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

namespace orrery::smi {
namespace {

// Something changes for ever somewhere in a large fabric.
constexpr unsigned kTries = 8;
using std::chrono_literals::operator""ms;
constexpr auto kPause = 2ms;

// A place as it stands there.
using Words = std::array<std::uint32_t, ORR_SWITCH_PORT(ORR_SWITCH_MAX_PORTS) / 4>;

std::uint64_t wide(const Words& words, std::uint64_t at) {
    return words[at / 4] | std::uint64_t{words[at / 4 + 1]} << 32;
}

// Nothing: there is less. As of a link that has just gone down.
text::Result<bool> read_all(const ReadSwitches& read, std::uint64_t at, void* to, std::size_t bytes) {
    const auto got = read(at, to, bytes);
    if (!got) return std::unexpected(got.error());
    return *got == bytes;
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

SwitchPort port_of(const Words& words, unsigned number) {
    const std::uint64_t at = ORR_SWITCH_PORT(number);
    const std::uint32_t how = words[(at + ORR_SWITCH_PORT_STATE) / 4];
    return {.number = number,
            .state = state_of(how & ORR_SWITCH_PORT_LINK),
            .to_switch = (how & ORR_SWITCH_PORT_TO_SWITCH) != 0,
            .peer_uid = wide(words, at + ORR_SWITCH_PORT_PEER),
            .peer_port = how >> ORR_SWITCH_PORT_PEER_PORT_SHIFT & 0xff,
            .lanes = how >> ORR_SWITCH_PORT_LANES_SHIFT & 0xff,
            .gbps = words[(at + ORR_SWITCH_PORT_MBPS) / 4] / 1000,
            .latency_ns = words[(at + ORR_SWITCH_PORT_LATENCY_NS) / 4],
            .losses = words[(at + ORR_SWITCH_PORT_LOSSES) / 4]};
}

Switch switch_of(const Words& words) {
    Switch one{.uid = wide(words, ORR_SWITCH_UID),
               .level = std::min(words[ORR_SWITCH_LEVEL / 4], ORR_SWITCH_MAX_LEVEL),
               .port_count = std::min(words[ORR_SWITCH_PORTS / 4], ORR_SWITCH_MAX_PORTS)};
    for (unsigned number = 0; number < one.port_count; ++number) {
        const SwitchPort port = port_of(words, number);
        if (port.state != orrLinkStateDown || port.losses != 0) one.ports.push_back(port);
    }
    return one;
}

// Of one moment; nothing: it has changed in the midst of it.
text::Result<std::optional<std::vector<Switch>>> look(const ReadSwitches& read) {
    using Look = std::optional<std::vector<Switch>>;
    std::uint32_t before = 0, behind = 0;
    const auto got = read(ORR_SWITCHES_VERSION, &before, sizeof before);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return Look(std::in_place);
    if (*got != sizeof before || before % 2 != 0) return Look();
    std::vector<Switch> all;
    for (unsigned place = 0; place < ORR_SWITCHES_PLACES; ++place) {
        Words words{};
        const auto whole = read_all(read, ORR_SWITCHES_PLACE(place), words.data(), sizeof words);
        if (!whole) return std::unexpected(whole.error());
        if (!*whole) return Look();
        if (wide(words, ORR_SWITCH_UID) == 0) break;
        all.push_back(switch_of(words));
    }
    const auto whole = read_all(read, ORR_SWITCHES_VERSION, &behind, sizeof behind);
    if (!whole) return std::unexpected(whole.error());
    return *whole && behind == before ? Look(std::move(all)) : Look();
}

}  // namespace

text::Result<std::vector<Switch>> parse_switches(const ReadSwitches& read, std::uint64_t peer) {
    for (unsigned tries = 0; tries < kTries; ++tries) {
        if (tries != 0) std::this_thread::sleep_for(kPause);
        auto all = look(read);
        if (!all) return std::unexpected(all.error());
        if (!*all) continue;
        if (!(*all)->empty() && (*all)->front().uid == peer) (*all)->front().first_hand = true;
        return std::move(**all);
    }
    return text::fail("what the switch tells changed during each of {} looks: try again", kTries);
}

text::Result<std::vector<Switch>> read_switches(const std::string& address, std::size_t port,
                                                std::uint64_t peer) {
    const std::string name = fmt::format("/sys/bus/pci/devices/{}/links/{}/switches", address, port);
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) return {};
    if (file < 0) return text::fail("cannot open {}: {}", name, std::strerror(errno));
    auto all = parse_switches(
        [&](std::uint64_t offset, void* to, std::size_t bytes) -> text::Result<std::size_t> {
            const ssize_t got = ::pread(file, to, bytes, static_cast<off_t>(offset));
            if (got < 0) return text::fail("cannot read {}: {}", name, std::strerror(errno));
            return static_cast<std::size_t>(got);
        },
        peer);
    ::close(file);
    return all;
}

std::vector<Switch> merged(std::vector<Switch> all) {
    const auto trust = [](const Switch& one) {
        return std::tuple<std::uint64_t, bool, const Switch&>(one.uid, !one.first_hand, one);
    };
    std::ranges::sort(all, {}, trust);
    const auto same = std::ranges::unique(all, {}, &Switch::uid);
    all.erase(same.begin(), same.end());
    std::ranges::sort(all, {}, [](const Switch& one) { return std::tuple(one.level, one.uid); });
    return all;
}

}  // namespace orrery::smi
