// SPDX-License-Identifier: MIT
// The whole firmware as one object: the handshake with the driver, and the main loop's body.
#pragma once

#include "firmware/hal/hal.h"
#include "firmware/mailbox/commands.h"
#include "firmware/mailbox/mailbox.h"
#include "firmware/sched/scheduler.h"
#include "firmware/sched/show/inspect.h"

namespace orrery::fw {

class Firmware {
  public:
    // Reads and answers the boot block, and shows in SOC_PROGRESS how it went. False: it gave up. Call once;
    // `build_id` is at most 31 characters. `tables` outlives the object.
    bool start(Hal& hal, Tables& tables, const char* build_id);

    // Takes the events that are pending, gives one queue its turn or several, and tells the host. False:
    // there is nothing to do but what an interrupt line or the timer asks for.
    bool pass();

    bool halted() const { return halted_; }
    const Scheduler& scheduler() const { return scheduler_; }

  private:
    void take_over(Tables& tables, uint64_t layout);
    uint32_t handshake(Tables& tables, const char* build_id);  // 0, or ORR_BB_FAIL_*
    bool take_events(uint64_t lines);
    bool take_turns(uint64_t lines);
    bool finish(bool mail, bool bell);
    bool serve_mailbox(bool bell);
    void halt();
    void wait_for_room(bool blocked);

    Hal* hal_;
    HostIrq irq_;
    Alarm alarm_;
    Mailbox mailbox_;
    Commands commands_;
    Inspect inspect_;
    PersistHeader* persist_;
    uint64_t block_;  // window address of the boot block
    uint64_t heartbeat_;
    uint64_t heartbeat_base_;
    uint64_t room_wait_ps_;
    bool halted_;
    Scheduler scheduler_;
};

}  // namespace orrery::fw
