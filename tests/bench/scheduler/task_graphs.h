// Task graphs for tests and comparisons: shapes that task schedulers are judged by, with durations, data and
// its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "umd/scheduler/core.h"

namespace orrery::umd::graphs {

struct GraphTask {
    Ps cost = 1;
    std::vector<DataAccess> accesses;
    std::uint64_t groups = 0;
};

struct TaskGraph {
    std::string name;
    std::vector<std::uint64_t> data;  // bytes of each datum; all lie in host memory at first
    std::vector<GraphTask> tasks;     // in an order in which accesses may be submitted
};

// Dense factorisations of n x n tiles of `tile` x `tile` doubles: potrf/trsm/syrk/gemm and getrf/trsm/gemm,
// with durations in the ratio of their operations. unit: picoseconds of one gemm.
TaskGraph cholesky(unsigned n, Ps unit, std::uint64_t tile_bytes);
TaskGraph lu(unsigned n, Ps unit, std::uint64_t tile_bytes);
// Butterflies: 2^log2 points of equal cost in log2 + 1 ranks.
TaskGraph fft(unsigned log2, Ps unit, std::uint64_t bytes);
// `layers` of up to 2 x `width` tasks; each reads 1 to 4 results of the layer before; costs from unit / 2 to
// 3 * unit / 2.
TaskGraph layered(unsigned layers, unsigned width, Ps unit, std::uint64_t bytes, std::uint32_t seed);
// `rounds` of: one task, `width` tasks with costs as above, one that reads them all.
TaskGraph fork_join(unsigned rounds, unsigned width, Ps unit, std::uint64_t bytes, std::uint32_t seed);

// The longest way through the graph by costs alone, and all costs over all cards.
struct Bounds {
    Ps critical_path = 0;
    Ps area = 0;  // work / cards
    Ps bound() const { return critical_path > area ? critical_path : area; }
    // Work that there is for each card beside the critical path: above 1 the area bounds.
    double parallelism = 0;  // work / critical path / cards
    // Time to bring each datum once over one channel and share the rest, against the bound: see
    // docs/scheduler.md.
    double communication = 0;
};
Bounds bounds(const TaskGraph& graph, const Machine& machine);

// The direct predecessors of each task as accesses imply them (read after write, write after read and write).
std::vector<std::vector<std::uint32_t>> predecessors(const TaskGraph& graph);

// Plans and simulates; the makespan. Fails the process on an order that the graph does not allow.
struct SimResult {
    Ps makespan = 0;
    std::uint64_t transfers = 0, transfer_bytes = 0;
    std::uint64_t order_errors = 0;
};
// noise: durations differ from the expected ones by up to this share, by a seeded generator.
SimResult simulate(const TaskGraph& graph, const Machine& machine, const CoreOptions& options = {},
                   double noise = 0);
void submit_all(Core& core, const TaskGraph& graph, unsigned home);

// The set that tests and the comparison with StarPU share.
struct Case {
    TaskGraph graph;
    unsigned cards;
};
std::vector<Case> small_cases();  // some hundred tasks each
std::vector<Case> tiny_cases();   // about a hundred short ones

}  // namespace orrery::umd::graphs
