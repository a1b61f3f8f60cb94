#include "emulator/switch/switches.h"

#include <algorithm>

#include "emulator/link/switches.h"

namespace orrery::emu {

std::vector<link::SwitchWords> switches_told(const link::SwitchWords& own, const SwitchesByPort& heard,
                                             unsigned to) {
    std::vector<link::SwitchWords> told{own};
    // Below first: who is there has it from the switch itself, or from one that is nearer to it.
    for (const bool above : {false, true}) {
        if (above && heard[to].above) break;
        for (unsigned p = 0; p < heard.size(); ++p) {
            if (p == to || heard[p].above != above) continue;
            for (const link::SwitchWords& one : heard[p].all) {
                if (told.size() == ORR_SWITCHES_PLACES) return told;
                if (std::ranges::find(told, link::uid_of(one), link::uid_of) == told.end())
                    told.push_back(one);
            }
        }
    }
    return told;
}

}  // namespace orrery::emu
