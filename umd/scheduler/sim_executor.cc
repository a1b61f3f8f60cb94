#include "umd/scheduler/sim_executor.h"

#include <algorithm>

namespace orrery::umd {

Ps SimExecutor::finish_of(CommandId command) {
    if (command == 0) return 0;
    if (command >= finish_.size() || finish_[command] == kNever) {
        ++order_errors_;  // issued before what it waits for
        return 0;
    }
    return finish_[command];
}

void SimExecutor::ended(CommandId command, Ps finish) {
    if (command >= finish_.size()) finish_.resize(command + 1, kNever);
    finish_[command] = finish;
}

void SimExecutor::transfer(const TransferCommand& command) {
    const Channel& channel = machine_.channel[command.from][command.to];
    const Ps occupied = channel.occupied(bytes(command.data));
    Timeline& timeline = channels_[command.from][command.to];
    const Ps start = timeline.find(std::max(finish_of(command.after), now_), occupied);
    timeline.reserve(start, occupied);
    ended(command.id, start + occupied + channel.latency);
}

void SimExecutor::run(const RunCommand& command) {
    Ps start = std::max(free_[command.node][command.worker], now_);
    for (const CommandId before : command.after)
        start = std::max(start, finish_of(before));
    const Ps length = duration(command.task, command.node);
    busy_[command.node] += length;
    free_[command.node][command.worker] = start + length;
    ended(command.id, start + length);
    events_.push({start, start + length, command.id, command.task});
}

Ps SimExecutor::drain(Core& core) {
    core.pump();
    while (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        now_ = event.finish;
        // What was issued behind a failure never runs; here its time is merely lost.
        if (core.state(event.task) != TaskState::kIssued) continue;
        last_ = std::max(last_, event.finish);
        if (fails && fails(event.task)) {
            core.fail(event.task);
        } else {
            core.complete(event.task, event.start, event.finish);
            if (on_done) on_done(event.task);
        }
        core.pump();
    }
    return last_;
}

}  // namespace orrery::umd
