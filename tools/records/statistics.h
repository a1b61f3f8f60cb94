// Figures over a whole recording, by queue: the one place that says what waiting, makespan and fairness are.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/records/history.h"

namespace orrery::records {

// Nearest rank; zeros for an empty list.
struct Percentiles {
    Time mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};
Percentiles percentiles(std::vector<Time> values);  // in any order

// Jain's index of fairness: 1 if all are equal, 1/n if one has all. 1 for an empty list.
double jain(std::span<const double> shares);

struct QueueStatistics {
    const QueueLife* queue = nullptr;
    std::uint64_t jobs = 0;        // packets that ran on engines, and finished
    std::uint64_t unfinished = 0;  // that had begun
    bool done = true;              // it had nothing left to do
    Time engine_time = 0;          // all cores together, of pieces that have ended
    double share = 0;              // of all engine time
    std::uint64_t preemptions = 0;
    Time last_end = 0;  // model time; 0: nothing has ended
    // Of finished jobs: from the doorbell to the end.
    Percentiles latency;
    // Of all jobs: how much of the time since their doorbell the queue waited for its turn or an engine, and
    // the job, preempted, to go on. What had not come to an end counts with what it had waited by then.
    Percentiles waiting;
};

struct Statistics {
    std::vector<QueueStatistics> queues;  // that had work
    bool done = true;                     // nobody had anything left to do when the recording ended
    Time engine_time = 0;
    Time first_doorbell = 0, last_end = 0;  // of jobs
    Time end = 0;                           // of the recording
    // From the first doorbell to the end of the last job; of work that was not done it is longer than this.
    Time makespan() const {
        const Time until = done ? last_end : end;
        return until > first_doorbell ? until - first_doorbell : 0;
    }
    // Jain's index over engine time for the weight, of the queues that had jobs.
    double fairness = 1;
    std::uint64_t jobs = 0, unfinished = 0, decisions = 0, preemptions = 0, errors = 0;
    Percentiles latency, waiting;

    // Of the queue's life; null: it had no work.
    const QueueStatistics* of(const QueueLife* life) const;
};
// `end`: model time at which the recording ends. `weights`: what fairness goes by, of each of
// history.queues(), if it is not what the firmware says.
Statistics statistics(const History& history, Time end, std::span<const std::uint32_t> weights = {});

}  // namespace orrery::records
