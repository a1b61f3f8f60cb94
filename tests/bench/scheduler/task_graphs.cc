#include "tests/bench/scheduler/task_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "umd/scheduler/sim_executor.h"

namespace orrery::umd::graphs {
namespace {

constexpr Access R = Access::kRead, W = Access::kWrite, RW = Access::kReadWrite;

Ps share(Ps unit, double of) {
    return static_cast<Ps>(static_cast<double>(unit) * of);
}

Ps random_cost(std::mt19937& random, Ps unit) {
    return unit / 2 + static_cast<Ps>(random() % 1000) * unit / 1000;
}

}  // namespace

TaskGraph cholesky(unsigned n, Ps unit, std::uint64_t tile_bytes) {
    TaskGraph graph;
    graph.name = fmt::format("cholesky {}", n);
    graph.data.assign(std::size_t{n} * n, tile_bytes);
    const auto tile = [&](unsigned i, unsigned j) { return i * n + j; };
    for (unsigned k = 0; k < n; ++k) {
        graph.tasks.push_back({share(unit, 1.0 / 6), {{tile(k, k), RW}}});
        for (unsigned i = k + 1; i < n; ++i)
            graph.tasks.push_back({share(unit, 0.5), {{tile(k, k), R}, {tile(i, k), RW}}});
        for (unsigned i = k + 1; i < n; ++i) {
            for (unsigned j = k + 1; j < i; ++j)
                graph.tasks.push_back({unit, {{tile(i, k), R}, {tile(j, k), R}, {tile(i, j), RW}}});
            graph.tasks.push_back({share(unit, 0.5), {{tile(i, k), R}, {tile(i, i), RW}}});
        }
    }
    return graph;
}

TaskGraph lu(unsigned n, Ps unit, std::uint64_t tile_bytes) {
    TaskGraph graph;
    graph.name = fmt::format("lu {}", n);
    graph.data.assign(std::size_t{n} * n, tile_bytes);
    const auto tile = [&](unsigned i, unsigned j) { return i * n + j; };
    for (unsigned k = 0; k < n; ++k) {
        graph.tasks.push_back({share(unit, 1.0 / 3), {{tile(k, k), RW}}});
        for (unsigned i = k + 1; i < n; ++i) {
            graph.tasks.push_back({share(unit, 0.5), {{tile(k, k), R}, {tile(i, k), RW}}});
            graph.tasks.push_back({share(unit, 0.5), {{tile(k, k), R}, {tile(k, i), RW}}});
        }
        for (unsigned i = k + 1; i < n; ++i)
            for (unsigned j = k + 1; j < n; ++j)
                graph.tasks.push_back({unit, {{tile(i, k), R}, {tile(k, j), R}, {tile(i, j), RW}}});
    }
    return graph;
}

TaskGraph fft(unsigned log2, Ps unit, std::uint64_t bytes) {
    TaskGraph graph;
    graph.name = fmt::format("fft 2^{}", log2);
    const unsigned points = 1u << log2;
    graph.data.assign(std::size_t{points} * (log2 + 1), bytes);
    for (unsigned i = 0; i < points; ++i)
        graph.tasks.push_back({unit, {{i, RW}}});
    for (unsigned rank = 0; rank < log2; ++rank) {
        for (unsigned i = 0; i < points; ++i) {
            const unsigned from = rank * points;
            graph.tasks.push_back(
                {unit, {{from + i, R}, {from + (i ^ 1u << rank), R}, {from + points + i, W}}});
        }
    }
    return graph;
}

TaskGraph layered(unsigned layers, unsigned width, Ps unit, std::uint64_t bytes, std::uint32_t seed) {
    TaskGraph graph;
    graph.name = fmt::format("layered {}x{}", layers, width);
    std::mt19937 random(seed);
    std::vector<DataId> before;
    for (unsigned layer = 0; layer < layers; ++layer) {
        const unsigned count = width / 2 + static_cast<unsigned>(random() % (width + 1)) + 1;
        std::vector<DataId> made;
        for (unsigned i = 0; i < count; ++i) {
            GraphTask task;
            task.cost = random_cost(random, unit);
            const unsigned inputs = before.empty() ? 0 : 1 + random() % 4;
            for (unsigned k = 0; k < inputs; ++k)
                task.accesses.push_back({before[random() % before.size()], R});
            const auto out = static_cast<DataId>(graph.data.size());
            graph.data.push_back(bytes / 2 + random() % (bytes + 1));
            task.accesses.push_back({out, W});
            made.push_back(out);
            graph.tasks.push_back(std::move(task));
        }
        before = std::move(made);
    }
    return graph;
}

TaskGraph fork_join(unsigned rounds, unsigned width, Ps unit, std::uint64_t bytes, std::uint32_t seed) {
    TaskGraph graph;
    graph.name = fmt::format("fork-join {}x{}", rounds, width);
    std::mt19937 random(seed);
    graph.data.push_back(bytes);
    DataId root = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        graph.tasks.push_back({unit / 4, {{root, RW}}});
        const auto out = static_cast<DataId>(graph.data.size());
        graph.data.push_back(bytes);
        GraphTask join{unit / 4, {}};
        for (unsigned i = 0; i < width; ++i) {
            const auto part = static_cast<DataId>(graph.data.size());
            graph.data.push_back(bytes);
            graph.tasks.push_back({random_cost(random, unit), {{root, R}, {part, W}}});
            join.accesses.push_back({part, R});
        }
        join.accesses.push_back({out, W});
        graph.tasks.push_back(std::move(join));
        root = out;
    }
    return graph;
}

