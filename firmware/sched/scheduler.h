// SPDX-License-Identifier: MIT
// The scheduler: contexts, queues, and what runs when.
//
// Policy: round robin over the queues that have something to do, at most kWindow packets a turn. A queue that
// cannot go on (no free engine, a semaphore, its own earlier packets) leaves the ready list and costs nothing
// until the event that it waits for; nothing is polled.
//
// Trust: everything in user memory is read once into the queue's own state and checked there. What a process
// gets wrong stops its queue and nothing else.
#pragma once

#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>

#include "firmware/hal/hal.h"
#include "firmware/hal/window.h"
#include "firmware/sched/alarm.h"
#include "firmware/sched/deadlock.h"
#include "firmware/sched/engines.h"
#include "firmware/sched/halt.h"
#include "firmware/sched/host_irq.h"
#include "firmware/sched/queue.h"
#include "firmware/sched/trace.h"
#include "firmware/sched/wait_table.h"

namespace orrery::fw {

inline constexpr uint64_t kPsPerUs = 1'000'000;
inline constexpr uint64_t kDefaultLimitPs = 1'000'000 * kPsPerUs;  // a dispatch may take one second
// Events of one kind that are taken before queues get their turn again.
inline constexpr uint32_t kEventsPerPass = 64;
// Between two looks for a cycle of waits while queues run.
inline constexpr uint64_t kDeadlockIntervalPs = 10'000 * kPsPerUs;
// Queues that one signal sets free before others get their turn; the rest follow in the next passes.
inline constexpr uint32_t kWakesPerPass = 32;
// Waits whose memory is looked up again in one pass after a context's mappings have changed.
inline constexpr uint32_t kRemapsPerPass = 8;

// Events that could not be meant seriously, by whom they were caused. For debuggers; nothing depends on them.
struct SchedulerStats {
    uint64_t stale_doorbells;   // wrong generation, or a queue that is gone
    uint64_t wild_completions;  // of a port that was idle, or with another tag
    uint64_t turns;
};

class Scheduler {
  public:
    // `status_table`: window address of struct orr_queue_status[ORR_FW_QUEUES]. Call once before all else.
    void init(Hal& hal, HostIrq& irq, Alarm& alarm, Tables& tables, uint64_t status_table);

    // --- events: each takes what is there (bounded), and says whether there was anything ---
    bool drain_doorbells();
    bool drain_completions();
    bool drain_pokes();
    // What signals and changed mappings have left to do.
    bool waits_unsettled() const { return backlog_count_ != 0 || !stale_contexts_.empty(); }
    bool settle_waits();
    // Looks for cycles of waits, a little at a time. False: there is nothing to look at now.
    bool wants_deadlocks() const { return deadlocks_.wants(); }
    bool look_for_deadlocks();
    const Deadlocks& deadlocks() const { return deadlocks_; }
    void on_timer(uint64_t now);

    // One turn of the queue that has waited longest, and what its signals set free. False: nothing to do.
    bool turn();

    // --- life of contexts and queues; numbers below their table's size, arguments checked by the caller ---
    Context* context(uint32_t number);  // null: there is none
    Queue* queue(uint32_t number);      // null: there is none

    struct QueueConfig {
        uint32_t queue;
        uint32_t context;
        uint64_t ring_va;
        uint64_t entries;
        uint16_t slot;
        uint8_t priority;
        uint64_t limit_ps;
        uint16_t weight;    // 1 .. ORR_WEIGHT_MAX
        uint32_t slice_us;  // 0: the firmware's default
    };
    void create_context(uint32_t number, uint64_t root, uint16_t page);
    // Vector core time in 1/1000 of the card's in a period; 0, 0: no limit.
    void set_quota(Context& context, uint16_t permille, uint32_t period_us);
    // From its next turn on.
    void set_queue(Queue& queue, uint8_t priority, uint16_t weight, uint32_t slice_us);
    void destroy_context(Context& context);  // must have no queues
    // The context's mappings have changed: what its queues wait for can be other memory now.
    void remapped(Context& context);
    // ORR_STATUS_OK, _FAULT, _EXISTS (the doorbell slot) or _NO_RESOURCE.
    uint32_t create_queue(const QueueConfig& config);
    // Starts the end of a queue. The reply comes from take_message() once nothing of it runs.
    void destroy_queue(Queue& queue, uint32_t sequence, bool silent);
    void arm(Queue& queue, uint64_t index);
    uint32_t state(const Queue& queue) const;  // ORR_QUEUE_*

