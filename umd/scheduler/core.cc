#include "umd/scheduler/core.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace orrery::umd {

Core::Core(const Machine& machine, Executor& executor, const CoreOptions& options)
    : machine_(machine), executor_(executor), options_(options) {
    for (unsigned node = 0; node < machine_.nodes(); ++node)
        node_time_[node] = Workers(machine_.workers_of(node));
}

DataId Core::add_data(std::uint64_t bytes, unsigned node) {
    Place place{};
    place.valid = static_cast<std::uint16_t>(bit(node));
    place.owner = static_cast<std::uint8_t>(node);
    planned_.places.push_back(place);
    issued_.places.push_back(place);
    data_.push_back({bytes, 1, kNoTask, static_cast<std::uint8_t>(node), kNoParts, {}, {}});
    return static_cast<DataId>(data_.size() - 1);
}

// --- submission ---

void Core::depend(TaskId task, TaskId on, bool order_only) {
    if (on == kNoTask) return;
    Task& before = tasks_[on];
    const bool lost = before.state == TaskState::kFailed || before.state == TaskState::kCancelled;
    if (lost) {
        if (!order_only && tasks_[task].cause == kNoTask) {
            tasks_[task].cause = before.state == TaskState::kFailed ? on : before.cause;
        }
        return;
    }
    if (before.mark == task) {
        // Known already; results are needed if any access says so.
        if (order_only) return;
        for (std::size_t i = tasks_[task].preds; i < preds_.size(); ++i)
            if ((preds_[i] & ~kOrderOnly) == on) preds_[i] = on;
        return;
    }
    before.mark = task;
    preds_.push_back(order_only ? on | kOrderOnly : on);
    ++stats_.edges;
}

void Core::infer(TaskId task, const DataAccess& access) {
    Data& data = data_[access.data];
    if (access.mode == Access::kReduce) {
        depend(task, data.writer, true);
        for (const TaskId reader : data.readers)
            depend(task, reader, true);
        data.reducers.push_back(task);
        if (data.parts == kNoParts) {
            data.parts = static_cast<std::uint32_t>(planned_.parts.size());
            planned_.parts.emplace_back();
            issued_.parts.emplace_back();
        }
        return;
    }
    depend(task, data.writer, !reads(access.mode));
    for (const TaskId reducer : data.reducers)
        depend(task, reducer, !reads(access.mode));
    if (access.mode == Access::kRead) {
        data.readers.push_back(task);
        return;
    }
    for (const TaskId reader : data.readers)
        depend(task, reader, true);
    data.readers.clear();
    data.reducers.clear();
    data.writer = task;
}

TaskId Core::add_task(const TaskSpec& spec, bool merge) {
    const auto id = static_cast<TaskId>(tasks_.size());
    Task task{};
    task.cost = std::clamp<Ps>(spec.cost, 1, kLongest);
    task.deadline = spec.deadline;
    task.priority = spec.priority;
    // Those that add into the card's part of a datum do so one after the other.
    const bool alone = merge || std::ranges::any_of(spec.accesses, [](const DataAccess& access) {
                           return access.mode == Access::kReduce;
                       });
    task.groups = alone ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(spec.groups, ~0u));
    task.pinned = static_cast<std::int8_t>(spec.node);
    task.state = TaskState::kWaiting;
    task.cause = kNoTask;
    task.mark = kNoTask;
    task.merge = merge;
    task.preds = static_cast<std::uint32_t>(preds_.size());
    task.accesses = static_cast<std::uint32_t>(accesses_.size());
    task.access_count = static_cast<std::uint32_t>(spec.accesses.size());
    accesses_.insert(accesses_.end(), spec.accesses.begin(), spec.accesses.end());
    tasks_.push_back(task);
    for (const TaskId before : spec.after)
        depend(id, before, false);
    for (const DataAccess& access : spec.accesses)
        infer(id, access);
    Task& added = tasks_.back();
    added.pred_count = static_cast<std::uint32_t>(preds_.size()) - added.preds;
    ++stats_.submitted;
    if (added.cause != kNoTask) {
        added.state = TaskState::kCancelled;
        ++stats_.cancelled;
    } else {
        unplanned_.push_back(id);
    }
    return id;
}

