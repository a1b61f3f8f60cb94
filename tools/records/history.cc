#include "tools/records/history.h"

#include <orrery/fw/mailbox.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <cstring>

#include "tools/records/names.h"

namespace orrery::records {
namespace {

std::string text_of(const Record& record) {
    char text[sizeof(std::uint64_t) * 3 + 1] = {};
    std::memcpy(text, record.word.data(), sizeof text - 1);
    std::string clean;
    for (const char* c = text; *c != '\0'; ++c)
        clean += *c >= ' ' && *c < 127 ? *c : '?';
    return clean;
}

}  // namespace

bool is_waiting(std::uint32_t state) {
    switch (state) {
        case ORR_TSTATE_READY:
        case ORR_TSTATE_COPY_PORT:
        case ORR_TSTATE_VECTOR_PORT:
        case ORR_TSTATE_SUSPENDED:
        case ORR_TSTATE_QUOTA:
            return true;
        default:
            return false;
    }
}

Time Job::used() const {
    Time sum = 0;
    for (const Segment& segment : segments)
        sum += segment.used;
    return sum;
}

const Segment* Job::suspended_at(std::uint64_t step) const {
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Segment& segment = segments[i];
        if (segment.end_step >= step || segment.status != ORR_DONE_PREEMPTED) continue;
        if (i + 1 == segments.size() || segments[i + 1].start_step >= step) return &segment;
    }
    return nullptr;
}

std::uint32_t QueueLife::state_at(Time time) const {
    auto after = std::ranges::upper_bound(states, time, {}, &StateChange::time);
    return after == states.begin() ? ORR_TSTATE_IDLE : std::prev(after)->state;
}

Time QueueLife::waiting(Time from, Time to) const {
    Time sum = 0;
    auto at = std::ranges::upper_bound(states, from, {}, &StateChange::time);
    if (at != states.begin()) --at;
    for (; at != states.end() && at->time < to; ++at) {
        if (!is_waiting(at->state)) continue;
        const Time until = std::next(at) == states.end() ? to : std::min(to, std::next(at)->time);
        sum += until - std::min(until, std::max(from, at->time));
    }
    return sum;
}

History::History(std::vector<Record> records, const Beginning* beginning) : records_(std::move(records)) {
    if (beginning != nullptr) begin(*beginning);
    for (std::size_t at = 0; at < records_.size(); ++at)
        take(at);
    if (!records_.empty()) end_ = std::max(end_, records_.back().time);
    current_.clear();
    open_.clear();
    open_waits_.clear();
    rings_.clear();
}

void History::begin(const Beginning& beginning) {
    tables_ = Tables{beginning.tables, beginning.step};
    for (const ContextRow& row : beginning.rows.contexts)
        context_names_[row.number] = row.name;
    Record moment;
    moment.step = beginning.step;
    moment.time = beginning.time;
    for (const QueueRow& row : beginning.rows.queues) {
        QueueLife& queue = life(row.number, moment);
        queue.context = static_cast<std::uint32_t>(row.context);
        queue.priority = static_cast<std::uint32_t>(row.priority);
        queue.weight = static_cast<std::uint32_t>(row.weight);
        queue.slice_us = static_cast<std::uint32_t>(row.slice_us);
        queue.name = row.name;
        queue.packets = row.retired;
        queue.error = static_cast<std::uint32_t>(row.error);
        queue.states.push_back({moment.time, moment.step, static_cast<std::uint32_t>(row.state)});
        rings_[row.number].emplace_back(row.producer, moment.time);
        if (row.state != ORR_TSTATE_SEMAPHORE) continue;
        memories_.try_emplace(row.wait_memory, memories_.size());
        Wait wait;
        wait.queue = row.number;
        wait.memory = row.wait_memory;
        wait.value = row.wait_value;
        wait.va = row.wait_va;
        wait.index = row.next;
        wait.from = moment.time;
        wait.from_step = moment.step;
        open_waits_[row.number] = waits_.size();
        waits_.push_back(wait);
    }
}

Time History::begin() const {
    return records_.empty() ? 0 : records_.front().time;
}

// A queue that was there before the first record (a recording that began late) comes into being here.
QueueLife& History::life(std::uint32_t number, const Record& record) {
    const auto found = current_.find(number);
    if (found != current_.end()) return queues_[found->second];
    current_[number] = queues_.size();
    lives_[number].push_back(queues_.size());
    QueueLife made;
    made.number = number;
    made.created = record.time;
    made.weight = ORR_WEIGHT_DEFAULT;
    made.priority = ORR_PRIORITY_NORMAL;
    queues_.push_back(std::move(made));
    return queues_.back();
}

