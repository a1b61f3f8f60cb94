// Host time that the core needs for a task: submit, infer, plan, issue, retire, with an executor that does
// nothing. CPU time of the thread, so that others on the machine do not count. The yardstick beside it, in
// the same run: 10 inserts into a std::unordered_map, each under a mutex.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tests/bench/scheduler/task_graphs.h"
#include "tools/bench/measured.h"
#include "tools/bench/thread_clock.h"

using namespace orrery::umd;

namespace {

class NullExecutor final : public Executor {
  public:
    void transfer(const TransferCommand&) override {}
    void run(const RunCommand& command) override { issued.push_back(command.task); }
    std::vector<TaskId> issued;
};

double cpu_ns() {
    return orrery::bench::thread_seconds() * 1e9;
}

double yardstick() {
    constexpr std::size_t kInserts = 100'000;
    const double begin = cpu_ns();
    std::unordered_map<std::uint64_t, std::uint64_t> map;
    std::mutex mutex;
    for (std::uint64_t i = 0; i < kInserts; ++i) {
        const std::lock_guard lock(mutex);
        map[i * 0x9e3779b97f4a7c15ull] = i;
    }
    if (map.size() != kInserts) std::abort();
    return (cpu_ns() - begin) / (kInserts / 10);
}

double core_time(const graphs::TaskGraph& graph, unsigned cards) {
    const Machine machine = Machine::uniform(cards, 500'000, 50e9, 32e9);
    NullExecutor executor;
    executor.issued.reserve(graph.tasks.size());
    const double begin = cpu_ns();
    Core core(machine, executor);
    graphs::submit_all(core, graph, machine.host());
    core.pump();
    for (std::size_t next = 0; next < executor.issued.size(); ++next) {
        const TaskId task = executor.issued[next];
        core.complete(task, core.planned_start(task), core.planned_finish(task));
        core.pump();
    }
    const double end = cpu_ns();
    if (!core.idle()) std::abort();
    return (end - begin) / static_cast<double>(graph.tasks.size());
}

void tasks(orrery::bench::Measured& measured, const char* name, const graphs::TaskGraph& graph) {
    for (const unsigned cards : {1u, 2u, 8u}) {
        orrery::bench::Measurement one{name, cards, {}, {}};
        for (int turn = 0; turn < 15; ++turn) {
            one.samples.push_back(core_time(graph, cards));
            one.yardstick.push_back(yardstick());
        }
        measured.add(std::move(one));
    }
}

constexpr Ps kMs = 1'000'000'000;
graphs::TaskGraph cholesky() {
    return graphs::cholesky(38, kMs, 2 << 20);
}
graphs::TaskGraph layered() {
    return graphs::layered(100, 100, kMs, 1 << 20, 4);
}
graphs::TaskGraph fork_join() {
    return graphs::fork_join(40, 240, kMs, 1 << 19, 5);
}

}  // namespace

int main() {
    orrery::bench::Measured measured;
    tasks(measured, "task, planned: cholesky", cholesky());
    tasks(measured, "task, planned: layered", layered());
    tasks(measured, "task, planned: fork-join", fork_join());
    return measured.print() ? 0 : 1;
}