TaskId Core::close_reduction(DataId data) {
    if (data_[data].reducers.empty()) return data_[data].writer;
    const DataAccess access{data, Access::kReadWrite};
    TaskSpec merge;
    merge.accesses = {&access, 1};
    merge.cost = data_[data].merge_cost;
    return add_task(merge, true);
}

TaskId Core::submit(const TaskSpec& spec) {
    for (const DataAccess& access : spec.accesses) {
        if (access.mode == Access::kReduce || data_[access.data].reducers.empty()) continue;
        if (reads(access.mode)) (void)close_reduction(access.data);
    }
    return add_task(spec, false);
}

// --- planning ---

// The batch is in the order of submission, in which a task comes behind all that it waits for.
void Core::rank(std::span<const TaskId> batch) {
    const double hop = machine_.cards > 1 ? machine_.channel[0][1].ps_per_byte : 0;
    for (const TaskId id : batch) {
        Task& task = tasks_[id];
        task.rank = 0;
        task.effective_priority = task.priority;
        task.effective_deadline = task.deadline;
    }
    for (std::size_t i = batch.size(); i-- > 0;) {
        Task& task = tasks_[batch[i]];
        task.rank += task.cost;
        std::uint64_t bytes = 0;
        for (std::uint32_t a = 0; a < task.access_count; ++a) {
            const DataAccess& access = accesses_[task.accesses + a];
            if (reads(access.mode)) bytes = std::max(bytes, data_[access.data].bytes);
        }
        const Ps transfer = static_cast<Ps>(hop * static_cast<double>(bytes) / 2);
        const Ps deadline = task.effective_deadline == kNever ? kNever : task.effective_deadline - task.cost;
        for (std::uint32_t p = 0; p < task.pred_count; ++p) {
            Task& before = tasks_[preds_[task.preds + p] & ~kOrderOnly];
            if (before.state != TaskState::kWaiting) continue;
            before.rank = std::max(before.rank, task.rank + transfer);
            before.effective_priority = std::max(before.effective_priority, task.effective_priority);
            before.effective_deadline = std::min(before.effective_deadline, deadline);
        }
    }
}

Ps Core::arrival(Ps at, std::uint64_t bytes, unsigned from, unsigned to) const {
    const Channel& direct = machine_.channel[from][to];
    if (direct.exists) {
        return channel_time_[from][to].find(at, direct.occupied(bytes)) + direct.duration(bytes);
    }
    const Channel &up = machine_.channel[from][machine_.host()],
                  &down = machine_.channel[machine_.host()][to];
    const Ps middle = channel_time_[from][machine_.host()].find(at, up.occupied(bytes)) + up.duration(bytes);
    return channel_time_[machine_.host()][to].find(middle, down.occupied(bytes)) + down.duration(bytes);
}

Ps Core::reserve(Ps at, std::uint64_t bytes, unsigned from, unsigned to) {
    const Channel& channel = machine_.channel[from][to];
    const Ps occupied = channel.occupied(bytes);
    const Ps start = channel_time_[from][to].find(at, occupied);
    channel_time_[from][to].reserve(start, occupied);
    return start + channel.duration(bytes);
}

unsigned Core::best_source(const Place& place, std::uint64_t bytes, unsigned to) const {
    if ((place.valid & (place.valid - 1)) == 0) return place.owner;
    unsigned best = place.owner;
    Ps earliest = kNever;
    for (unsigned from = 0; from < machine_.nodes(); ++from) {
        if ((place.valid & bit(from)) == 0) continue;
        const Ps there = arrival(place.at[from], bytes, from, to);
        if (there < earliest) {
            earliest = there;
            best = from;
        }
    }
    return best;
}

