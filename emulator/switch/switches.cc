#include "emulator/switch/switches.h"

#include <algorithm>
#include <span>
#include <utility>

#include "emulator/link/switches.h"

namespace orrery::emu {

std::vector<link::SwitchWords> switches_told(const link::SwitchWords& own, const SwitchesByPort& heard,
                                             unsigned to) {
    // Below first: who is there has it from the switch itself, or from one that is nearer to it.
    std::vector<std::span<const link::SwitchWords>> peers;
    for (const bool above : {false, true}) {
        if (above && heard[to].above) break;
        for (unsigned p = 0; p < heard.size(); ++p) {
            const HeardSwitches& peer = heard[p];
            if (p == to || peer.above != above || peer.all.empty()) continue;
            // He may have two cables.
            if (peer.uid == heard[to].uid) continue;
            if (link::uid_of(peer.all.front()) == peer.uid) peers.emplace_back(peer.all);
        }
    }
    std::vector<link::SwitchWords> told{own};
    const auto is_known = [&](const link::SwitchWords& one) {
        return std::ranges::find(told, link::uid_of(one), link::uid_of) != told.end();
    };
    for (const auto& peer : peers)
        if (told.size() < ORR_SWITCHES_PLACES && !is_known(peer.front())) told.push_back(peer.front());
    // Then one more of each at a time.
    bool any = true;
    while (std::exchange(any, false)) {
        for (auto& left : peers) {
            while (!left.empty() && is_known(left.front()))
                left = left.subspan(1);
            if (left.empty()) continue;
            if (told.size() == ORR_SWITCHES_PLACES) return told;
            told.push_back(left.front());
            any = true;
        }
    }
    return told;
}

}  // namespace orrery::emu