    bool has_ready() const { return !ready_.empty(); }

    // Events and late replies for the host, oldest first. A queue whose end it reports is gone with the call.
    bool has_message() const { return !outbox_.empty() || deadlocks_.telling(); }
    bool take_message(orr_mbox_message& message);

    // Counts up with every packet that started or finished.
    uint64_t progress() const { return progress_; }
    // kHaltNone, or why the core must stop.
    const Port* ports() const { return engines_.rows(); }
    uint32_t fatal() const { return fatal_; }
    const SchedulerStats& stats() const { return stats_; }

  private:
    enum class Step { kDone, kStarted, kParked, kFailed };

    // turn.cc: a queue's turn, packet by packet.
    void run(Queue& queue);
    bool fetch(Queue& queue);
    Step execute(Queue& queue);
    Step execute_timestamp(Queue& queue);
    Step finish_packet(Queue& queue);
    void consume_packet(Queue& queue);
    bool check_producer(Queue& queue, uint64_t producer);

    // dispatch.cc: packets that run on engines.
    Step execute_on_engine(Queue& queue, uint32_t opcode);
    Step engine_step(Queue& queue, Port& port);
    void serve_port_waiters(uint32_t kind);
    void complete(Queue& queue, const Port& port, uint32_t number);

    // retire.cc: telling the outside what has finished, and what has failed.
    void publish_progress(Queue& queue);
    bool settle(Queue& queue, bool reread);
    void fail(Queue& queue, const QueueError& error);
    void publish_error(Queue& queue);
    void fail_window(Queue& queue, uint64_t code, uint64_t index, const WindowFault& fault);
    void interrupt_host(Queue& queue);

    // waits.cc: queues that wait for a semaphore.
    Step execute_signal(Queue& queue);
    Step execute_wait(Queue& queue);
    void signalled(const Queue& by, uint64_t memory, uint64_t value, uint64_t va);
    bool locate(Queue& queue, uint64_t va, uint64_t& memory);
    void park_on_semaphore(Queue& queue, uint64_t memory);
    void leave_semaphore(Queue& queue);
    uint32_t take_due(uint64_t memory, uint64_t value, uint32_t how, Queue* (&due)[kWakesPerPass]);
    void release(Queue& queue, uint64_t value, uint32_t how);
    void release_all(Queue* const* due, uint32_t count, uint64_t value, uint32_t how);
    void look_again(Queue& queue);
    void recheck(Context& context);

    // lifecycle.cc
    void make_ready(Queue& queue);
    void unplace(Queue& queue);
    void place(Queue& queue, Place place);
    void set_state(Queue& queue, uint32_t state);  // ORR_TSTATE_*
    void rest(Queue& queue);
    void finish_destroy(Queue& queue);
    void notify(Queue& queue);
    void doorbell_command(const Queue& queue, uint64_t command);

    // Window address of its struct orr_queue_status.
    uint64_t status_line(const Queue& queue) const {
        return status_table_ + queue.number * sizeof(orr_queue_status);
    }
    QueueList& port_waiters(uint32_t kind) {
        return kind == ORR_ENGINE_COPY ? copy_waiters_ : vector_waiters_;
    }
    static uint64_t window(const Queue& queue, uint64_t va) {
        return ORR_CONTEXT_WINDOW(queue.context->number, va);
    }

    Hal* hal_;
    HostIrq* irq_;
    Alarm* alarm_;
    uint64_t status_table_;
    uint64_t progress_;
    uint32_t fatal_;
    Context* contexts_;
    Queue* queues_;
    QueueList ready_;
    QueueList copy_waiters_;
    QueueList vector_waiters_;
    WaitTable waits_;
    StaleList stale_contexts_;
    // Signals that have set free as many as one pass may, and have more to do.
    struct Backlog {
        uint64_t memory;
        uint64_t value;
        uint32_t how;
    };
    static constexpr uint32_t kBacklog = 16;
    Backlog backlog_[kBacklog];
    uint32_t backlog_count_;
    Deadlocks deadlocks_;
    OutboxList outbox_;
    SchedulerStats stats_;
    Engines engines_;
};

}  // namespace orrery::fw