Job* History::open_job(std::uint32_t queue, std::uint64_t index) {
    const auto of_queue = open_.find(queue);
    if (of_queue == open_.end()) return nullptr;
    const auto found = of_queue->second.find(index);
    return found == of_queue->second.end() ? nullptr : &jobs_[found->second];
}

void History::end_wait(std::uint32_t queue, const Record& record, bool woken) {
    const auto found = open_waits_.find(queue);
    if (found == open_waits_.end()) return;
    Wait& wait = waits_[found->second];
    wait.to = record.time;
    wait.to_step = record.step;
    if (woken) {
        wait.wake = record.b;
        const auto signal = last_signal_.find(wait.memory);
        if (signal != last_signal_.end() && record.b != ORR_WAKE_MAP) {
            wait.signal = signal->second;
            const Record& by = records_[signal->second];
            if (by.type == ORR_TRACE_SIGNAL) wait.signalled_by = by.a;
        }
    }
    open_waits_.erase(found);
}

void History::take(std::size_t at) {
    const Record& r = records_[at];
    const std::uint32_t port = r.b & 0xffff;
    switch (r.type) {
        case ORR_TRACE_START:
            if (!tables_) tables_ = Tables{r.word[0], r.step};
            break;
        case ORR_TRACE_QUEUE: {
            if (r.b == 0xffffffffu) {
                life(r.a, r).destroyed = r.time;
                current_.erase(r.a);
                open_.erase(r.a);
                end_wait(r.a, r, false);
                rings_.erase(r.a);
                break;
            }
            QueueLife& queue = life(r.a, r);
            queue.context = r.b;
            queue.priority = static_cast<std::uint32_t>(r.word[0] & 0xffff);
            queue.weight = static_cast<std::uint32_t>(r.word[0] >> 16 & 0xffff);
            queue.slice_us = static_cast<std::uint32_t>(r.word[0] >> 32);
            break;
        }
        case ORR_TRACE_DOORBELL:
            life(r.a, r);
            rings_[r.a].emplace_back(r.word[0], r.time);
            break;
        case ORR_TRACE_STATE: {
            QueueLife& queue = life(r.a, r);
            queue.states.push_back({r.time, r.step, r.b});
            if (r.b != ORR_TSTATE_SEMAPHORE) end_wait(r.a, r, false);
            break;
        }
        case ORR_TRACE_DECISION:
            decisions_.push_back(at);
            break;
        case ORR_TRACE_START_JOB: {
            QueueLife& queue = life(r.a, r);
            Job job;
            job.queue = r.a;
            job.context = queue.context;
            job.index = r.word[0];
            job.opcode = r.b >> 16;
            job.size = r.word[1];
            // The first doorbell whose producer lies beyond this packet brought it.
            for (const auto& [producer, time] : rings_[r.a]) {
                if (producer <= job.index) continue;
                job.rung = time;
                break;
            }
            job.segments.push_back({.port = port, .start = r.time, .end = kNever, .start_step = r.step});
            queue.jobs.push_back(jobs_.size());
            open_[r.a][job.index] = jobs_.size();
            jobs_.push_back(std::move(job));
            ports_ = std::max(ports_, port + 1);
            break;
        }
        case ORR_TRACE_END_JOB: {
            ports_ = std::max(ports_, port + 1);
            Job* job = open_job(r.a, r.word[0]);
            if (job == nullptr) break;
            Segment& segment = job->segments.back();
            segment.port = port;
            segment.start = r.word[1];
            segment.end = std::max(r.word[1], r.word[2]);
            segment.used = r.word[3];
            segment.status = r.b >> 16;
            segment.end_step = r.step;
            segment.end_told = r.time;
            end_ = std::max(end_, segment.end);
            if (segment.status == ORR_DONE_PREEMPTED) {
                ++job->preemptions;
                ++life(r.a, r).preemptions;
            } else {
                job->finished = true;
                open_[r.a].erase(r.word[0]);
            }
            break;
        }
        case ORR_TRACE_RESUME:
            ports_ = std::max(ports_, port + 1);
            if (Job* job = open_job(r.a, r.word[0])) {
                job->segments.push_back({.port = port, .start = r.time, .end = kNever, .start_step = r.step});
            }
            break;
        case ORR_TRACE_WAIT: {
            memories_.try_emplace(r.word[0], memories_.size());
            end_wait(r.a, r, false);
            Wait wait;
            wait.queue = r.a;
            wait.memory = r.word[0];
            wait.value = r.word[1];
            wait.va = r.word[2];
            wait.index = r.word[3];
            wait.from = r.time;
            wait.from_step = r.step;
            open_waits_[r.a] = waits_.size();
            waits_.push_back(wait);
            break;
        }
        case ORR_TRACE_WAKE:
            end_wait(r.a, r, true);
            break;
        case ORR_TRACE_SIGNAL:
        case ORR_TRACE_POKE:
            memories_.try_emplace(r.word[0], memories_.size());
            last_signal_[r.word[0]] = at;
            break;
        case ORR_TRACE_RETIRE: {
            QueueLife& queue = life(r.a, r);
            queue.packets = r.word[0];
            // Doorbells that brought nothing beyond what has finished are of no more use.
            auto& rings = rings_[r.a];
            std::erase_if(rings, [&](const auto& ring) { return ring.first <= r.word[0]; });
            break;
        }
        case ORR_TRACE_ERROR:
            life(r.a, r).error = r.b;
            break;
        case ORR_TRACE_DEADLOCK: {
            const std::uint32_t edge = r.b >> 16 & 0xff;
            if (edge == 0 || deadlocks_.empty()) deadlocks_.push_back({r.time, r.step, {}});
            deadlocks_.back().edges.push_back(
                {r.a, r.b & 0xffff, r.word[0], r.word[1], r.word[2], r.time, r.step});
            break;
        }
        case ORR_TRACE_NAME:
            if (r.b == ORR_NAME_QUEUE) {
                life(r.a, r).name = text_of(r);
            } else if (r.b == ORR_NAME_CONTEXT) {
                context_names_[r.a] = text_of(r);
            }
            break;
        default:
            break;
    }
}

