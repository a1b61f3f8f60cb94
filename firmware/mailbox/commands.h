// SPDX-License-Identifier: MIT
// What the driver can ask for: checks every command and carries it out.
#pragma once

#include "firmware/mailbox/mailbox.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {

class Commands {
  public:
    void init(Hal& hal, Mailbox& mailbox, Scheduler& scheduler);

    // Sends what the scheduler has to tell, and serves some commands. Commands are left where they are while
    // there is no room for their replies. True: something was done.
    bool service();
    // Something could not be sent for want of room: service() has to be called again without a reason.
    bool blocked() const { return blocked_; }
    // More commands than one call takes may be there.
    bool more() const { return more_; }
    uint64_t served() const { return served_; }

  private:
    struct Result {
        uint32_t status;
        uint32_t detail;
    };

    void serve(const orr_mbox_message& command);
    Result carry_out(const orr_mbox_message& command, orr_mbox_message& reply);
    Result context_create(const orr_mbox_message& command);
    Result context_destroy(const orr_mbox_message& command);
    Result queue_create(const orr_mbox_message& command, orr_mbox_message& reply);
    Result tlb_flush(const orr_mbox_message& command);
    Result queue_arm(const orr_mbox_message& command);
    Result queue_info(const orr_mbox_message& command, orr_mbox_message& reply);
    Result queue_set(const orr_mbox_message& command);
    Result queue_stats(const orr_mbox_message& command, orr_mbox_message& reply);
    Result quota_set(const orr_mbox_message& command);
    Result set_name(const orr_mbox_message& command);
    Result sem_close(const orr_mbox_message& command);
    Result crash(const orr_mbox_message& command);

    // The queue or context that an argument names; null: `refusal` says why.
    Queue* find_queue(uint64_t argument, Result& refusal);
    Context* find_context(uint64_t argument, Result& refusal);
    // QUEUE_DESTROY and QUEUE_ABORT, which reply later. OK: it is under way.
    Result queue_destroy(const orr_mbox_message& command);
    Result queue_abort(const orr_mbox_message& command);

    Hal* hal_;
    Mailbox* mailbox_;
    Scheduler* scheduler_;
    uint64_t served_;
    bool blocked_;
    bool more_;
};

}  // namespace orrery::fw
