// SPDX-License-Identifier: MIT
// What the firmware keeps of a context and of a queue. Both live in fixed tables; all zero means "not there".
#pragma once

#include <orrery/fw/mailbox.h>
#include <orrery/fw/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "firmware/sched/list.h"
#include "firmware/sched/waiter.h"

namespace orrery::fw {

// Packets of one queue that may be started and not yet retired. Also the most that one turn starts.
inline constexpr uint32_t kWindow = 16;

inline constexpr size_t kPacketWords = ORR_PACKET_SIZE / 8;

// Which list `Queue::link` is on, that is: what the queue waits for.
enum class Place : uint8_t {
    kNone,        // on none: drained, stopped, or being run
    kReady,       // its turn
    kCopyPort,    // a free copy engine
    kVectorPort,  // a free vector port
    kSemaphore,   // a semaphore: on its context's list
    kOwn,         // on none: its own packets in flight
};

struct Context;

struct QueueError {
    uint64_t code;  // ORR_QERR_*
    uint64_t index;
    uint64_t address;
    uint64_t detail;
};

// What ORR_MBOX_QUEUE_STATS answers.
struct QueueStats {
    uint64_t vector_ps;  // core time used
    uint64_t copy_ps;    // engine time used
    uint64_t ready_ps;   // ready, but not running
    uint64_t longest_ready_ps;
    uint32_t finished;   // dispatches and copies
    uint32_t preempted;  // times
};

struct Queue {
    Link<Queue> link;         // see Place
    Link<Queue> outbox_link;  // queues that have something to tell the host

    Context* context;
    uint64_t ring;      // window address of its struct orr_ring
    uint64_t status;    // window address of its struct orr_queue_status
    uint64_t mask;      // entries - 1
    uint64_t limit_ps;  // model time that a dispatch may take

    // Indices: retired <= next <= producer, next - retired <= kWindow.
    uint64_t producer;  // as last read and checked
    uint64_t next;      // packet to start next
    uint64_t retired;   // all below have finished, and the host knows

    // Packets retired + n: finished, and asking for an interrupt.
    uint32_t done;
    uint32_t interrupt;
    uint32_t in_flight;  // on engines

    uint16_t number;
    uint16_t generation;
    uint16_t slot;
    uint8_t priority;
    Place place;

    bool exists;
    bool has_packet;  // `packet` is packet `next`, read and validated, but not finished
    bool stopping;    // `error` holds what stopped it; nothing more starts
    bool stopped;     // the error has been published
    bool destroying;  // QUEUE_DESTROY under way
    bool destroyed;   // it is over; the reply is due
    bool event_due;   // ORR_EVENT_QUEUE_ERROR is due
    bool in_outbox;
    bool armed;
    bool destroy_silent;        // ORR_MBOX_F_NO_REPLY
    uint32_t destroy_sequence;  // of the command to reply to

    // Interrupts are due from armed_first on, until armed_last has been reached: no armed index is ever lost.
    uint64_t armed_first;
    uint64_t armed_last;

    uint32_t slice_us;  // 0: the firmware's default
    uint16_t weight;    // 1 .. ORR_WEIGHT_MAX
    char name[ORR_NAME_BYTES];
    QueueStats stats;

    Waiter wait;  // valid in Place::kSemaphore

    QueueError error;
    uint64_t error_time_ps;
    uint64_t packet[kPacketWords];
};

using ReadyList = List<Queue, &Queue::link>;
using OutboxList = List<Queue, &Queue::outbox_link>;

struct Context {
    Link<Context> link;  // contexts in which a queue waits for a semaphore
    ReadyList waiting;   // those queues
    uint32_t queues;
    uint16_t number;
    uint16_t page;  // doorbell page
    bool exists;
    uint16_t quota_permille;   // of the vector cores' time; 0: no limit
    uint32_t quota_period_us;  // 0: no limit
    char name[ORR_NAME_BYTES];
};

using ContextList = List<Context, &Context::link>;

}  // namespace orrery::fw
