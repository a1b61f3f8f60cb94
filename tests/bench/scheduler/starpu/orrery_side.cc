#include <time.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "tests/bench/scheduler/starpu/locations.h"
#include "tests/bench/scheduler/starpu/sides.h"

namespace orrery::umd::compare {
namespace {

// Workers that sleep; the core runs in whichever of them has just ended a task.
class SleepingExecutor final : public Executor {
  public:
    SleepingExecutor(const graphs::TaskGraph& graph, const Machine& machine)
        : graph_(graph), machine_(machine), locations_(graph, machine), queues_(machine.cards) {}

    void transfer(const TransferCommand& command) override { mark(command.id); }  // tasks fetch themselves
    void run(const RunCommand& command) override {
        queues_[command.node].push_back(
            {command.task, command.id, {command.after.begin(), command.after.end()}});
    }

    Outcome execute() {
        CoreOptions options;
        options.fetch_in_task = true;
        Core core(machine_, *this, options);
        graphs::submit_all(core, graph_, machine_.host());
        const double start = now_seconds();
        core.pump();
        {
            std::vector<std::jthread> workers;
            for (unsigned worker = 0; worker < machine_.cards; ++worker)
                workers.emplace_back([this, &core, worker, start] { work(core, worker, start); });
        }
        return {now_seconds() - start, locations_.order()};
    }

  private:
    struct Work {
        TaskId task;
        CommandId id;
        std::vector<CommandId> after;
    };

    void mark(CommandId id) {
        if (done_.size() <= id) done_.resize(id + 1);
        done_[id] = true;
    }
    bool ready(const Work& work) const {
        for (const CommandId id : work.after)
            if (id != 0 && (id >= done_.size() || !done_[id])) return false;
        return true;
    }
    void work(Core& core, unsigned worker, double start) {
        std::unique_lock lock(mutex_);
        auto& queue = queues_[worker];
        while (true) {
            changed_.wait(lock, [&] { return core.idle() || (!queue.empty() && ready(queue.front())); });
            if (core.idle()) return;
            const Work next = std::move(queue.front());
            queue.pop_front();
            const Ps began = static_cast<Ps>((now_seconds() - start) * 1e12);
            lock.unlock();
            sleep_for(locations_.fetch(next.task, worker) + graph_.tasks[next.task].cost);
            lock.lock();
            mark(next.id);
            core.complete(next.task, began, static_cast<Ps>((now_seconds() - start) * 1e12));
            core.pump();
            changed_.notify_all();
        }
    }

    const graphs::TaskGraph& graph_;
    Machine machine_;
    Locations locations_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::deque<Work>> queues_;
    std::vector<bool> done_;
};

}  // namespace

double now_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void sleep_for(Ps ps) {
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    const std::int64_t ns = until.tv_nsec + ps / 1000;
    until.tv_sec += ns / 1'000'000'000;
    until.tv_nsec = ns % 1'000'000'000;
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
}

Outcome run_orrery(const graphs::TaskGraph& graph, const Machine& machine) {
    return SleepingExecutor(graph, machine).execute();
}

}  // namespace orrery::umd::compare
