// SPDX-License-Identifier: MIT
// The scheduler: contexts, queues, and what runs when.
// Policy: turns on the control core (a few packets at a time) and the ports of each kind of engine are
// scheduled independently of each other, each with run queues of its own (run_queue.h). A queue that cannot
// continue (no free engine, a semaphore, its own earlier packets) costs nothing until the event
// that it waits for; nothing is polled.
//
// Trust: everything in user memory is read once into the queue's own state and checked there. What a process
// gets wrong stops its queue and nothing else.
#pragma once

#include <orrery/fw/boot_block.h>
#include <orrery/fw/mailbox.h>

#include "firmware/hal/alarm.h"
#include "firmware/hal/hal.h"
#include "firmware/hal/halt.h"
#include "firmware/hal/host_irq.h"
#include "firmware/hal/window.h"
#include "firmware/sched/arbiter.h"
#include "firmware/sched/policy/policy.h"
#include "firmware/sched/policy/quota.h"
#include "firmware/sched/policy/run_queue.h"
#include "firmware/sched/policy/suspended.h"
#include "firmware/sched/policy/tenants.h"
#include "firmware/sched/queue/queue.h"
#include "firmware/sched/recover/failing.h"
#include "firmware/sched/run/engines.h"
#include "firmware/sched/run/slots.h"
#include "firmware/sched/show/trace.h"
#include "firmware/sched/sync/deadlock.h"
#include "firmware/sched/sync/gang.h"
#include "firmware/sched/sync/wait_limit.h"
#include "firmware/sched/sync/wait_table.h"
#include "firmware/sched/tables.h"

namespace orrery::fw {

// Scale of a queue's weight in the chip's port weights: fine enough to be divided among several ports.
inline constexpr uint32_t kPortWeight = 32;
// How far a queue that returns to an engine may lag behind in virtual time: a queue that pauses between its
// jobs keeps its share.
inline constexpr uint64_t kMaxLagPs = 500 * kPsPerUs;
// Time from the start of a dispatch until it can use a core.
inline constexpr uint64_t kLaunchPs = kPsPerUs;
// Doorbells and remote signals (SOC_POKE_POP) that are taken between two turns: a process that rings without
// end does not starve the others.
inline constexpr uint32_t kDoorbellsPerTurn = 8;
inline constexpr uint32_t kRemoteSignalsPerTurn = 8;
// Virtual turn time that a doorbell without new packets costs its queue.
inline constexpr uint64_t kDoorbellPs = 100 * kPsPerNs;
// A user who has had this much more turn time than another has his HIGH queues treated as NORMAL against the
// other's.
inline constexpr uint64_t kTurnLeadPs = 100 * kPsPerUs;
// Events of one kind that are taken before queues get their turn again.
inline constexpr uint32_t kEventsPerPass = 64;
// Queues that one signal wakes before others get their turn; the rest follow in the next passes.
inline constexpr uint32_t kWakesPerPass = 32;
// Queues per pass that check again for a save area after a job has ended.
inline constexpr uint32_t kAreaTries = 2;
// Waits whose memory is looked up again in one pass after a context's mappings have changed.
inline constexpr uint32_t kRemapsPerPass = 8;

// Counts of invalid events. For debuggers; nothing depends on them.
struct SchedulerStats {
    uint64_t stale_doorbells;   // wrong generation, or a queue that is gone
    uint64_t idle_doorbells;    // of a living queue, but nothing new, or an index that cannot be true
    uint64_t wild_completions;  // of a port that was idle, or with another tag
    uint64_t turns;
};

class Scheduler {
  public:
    // Areas for what is preempted, one after the other from the VRAM offset `base` on.
    struct SaveAreas {
        uint64_t base;
        uint32_t count;
    };
    // Window addresses of what the host wants to read without asking.
    struct HostTables {
        uint64_t status;  // struct orr_queue_status[ORR_FW_QUEUES]
        uint64_t usage;   // struct orr_queue_usage[ORR_FW_QUEUES], or 0
    };
    // Call once before all else.
    void init(Hal& hal, HostIrq& irq, Alarm& alarm, Tables& tables, HostTables host, SaveAreas areas);
    // Then one of these. Without contexts and queues; whatever still runs on engines is ended. `clear`: the
    // tables are not all zeros.
    void cold_start(Tables& tables, bool clear);
    // restart.h. Gives the number of queues that go on.
    uint32_t warm_start(Tables& tables);

