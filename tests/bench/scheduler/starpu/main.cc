// compare_starpu: makespans of the scheduler and of StarPU's dmdas on the same graphs, with workers that
// sleep. Prints every case; ends with 1 if the median of the ratios is above 1.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "tests/bench/scheduler/starpu/sides.h"

using namespace orrery::umd;

namespace {

// The scheduler's own upward ranks, from which dmdas gets its priorities: the longest way to the end.
std::vector<int> priorities(const graphs::TaskGraph& graph) {
    const auto before = graphs::predecessors(graph);
    std::vector<Ps> rank(graph.tasks.size());
    for (std::size_t i = rank.size(); i-- > 0;) {
        rank[i] += graph.tasks[i].cost;
        for (const std::uint32_t p : before[i])
            rank[p] = std::max(rank[p], rank[i]);
    }
    std::vector<int> result;
    for (const Ps r : rank)
        result.push_back(static_cast<int>(r / 1'000'000));  // microseconds
    return result;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int run_all(int rounds) {
    // As many workers as cards, more than this machine may have CPUs: they sleep.
    ::setenv("STARPU_WORKERS_NOBIND", "1", 1);
    ::setenv("STARPU_SILENT", "1", 1);
    // StarPU makes no more workers than it finds cores: show it as many as there are cards at most.
    ::setenv("HWLOC_SYNTHETIC", "core:8 pu:1", 1);
    std::vector<double> ratios;
    fmt::print("{:16} {:>5} {:>5} {:>9} {:>12} {:>12} {:>8}\n", "graph", "tasks", "cards", "bound ms",
               "orrery/bound", "dmdas/bound", "ratio");
    for (const graphs::Case& one : graphs::small_cases()) {
        const Machine machine = Machine::uniform(one.cards, 2'000'000, 12.5e9, 8e9);
        const auto prio = priorities(one.graph);
        std::vector<double> ours, theirs;
        for (int round = 0; round < rounds; ++round) {
            ours.push_back(compare::run_orrery(one.graph, machine));
            theirs.push_back(compare::run_starpu(one.graph, machine, prio));
        }
        const double bound = static_cast<double>(graphs::bounds(one.graph, machine).bound()) * 1e-12;
        const double ratio = median(ours) / median(theirs);
        ratios.push_back(ratio);
        fmt::print("{:16} {:5} {:5} {:9.1f} {:12.3f} {:12.3f} {:8.3f}\n", one.graph.name,
                   one.graph.tasks.size(), one.cards, bound * 1e3, median(ours) / bound,
                   median(theirs) / bound, ratio);
        (void)std::fflush(stdout);
    }
    std::ranges::sort(ratios);
    fmt::print("ratio orrery/dmdas: median {:.3f}, best {:.3f}, worst {:.3f}, of {} cases\n", median(ratios),
               ratios.front(), ratios.back(), ratios.size());
    return median(ratios) <= 1.0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    int rounds = 3;
    if (argc > 1) {
        const std::string_view text = argv[1];
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounds);
        if (error != std::errc() || end != text.data() + text.size() || rounds < 1 || rounds > 100) {
            fmt::print(stderr,
                       "usage: compare_starpu [ROUNDS]   medians of so many runs (1 to 100, default 3)\n");
            return 2;
        }
    }
    try {
        return run_all(rounds);
    } catch (const std::exception& error) {
        fmt::print(stderr, "compare_starpu: {}\n", error.what());
        return 1;
    }
}
