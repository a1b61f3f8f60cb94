// SPDX-License-Identifier: MIT
// What the parts of the scheduler that are classes of their own (gangs, quotas, failing queues) may ask of
// it: to move a queue, and to take or give vector ports. Beside that they see the tables and engines that
// init() gives them.
#pragma once

#include <stdint.h>

#include "firmware/sched/queue/queue.h"
#include "firmware/sched/run/engines.h"

namespace orrery::fw {

class Scheduler;
struct Policy;

// What there is beside a gang that would go before it.
struct Precedence {
    bool any;    // of other tenants, of its class or a higher one
    bool above;  // of a higher class, of a user within his share
    bool lacks;  // one that goes first by class or lead waits for a port, or has fewer cores than its part
    uint64_t lead_ps;  // by which the gang's tenant has had more than the one of these who has had least
};

// Save areas for all dispatches of a gang.
enum class GangAreas : uint8_t {
    kNow,
    kUserHas,     // when jobs of its user have ended
    kOthersHave,  // when those of others have: its user owns none
    kNoneEver,    // there are too few on this card, or nothing is preempted
};

class Arbiter {
  public:
    // Call once before all else.
    void init(Scheduler& scheduler) { scheduler_ = &scheduler; }

    // --- queues ---
    // Stops the queue; of several errors the one with the lowest index counts.
    void fail(Queue& queue, const QueueError& error);
    void place(Queue& queue, Place place);
    void make_ready(Queue& queue);
    // Failure word of the cause for which a stopped queue fails semaphores.
    uint64_t cause_of(const Queue& queue);
    // Signals `value`, or a failure, at an address of the queue's context. ORR_FAULT_*.
    uint64_t fail_semaphore(const Queue& by, uint64_t va, uint64_t value);

    // Fails what packet `failed_to` of a stopped queue would have signalled. False: there is no room for that
    // now.
    bool fail_packet(Queue& queue);
    // All of the stopped queue's packets have been failed: whoever waits for that is told.
    void all_failed(Queue& queue);

    // --- vector ports ---
    // Starts the dispatch at the queue's head on a free port, whoever else waits for it.
    void start_member(Queue& queue, Port& port, uint32_t members, uint64_t now);
    const Policy& policy() const;
    // Jobs that run or wait on vector ports, but for REALTIME and gangs.
    Precedence precedence(const Queue& leader, uint64_t now);
    // The policy lets jobs be preempted.
    bool preempts() const;
    // Asks the job to make room at the end of its work-groups.
    void preempt(Port& port, uint32_t for_queue, uint64_t now);
    // The same for all of a gang; `gang`: as Port::gang.
    void preempt_gang(uint8_t gang, uint64_t now);
    // Whether so many dispatches of a gang of the queue's may own save areas (areas.cc).
    GangAreas areas_for_gang(const Queue& leader, uint32_t jobs);
    // Resumes a saved dispatch of the gang on a free port. Null: there is none left.
    Queue* resume_member(uint8_t gang, Port& port, uint64_t now);
    // Takes a dispatch out of the gang, whether it runs or is saved. `queue` is null: there is none left.
    struct Member {
        Queue* queue;
        uint64_t index;  // of the packet
    };
    Member take_member(uint8_t gang);
    uint64_t slice_ps(const Queue& queue) const;
    // Charges what a running job has used so far.
    void charge(Port& port, uint64_t now);
    // All vector ports stood idle for the queue for so long: it has had them.
    void charge_idle(Queue& queue, uint64_t idle_ps, uint64_t now);
    // Jobs of other users than the queue's wait for a vector port.
    bool others_wait(const Queue& queue) const;
    // Suspended jobs that were held back compete again, and so do gangs.
    void release_held(const Context& context);
    // Engines run, or queues wait for their turn.
    bool busy() const;
    // Free ports go to those who wait for them.
    void grant_vector_ports(uint64_t now);

  private:
    Scheduler* scheduler_;
};

}  // namespace orrery::fw