// When all inputs can be on `node`; adds the length of the transfers to `moved`.
Ps Core::inputs_ready(const Task& task, unsigned node, Ps ready, Ps& moved) const {
    const DataAccess* access = accesses_.data() + task.accesses;
    for (std::uint32_t a = 0; a < task.access_count; ++a, ++access) {
        const Place& place = planned_.places[access->data];
        const std::uint64_t bytes = data_[access->data].bytes;
        if (reads(access->mode)) {
            if ((place.valid & bit(node)) != 0) {
                ready = std::max(ready, place.at[node]);
            } else if (options_.fetch_in_task) {
                ready = std::max(ready, place.at[place.owner]);
                moved += machine_.channel[place.owner][node].duration(bytes);
            } else {
                const Ps there = arrival(place.at[place.owner], bytes, place.owner, node);
                moved += there - std::max(ready, place.at[place.owner]) > 0
                             ? machine_.channel[place.owner][node].duration(bytes)
                             : 0;
                ready = std::max(ready, there);
            }
        }
        if (!task.merge || place.partials == 0) continue;
        for (unsigned from = 0; from < machine_.cards; ++from) {
            if ((place.partials & bit(from)) == 0 || from == node) continue;
            ready = std::max(ready,
                             arrival(planned_.parts[data_[access->data].parts].at[from], bytes, from, node));
        }
    }
    return ready;
}

void Core::bring_planned(const Task& task, unsigned node) {
    for (std::uint32_t a = 0; a < task.access_count; ++a) {
        const DataAccess& access = accesses_[task.accesses + a];
        Place& place = planned_.places[access.data];
        const std::uint64_t bytes = data_[access.data].bytes;
        const auto bring = [&](Ps at, unsigned from) {
            if (machine_.channel[from][node].exists) return reserve(at, bytes, from, node);
            const Ps middle = reserve(at, bytes, from, machine_.host());
            return reserve(middle, bytes, machine_.host(), node);
        };
        if (reads(access.mode) && (place.valid & bit(node)) == 0 && !options_.fetch_in_task) {
            const unsigned from = best_source(place, bytes, node);
            place.at[node] = bring(place.at[from], from);
            place.valid = static_cast<std::uint16_t>(place.valid | bit(node));
        }
        for (unsigned from = 0; task.merge && from < machine_.cards; ++from) {
            if ((place.partials & bit(from)) != 0 && from != node) {
                (void)bring(planned_.parts[data_[access.data].parts].at[from], from);
            }
        }
    }
}

void Core::write(Horizon& horizon, const DataAccess& access, bool merge, unsigned node, Ps at,
                 CommandId via) const {
    if (access.mode == Access::kRead) return;
    Place& place = horizon.places[access.data];
    if (access.mode == Access::kReduce) {
        place.partials = static_cast<std::uint16_t>(place.partials | bit(node));
        Parts& parts = horizon.parts[data_[access.data].parts];
        parts.at[node] = at;
        parts.via[node] = via;
        return;
    }
    place.valid = static_cast<std::uint16_t>(bit(node));
    place.owner = static_cast<std::uint8_t>(node);
    place.at[node] = at;
    place.via[node] = via;
    if (merge || access.mode == Access::kWrite) place.partials = 0;
}