    // --- events: each takes what is there (bounded), and says whether there was anything ---
    bool drain_doorbells();
    bool drain_completions();
    bool drain_remote_signals();
    // Work that signals and changed mappings have left over.
    bool waits_unsettled() const { return backlog_count_ != 0 || !stale_contexts_.empty(); }
    // The same, or gangs_due().
    bool unsettled() const { return waits_unsettled() || gangs_.due(); }
    bool settle_waits();
    // Looks for cycles of waits, a little at a time. False: there is nothing to look at now.
    bool wants_deadlocks() const { return deadlocks_.wants(); }
    bool look_for_deadlocks();
    const Deadlocks& deadlocks() const { return deadlocks_; }
    // A gang's card or ports may have become free, or queues wait for a save area.
    bool gangs_due() const { return gangs_.due(); }
    void serve_gangs() {
        retry_areas();
        gangs_.serve(area_looks_ != 0);
    }
    void on_timer(uint64_t now);

    // One turn of the queue that is next. False: nothing to do.
    bool turn();
    // Takes one doorbell; only while !has_ready().
    void answer_doorbell();

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
    // Of this user's process (tenants.h). ORR_STATUS_OK or _NO_RESOURCE.
    uint32_t create_context(uint32_t number, uint64_t root, uint16_t page, uint32_t user, uint32_t process);
    // Vector core time in 1/1000 of the card's in a period; 0, 0: no limit.
    void set_quota(Context& context, uint16_t permille, uint32_t period_us) {
        quotas_.set(context, permille, period_us);
    }
    // From its next turn on.
    void set_queue(Queue& queue, uint8_t priority, uint16_t weight, uint32_t slice_us);
    void destroy_context(Context& context);  // must have no queues
    // The context's mappings have changed: what its queues wait for can be other memory now.
    void remapped(Context& context);
    // ORR_STATUS_OK, _FAULT, _EXISTS (the doorbell slot) or _NO_RESOURCE.
    uint32_t create_queue(const QueueConfig& config);
    // Starts the end of a queue. The reply comes from take_message() once nothing of it runs.
    void destroy_queue(Queue& queue, uint32_t sequence, bool silent);
    // The queue is being destroyed silently: its end is now reported with this sequence. False: it is already
    // reported to another.
    bool tell_end(Queue& queue, uint32_t sequence);
    // For tests: the core crashes as if it worked for this queue (ORR_FW_QUEUES: for none).
    void crash(uint32_t number);
    // Stops a queue now. The reply comes as that of destroy_queue(). False: somebody else's is under way.
    bool abort_queue(Queue& queue, uint32_t sequence);
    // ORR_STATUS_OK or _FAULT. `memory`: window address of a semaphore; `word`: failure word.
    uint32_t close_semaphore(uint64_t memory, uint64_t word);
    void arm(Queue& queue, uint64_t index);
    uint32_t state(const Queue& queue) const;  // ORR_QUEUE_*

    bool has_ready() const { return !turns_.empty(); }
    // Before the core sleeps, and nobody waits for a turn: who had more of them than others is forgotten.
    void rest_turns() { turns_.rest(greatest_vtime_[static_cast<uint32_t>(Resource::kTurn)]); }

    // Events and late replies for the host, oldest first. A queue whose end it reports is gone with the call.
    bool has_message() const { return !outbox_.empty() || deadlocks_.telling(); }
    bool take_message(orr_mbox_message& message);

    // Counts up with every packet that started or finished.
    uint64_t progress() const { return progress_; }
    // kHaltNone, or why the core must stop.
    uint32_t fatal() const { return fatal_; }
    const SchedulerStats& stats() const { return stats_; }
    const Policy& policy() const { return policy_; }
    // For debuggers: SOC_ENGINES_MAX rows.
    const Port* ports() const { return engines_.rows(); }

  private:
    enum class Step { kDone, kStarted, kParked, kFailed };

    // turn.cc: a queue's turn, packet by packet.
    bool run(Queue& queue);  // true: it can go on at once
    bool run_signals(Queue& queue);
    bool run_rest(Queue& queue);
    bool end_turn(Queue& queue);
    Queue* decode_doorbell(uint64_t popped);
    void accept_doorbell(Queue& queue);
    void reject_doorbell(Queue* queue, uint64_t value);
    void reject_index(Queue& queue, uint64_t more);
    void begin_only_turn(Queue& queue);
    bool go_on(Queue& queue);
    template <typename Begin>
    void run_turn(Queue& queue, uint64_t now, Begin begin);
    bool read_producer(Queue& queue);
    bool fetch(Queue& queue);
    bool try_launch(Queue& queue);
    Step execute(Queue& queue);
    Step execute_timestamp(Queue& queue);
    Step finish_packet(Queue& queue);
    void consume_packet(Queue& queue, uint64_t header);

