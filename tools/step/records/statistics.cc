#include "tools/step/records/statistics.h"

#include <orrery/fw/trace.h>

#include <algorithm>
#include <cmath>

namespace orrery::step {

Percentiles percentiles(std::vector<Time> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    const auto at = [&](double share) {
        const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
        return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
    };
    return {at(0.5), at(0.9), at(0.99), values.back()};
}

Statistics statistics(const History& history) {
    Statistics all;
    all.decisions = history.decisions().size();
    all.first_doorbell = kNever;
    for (const Record& record : history.records()) {
        if (record.type == ORR_TRACE_DOORBELL) all.first_doorbell = std::min(all.first_doorbell, record.time);
        if (record.type == ORR_TRACE_ERROR) ++all.errors;
    }
    std::vector<Time> latencies, waitings;
    double sum = 0, squares = 0;
    std::size_t count = 0;
    for (const QueueLife& queue : history.queues()) {
        QueueStatistics s;
        s.queue = &queue;
        s.preemptions = queue.preemptions;
        std::vector<Time> latency, waiting;
        for (const std::size_t at : queue.jobs) {
            const Job& job = history.jobs()[at];
            s.engine_time += job.used();
            all.first_doorbell = std::min(all.first_doorbell, job.rung != 0 ? job.rung : job.start());
            if (!job.finished) {
                ++s.unfinished;
                continue;
            }
            ++s.jobs;
            all.last_end = std::max(all.last_end, job.end());
            if (job.rung == 0) continue;
            latency.push_back(job.latency());
            waiting.push_back(history.waiting(job));
        }
        all.preemptions += s.preemptions;
        all.jobs += s.jobs;
        all.engine_time += s.engine_time;
        latencies.insert(latencies.end(), latency.begin(), latency.end());
        waitings.insert(waitings.end(), waiting.begin(), waiting.end());
        s.latency = percentiles(std::move(latency));
        s.waiting = percentiles(std::move(waiting));
        if (queue.jobs.empty() && queue.packets == 0) continue;
        if (!queue.jobs.empty() && queue.weight != 0) {
            const double share = static_cast<double>(s.engine_time) / queue.weight;
            sum += share;
            squares += share * share;
            ++count;
        }
        all.queues.push_back(s);
    }
    for (QueueStatistics& s : all.queues)
        if (all.engine_time != 0)
            s.share = static_cast<double>(s.engine_time) / static_cast<double>(all.engine_time);
    if (squares > 0) all.fairness = sum * sum / (static_cast<double>(count) * squares);
    if (all.first_doorbell == kNever) all.first_doorbell = 0;
    all.latency = percentiles(std::move(latencies));
    all.waiting = percentiles(std::move(waitings));
    return all;
}

}  // namespace orrery::step
