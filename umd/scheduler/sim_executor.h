// Runs what the core issues in a discrete-event simulation: the workers of cards one task after the other in
// the order of issue, channels one transfer after the other in the earliest gap. Deterministic; durations may
// differ from what the planner expects.
#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "umd/scheduler/core.h"

namespace orrery::umd {

class SimExecutor final : public Executor {
  public:
    explicit SimExecutor(const Machine& machine) : machine_(machine) {}

    // What really happens; by default what is expected.
    std::function<Ps(TaskId task, unsigned node)> duration;  // must be set
    std::function<bool(TaskId task)> fails;                  // may be empty
    std::function<std::uint64_t(DataId data)> bytes;         // must be set
    std::function<void(TaskId task)> on_done;                // may submit more

    void transfer(const TransferCommand& command) override;
    void run(const RunCommand& command) override;

    // Until everything has ended; the time of the last end.
    Ps drain(Core& core);

    Ps busy(unsigned node) const { return busy_[node]; }
    std::uint64_t order_errors() const { return order_errors_; }

  private:
    struct Event {
        Ps start, finish;
        CommandId command;
        TaskId task;
        bool operator>(const Event& other) const {
            return finish != other.finish ? finish > other.finish : command > other.command;
        }
    };
    Ps finish_of(CommandId command);
    void ended(CommandId command, Ps finish);

    Machine machine_;
    std::vector<Ps> finish_;  // by command; kNever: unknown
    std::array<std::array<Ps, kMaxWorkers>, kMaxNodes> free_{};
    std::array<Ps, kMaxNodes> busy_{};
    std::array<std::array<Timeline, kMaxNodes>, kMaxNodes> channels_{};
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    Ps now_ = 0;
    Ps last_ = 0;
    std::uint64_t order_errors_ = 0;
};

}  // namespace orrery::umd
