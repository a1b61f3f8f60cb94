// Figures over a whole recording, by queue.
#pragma once

#include <string>
#include <vector>

#include "tools/step/records/history.h"

namespace orrery::step {

struct Percentiles {
    Time p50 = 0, p90 = 0, p99 = 0, max = 0;
};
// Nearest rank. `values` in any order; zeros for an empty list.
Percentiles percentiles(std::vector<Time> values);

struct QueueStatistics {
    const QueueLife* queue = nullptr;
    std::uint64_t jobs = 0;  // packets that ran on engines, and finished
    std::uint64_t unfinished = 0;
    Time engine_time = 0;  // all cores together
    double share = 0;      // of all engine time
    std::uint64_t preemptions = 0;
    // By job: from its doorbell to its end, and how much of that it waited (History::waiting).
    Percentiles latency, waiting;
};

struct Statistics {
    std::vector<QueueStatistics> queues;  // that had work
    Time engine_time = 0;
    Time first_doorbell = 0, last_end = 0;  // of jobs
    Time makespan() const { return last_end > first_doorbell ? last_end - first_doorbell : 0; }
    // Jain's index over engine time for the weight, of the queues that had jobs: 1 is even, 1/n is one for
    // all.
    double fairness = 1;
    std::uint64_t jobs = 0, decisions = 0, preemptions = 0, errors = 0;
    Percentiles latency, waiting;
};
Statistics statistics(const History& history);

}  // namespace orrery::step
