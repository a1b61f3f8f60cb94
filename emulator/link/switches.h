// What a switch tells of itself, or passes on of another: the words of a place of ORR_R_SWITCHES.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <orrery/hw/link.h>
#include <orrery/hw/switches.h>

#include "emulator/link/grants.h"
#include "emulator/link/wire.h"

namespace orrery::emu::link {

static_assert(kSwitchWords * 8 == ORR_SWITCH_PORT(ORR_SWITCH_MAX_PORTS) &&
              ORR_SWITCH_PORT(ORR_SWITCH_MAX_PORTS) <= ORR_SWITCHES_PLACE(1) - ORR_SWITCHES_PLACE(0));
static_assert(ORR_SWITCHES_PLACE(ORR_SWITCHES_PLACES) == ORR_SWITCHES_BYTES);
static_assert(kMostSwitchPorts == ORR_SWITCH_MAX_PORTS);

struct AtPort {
    std::uint32_t state = ORR_LINK_DOWN;
    bool to_switch = false;
    std::uint32_t lanes = 0, mbps = 0, latency_ns = 0;
    std::uint64_t peer = 0;
    std::uint32_t peer_port = 0;
    std::uint32_t losses = 0;
};

inline std::uint64_t uid_of(const SwitchWords& words) {
    return words[ORR_SWITCH_UID / 8];
}

inline SwitchWords words_of(std::uint64_t uid, std::uint32_t level, std::span<const AtPort> ports) {
    SwitchWords words{};
    words[ORR_SWITCH_UID / 8] = uid;
    words[ORR_SWITCH_LEVEL / 8] = level | std::uint64_t{ports.size()} << 32;
    for (std::size_t p = 0; p < ports.size() && p < ORR_SWITCH_MAX_PORTS; ++p) {
        const AtPort& port = ports[p];
        const std::size_t at = ORR_SWITCH_PORT(p) / 8;
        words[at] = port.state | (port.to_switch ? ORR_SWITCH_PORT_TO_SWITCH : 0) |
                    (port.lanes & 0xff) << ORR_SWITCH_PORT_LANES_SHIFT |
                    (port.peer_port & 0xff) << ORR_SWITCH_PORT_PEER_PORT_SHIFT |
                    std::uint64_t{port.mbps} << 32;
        words[at + ORR_SWITCH_PORT_PEER / 8] = port.peer;
        words[at + ORR_SWITCH_PORT_LATENCY_NS / 8] = port.latency_ns | std::uint64_t{port.losses} << 32;
    }
    return words;
}

// Of what a peer shows, whatever that is: as many as there can be, with a level and ports as there can be.
// Nothing: the peer is changing it, and the version changes once more when it has.
inline std::optional<std::vector<SwitchWords>> load_switches(Inbox& inbox) {
    const std::uint64_t version = load_acquire(inbox.switches_version);
    if (version % 2 != 0) return std::nullopt;
    std::vector<SwitchWords> all;
    for (auto& place : inbox.switches) {
        SwitchWords words;
        for (std::size_t w = 0; w < words.size(); ++w) {
            // Whoever has a word of a change sees that it has begun (store_switches()).
            words[w] = load_acquire(place[w]);
            if (w == ORR_SWITCH_UID / 8 && words[w] == 0) break;
        }
        if (uid_of(words) == 0) break;
        std::uint64_t& how = words[ORR_SWITCH_LEVEL / 8];
        how = std::min<std::uint64_t>(how & UINT32_MAX, ORR_SWITCH_MAX_LEVEL) |
              std::min<std::uint64_t>(how >> 32, ORR_SWITCH_MAX_PORTS) << 32;
        all.push_back(words);
    }
    if (load_relaxed(inbox.switches_version) != version) return std::nullopt;
    return all;
}

inline void store_switches(Inbox& inbox, std::span<const SwitchWords> all) {
    // The peer can write there, too: odd, whatever it was.
    const std::uint64_t changing = load_relaxed(inbox.switches_version) | 1;
    store_relaxed(inbox.switches_version, changing);
    for (std::size_t n = 0; n < inbox.switches.size(); ++n) {
        SwitchWords& place = inbox.switches[n];
        if (n >= all.size()) {
            store_release(place[ORR_SWITCH_UID / 8], 0);
            continue;
        }
        for (std::size_t w = 0; w < place.size(); ++w)
            store_release(place[w], all[n][w]);
    }
    store_release(inbox.switches_version, changing + 1);
}

}  // namespace orrery::emu::link