    // dispatch.cc: packets that run on engines.
    Step execute_on_engine(Queue& queue, uint32_t kind);
    void start_job(Queue& queue, Port& port, uint64_t now, uint64_t waited_ps);
    enum class Onto { kFree, kSame };  // a free port; the port of the queue's job that has just ended
    template <Onto kOnto>
    bool launch(Queue& queue, Port& port, uint32_t kind, uint64_t now, uint64_t waited_ps, uint32_t rule);
    bool launch_now(Queue& queue, uint32_t kind);
    // The next candidate of a class: a preempted job or a queue's next packet. `queue` is null: there is
    // none.
    struct Next {
        Queue* queue;
        Suspended* job;  // null: the queue's next packet
    };
    Next next_of(uint32_t kind, uint32_t level);
    Suspended* next_suspended(uint32_t kind, uint32_t level);
    uint32_t fair_level(uint32_t kind, uint32_t classes, uint32_t level);
    uint8_t level_on_cores(const Queue& queue) {
        return queue.priority == ORR_PRIORITY_HIGH && tenants_.several() ? lowered_level(queue)
                                                                         : queue.priority;
    }
    uint8_t lowered_level(const Queue& queue);
    bool exceeds_share(const Queue& a, const Queue& b, uint32_t kind) const;
    bool lower_ports(const Port& below, uint64_t now);
    void share_among_tenants();
    void job_started(Queue& queue, Port& port, uint32_t kind, uint64_t header, uint64_t size, uint64_t now,
                     uint64_t waited_ps);
    bool chain_launch(Queue& queue, Port& port);
    bool start_for_waiter(Queue& queue, Port& port, uint64_t now, uint64_t waited_ps);
    bool next_uses_engine(Queue& queue, uint32_t kind);
    void resume_job(Suspended& job, Port& port, uint64_t now);
    void set_times(Port& port, uint32_t kind, Queue& queue, uint64_t limit_ps, uint64_t now,
                   uint64_t waited_ps);
    void grant_free_ports(uint32_t kind, uint64_t now);
    bool grant_port(Port& port, uint64_t now);
    void start_waiter(Queue& queue, Port& port, uint64_t now);
    bool fetch_for(Queue& queue, uint32_t kind);
    static bool launchable(const Queue& queue, uint32_t kind);
    void continue_after_completion(Queue& queue);
    void share_cores(Queue& queue);
    void watch_cores(Port& port, Queue& queue, uint64_t now, uint64_t waited_ps);
    void watch_lower_classes(uint32_t level, uint64_t now);
    void add_used(Queue& queue, Port& port, uint64_t used_ps, uint64_t now);
    void charge(Port& port, uint64_t used_ps, uint64_t now);
    struct Done {
        uint64_t status, start, end;
    };
    Done account(Queue& queue, Port& port);
    bool complete(Queue& queue, Port& port, Done done);
    void release_port(Queue& queue, Port& port);
    bool waiting(uint32_t kind) const { return waiting_classes(kind) != 0; }
    bool any_waiting() const {
        bool any = false;
        for (const EngineKind& row : kEngineKinds)
            any |= waiting(row.kind);
        return any;
    }
    uint32_t waiting_classes(uint32_t kind) const {
        return run_queue(kind).classes() | suspended_.classes(kind);
    }

    // areas.cc: which queues may start a job, given the save areas.
    uint32_t claimed(uint32_t kind);
    bool may_start(const Queue& queue, uint32_t kind) { return suspended_.idle() || area_for(queue, kind); }
    bool area_for(const Queue& queue, uint32_t kind);
    struct Owned {
        uint32_t of_user, of_process;
    };
    Owned owned_by(const Queue& queue, uint32_t kind);
    GangAreas areas_for_gang(const Queue& leader, uint32_t jobs);
    void claim_area(Port& port);
    void count_areas();
    void park_for_area(Queue& queue, uint32_t kind);
    void areas_freed() {
        if (area_waiting_ == 0) [[likely]]
            return;
        area_looks_ = area_waiting_;
        gangs_.set_areas_due();
    }
    void retry_areas();