const QueueLife* History::queue_at(std::uint32_t number, Time time) const {
    const auto found = lives_.find(number);
    if (found == lives_.end()) return nullptr;
    const auto after =
        std::ranges::upper_bound(found->second, time, {}, [&](std::size_t i) { return queues_[i].created; });
    return &queues_[after == found->second.begin() ? *after : *std::prev(after)];
}

Time History::waiting(const Job& job) const {
    const QueueLife* queue = queue_at(job.queue, job.start());
    Time waited = queue == nullptr ? 0 : queue->waiting(job.rung, job.start());
    for (std::size_t i = 1; i < job.segments.size(); ++i)
        waited += job.segments[i].start - job.segments[i - 1].end;
    return waited;
}

const std::string& History::context_name(std::uint32_t number) const {
    static const std::string kNone;
    const auto found = context_names_.find(number);
    return found == context_names_.end() ? kNone : found->second;
}

std::size_t History::first_at_or_after(std::uint64_t step) const {
    const auto found = std::ranges::lower_bound(records_, step, {}, &Record::step);
    return static_cast<std::size_t>(found - records_.begin());
}

std::string History::queue(std::uint32_t number, Time at) const {
    if (number == ORR_TRACE_NONE) return "no queue";
    const QueueLife* life = queue_at(number, at);
    if (life == nullptr || life->name.empty()) return fmt::format("queue {}", number);
    return fmt::format("queue {} \"{}\"", number, life->name);
}

std::string History::queue_row(std::uint32_t number) const {
    std::vector<std::string> names;
    if (const auto found = lives_.find(number); found != lives_.end()) {
        for (const std::size_t i : found->second) {
            const std::string& name = queues_[i].name;
            if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
        }
    }
    std::string text = fmt::format("queue {}", number);
    for (std::size_t i = 0; i < names.size(); ++i)
        text += fmt::format("{} \"{}\"", i == 0 ? "" : ",", names[i]);
    return text;
}

// Addresses say nothing to people: semaphores are numbered in the order in which they appear.
std::string History::memory(std::uint64_t address) const {
    const auto found = memories_.find(address);
    if (address == ~std::uint64_t{0}) return "a semaphore of a linked card";
    return found == memories_.end() ? fmt::format("semaphore at {:#x}", address)
                                    : fmt::format("semaphore {}", found->second);
}

}  // namespace orrery::records