void Core::place(TaskId id) {
    Task& task = tasks_[id];
    Ps ready = now_;
    for (std::uint32_t p = 0; p < task.pred_count; ++p)
        ready = std::max(ready, tasks_[preds_[task.preds + p] & ~kOrderOnly].finish);
    unsigned first = 0, last = machine_.cards;
    if (task.pinned != kAnyNode) {
        first = static_cast<unsigned char>(task.pinned);
        last = first + 1;
    }
    // No card can end the task before the earliest gap of its own: those that could be best come first, and
    // the rest need not be looked at.
    struct Candidate {
        Ps duration, earliest_end;
        unsigned node;
    };
    std::array<Candidate, kMaxNodes> candidates{};
    unsigned count = 0;
    for (unsigned node = first; node < last; ++node) {
        if ((lost_ & bit(node)) != 0 && task.pinned == kAnyNode) continue;
        const Ps duration = machine_.duration(node, task.cost);
        const Ps end = node_time_[node].find(ready, duration, machine_.width(node, task.groups)) + duration;
        unsigned at = count++;
        for (; at > 0 && candidates[at - 1].earliest_end > end; --at)
            candidates[at] = candidates[at - 1];
        candidates[at] = {duration, end, node};
    }
    unsigned best = candidates[0].node;
    Ps best_start = 0, best_duration = 0;
    double best_score = std::numeric_limits<double>::infinity();
    for (unsigned i = 0; i < count && static_cast<double>(candidates[i].earliest_end) <= best_score; ++i) {
        const unsigned node = candidates[i].node;
        Ps moved = 0;
        const Ps inputs = inputs_ready(task, node, ready, moved);
        const Ps duration = candidates[i].duration + (options_.fetch_in_task ? moved : 0);
        const Ps start = node_time_[node].find(inputs, duration, machine_.width(node, task.groups));
        const double score =
            static_cast<double>(start + duration) + options_.transfer_weight * static_cast<double>(moved);
        // Side by side on one card is as good as on two only as long as nothing else is shared there.
        if (score > best_score ||
            (score == best_score && std::pair(load_[node], node) > std::pair(load_[best], best)))
            continue;
        best = node;
        best_start = start;
        best_duration = duration;
        best_score = score;
    }
    bring_planned(task, best);
    if (!options_.fetch_in_task) {
        // Another source may be earlier or later than the estimate by the owner alone.
        Ps moved = 0;
        best_start = node_time_[best].find(inputs_ready(task, best, ready, moved), best_duration,
                                           machine_.width(best, task.groups));
    }
    task.workers = node_time_[best].reserve(best_start, best_duration, machine_.width(best, task.groups));
    load_[best] += best_duration;
    task.node = static_cast<std::uint8_t>(best);
    task.start = best_start;
    task.finish = best_start + best_duration;
    task.state = TaskState::kPlanned;
    for (std::uint32_t a = 0; a < task.access_count; ++a) {
        const DataAccess& access = accesses_[task.accesses + a];
        Place& place = planned_.places[access.data];
        if (options_.fetch_in_task && reads(access.mode) && (place.valid & bit(best)) == 0) {
            place.valid = static_cast<std::uint16_t>(place.valid | bit(best));
            place.at[best] = task.finish;
        }
        write(planned_, access, task.merge, best, task.finish, 0);
    }
}

void Core::plan() {
    if (replan_wanted_) {
        ++stats_.replans;
        unplan();
    }
    if (unplanned_.empty()) return;
    std::erase_if(unplanned_, [&](TaskId id) { return tasks_[id].state != TaskState::kWaiting; });
    rank(unplanned_);
    for (unsigned node = 0; node < machine_.nodes(); ++node) {
        for (unsigned worker = 0; worker < node_time_[node].count(); ++worker)
            node_time_[node].forget_before(worker, std::max(issued_until_[node][worker], now_));
        for (unsigned to = 0; to < machine_.nodes(); ++to)
            channel_time_[node][to].forget_before(now_);
    }
    order_.clear();
    for (const TaskId id : unplanned_) {
        const Task& task = tasks_[id];
        order_.push_back({task.effective_priority, id, task.effective_deadline, task.rank});
    }
    std::ranges::sort(order_, [](const Urgency& x, const Urgency& y) {
        if (x.priority != y.priority) return x.priority > y.priority;
        if (x.deadline != y.deadline) return x.deadline < y.deadline;
        return x.rank != y.rank ? x.rank > y.rank : x.task < y.task;
    });
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(queue_head_));
    queue_head_ = 0;
    const auto old = static_cast<std::ptrdiff_t>(queue_.size());
    for (const auto& [priority, id, deadline, rank] : order_) {
        place(id);
        queue_.push_back({tasks_[id].start, id});
    }
    unplanned_.clear();
    const auto earlier = [](const Planned& a, const Planned& b) {
        return a.start != b.start ? a.start < b.start : a.task < b.task;
    };
    std::sort(queue_.begin() + old, queue_.end(), earlier);
    if (old != 0) {
        std::vector<Planned> merged(queue_.size());
        std::merge(queue_.begin(), queue_.begin() + old, queue_.begin() + old, queue_.end(), merged.begin(),
                   earlier);
        queue_ = std::move(merged);
    }
    completions_since_plan_ = 0;
}