    // preempt.cc: taking an engine from what runs on it.
    void suspend(Queue& queue, const Port& port, uint64_t used_ps);
    uint64_t request_preemption(uint32_t kind, uint64_t now);
    // A queue of this class is about to wait for an engine of this kind. The next preemption check, and since
    // when a class waits, are valid only while one waits.
    void note_waiter(uint32_t kind, uint32_t level) {
        if (!waiting(kind)) {
            kinds_[kind].preempt_check_ps = 0;
            kinds_[kind].preempt_check_level = 0;
        }
        if ((waiting_classes(kind) >> level & 1) == 0) starvation_bound(kind).served(level);
    }
    // A queue of this class waits for a port. Checks only if the result can differ from the last time.
    void request_preemption_if_due(uint32_t kind, uint32_t level, uint64_t now) {
        if (level > kinds_[kind].preempt_check_level || now >= kinds_[kind].preempt_check_ps)
            wake_ports(request_preemption(kind, now));
    }
    Port* find_victim(uint32_t kind, uint32_t level, const Queue& who, bool due, uint64_t now,
                      uint64_t& next);
    bool preempt(Port& port, uint32_t how, uint32_t for_queue, uint64_t now);
    void check_ports(uint64_t now);
    uint64_t check_port(Port& port, uint64_t now);
    uint64_t check_watchdog(Port& port, uint64_t now);
    uint64_t check_cores(Port& port, uint64_t now);
    Port* find_holder(const Port& port, uint64_t active, uint64_t fair, uint64_t now, uint64_t& coming);
    uint64_t fair_cores(const Port& port);
    void wake_ports(uint64_t at_ps) {
        if (at_ps < alarm_->at(Alarm::kPorts)) alarm_->set(*hal_, Alarm::kPorts, at_ps);
    }
    uint64_t active_groups(const Port& port) { return hal_->reg(engines_.reg(port, SOC_ENGINE_ACTIVE)); }
    void boost_priority(Port& port, uint64_t now, uint64_t slice_ps);
    void drop_suspended(Queue& queue, uint64_t first);
    // Ends what the queue has on engines or suspended from packet `first` on.
    void abort_jobs(Queue& queue, uint64_t first);

    // retire.cc: telling the outside what has finished, and what has failed.
    void publish_progress(Queue& queue);
    bool publish_or_fail(Queue& queue);
    void fail(Queue& queue, const QueueError& error);
    void tell_item(Queue& queue, uint64_t index);
    void publish_error(Queue& queue);
    void fail_window(Queue& queue, uint64_t code, uint64_t index, const WindowFault& fault);
    void interrupt_host(Queue& queue);

    // waits.cc: queues that wait for a semaphore.
    Step execute_signal(Queue& queue);
    bool try_signal(Queue& queue);
    Step execute_wait(Queue& queue);
    void signalled(const Queue& by, uint64_t memory, uint64_t value, uint64_t va);
    bool translate_va(Queue& queue, uint64_t va, uint64_t& memory);
    void park_on_semaphore(Queue& queue, uint64_t memory);
    void leave_semaphore(Queue& queue);
    uint32_t take_due(uint64_t memory, uint64_t value, uint32_t how, Queue* (&due)[kWakesPerPass]);
    void release(Queue& queue, uint64_t value, uint32_t how);
    void release_all(Queue* const* due, uint32_t count, uint64_t value, uint32_t how);
    void recheck_wait(Queue& queue, uint64_t cause = 0);
    void check_wait_limits(uint64_t now);

    // failure.cc: failure travels with the semaphore.
    Step execute_fail(Queue& queue);
    void poison(Queue& queue, uint64_t value);
    bool abandoned(Queue& queue, uint64_t memory, uint64_t& value);
    void all_failed(Queue& queue);
    bool fail_packet(Queue& queue);
    uint64_t cause_of(const Queue& queue);
    uint64_t fail_semaphore(const Queue& by, uint64_t va, uint64_t value);

    // Parts that are classes of their own see no more of this one than arbiter.h.
    friend class Arbiter;

    // A free port; REALTIME has those that are held for a gang too.
    Port* find_port(uint32_t kind, uint32_t level) {
        Port* const port = engines_.find_free(kind);
        if (port != nullptr || !has_cores(kind) || level != ORR_PRIORITY_REALTIME) return port;
        return engines_.find_held();
    }

    // restart.cc: taking over the tables of the run before a restart.
    void init_orphan_owner();
    void revive_context(Context& context, uint32_t number, uint64_t now);
    void revive_queue(Queue& queue, uint32_t number, bool guilty);
    Queue* owner_of(const Queue* claimed, uint64_t index);
    uint32_t number_of(const Queue* claimed) const;
    bool right_area(Port& port);
    void revive_port(Port& port, uint64_t now);
    void revive_suspended(uint32_t area);
    void stop_if_inconsistent(Queue& queue, const PersistHeader& header);
    void look_for_completion(Port& port);
    void take_completions();
    bool resume(Queue& queue);

