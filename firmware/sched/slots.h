// SPDX-License-Identifier: MIT
// The chip's ring slots, which read packets ahead: 64 of them for all queues. A queue has one only while it
// has packets to fetch; the slot that was used least recently changes hands.
#pragma once

#include <orrery/hw/soc.h>

#include "firmware/hal/hal.h"
#include "firmware/sched/queue.h"

namespace orrery::fw {

class Slots {
  public:
    // All slots are empty and nobody's.
    void init(Hal& hal);

    // The chip may read the queue's packets up to its producer. Takes a slot over, from whomever it is.
    void attach(Hal& hal, Queue* all, Queue& queue);
    // The same, but only if that hurts nobody: the queue has a slot, or there is one whose owner has nothing
    // to fetch.
    void attach_idle(Hal& hal, Queue* all, Queue& queue) {
        if (queue.ring_slot != kNoSlot)
            extend(hal, queue);
        else if (const uint16_t owner = rows_[oldest()].owner;
                 owner == kNobody || all[owner].next == all[owner].producer)
            attach(hal, all, queue);
    }
    // The queue's producer has grown. It must have a slot.
    void extend(Hal& hal, const Queue& queue) {
        hal.set_reg(at(queue.ring_slot, SOC_SLOT_LIMIT), queue.producer);
    }
    // The packet `queue.next`, and the chip goes on to the one behind it. The queue must have a slot. A fault
    // shows in SOC_WINDOW_FAULT.
    void read(Hal& hal, Queue& queue) {
        const uint32_t base = SOC_SLOT(queue.ring_slot);
        if (queue.packet[0] == 0) queue.packet[0] = hal.reg(base + SOC_SLOT_PACKET);
        for (uint32_t i = 1; i < kPacketWords; ++i)
            queue.packet[i] = hal.reg(base + SOC_SLOT_PACKET + 8 * i);
        hal.set_reg(base + SOC_SLOT_NEXT, queue.next + 1);
    }
    // The other words, so that whoever records what the core observes has the packet too.
    void show(Hal& hal, const Queue& queue) {
        uint64_t words[kPacketWords - 1];
        hal.regs(at(queue.ring_slot, SOC_SLOT_PACKET + 8), words);
    }
    // The first word of the packet that read() would give.
    uint64_t peek(Hal& hal, const Queue& queue) { return hal.reg(at(queue.ring_slot, SOC_SLOT_PACKET)); }
    // Was used just now.
    void touch(uint32_t slot) {
        if (newest() == slot) return;
        unlink(slot);
        link_newest(slot);
    }
    // The chip reads nothing more of the queue: its memory may go away.
    void release(Hal& hal, Queue& queue);

  private:
    static constexpr uint16_t kNobody = 0xffff;
    static constexpr uint32_t kEnd = SOC_SLOTS;  // row of the list's ends

    struct Row {
        uint16_t owner;
        uint8_t newer, older;
    };

    static constexpr uint32_t at(uint32_t slot, uint32_t offset) { return SOC_SLOT(slot) + offset; }
    uint32_t oldest() const { return rows_[kEnd].newer; }
    uint32_t newest() const { return rows_[kEnd].older; }
    void unlink(uint32_t slot) {
        rows_[rows_[slot].newer].older = rows_[slot].older;
        rows_[rows_[slot].older].newer = rows_[slot].newer;
    }
    void link_newest(uint32_t slot) { link_between(slot, newest(), kEnd); }
    void link_between(uint32_t slot, uint32_t older, uint32_t newer) {
        rows_[slot].older = static_cast<uint8_t>(older);
        rows_[slot].newer = static_cast<uint8_t>(newer);
        rows_[older].newer = static_cast<uint8_t>(slot);
        rows_[newer].older = static_cast<uint8_t>(slot);
    }

    Row rows_[SOC_SLOTS + 1];
};

}  // namespace orrery::fw
