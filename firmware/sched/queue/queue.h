// SPDX-License-Identifier: MIT
// What the firmware keeps of a context and of a queue. Both live in fixed tables; all zero means "not there".
#pragma once

#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "firmware/sched/queue/engine_kinds.h"
#include "firmware/sched/queue/list.h"
#include "firmware/sched/queue/waiter.h"

namespace orrery::fw {

// Packets of one queue that may be started and not yet retired. Also the most that one turn starts.
inline constexpr uint32_t kWindow = 16;

inline constexpr size_t kPacketWords = ORR_PACKET_SIZE / 8;

inline constexpr uint8_t kNoSlot = 0xff;
inline constexpr uint16_t kNoDoorbell = 0xffff;

// Which list `Queue::link` is on, that is: what the queue waits for.
enum class Place : uint8_t {
    kNone,       // on none: drained, stopped, or being run
    kReady,      // its turn
    kPort,       // a free port of an engine of `engine_kind`
    kSemaphore,  // a semaphore
    kOwn,        // on none: its own packets in flight
    kQuota,      // its context's next period
    kGang,       // the other members of a gang
    kArea,       // an end of one of its tenant's jobs of `engine_kind`: these own too many save areas
};

// What is shared out by virtual time, each on its own: who uses much of one has no worse a place at another.
// The ports of a kind of engine are the resource with its number.
enum class Resource : uint8_t { kTurn };
inline constexpr uint32_t kResources = kKinds;
constexpr Resource ports_of(uint32_t kind) {
    return static_cast<Resource>(kind);
}

struct QueueError {
    uint64_t code;  // ORR_QERR_*
    uint64_t index;
    uint64_t address;
    uint64_t detail;
};

// What ORR_MBOX_QUEUE_STATS answers.
struct QueueStats {
    uint64_t used_ps[kEngineKindCount];  // of kind n + 1: engine time, or the sum over the cores
    uint64_t ready_ps;                   // ready, but not running
    uint64_t longest_ready_ps;
    uint32_t finished;   // dispatches and copies
    uint32_t preempted;  // times
};

struct Context;

struct Queue {
    Link link;         // see Place
    Link outbox_link;  // queues that have something to tell the host

    Context* context;
    uint64_t ring;      // window address of its struct orr_ring
    uint64_t limit_ps;  // model time that a dispatch may take
    uint32_t mask;      // entries - 1
    uint32_t slice_us;  // 0: the firmware's default

    // Indices: retired <= next <= producer, next - retired <= kWindow.
    uint64_t producer;  // as last read and checked
    uint64_t next;      // packet to start next
    uint64_t retired;   // all below have finished, and the host knows

    // Packets retired + n: finished, and asking for an interrupt.
    uint32_t done;
    uint32_t interrupt;
    uint16_t in_flight;  // started and not ended, suspended ones among them
    uint16_t suspended;  // of these: preempted, and not on an engine
    uint16_t ports;      // of these: on engines

    uint16_t number;
    uint16_t context_number;
    uint16_t process;  // row of tenants.h
    uint16_t generation;
    uint16_t slot;    // doorbell
    uint16_t weight;  // 1 .. ORR_WEIGHT_MAX
    uint8_t priority;
    uint8_t bucket;     // of the calendar that it is in
    uint8_t ring_slot;  // the chip's slot that reads its packets; kNoSlot: none
    uint8_t state;      // ORR_TSTATE_*, as last traced
    Place place;

    bool exists;
    bool has_packet;  // `packet` is packet `next`, read and validated, but not finished
    union {
        uint32_t ending;  // not 0: one of these
        struct {
            bool stopping;    // `error` holds what stopped it; nothing more starts
            bool stopped;     // the error has been published
            bool destroying;  // QUEUE_DESTROY under way
            bool destroyed;   // it is over; the reply is due
        };
    };
    bool event_due;  // ORR_EVENT_QUEUE_ERROR is due
    bool in_outbox;
    uint8_t gang;  // number of its record, plus one, from its GANG packet until its dispatch starts; 0: none
    uint8_t error_code;   // ORR_QERR_* once stopping
    uint8_t engine_kind;  // in Place::kPort and Place::kArea
    bool armed;
    bool destroy_silent;        // ORR_MBOX_F_NO_REPLY
    uint32_t destroy_sequence;  // of the command to reply to

    // The share: time used, scaled by the weight, of each Resource; picoseconds of ORR_WEIGHT_DEFAULT.
    uint64_t vtime[kResources];
    uint64_t ready_since_ps;  // since when it has been ready or waiting for a port; 0: is not
    uint32_t rate;            // virtual time per time, 16.16: ORR_WEIGHT_DEFAULT / weight
    QueueStats stats;

    Waiter wait;        // valid in Place::kSemaphore
    uint64_t wait_end;  // likewise: when its limit comes, by the clock of wait_limit.h; 0: it has none

    uint32_t seal;  // restart.h: over what stays as it is from create to destroy

    // Interrupts are due from armed_first on, until armed_last has been reached: no armed index is ever lost.
    uint64_t armed_first;
    uint64_t armed_last;

    // Without has_packet only the first word counts: packet `next` has it, or it is 0 and has not been seen.
    // A queue that stops has no packet.
    union {
        uint64_t packet[kPacketWords];
        struct {
            QueueError error;  // also of a queue that is being destroyed
            uint64_t error_time_ps;
            uint64_t failed_to;       // the semaphores of the packets below have failed
            uint32_t abort_sequence;  // of the QUEUE_ABORT to reply to; 0: none
            uint8_t fail_tries;       // of the packet at failed_to
            bool told;                // the error has become an event, or never will; `failed_to` is valid
        };
    };
    char name[ORR_NAME_BYTES];
};
// There are many, and SRAM is small.
static_assert(sizeof(Queue) <= 352 + 16 * (kEngineKindCount - 2));

using QueueList = List<Queue, &Queue::link>;
using OutboxList = List<Queue, &Queue::outbox_link>;

struct Context {
    uint64_t period_end_ps;    // of the current period
    uint64_t used_ps;          // in the current period
    Link link;                 // contexts with a quota
    Link stale_link;           // contexts whose waiters have to be looked up again
    QueueList parked;          // queues in Place::kSemaphore, those that parked first in front
    uint32_t flushed_at;       // those who parked before this WaitTable::sequence() may name stale memory
    uint32_t quota_period_us;  // 0: no limit
    uint32_t queues;
    uint32_t seal;                 // restart.h
    uint32_t user_id, process_id;  // whose it is, as the driver says
    uint16_t quota_permille;       // of the vector cores' time; 0: no limit
    uint16_t process;              // row of tenants.h
    uint16_t number;
    uint16_t page;  // doorbell page
    bool exists;
    bool throttled;  // over its quota
    bool listed;     // on the list of contexts with a quota
    bool stale;      // on the list of stale_link
    bool lost;       // its row did not survive a restart: it takes no new queues
    char name[ORR_NAME_BYTES];
};
static_assert(sizeof(Context) <= 96);

using ContextList = List<Context, &Context::link>;
using StaleList = List<Context, &Context::stale_link>;

}  // namespace orrery::fw
