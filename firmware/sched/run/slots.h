// SPDX-License-Identifier: MIT
// The chip's ring slots, which read packets ahead: 64 of them for all queues. A queue has one only while it
// has packets to fetch; then the slot changes hands: in turn, but a queue that has got more packets while it
// had its slot keeps it for one more round.
#pragma once

#include <orrery/hw/soc.h>

#include "firmware/hal/hal.h"
#include "firmware/sched/queue/queue.h"
#include "firmware/sched/show/trace.h"

namespace orrery::fw {

class Slots {
  public:
    // All slots are empty and nobody's.
    void init(Hal& hal);

    // Lets the chip prefetch the queue's packets up to its producer; the slot may be taken from another
    // queue.
    void attach(Hal& hal, Queue* all, Queue& queue) {
        if (queue.ring_slot == kNoSlot)
            take(hal, all, queue);
        else
            extend(hal, queue);
    }
    // The same, but only if no other queue loses by it: this one has a slot, or the owner of the next slot to
    // be reused has nothing to fetch.
    void attach_idle(Hal& hal, Queue* all, Queue& queue) {
        if (queue.ring_slot != kNoSlot)
            extend(hal, queue);
        else if (const uint16_t owner = owner_[hand_];
                 owner == kNobody || all[owner].next == all[owner].producer)
            take(hal, all, queue);
    }
    // Reads packet `queue.next`, and lets the chip go on to the one behind it. The queue must have a slot. A
    // fault shows in SOC_WINDOW_FAULT.
    void read(Hal& hal, Queue& queue) {
        const uint32_t base = SOC_SLOT(queue.ring_slot);
        if (queue.packet[0] == 0) queue.packet[0] = hal.reg(base + SOC_SLOT_PACKET);
        for (uint32_t i = 1; i < kPacketWords; ++i)
            queue.packet[i] = hal.reg(base + SOC_SLOT_PACKET + 8 * i);
        hal.set_reg(base + SOC_SLOT_NEXT, queue.next + 1);
    }
    // The other words that can be other than 0, so that whoever records what the core observes has the packet
    // too.
    [[gnu::always_inline]] void show(Hal& hal, const Queue& queue, bool word6, bool all) {
        const uint32_t base = SOC_SLOT(queue.ring_slot) + SOC_SLOT_PACKET;
        uint64_t word4 = 0;
        for (uint32_t i = 1; i < 6; ++i) {
            const uint64_t word = hal.reg(base + 8 * i);
            if (i == 4) word4 = word;
        }
        if (word6 || all) static_cast<void>(hal.reg(base + 8 * 6));
        // A copy of several planes has their heights there.
        if (all || (word6 && word4 >> 32 > 1)) static_cast<void>(hal.reg(base + 8 * 7));
    }
    // The first word of the packet that read() would give.
    uint64_t peek(Hal& hal, const Queue& queue) { return hal.reg(at(queue.ring_slot, SOC_SLOT_PACKET)); }
    // The chip reads nothing more of the queue: its memory may go away.
    void release(Hal& hal, Queue& queue);

  private:
    static constexpr uint16_t kNobody = 0xffff;

    static constexpr uint32_t at(uint32_t slot, uint32_t offset) { return SOC_SLOT(slot) + offset; }
    // The queue's producer has grown.
    void extend(Hal& hal, const Queue& queue) {
        keep_ |= uint64_t{1} << queue.ring_slot;
        hal.set_reg(at(queue.ring_slot, SOC_SLOT_LIMIT), queue.producer);
    }
    void take(Hal& hal, Queue* all, Queue& queue);

    uint64_t keep_;  // bit n: slot n is passed by once
    uint32_t hand_;  // the next to change hands
    uint16_t owner_[SOC_SLOTS];
};

}  // namespace orrery::fw