// --- issue ---

CommandId Core::issue_hop(Place& place, DataId data, unsigned from, unsigned to, TaskId consumer, int origin,
                          CommandId after) {
    const CommandId id = next_command_++;
    const bool partial = origin >= 0;
    executor_.transfer(
        {id, data, from, to, partial, partial ? static_cast<unsigned>(origin) : 0, after, consumer});
    ++stats_.transfers;
    stats_.transfer_bytes += data_[data].bytes;
    if (partial) return id;
    place.valid = static_cast<std::uint16_t>(place.valid | bit(to));
    place.via[to] = id;
    place.at[to] = place.at[from] + machine_.channel[from][to].duration(data_[data].bytes);
    return id;
}

// That was issued as `command`; kNoTask: none, or it has been issued anew since.
TaskId Core::task_of(CommandId command) const {
    const auto found = std::ranges::lower_bound(issue_log_, command, {}, &Issued::command);
    if (found == issue_log_.end() || found->command != command) return kNoTask;
    return tasks_[found->task].command == command ? found->task : kNoTask;
}

void Core::arrives(TaskId writer, Ps at) {
    arrivals_.push_back({writer, writer == kNoTask ? at : at - tasks_[writer].finish});
}

// What is there already is copied from now on, the rest when its writer has ended.
Ps Core::copied_from(TaskId writer, Ps at) const {
    const bool there = writer == kNoTask || tasks_[writer].state == TaskState::kDone;
    return there ? std::max(at, now_) : at;
}

void Core::issue_one(TaskId id) {
    Task& task = tasks_[id];
    const unsigned node = task.node, host = machine_.host();
    const auto arrivals = static_cast<std::uint32_t>(arrivals_.size());
    after_.clear();
    partials_.clear();
    std::uint64_t clear = 0;
    for (std::uint32_t p = 0; p < task.pred_count; ++p)
        after_.push_back(tasks_[preds_[task.preds + p] & ~kOrderOnly].command);
    for (std::uint32_t a = 0; a < task.access_count; ++a) {
        const DataAccess& access = accesses_[task.accesses + a];
        Place& place = issued_.places[access.data];
        const auto bring = [&](unsigned from, int origin, CommandId made) {
            if (machine_.channel[from][node].exists) {
                return issue_hop(place, access.data, from, node, id, origin, made);
            }
            const CommandId up = issue_hop(place, access.data, from, host, id, origin, made);
            return issue_hop(place, access.data, host, node, id, origin, up);
        };
        if (reads(access.mode)) {
            if (place.owner != node) {
                const TaskId writer = task_of(place.via[place.owner]);
                if ((place.valid & bit(node)) == 0) {
                    const unsigned from = best_source(place, data_[access.data].bytes, node);
                    place.at[from] = copied_from(writer, place.at[from]);
                    (void)bring(from, -1, place.via[from]);
                }
                arrives(writer, place.at[node]);
            }
            after_.push_back(place.via[node]);
        }
        if (access.mode == Access::kReduce && (place.partials & bit(node)) == 0) clear |= 1ull << a;
        for (unsigned from = 0; task.merge && from < machine_.cards; ++from) {
            if ((place.partials & bit(from)) == 0) continue;
            const Parts& parts = issued_.parts[data_[access.data].parts];
            const CommandId part = parts.via[from];
            if (from == node) {
                after_.push_back(part);
            } else {
                after_.push_back(bring(from, static_cast<int>(from), part));
                const TaskId writer = task_of(part);
                arrives(writer, copied_from(writer, parts.at[from]) +
                                    machine_.way(data_[access.data].bytes, from, node));
            }
            partials_.push_back(from);
        }
    }
    task.command = next_command_++;
    task.state = TaskState::kIssued;
    ++in_flight_[node];
    workers_in_flight_[node] += static_cast<unsigned>(std::popcount(task.workers));
    for (unsigned worker = 0; worker < node_time_[node].count(); ++worker) {
        if ((task.workers >> worker & 1) != 0)
            issued_until_[node][worker] = std::max(issued_until_[node][worker], task.finish);
    }
    issue_log_.push_back({id, arrivals, task.command, now_});
    for (std::uint32_t a = 0; a < task.access_count; ++a) {
        const DataAccess& access = accesses_[task.accesses + a];
        write(issued_, access, task.merge, node, task.finish, task.command);
    }
    const auto worker = static_cast<unsigned>(std::countr_zero(task.workers));
    executor_.run({task.command, id, node, worker, after_, partials_, clear});
}

