// The task scheduler, independent of what executes: infers order from data accesses, plans which card runs
// what when, hands commands to an Executor, and learns from what really happened.
//
// Planning is list scheduling by upward rank (the longest way to the end, with transfers) into the earliest
// fitting gap of each card, with transfers placed on channels. Tasks are planned in batches: everything that
// was submitted since the last pump(). Commands are handed out in the order of their planned start, a bounded
// number a card ahead of its completions; what has not been handed out is planned anew when reality has
// drifted from the plan.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "umd/scheduler/executor.h"
#include "umd/scheduler/machine.h"
#include "umd/scheduler/workers.h"

namespace orrery::umd {

enum class Access : std::uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3, kReduce = 4 };
constexpr bool reads(Access mode) {
    return mode == Access::kRead || mode == Access::kReadWrite;
}

struct DataAccess {
    DataId data = 0;
    Access mode = Access::kRead;
};

enum class TaskState : std::uint8_t { kWaiting, kPlanned, kIssued, kDone, kFailed, kCancelled };

constexpr int kAnyNode = -1;

struct TaskSpec {
    Ps cost = 1;               // expected, on a card of slowness 1
    std::uint64_t groups = 0;  // work-groups, which may leave cores to others; 0: it has a card to itself
    std::span<const DataAccess> accesses;
    std::span<const TaskId> after;  // beside what follows from the accesses
    std::int32_t priority = 0;      // higher first; what a task waits for inherits it
    Ps deadline = kNever;           // model time of its end; what a task waits for inherits it
    int node = kAnyNode;            // a card or Machine::host(), if it must run there
};

struct CoreOptions {
    unsigned issue_ahead = 32;     // tasks a worker that are handed out and not done
    double transfer_weight = 0.5;  // how much a transfer counts beside the time at which a task ends
    bool replan = true;
    // For executors whose tasks fetch their inputs themselves, one after the other, before they work.
    bool fetch_in_task = false;
};

struct CoreStats {
    std::uint64_t submitted = 0, done = 0, failed = 0, cancelled = 0;
    std::uint64_t edges = 0, transfers = 0, transfer_bytes = 0, replans = 0;
};

class Core {
  public:
    Core(const Machine& machine, Executor& executor, const CoreOptions& options = {});

    // node: where it lies now.
    DataId add_data(std::uint64_t bytes, unsigned node);
    // What merging two parts of a reduction costs. Before the first task that reduces it.
    void set_merge_cost(DataId data, Ps cost) { data_[data].merge_cost = cost; }
    // The task gets its number at once, and depends on earlier tasks only.
    TaskId submit(const TaskSpec& spec);
    // Merges are made by the core itself, when an access ends a reduction; the causing task's number comes
    // behind theirs.
    bool is_merge(TaskId task) const { return tasks_[task].merge; }
    // A read of the data that no task does: ends an open reduction. The last task that writes it, or kNoTask.
    TaskId close_reduction(DataId data);

    // Plans what is new and hands out what may go.
    void pump();
    // The task ended at model time `finish`. Does not pump().
    void complete(TaskId task, Ps start, Ps finish);
    // It went wrong, or cannot begin: all that needs its results is cancelled, and caused_by() it, also what
    // was issued already: complete() of such a task does nothing.
    void fail(TaskId task);
    // Another expectation, for a task that has not ended. In effect when what is not issued is planned
    // (again).
    void set_cost(TaskId task, Ps cost) { tasks_[task].cost = std::clamp<Ps>(cost, 1, kLongest); }
    // Plans anew, at the next pump(), all that is not issued.
    void replan() { replan_wanted_ = true; }
    // False if it is too late: issued, or ended.
    bool cancel(TaskId task);
    // All that are not issued.
    void cancel_all();
    // Before replan() or reissue(): links are gone, or cards faster or slower than thought. As many cards and
    // workers as before.
    void set_machine(const Machine& machine) { machine_ = machine; }
    // Commands were lost (their queue stopped): what is issued and neither done nor cancelled is planned
    // again. Nothing is in flight. lost: bits of cards that are gone, with the data that only they had; no
    // task is planned there while another card is left.
    void reissue(unsigned lost = 0);
    // After that: those of them that need data which is gone.
    std::vector<TaskId> stranded() const;

    TaskState state(TaskId task) const { return tasks_[task].state; }
    TaskId caused_by(TaskId task) const { return tasks_[task].cause; }
    unsigned node(TaskId task) const { return tasks_[task].node; }
    Ps planned_start(TaskId task) const { return tasks_[task].start; }
    Ps planned_finish(TaskId task) const { return tasks_[task].finish; }
    const CoreStats& stats() const { return stats_; }
    Ps now() const { return now_; }  // latest end of a task
    bool idle() const { return stats_.submitted == stats_.done + stats_.failed + stats_.cancelled; }
    std::size_t tasks() const { return tasks_.size(); }
    std::uint64_t bytes(DataId data) const { return data_[data].bytes; }
    std::span<const DataAccess> accesses(TaskId task) const {
        return {accesses_.data() + tasks_[task].accesses, tasks_[task].access_count};
    }

