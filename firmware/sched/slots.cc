// SPDX-License-Identifier: MIT
#include "firmware/sched/slots.h"

#include "firmware/sched/trace.h"

namespace orrery::fw {

void Slots::init(Hal& hal) {
    rows_[kEnd] = {kNobody, kEnd, kEnd};
    for (uint32_t slot = 0; slot < SOC_SLOTS; ++slot) {
        rows_[slot].owner = kNobody;
        link_newest(slot);
        // After a restart of the core they may hold something.
        hal.set_reg(at(slot, SOC_SLOT_RING), 0);
    }
}

void Slots::attach(Hal& hal, Queue* all, Queue& queue) {
    if (queue.ring_slot == kNoSlot) {
        const uint32_t slot = oldest();
        const uint16_t loser = rows_[slot].owner;
        if (loser != kNobody) all[loser].ring_slot = kNoSlot;
        rows_[slot].owner = queue.number;
        queue.ring_slot = static_cast<uint8_t>(slot);
        touch(slot);
        trace::slot(hal, queue.number, slot, loser);
        hal.set_reg(at(slot, SOC_SLOT_MASK), queue.mask);
        hal.set_reg(at(slot, SOC_SLOT_RING), queue.ring + sizeof(orr_ring));
        hal.set_reg(at(slot, SOC_SLOT_NEXT), queue.next + (queue.has_packet ? 1 : 0));
    }
    extend(hal, queue);
}

void Slots::release(Hal& hal, Queue& queue) {
    if (queue.ring_slot == kNoSlot) return;
    const uint32_t slot = queue.ring_slot;
    hal.set_reg(at(slot, SOC_SLOT_RING), 0);
    rows_[slot].owner = kNobody;
    queue.ring_slot = kNoSlot;
    unlink(slot);
    // Nobody's: the next to be taken.
    link_between(slot, kEnd, oldest());
}

}  // namespace orrery::fw
