// SPDX-License-Identifier: MIT
// The two message rings in the driver's memory: getting commands out of one, putting messages into the other.
#pragma once

#include <orrery/fw/mailbox.h>

#include "firmware/hal/hal.h"
#include "firmware/hal/halt.h"
#include "firmware/hal/host_irq.h"

namespace orrery::fw {

class Mailbox {
  public:
    // Bus addresses of the two struct orr_mbox_ring. Resets the indices that are the firmware's. False: not
    // reachable.
    bool init(Hal& hal, HostIrq& irq, uint64_t command_ring, uint64_t message_ring);

    // The oldest command, if there is one and it could be read; it stays until consume().
    bool peek(orr_mbox_message& command);
    void consume();

    // Room for one more message. Reads the host's index only when the ring looks full.
    bool has_room();
    // There must be room.
    void post(const orr_mbox_message& message);
    // A line of text for the driver's log, cut at 48 bytes; dropped if there is no room.
    void log(const char* text);

    // kHaltNone, or why the core must stop: the driver broke the protocol.
    uint32_t fatal() const { return fatal_; }

  private:
    uint64_t entry(uint64_t ring, uint64_t index) const {
        return ring + offsetof(orr_mbox_ring, entry) + index % ORR_MBOX_ENTRIES * sizeof(orr_mbox_message);
    }

    Hal* hal_;
    HostIrq* irq_;
    uint64_t command_ring_;  // window addresses
    uint64_t message_ring_;
    uint64_t consumed_;  // commands
    uint64_t posted_;    // messages
    uint64_t taken_;     // messages, by the host, as last read
    uint32_t fatal_;
};

}  // namespace orrery::fw
