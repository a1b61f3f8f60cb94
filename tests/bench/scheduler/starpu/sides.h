// The two sides of the comparison: the same graph, on as many workers as the machine has cards, each of which
// sleeps for as long as its task and the fetching of its inputs last.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/scheduler/task_graphs.h"

namespace orrery::umd::compare {

struct Begun {
    std::uint32_t task;
    unsigned worker;
};

struct Outcome {
    double seconds;            // of wall time, from the first start to the last end
    std::vector<Begun> order;  // in which tasks began
};

Outcome run_orrery(const graphs::TaskGraph& graph, const Machine& machine);
// priorities: of the tasks, higher first. Throws if StarPU cannot have so many workers.
Outcome run_starpu(const graphs::TaskGraph& graph, const Machine& machine,
                   const std::vector<int>& priorities);
// As StarPU was built.
unsigned most_starpu_workers();

// What an outcome's decisions are worth on a machine that wakes its workers in no time: the makespan when
// each worker does its tasks in the order in which it did them, each as early as its inputs allow. Throws if
// the order is none: a task is missing, is there twice, or began before what it needs.
Ps model_makespan(const graphs::TaskGraph& graph, const Machine& machine, const std::vector<Begun>& order);

// Sleeps until `ps` after it was called, as exactly as the system can.
void sleep_for(Ps ps);
double now_seconds();

}  // namespace orrery::umd::compare
