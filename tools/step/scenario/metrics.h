// Figures of a run: waiting, fairness, shares, makespan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/step/scenario/runner.h"

namespace orrery::scenario {

// Jain's index of fairness: 1 if all are equal, 1/n if one has all. 1 for an empty list.
double jain(const std::vector<double>& shares);

struct QueueMetrics {
    std::string name;
    std::uint64_t jobs = 0;          // copies, fills and kernels that finished
    Ps engine_ps = 0;                // of copy engines and vector cores
    double share = 0;                // of all engine time
    Ps mean_wait = 0, max_wait = 0;  // of those: from doorbell to first start, or until the end; to the
                                     // finish if starts are not known
    Ps finish = 0;                   // of its last job
    std::uint64_t preempted = 0;
    std::uint64_t error = 0;
};

struct Metrics {
    Ps makespan = 0;
    Ps mean_wait = 0, p50_wait = 0, p95_wait = 0, p99_wait = 0, max_wait = 0;
    double fairness = 1;  // Jain's index over the queues' engine time for their weight
    std::uint64_t jobs = 0, preemptions = 0, decisions = 0;
    Ps core_busy_ps = 0;  // of the control cores
    std::vector<QueueMetrics> queues;
};

Metrics measure(const Scenario& scenario, const Result& result);

std::string to_text(const Metrics& metrics);
nlohmann::json to_json(const Metrics& metrics);
// Everything about a run.
nlohmann::json to_json(const Scenario& scenario, const Result& result);

}  // namespace orrery::scenario