  private:
    struct Task {
        Ps cost, start, finish, rank, deadline, effective_deadline;
        std::uint32_t preds, pred_count, accesses, access_count;
        CommandId command;
        TaskId mark;  // that asked for it last while its predecessors were inferred
        TaskId cause;
        std::int32_t priority, effective_priority;
        std::uint32_t groups;  // 0: takes all workers
        std::int8_t pinned;
        std::uint8_t node;
        WorkerSet workers;
        TaskState state;
        bool merge;
    };
    // Where a datum is, at one horizon: what is planned, or what is issued.
    struct Place {
        std::array<Ps, kMaxNodes> at;
        std::array<CommandId, kMaxNodes> via;  // issued only
        std::uint16_t valid;                   // bits of nodes
        std::uint16_t partials;                // bits of nodes
        std::uint8_t owner;                    // that wrote it last
    };
    // The same of the parts of a reduction; only data that are reduced have one.
    struct Parts {
        std::array<Ps, kMaxNodes> at;
        std::array<CommandId, kMaxNodes> via;  // issued only
    };
    struct Horizon {
        std::vector<Place> places;
        std::vector<Parts> parts;
    };
    struct Data {
        std::uint64_t bytes;
        Ps merge_cost;
        TaskId writer;
        std::uint8_t home;
        std::uint32_t parts;                    // in Horizon::parts, or kNoParts
        std::vector<TaskId> readers, reducers;  // since the writer
    };
    struct Planned {
        Ps start;
        TaskId task;
    };
    struct Urgency {
        std::int32_t priority;
        TaskId task;
        Ps deadline, rank;
    };
    struct Issued {
        TaskId task;
        std::uint32_t arrivals;  // its first one; they end where those of the next entry begin
        CommandId command;
        Ps at;
    };
    // Of an input that a command does not find where it runs: how long behind the end of its writer it comes,
    // or when, if no command of this core wrote it.
    struct Arrival {
        TaskId writer;  // or kNoTask
        Ps behind;
    };
    // Of one node, whoever its workers are: the executor has room for no more.
    static constexpr unsigned kMostInFlight = 32;
    static constexpr TaskId kOrderOnly = 1u << 31;
    static constexpr std::uint32_t kNoParts = ~0u;

    TaskId add_task(const TaskSpec& spec, bool merge);
    void infer(TaskId task, const DataAccess& access);
    void depend(TaskId task, TaskId on, bool order_only);
    void plan();
    void rank(std::span<const TaskId> batch);
    void place(TaskId task);
    Ps inputs_ready(const Task& task, unsigned node, Ps ready, Ps& moved) const;
    Ps arrival(Ps at, std::uint64_t bytes, unsigned from, unsigned to) const;
    Ps reserve(Ps at, std::uint64_t bytes, unsigned from, unsigned to);
    unsigned best_source(const Place& place, std::uint64_t bytes, unsigned to) const;
    void bring_planned(const Task& task, unsigned node);
    void write(Horizon& horizon, const DataAccess& access, bool merge, unsigned node, Ps at,
               CommandId via) const;
    void issue();
    void issue_one(TaskId task);
    TaskId task_of(CommandId command) const;
    void arrives(TaskId writer, Ps at);
    Ps copied_from(TaskId writer, Ps at) const;
    CommandId issue_hop(Place& place, DataId data, unsigned from, unsigned to, TaskId consumer, int origin,
                        CommandId after);
    void cancel_dependents(TaskId first);
    void end_unissued(Task& task, TaskState state, TaskId cause);
    void landed(const Task& task);
    bool has_room(const Task& task) const;
    void unplan();
    void ends_at(Task& task, Ps finish);
    void expect_issued();
    Ps inputs_issued(std::size_t issued) const;
    void rebuild_places();
    void consider_replanning(const Task& task, Ps finish);

    Machine machine_;
    Executor& executor_;
    CoreOptions options_;
    std::vector<Task> tasks_;
    std::vector<TaskId> preds_;  // kOrderOnly: needs its end, not its results
    std::vector<DataAccess> accesses_;
    std::vector<Data> data_;
    Horizon planned_, issued_;
    std::array<Workers, kMaxNodes> node_time_;
    std::array<std::array<Timeline, kMaxNodes>, kMaxNodes> channel_time_;
    // When each worker has ended what is issued, as it is expected, and the last task that is done.
    std::array<std::array<Ps, kMaxWorkers>, kMaxNodes> issued_until_{}, done_until_{};
    std::array<Ps, kMaxNodes> load_{};  // all that was planned there
    std::array<unsigned, kMaxNodes> in_flight_{}, workers_in_flight_{};
    std::vector<TaskId> unplanned_;
    std::vector<Urgency> order_;     // scratch: in which they are placed
    std::vector<Planned> queue_;     // by start, from queue_head_ on
    std::vector<Issued> issue_log_;  // by command
    std::vector<Arrival> arrivals_;
    std::size_t issue_head_ = 0;  // all before it have ended
    bool replan_wanted_ = false;
    unsigned lost_ = 0;  // bits of cards
    std::size_t queue_head_ = 0;
    std::vector<CommandId> after_;  // scratch
    std::vector<unsigned> partials_;
    CommandId next_command_ = 1;
    std::uint64_t completions_since_plan_ = 0;
    Ps now_ = 0;  // latest end of a task
    CoreStats stats_;
};

}  // namespace orrery::umd
