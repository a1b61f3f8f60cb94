// What happened in a recording, from its first record to its last: queues with their states over time, jobs
// on engines, decisions, waits. Made once from the records; everything is in order of time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/records/records.h"
#include "tools/records/snapshot.h"

namespace orrery::records {

// A piece of a job on an engine: jobs that are preempted have several.
struct Segment {
    std::uint32_t port = 0;
    Time start = 0, end = 0;   // end: kNever if it still ran when the recording ended
    Time used = 0;             // engine time, all cores together
    std::uint32_t status = 0;  // ORR_DONE_*
    // Of the records that tell of its start and its end.
    std::uint64_t start_step = 0, end_step = ~std::uint64_t{0};
    Time end_told = kNever;
};

// A packet that ran on an engine.
struct Job {
    std::uint32_t queue = 0;
    std::uint32_t context = 0;
    std::uint64_t index = 0;
    std::uint32_t opcode = 0;
    std::uint64_t size = 0;  // groups or bytes
    Time rung = 0;           // the doorbell that brought it; 0: before the recording
    std::vector<Segment> segments;
    std::uint32_t preemptions = 0;
    bool finished = false;

    Time start() const { return segments.front().start; }
    Time end() const { return segments.back().end; }
    Time used() const;
    // Preempted, and not yet going on, at the position `step`: the piece that it has behind it; else null.
    const Segment* suspended_at(std::uint64_t step) const;
    // From doorbell to its end.
    Time latency() const { return end() - rung; }
};

struct StateChange {
    Time time = 0;
    std::uint64_t step = 0;
    std::uint32_t state = 0;  // from here on
};

// A queue from its creation to its end; a number may be used again.
struct QueueLife {
    std::uint32_t number = 0;
    std::uint32_t context = 0;
    std::uint32_t priority = 0, weight = 0, slice_us = 0;  // as created or last set
    Time created = 0, destroyed = kNever;
    std::string name;
    std::vector<StateChange> states;
    std::vector<std::size_t> jobs;  // in History::jobs
    std::uint64_t packets = 0;      // retired
    std::uint64_t preemptions = 0;
    std::uint32_t error = 0;

    std::uint32_t state_at(Time time) const;
    // How long it was in a state that waits for its turn or an engine, between two moments.
    Time waiting(Time from, Time to) const;
};
// READY, a port, SUSPENDED, QUOTA: the queue has work and could go on if it were let.
bool is_waiting(std::uint32_t state);

// A wait on a semaphore, and what ended it.
struct Wait {
    std::uint32_t queue = 0;
    std::uint64_t memory = 0, value = 0, va = 0, index = 0;
    Time from = 0, to = kNever;
    std::uint64_t from_step = 0, to_step = ~std::uint64_t{0};
    std::uint32_t wake = 0;                     // ORR_WAKE_*; 0: not woken in this recording
    std::optional<std::size_t> signal;          // the record that woke it, in History::records
    std::optional<std::uint32_t> signalled_by;  // a queue of this card
};

struct DeadlockEdge {
    std::uint32_t waits = 0, holds = 0;
    std::uint64_t memory = 0, value = 0, now = 0;
    Time time = 0;
    std::uint64_t step = 0;
};
struct Deadlock {
    Time time = 0;
    std::uint64_t step = 0;
    std::vector<DeadlockEdge> edges;
};

// What the firmware's tables say as a recording begins in the midst.
struct Beginning {
    std::uint64_t tables = 0;  // address of struct orr_inspect
    std::uint64_t step = 0;
    Time time = 0;
    Snapshot rows;
};

class History final : public Labels {
  public:
    explicit History(std::vector<Record> records, const Beginning* beginning = nullptr);

    const std::vector<Record>& records() const { return records_; }
    const std::vector<std::size_t>& decisions() const { return decisions_; }  // in records()
    const std::vector<Job>& jobs() const { return jobs_; }                    // in order of their first start
    const std::vector<QueueLife>& queues() const { return queues_; }          // in order of creation
    const std::vector<Wait>& waits() const { return waits_; }
    const std::vector<Deadlock>& deadlocks() const { return deadlocks_; }
    std::uint32_t ports() const { return ports_; }  // highest port seen, + 1
    Time begin() const;                             // of the first and the last record
    Time end() const { return end_; }
    // Address of struct orr_inspect, and the step at which the firmware said so; nothing: it never did.
    struct Tables {
        std::uint64_t address = 0, step = 0;
    };
    const std::optional<Tables>& tables() const { return tables_; }

    // How much of a finished job's time its queue waited for a turn or an engine before it started, and it
    // itself to go on after a preemption.
    Time waiting(const Job& job) const;
    // The life that queue `number` had at a moment (or the nearest one); null: there was none.
    const QueueLife* queue_at(std::uint32_t number, Time time) const;
    const std::string& context_name(std::uint32_t number) const;  // as last given

    // Records at or after / before a step, as indices; records().size() if there is none.
    std::size_t first_at_or_after(std::uint64_t step) const;

    // "queue 3", with the names of all that had the number: for rows and tracks of a whole recording.
    std::string queue_row(std::uint32_t number) const;

    // --- Labels ---
    std::string queue(std::uint32_t number, Time at) const override;
    std::string memory(std::uint64_t address) const override;

  private:
    void begin(const Beginning& beginning);
    void take(std::size_t at);
    QueueLife& life(std::uint32_t number, const Record& record);
    Job* open_job(std::uint32_t queue, std::uint64_t index);
    void end_wait(std::uint32_t queue, const Record& record, bool woken);

    std::vector<Record> records_;
    std::vector<std::size_t> decisions_;
    std::vector<Job> jobs_;
    std::vector<QueueLife> queues_;
    std::vector<Wait> waits_;
    std::vector<Deadlock> deadlocks_;
    std::optional<Tables> tables_;
    std::uint32_t ports_ = 0;
    Time end_ = 0;
    std::map<std::uint32_t, std::vector<std::size_t>>
        lives_;                                     // queue number: in queues_, in order of creation
    std::map<std::uint32_t, std::size_t> current_;  // queue number: in queues_
    std::map<std::uint32_t, std::map<std::uint64_t, std::size_t>> open_;          // queue: index: in jobs_
    std::map<std::uint32_t, std::size_t> open_waits_;                             // queue: in waits_
    std::map<std::uint32_t, std::vector<std::pair<std::uint64_t, Time>>> rings_;  // queue: producer, time
    std::map<std::uint64_t, std::size_t> last_signal_;                            // memory: in records_
    std::map<std::uint32_t, std::string> context_names_;
    std::map<std::uint64_t, std::size_t> memories_;  // number in order of appearance
};

}  // namespace orrery::records
