// SPDX-License-Identifier: MIT
#include "firmware/sched/run/slots.h"

namespace orrery::fw {

void Slots::init(Hal& hal) {
    keep_ = 0;
    hand_ = 0;
    for (uint32_t slot = 0; slot < SOC_SLOTS; ++slot) {
        owner_[slot] = kNobody;
        // After a restart of the core they may hold something.
        hal.set_reg(at(slot, SOC_SLOT_RING), 0);
    }
}

void Slots::take(Hal& hal, Queue* all, Queue& queue) {
    uint32_t slot = hand_;
    for (; (keep_ >> slot & 1) != 0; slot = (slot + 1) % SOC_SLOTS)
        keep_ &= ~(uint64_t{1} << slot);
    hand_ = (slot + 1) % SOC_SLOTS;
    const uint16_t loser = owner_[slot];
    if (loser != kNobody) all[loser].ring_slot = kNoSlot;
    owner_[slot] = queue.number;
    queue.ring_slot = static_cast<uint8_t>(slot);
    trace::slot(hal, queue.number, slot, loser);
    hal.set_reg(at(slot, SOC_SLOT_MASK), queue.mask);
    hal.set_reg(at(slot, SOC_SLOT_RING), queue.ring + sizeof(orr_ring));
    hal.set_reg(at(slot, SOC_SLOT_NEXT), queue.next + (queue.has_packet ? 1 : 0));
    hal.set_reg(at(slot, SOC_SLOT_LIMIT), queue.producer);
}

void Slots::release(Hal& hal, Queue& queue) {
    if (queue.ring_slot == kNoSlot) return;
    const uint32_t slot = queue.ring_slot;
    hal.set_reg(at(slot, SOC_SLOT_RING), 0);
    owner_[slot] = kNobody;
    keep_ &= ~(uint64_t{1} << slot);
    queue.ring_slot = kNoSlot;
}

}  // namespace orrery::fw
