// The two sides of the comparison: the same graph, on as many workers as the machine has cards, each of which
// sleeps for as long as its task and the fetching of its inputs last.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/scheduler/task_graphs.h"

namespace orrery::umd::compare {

// Seconds of wall time from the first start to the last end.
double run_orrery(const graphs::TaskGraph& graph, const Machine& machine);
// priorities: of the tasks, higher first.
double run_starpu(const graphs::TaskGraph& graph, const Machine& machine, const std::vector<int>& priorities);

// Sleeps until `ps` after it was called, as exactly as the system can.
void sleep_for(Ps ps);
double now_seconds();

}  // namespace orrery::umd::compare