std::vector<std::vector<std::uint32_t>> predecessors(const TaskGraph& graph) {
    struct State {
        std::uint32_t writer = kNoTask;
        std::vector<std::uint32_t> readers;
    };
    std::vector<State> states(graph.data.size());
    std::vector<std::vector<std::uint32_t>> result(graph.tasks.size());
    for (std::uint32_t task = 0; task < graph.tasks.size(); ++task) {
        for (const DataAccess& access : graph.tasks[task].accesses) {
            State& state = states[access.data];
            if (state.writer != kNoTask) result[task].push_back(state.writer);
            if (access.mode == R) {
                state.readers.push_back(task);
                continue;
            }
            for (const std::uint32_t reader : state.readers)
                if (reader != task) result[task].push_back(reader);
            state.readers.clear();
            state.writer = task;
        }
        std::ranges::sort(result[task]);
        result[task].erase(std::unique(result[task].begin(), result[task].end()), result[task].end());
        std::erase(result[task], task);
    }
    return result;
}

Bounds bounds(const TaskGraph& graph, const Machine& machine) {
    Bounds bounds;
    const auto before = predecessors(graph);
    std::vector<Ps> end(graph.tasks.size());
    Ps work = 0;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
        Ps start = 0;
        for (const std::uint32_t p : before[i])
            start = std::max(start, end[p]);
        end[i] = start + graph.tasks[i].cost;
        bounds.critical_path = std::max(bounds.critical_path, end[i]);
        work += graph.tasks[i].cost;
    }
    bounds.area = (work + machine.cards - 1) / machine.cards;
    bounds.parallelism =
        static_cast<double>(work) / static_cast<double>(bounds.critical_path) / machine.cards;
    // Each reading of a datum by another task than its writer, if all of them crossed a channel: an upper
    // measure.
    double crossing = 0;
    const Channel& channel = machine.channel[0][machine.cards > 1 ? 1 : machine.host()];
    for (const GraphTask& task : graph.tasks) {
        for (const DataAccess& access : task.accesses)
            if (access.mode != W) crossing += static_cast<double>(channel.duration(graph.data[access.data]));
    }
    bounds.communication = crossing / machine.cards / static_cast<double>(bounds.bound());
    return bounds;
}

void submit_all(Core& core, const TaskGraph& graph, unsigned home) {
    for (const std::uint64_t bytes : graph.data)
        (void)core.add_data(bytes, home);
    for (const GraphTask& task : graph.tasks) {
        TaskSpec spec;
        spec.cost = task.cost;
        spec.accesses = task.accesses;
        spec.groups = task.groups;
        (void)core.submit(spec);
    }
}

SimResult simulate(const TaskGraph& graph, const Machine& machine, const CoreOptions& options, double noise) {
    SimExecutor executor(machine);
    std::mt19937 random(1);
    std::vector<double> factor(graph.tasks.size(), 1.0);
    for (double& f : factor)
        f += noise * (static_cast<double>(random() % 2001) / 1000 - 1);
    executor.duration = [&](TaskId task, unsigned node) {
        return static_cast<Ps>(static_cast<double>(graph.tasks[task].cost) * machine.slowness[node] *
                               factor[task]);
    };
    executor.bytes = [&](DataId data) { return graph.data[data]; };
    Core core(machine, executor, options);
    submit_all(core, graph, machine.host());
    SimResult result;
    result.makespan = executor.drain(core);
    result.transfers = core.stats().transfers;
    result.transfer_bytes = core.stats().transfer_bytes;
    result.order_errors = executor.order_errors() + (core.idle() ? 0 : 1);
    return result;
}

std::vector<Case> small_cases() {
    constexpr Ps kUnit = 4'000'000'000;  // 4 ms, so that the host's delays count little
    constexpr std::uint64_t kTile = 2 << 20;
    std::vector<Case> cases;
    for (const unsigned cards : {1u, 2u, 4u, 8u}) {
        cases.push_back({cholesky(12, kUnit, kTile), cards});
        cases.push_back({lu(8, kUnit, kTile), cards});
        cases.push_back({fft(6, kUnit, kTile / 4), cards});
        cases.push_back({layered(12, 24, kUnit, kTile / 2, 3), cards});
        cases.push_back({layered(30, 12, kUnit, kTile / 2, 4), cards});
        cases.push_back({fork_join(6, 48, kUnit, kTile / 4, 5), cards});
    }
    return cases;
}

std::vector<Case> tiny_cases() {
    constexpr Ps kUnit = 1'000'000'000;
    constexpr std::uint64_t kTile = 512 << 10;
    std::vector<Case> cases;
    for (const unsigned cards : {2u, 4u}) {
        cases.push_back({cholesky(8, kUnit, kTile), cards});
        cases.push_back({lu(6, kUnit, kTile), cards});
        cases.push_back({fft(4, kUnit, kTile / 4), cards});
        cases.push_back({layered(8, 12, kUnit, kTile / 2, 3), cards});
        cases.push_back({fork_join(3, 32, kUnit, kTile / 4, 5), cards});
    }
    return cases;
}

}  // namespace orrery::umd::graphs