bool Core::has_room(const Task& task) const {
    const unsigned node = task.node;
    return workers_in_flight_[node] < options_.issue_ahead * machine_.workers_of(node) &&
           in_flight_[node] < std::max(options_.issue_ahead, kMostInFlight);
}

void Core::landed(const Task& task) {
    --in_flight_[task.node];
    workers_in_flight_[task.node] -= static_cast<unsigned>(std::popcount(task.workers));
}

void Core::issue() {
    for (; queue_head_ < queue_.size(); ++queue_head_) {
        const TaskId id = queue_[queue_head_].task;
        if (tasks_[id].state != TaskState::kPlanned) continue;  // cancelled meanwhile
        if (!has_room(tasks_[id])) return;
        issue_one(id);
    }
}

void Core::pump() {
    plan();
    issue();
}

// --- ends ---

void Core::complete(TaskId id, Ps start, Ps finish) {
    Task& task = tasks_[id];
    if (task.state != TaskState::kIssued) return;
    landed(task);
    ++stats_.done;
    ++completions_since_plan_;
    task.state = TaskState::kDone;
    consider_replanning(task, finish);
    task.start = start;
    ends_at(task, finish);
    for (unsigned left = task.workers; left != 0; left &= left - 1) {
        Ps& until = done_until_[task.node][static_cast<unsigned>(std::countr_zero(left))];
        until = std::max(until, finish);
    }
    now_ = std::max(now_, finish);
}

void Core::end_unissued(Task& task, TaskState state, TaskId cause) {
    if (task.state == TaskState::kIssued) landed(task);
    task.state = state;
    task.cause = cause;
    ++(state == TaskState::kFailed ? stats_.failed : stats_.cancelled);
}

void Core::cancel_dependents(TaskId first) {
    for (TaskId id = first + 1; id < tasks_.size(); ++id) {
        Task& task = tasks_[id];
        if (task.state > TaskState::kIssued) continue;
        for (std::uint32_t p = 0; p < task.pred_count; ++p) {
            const TaskId before = preds_[task.preds + p];
            if ((before & kOrderOnly) != 0) continue;
            const TaskState state = tasks_[before].state;
            if (state != TaskState::kFailed && state != TaskState::kCancelled) continue;
            end_unissued(task, TaskState::kCancelled, tasks_[before].cause);
            break;
        }
    }
}

void Core::fail(TaskId id) {
    if (tasks_[id].state > TaskState::kIssued) return;
    end_unissued(tasks_[id], TaskState::kFailed, id);
    cancel_dependents(id);
}

bool Core::cancel(TaskId id) {
    Task& task = tasks_[id];
    if (task.state >= TaskState::kIssued) return false;
    end_unissued(task, TaskState::kCancelled, id);
    cancel_dependents(id);
    return true;
}

void Core::cancel_all() {
    for (TaskId id = 0; id < tasks_.size(); ++id) {
        if (tasks_[id].state < TaskState::kIssued) end_unissued(tasks_[id], TaskState::kCancelled, id);
    }
}

}  // namespace orrery::umd
