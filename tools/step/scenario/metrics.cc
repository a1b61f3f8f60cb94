#include "tools/step/scenario/metrics.h"

#include <algorithm>

#include <fmt/format.h>

#include <orrery/hw/counters.h>

namespace orrery::scenario {

namespace {

double us(Ps time) {
    return static_cast<double>(time) / 1e6;
}

Ps percentile(const std::vector<Ps>& sorted, unsigned percent) {
    if (sorted.empty()) return 0;
    return sorted[std::min(sorted.size() - 1, sorted.size() * percent / 100)];
}

Ps mean(const std::vector<Ps>& values) {
    Ps sum = 0;
    for (const Ps value : values)
        sum += value;
    return values.empty() ? 0 : sum / values.size();
}

bool on_engine(Op op) {
    return op == Op::kKernel || op == Op::kCopy || op == Op::kFill;
}

// One that has not begun has waited until now.
Ps wait_of(const JobResult& job, Ps now) {
    const Ps begun = std::min({job.started, job.finished, std::max(now, job.submitted)});
    return begun > job.submitted ? begun - job.submitted : 0;
}

}  // namespace

double jain(const std::vector<double>& shares) {
    double sum = 0, squares = 0;
    for (const double share : shares) {
        sum += share;
        squares += share * share;
    }
    if (squares == 0) return 1;
    return sum * sum / (static_cast<double>(shares.size()) * squares);
}

Metrics measure(const Scenario& scenario, const Result& result) {
    Metrics out;
    out.makespan = result.makespan;
    out.decisions = result.decisions.size();
    for (const auto& counters : result.counters)
        out.core_busy_ps += counters[ORR_CTR_CORE_BUSY_PS];
    std::vector<std::vector<Ps>> waits(scenario.queues.size());
    std::vector<Ps> all;
    out.queues.resize(scenario.queues.size());
    for (const JobResult& job : result.jobs) {
        QueueMetrics& queue = out.queues[job.queue];
        queue.engine_ps += job.used_ps;
        queue.preempted += job.preempted;
        if (!on_engine(job.job.op)) continue;
        const Ps wait = wait_of(job, result.end);
        waits[job.queue].push_back(wait);
        all.push_back(wait);
        if (job.finished == kUnknown) continue;
        ++queue.jobs;
        queue.finish = std::max(queue.finish, job.finished);
    }
    double total = 0;
    for (std::size_t n = 0; n < out.queues.size(); ++n) {
        QueueMetrics& queue = out.queues[n];
        queue.name = scenario.queues[n].name;
        if (n < result.queues.size()) {
            const QueueResult& counted = result.queues[n];
            queue.error = counted.error;
            // A job that still runs has used time that no record tells of yet.
            if (counted.has_stats) {
                queue.engine_ps = std::max(queue.engine_ps, counted.vector_ps + counted.copy_ps);
                queue.preempted = counted.preempted;
            }
        }
        queue.mean_wait = mean(waits[n]);
        queue.max_wait = waits[n].empty() ? 0 : *std::ranges::max_element(waits[n]);
        total += static_cast<double>(queue.engine_ps);
        out.jobs += queue.jobs;
        out.preemptions += queue.preempted;
    }
    std::vector<double> shares;
    for (std::size_t n = 0; n < out.queues.size(); ++n) {
        QueueMetrics& queue = out.queues[n];
        queue.share = total > 0 ? static_cast<double>(queue.engine_ps) / total : 0;
        if (queue.engine_ps != 0)
            shares.push_back(static_cast<double>(queue.engine_ps) / scenario.queues[n].weight);
    }
    out.fairness = jain(shares);
    std::ranges::sort(all);
    out.mean_wait = mean(all);
    out.p50_wait = percentile(all, 50);
    out.p95_wait = percentile(all, 95);
    out.p99_wait = percentile(all, 99);
    out.max_wait = all.empty() ? 0 : all.back();
    return out;
}

std::string to_text(const Metrics& metrics) {
    std::string out = fmt::format(
        "makespan {:.3f} us, {} jobs, {} decisions, {} preemptions, core busy {:.3f} us\n"
        "wait us: mean {:.3f}, median {:.3f}, 95 % {:.3f}, 99 % {:.3f}, longest {:.3f}; fairness {:.4f}\n",
        us(metrics.makespan), metrics.jobs, metrics.decisions, metrics.preemptions, us(metrics.core_busy_ps),
        us(metrics.mean_wait), us(metrics.p50_wait), us(metrics.p95_wait), us(metrics.p99_wait),
        us(metrics.max_wait), metrics.fairness);
    out += fmt::format("{:<24}{:>7}{:>14}{:>8}{:>13}{:>13}{:>13}{:>8}{:>7}\n", "queue", "jobs", "engine us",
                       "share", "mean wait", "longest", "finish", "preempt", "error");
    constexpr std::size_t kShown = 40;
    for (std::size_t n = 0; n < metrics.queues.size() && n < kShown; ++n) {
        const QueueMetrics& queue = metrics.queues[n];
        out += fmt::format("{:<24}{:>7}{:>14.3f}{:>7.1f}%{:>13.3f}{:>13.3f}{:>13.3f}{:>8}{:>7}\n", queue.name,
                           queue.jobs, us(queue.engine_ps), 100 * queue.share, us(queue.mean_wait),
                           us(queue.max_wait), us(queue.finish), queue.preempted, queue.error);
    }
    if (metrics.queues.size() > kShown)
        out += fmt::format("... and {} more queues\n", metrics.queues.size() - kShown);
    return out;
}

nlohmann::json to_json(const Metrics& metrics) {
    nlohmann::json queues = nlohmann::json::array();
    for (const QueueMetrics& queue : metrics.queues) {
        queues.push_back({{"name", queue.name},
                          {"jobs", queue.jobs},
                          {"engine_ps", queue.engine_ps},
                          {"share", queue.share},
                          {"mean_wait_ps", queue.mean_wait},
                          {"longest_wait_ps", queue.max_wait},
                          {"finish_ps", queue.finish},
                          {"preempted", queue.preempted},
                          {"error", queue.error}});
    }
    return {{"makespan_ps", metrics.makespan},
            {"jobs", metrics.jobs},
            {"decisions", metrics.decisions},
            {"preemptions", metrics.preemptions},
            {"core_busy_ps", metrics.core_busy_ps},
            {"fairness", metrics.fairness},
            {"wait_ps",
             {{"mean", metrics.mean_wait},
              {"p50", metrics.p50_wait},
              {"p95", metrics.p95_wait},
              {"p99", metrics.p99_wait},
              {"longest", metrics.max_wait}}},
            {"queues", queues}};
}

nlohmann::json to_json(const Scenario& scenario, const Result& result) {
    const auto time = [](Ps at) { return at == kUnknown ? nlohmann::json() : nlohmann::json(at); };
    nlohmann::json out = {{"scenario", scenario.name},
                          {"done", result.done},
                          {"end_ps", result.end},
                          {"metrics", to_json(measure(scenario, result))}};
    for (const JobResult& job : result.jobs) {
        out["jobs"].push_back({{"queue", scenario.queues[job.queue].name},
                               {"index", job.index},
                               {"op", to_string(job.job.op)},
                               {"submitted_ps", time(job.submitted)},
                               {"started_ps", time(job.started)},
                               {"finished_ps", time(job.finished)},
                               {"used_ps", job.used_ps},
                               {"preempted", job.preempted}});
    }
    for (const Decision& one : result.decisions) {
        out["decisions"].push_back(
            {{"at_ps", one.at},
             {"queue", one.queue < scenario.queues.size() ? nlohmann::json(scenario.queues[one.queue].name)
                                                          : nlohmann::json()},
             {"rule", one.rule},
             {"resource", one.resource},
             {"candidates", one.candidates},
             {"index", one.index}});
    }
    for (const Message& event : result.events) {
        out["events"].push_back(
            {{"at_ps", event.at},
             {"card", event.card},
             {"opcode", event.message.opcode},
             {"args", std::vector<std::uint64_t>(event.message.arg, event.message.arg + 6)}});
    }
    for (const QueueResult& queue : result.queues) {
        out["queues"].push_back({{"name", queue.name},
                                 {"submitted", queue.submitted},
                                 {"completed", queue.completed},
                                 {"error", queue.error},
                                 {"error_index", queue.error_index},
                                 {"error_address", queue.error_address},
                                 {"error_detail", queue.error_detail}});
    }
    for (const auto& counters : result.counters) {
        nlohmann::json card;
#define ORR_COUNTER_JSON(number, NAME, name, unit) card[name] = counters[number];
        ORR_COUNTER_LIST(ORR_COUNTER_JSON)
#undef ORR_COUNTER_JSON
        out["counters"].push_back(card);
    }
    out["log"] = result.log;
    return out;
}

}  // namespace orrery::scenario
