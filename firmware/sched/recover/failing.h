// SPDX-License-Identifier: MIT
// Stopped queues whose semaphores are still to be failed, and when which of them gets on with it.
//
// A process can have many packets in a ring, and many rings. They are looked at in chunks of kFailChunkPs,
// one user after the other, and of a user one queue after the other, those first for whose end somebody
// waits: back to back while the card has nothing else to do, else with pauses of kFailPause times as long.
#pragma once

#include "firmware/hal/alarm.h"
#include "firmware/hal/hal.h"
#include "firmware/sched/policy/tenants.h"
#include "firmware/sched/queue/list.h"
#include "firmware/sched/queue/queue.h"
#include "firmware/sched/tables.h"

namespace orrery::fw {

class Arbiter;

// Zeroed memory is a valid object without queues.
class FailingQueues {
  public:
    // Call once before all else.
    void init(Hal& hal, Alarm& alarm, Tenants& tenants, Tables& tables, Arbiter& arbiter);

    bool has(const Queue& queue) const { return (member_[queue.number / 64] >> queue.number % 64 & 1) != 0; }
    // Nothing of the queue runs any more, and nothing will: its error says why.
    void begin(Queue& queue);
    // The packets up to the producer index are to be failed, if there are any left.
    void look(Queue& queue);
    // A queue that is not among them; look() comes at its end.
    void add(Queue& queue);
    // Somebody waits for the end of this queue: it goes before the others of its user, and begins now.
    void expedite(Queue& queue);
    // A chunk, if it is time for one.
    void serve(uint64_t now);

  private:
    uint64_t chunk(Queue& queue, uint64_t now, uint64_t chunk_ps);

    // Round robin over users, and one queue of a user after the other.
    struct User {
        Link link;
        uint16_t number;
        QueueList queues;
    };
    Hal* hal_;
    Alarm* alarm_;
    Tenants* tenants_;
    Queue* queues_;
    PersistHeader* persist_;
    Arbiter* arbiter_;
    uint64_t member_[ORR_FW_QUEUES / 64];  // bit n: queue n is among them
    uint32_t count_;
    bool busy_;  // the last chunk ended because a peer has no room
    List<User, &User::link> users_;
    User of_user_[kUsers];
};

}  // namespace orrery::fw
