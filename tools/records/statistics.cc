#include "tools/records/statistics.h"

#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orrery::records {
namespace {

struct Samples {
    std::vector<Time> latency, waiting;

    void add(const Samples& other) {
        latency.insert(latency.end(), other.latency.begin(), other.latency.end());
        waiting.insert(waiting.end(), other.waiting.begin(), other.waiting.end());
    }
};

// Of a queue that waits when the recording ends: how long; 0: it does not.
Time waits_at_end(const QueueLife& queue, Time end) {
    Time since = kNever;
    for (auto at = queue.states.rbegin(); at != queue.states.rend() && is_waiting(at->state); ++at)
        since = at->time;
    return since < end && queue.destroyed == kNever ? end - since : 0;
}

bool nothing_left(const QueueLife& queue) {
    if (queue.states.empty() || queue.destroyed != kNever) return true;
    const std::uint32_t state = queue.states.back().state;
    return state == ORR_TSTATE_IDLE || state == ORR_TSTATE_STOPPED;
}

QueueStatistics of_queue(const History& history, const QueueLife& queue, Time end, Statistics& all,
                         Samples& samples) {
    QueueStatistics s;
    s.queue = &queue;
    s.preemptions = queue.preemptions;
    bool waiting_job = false;
    for (const std::size_t at : queue.jobs) {
        const Job& job = history.jobs()[at];
        s.engine_time += job.used();
        all.first_doorbell = std::min(all.first_doorbell, job.rung != 0 ? job.rung : job.start());
        Time waited = job.rung == 0 ? 0 : history.waiting(job);
        if (job.finished) {
            ++s.jobs;
            s.last_end = std::max(s.last_end, job.end());
            if (job.rung != 0) samples.latency.push_back(job.latency());
        } else {
            ++s.unfinished;
            if (job.segments.back().status == ORR_DONE_PREEMPTED && job.end() < end) {
                waited += end - job.end();
                waiting_job = true;
            }
        }
        if (job.rung != 0) samples.waiting.push_back(waited);
    }
    s.done = nothing_left(queue) && (s.unfinished == 0 || queue.destroyed != kNever || queue.error != 0);
    const Time at_end = waits_at_end(queue, end);
    if (at_end != 0 && !waiting_job) samples.waiting.push_back(at_end);
    return s;
}

}  // namespace

Percentiles percentiles(std::vector<Time> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    const auto at = [&](double share) {
        const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
        return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
    };
    const Time sum = std::accumulate(values.begin(), values.end(), Time{0});
    return {sum / values.size(), at(0.5), at(0.9), at(0.99), values.back()};
}

double jain(std::span<const double> shares) {
    double sum = 0, squares = 0;
    for (const double share : shares) {
        sum += share;
        squares += share * share;
    }
    return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
}

const QueueStatistics* Statistics::of(const QueueLife* life) const {
    const auto found = std::ranges::find(queues, life, &QueueStatistics::queue);
    return found == queues.end() ? nullptr : &*found;
}

Statistics statistics(const History& history, Time end, std::span<const std::uint32_t> weights) {
    Statistics all;
    all.end = std::max(end, history.end());
    all.decisions = history.decisions().size();
    all.first_doorbell = kNever;
    for (const Record& record : history.records()) {
        if (record.type == ORR_TRACE_DOORBELL) all.first_doorbell = std::min(all.first_doorbell, record.time);
        if (record.type == ORR_TRACE_ERROR) ++all.errors;
    }
    Samples samples;
    std::vector<double> shares;
    for (std::size_t n = 0; n < history.queues().size(); ++n) {
        const QueueLife& queue = history.queues()[n];
        const std::uint32_t weight = n < weights.size() ? weights[n] : queue.weight;
        Samples own;
        QueueStatistics s = of_queue(history, queue, all.end, all, own);
        s.latency = percentiles(own.latency);
        s.waiting = percentiles(own.waiting);
        samples.add(own);
        all.done = all.done && s.done;
        all.last_end = std::max(all.last_end, s.last_end);
        all.preemptions += s.preemptions;
        all.jobs += s.jobs;
        all.unfinished += s.unfinished;
        all.engine_time += s.engine_time;
        if (queue.jobs.empty() && queue.packets == 0 && s.done) continue;
        if (!queue.jobs.empty() && weight != 0) shares.push_back(static_cast<double>(s.engine_time) / weight);
        all.queues.push_back(s);
    }
    for (QueueStatistics& s : all.queues)
        if (all.engine_time != 0)
            s.share = static_cast<double>(s.engine_time) / static_cast<double>(all.engine_time);
    all.fairness = jain(shares);
    if (all.first_doorbell == kNever) all.first_doorbell = 0;
    all.latency = percentiles(std::move(samples.latency));
    all.waiting = percentiles(std::move(samples.waiting));
    return all;
}

}  // namespace orrery::records
