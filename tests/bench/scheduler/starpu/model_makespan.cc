#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tests/bench/scheduler/starpu/locations.h"
#include "tests/bench/scheduler/starpu/sides.h"

namespace orrery::umd::compare {

Ps model_makespan(const graphs::TaskGraph& graph, const Machine& machine, const std::vector<Begun>& order) {
    constexpr Ps kNotYet = -1;
    const auto before = graphs::predecessors(graph);
    Locations locations(graph, machine);
    std::vector<Ps> end(graph.tasks.size(), kNotYet);
    std::vector<Ps> free(machine.cards);
    for (const auto& [task, worker] : order) {
        if (end[task] != kNotYet) throw std::runtime_error(fmt::format("task {} ran twice", task));
        Ps start = free[worker];
        for (const std::uint32_t needed : before[task]) {
            if (end[needed] == kNotYet) {
                throw std::runtime_error(fmt::format("task {} began before task {}", task, needed));
            }
            start = std::max(start, end[needed]);
        }
        end[task] = free[worker] = start + locations.fetch(task, worker) + graph.tasks[task].cost;
    }
    if (order.size() != end.size()) {
        throw std::runtime_error(fmt::format("only {} of {} tasks ran", order.size(), end.size()));
    }
    return std::ranges::max(free);
}

}  // namespace orrery::umd::compare
