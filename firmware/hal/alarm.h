// SPDX-License-Identifier: MIT
// The one hardware timer, shared by those who want to be woken at a model time. It is off unless somebody
// wants it: idle model time is skipped up to the next event, so a forgotten alarm would make the clock jump.
#pragma once

#include <orrery/hw/soc.h>

#include "firmware/hal/bits.h"
#include "firmware/hal/hal.h"

namespace orrery::fw {

class Alarm {
  public:
    enum Owner : uint32_t { kPorts, kQuota, kMailbox, kDeadlock, kGang, kFailing, kWaitLimit, kOwners };

    // Nobody wants anything. Call once before use.
    void init(Hal& hal) {
        for (uint64_t& at : at_)
            at = ~uint64_t{0};
        hal.set_reg(SOC_TIMER, ~uint64_t{0});
    }

    uint64_t at(Owner owner) const { return at_[owner]; }

    // Replaces the owner's wish; all-ones: none. It takes the same time whoever else wants what: others'
    // alarms are of times that the host may have chosen.
    [[gnu::noinline]] void set(Hal& hal, Owner owner, uint64_t at_ps) {
        at_[owner] = at_ps;
        uint64_t earliest = ~uint64_t{0};
        for (const uint64_t at : at_)
            lower(earliest, at);
        hal.set_reg(SOC_TIMER, earliest);
    }

  private:
    uint64_t at_[kOwners];
};

}  // namespace orrery::fw
