// What the core does when things went another way than it had planned: plans anew, and issues again what was
// lost with a card.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "umd/scheduler/core.h"

namespace orrery::umd {

// The task ends at another time than was thought: so does the arrival of all copies of what it writes.
void Core::ends_at(Task& task, Ps finish) {
    const Ps later = finish - task.finish;
    if (later == 0) return;
    task.finish = finish;
    for (std::uint32_t a = 0; a < task.access_count; ++a) {
        const DataAccess& access = accesses_[task.accesses + a];
        if (access.mode == Access::kRead) continue;
        if (access.mode == Access::kReduce) {
            Parts& parts = issued_.parts[data_[access.data].parts];
            if (parts.via[task.node] == task.command) parts.at[task.node] = finish;
            continue;
        }
        Place& place = issued_.places[access.data];
        if (place.owner != task.node || place.via[task.node] != task.command) continue;  // written over
        for (unsigned left = place.valid; left != 0; left &= left - 1)
            place.at[static_cast<unsigned>(std::countr_zero(left))] += later;
    }
}

// When what is issued will end, by what is done until now and by costs as they are known now. What was
// expected before does not matter: lateness that shows in one task after the other is one lateness.
void Core::expect_issued() {
    issued_until_ = done_until_;
    const auto live = [&](const Issued& issued) {
        const Task& task = tasks_[issued.task];
        return task.state == TaskState::kIssued && task.command == issued.command;
    };
    while (issue_head_ < issue_log_.size() && !live(issue_log_[issue_head_]))
        ++issue_head_;
    for (std::size_t i = issue_head_; i < issue_log_.size(); ++i) {
        if (!live(issue_log_[i])) continue;
        Task& task = tasks_[issue_log_[i].task];
        auto& until = issued_until_[task.node];
        Ps start = 0;
        for (unsigned left = task.workers; left != 0; left &= left - 1)
            start = std::max(start, until[static_cast<unsigned>(std::countr_zero(left))]);
        start = std::max(start, inputs_issued(i));
        task.start = start;
        // It has not ended yet, as far as is known.
        ends_at(task, std::max(start + machine_.duration(task.node, task.cost), now_));
        for (unsigned left = task.workers; left != 0; left &= left - 1)
            until[static_cast<unsigned>(std::countr_zero(left))] = task.finish;
    }
}

// From when on it has all that it waits for. Copies that come together on one channel count as if each had it
// to itself.
Ps Core::inputs_issued(std::size_t issued) const {
    const Task& task = tasks_[issue_log_[issued].task];
    Ps ready = issue_log_[issued].at;
    for (std::uint32_t p = 0; p < task.pred_count; ++p)
        ready = std::max(ready, tasks_[preds_[task.preds + p] & ~kOrderOnly].finish);
    const std::size_t end =
        issued + 1 < issue_log_.size() ? issue_log_[issued + 1].arrivals : arrivals_.size();
    for (std::size_t i = issue_log_[issued].arrivals; i < end; ++i) {
        const auto [writer, behind] = arrivals_[i];
        ready = std::max(ready, (writer == kNoTask ? 0 : tasks_[writer].finish) + behind);
    }
    return ready;
}

// What is planned and not issued goes back to the unplanned.
void Core::unplan() {
    for (std::size_t i = queue_head_; i < queue_.size(); ++i) {
        Task& task = tasks_[queue_[i].task];
        if (task.state != TaskState::kPlanned) continue;
        task.state = TaskState::kWaiting;
        unplanned_.push_back(queue_[i].task);
    }
    queue_.clear();
    queue_head_ = 0;
    std::ranges::sort(unplanned_);
    expect_issued();
    planned_ = issued_;
    for (unsigned node = 0; node < machine_.nodes(); ++node) {
        for (unsigned worker = 0; worker < node_time_[node].count(); ++worker)
            node_time_[node].restart(worker, issued_until_[node][worker]);
        channel_time_[node].fill(Timeline(now_));
    }
    replan_wanted_ = false;
}

void Core::consider_replanning(const Task& task, Ps finish) {
    const std::size_t left = queue_.size() - queue_head_;
    if (!options_.replan || replan_wanted_ || left < 16 || completions_since_plan_ < left / 4) return;
    const Ps drift = finish - task.finish;
    const Ps remaining = std::max<Ps>(node_time_[task.node].end() - task.finish, 1);
    if (std::abs(drift) * 20 < remaining) return;
    replan();
}

// From what is done: of tasks that were lost nothing remains.
void Core::rebuild_places() {
    for (DataId id = 0; id < data_.size(); ++id) {
        Place place{};
        place.valid = static_cast<std::uint16_t>(bit(data_[id].home));
        place.owner = data_[id].home;
        issued_.places[id] = place;
    }
    for (const Issued& issued : issue_log_) {
        const Task& task = tasks_[issued.task];
        if (task.state != TaskState::kDone || task.command != issued.command) continue;
        for (std::uint32_t a = 0; a < task.access_count; ++a) {
            const DataAccess& access = accesses_[task.accesses + a];
            Place& place = issued_.places[access.data];
            if (reads(access.mode)) {
                place.valid = static_cast<std::uint16_t>(place.valid | bit(task.node));
                place.at[task.node] = now_;
            }
            write(issued_, access, task.merge, task.node, task.finish, task.command);
        }
    }
    for (Place& place : issued_.places) {
        const unsigned left = place.valid & ~lost_;
        if (left == 0) continue;  // whoever reads it learns that it is gone
        place.valid = static_cast<std::uint16_t>(left);
        if ((lost_ & bit(place.owner)) != 0) place.owner = static_cast<std::uint8_t>(std::countr_zero(left));
    }
}

void Core::reissue(unsigned lost) {
    const unsigned all = bit(machine_.cards) - 1;
    lost_ = (lost & all) == all ? 0 : lost;
    for (const Issued& issued : issue_log_) {
        Task& task = tasks_[issued.task];
        if (task.state != TaskState::kIssued || task.command != issued.command) continue;
        task.state = TaskState::kWaiting;
        unplanned_.push_back(issued.task);
    }
    in_flight_.fill(0);
    workers_in_flight_.fill(0);
    rebuild_places();
    unplan();
}

std::vector<TaskId> Core::stranded() const {
    std::vector<bool> gone(data_.size());
    for (DataId id = 0; id < data_.size(); ++id)
        gone[id] = (issued_.places[id].valid & ~lost_) == 0;
    std::vector<TaskId> found;
    for (TaskId id = 0; id < tasks_.size(); ++id) {
        const Task& task = tasks_[id];
        if (task.state != TaskState::kWaiting) continue;
        bool stuck = false;
        for (std::uint32_t a = 0; a < task.access_count; ++a) {
            const DataAccess& access = accesses_[task.accesses + a];
            stuck |= reads(access.mode) && gone[access.data];
            stuck |= task.merge && (issued_.places[access.data].partials & lost_) != 0;
        }
        if (stuck) found.push_back(id);
        for (std::uint32_t a = 0; a < task.access_count && !stuck; ++a) {
            const DataAccess& access = accesses_[task.accesses + a];
            if (access.mode == Access::kWrite) gone[access.data] = false;
        }
    }
    return found;
}

}  // namespace orrery::umd