    // lifecycle.cc
    void set_share(Queue& queue, uint8_t priority, uint16_t weight, uint32_t slice_us);
    uint64_t class_vtime(const Queue& queue, uint32_t resource) const;
    void start_at_class_vtime(Queue& queue);
    void enqueue(Queue& queue, Place place);
    bool dequeue(Queue& queue, Place place);
    void make_ready(Queue& queue);
    void begin_wait(Queue& queue, uint64_t now);
    void end_wait(Queue& queue, uint64_t now);
    void unplace(Queue& queue);
    void place(Queue& queue, Place place);  // all but those of
    void place_for_engine(Queue& queue, Place place, uint32_t kind);
    void set_state(Queue& queue, uint32_t state);  // ORR_TSTATE_*
    void update_idle_state(Queue& queue);
    void finish_destroy(Queue& queue);
    static void free_row(Queue& queue);
    void notify(Queue& queue);
    bool abort_due(const Queue& queue) const;
    void doorbell_command(const Queue& queue, uint64_t command);

    // Window address of its struct orr_queue_status.
    uint64_t status_line(const Queue& queue) const {
        return status_table_ + queue.number * sizeof(orr_queue_status);
    }
    // `field`: offset in struct orr_queue_usage.
    void publish_usage(const Queue& queue, uint64_t field, uint64_t used_ps) {
        if (usage_table_ != 0 && field != kNoUsage)
            hal_->store(usage_table_ + queue.number * sizeof(orr_queue_usage) + field, used_ps);
    }
    RunQueue& run_queue(uint32_t kind) { return kinds_[kind].run_queue; }
    const RunQueue& run_queue(uint32_t kind) const { return kinds_[kind].run_queue; }
    StarvationBound& starvation_bound(uint32_t kind) { return kinds_[kind].bound; }
    uint64_t slice_ps(const Queue& queue) const {
        return queue.slice_us == 0 ? policy_.slice_ps : queue.slice_us * kPsPerUs;
    }
    // The slice that the starvation bound gives: the policy's, however long the queue's own is.
    uint64_t bound_slice_ps(const Queue& queue) const {
        const uint64_t own = slice_ps(queue);
        return own < policy_.slice_ps ? own : policy_.slice_ps;
    }
    void add_vtime(Queue& queue, Resource resource, uint64_t used_ps);
    void rest_engines();
    void begin_vtime(Queue& queue, uint32_t resource, uint64_t vtime);
    static uint64_t window(const Queue& queue, uint64_t va) {
        return ORR_CONTEXT_WINDOW(queue.context->number, va);
    }

    Hal* hal_;
    HostIrq* irq_;
    Alarm* alarm_;
    uint64_t status_table_;
    uint64_t usage_table_;
    uint64_t progress_;
    uint32_t fatal_;
    uint32_t backlog_count_;
    StaleList stale_contexts_;
    Context* contexts_;
    Queue* queues_;
    PersistHeader* persist_;
    // Members that every packet needs come first: short offsets make short code.
    Policy policy_;
    Tenants tenants_;
    uint64_t greatest_vtime_[kResources];  // of all queues there ever were
    QueueList area_waiters_;
    uint32_t area_waiting_;  // how many they are
    uint32_t area_looks_;    // how many of them, from the front on, are still to check whether they may start
    StarvationBound turn_bound_;
    // The queues that wait for engines of a kind. Aligned so that a row's address is a shift.
    struct alignas(128) Kind {
        RunQueue run_queue;
        StarvationBound bound;
        uint64_t preempt_check_ps;     // request_preemption() has no effect before,
        uint32_t preempt_check_level;  // unless it is for a class above this one
    };
    Kind kinds_[kKinds];
    OutboxList outbox_;
    SchedulerStats stats_;
    Engines engines_;
    Slots slots_;
    SuspendedJobs suspended_;
    uint32_t areas_[kKinds];  // save areas reserved for jobs of a kind
    Turns turns_;
    Arbiter arbiter_;
    Quotas quotas_;
    // Signals that woke as many queues as one pass may, and have more to wake.
    struct Backlog {
        uint64_t memory;
        uint64_t value;
        uint32_t how;
    };
    static constexpr uint32_t kBacklog = 16;
    Backlog backlog_[kBacklog];
    Deadlocks deadlocks_;
    FailingQueues failing_;
    Gangs gangs_;
    WaitTable waits_;
    WaitLimits limits_;
    TenantRows tenant_rows_;
    RunQueueTables run_queue_tables_;
    Queue orphan_owner_;  // owner of jobs that still run but whose queue was lost in a restart
};

}  // namespace orrery::fw

#include "firmware/sched/scheduler_inline.h"
