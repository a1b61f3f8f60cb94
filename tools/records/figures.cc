#include "tools/records/figures.h"

#include "tools/records/names.h"
#include "tools/text/table.h"

namespace orrery::records {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Percentiles& p) {
    return {{"mean_ps", p.mean}, {"p50_ps", p.p50}, {"p90_ps", p.p90}, {"p99_ps", p.p99}, {"max_ps", p.max}};
}

std::string jobs_text(const QueueStatistics& q) {
    return q.unfinished == 0 ? fmt::format("{}", q.jobs)
                             : fmt::format("{} of {}", q.jobs, q.jobs + q.unfinished);
}

std::string plural(std::uint64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string makespan_text(const Statistics& s) {
    return (s.done ? "" : "> ") + duration(s.makespan());
}

std::string to_text(const History& history, const Statistics& s) {
    Table table({{"queue"},
                 {"class"},
                 {"weight", Align::kRight},
                 {"jobs", Align::kRight},
                 {"engine time", Align::kRight},
                 {"share", Align::kRight},
                 {"preempted", Align::kRight},
                 {"error"}});
    Table times({{"queue"},
                 {"latency p50", Align::kRight},
                 {"p90", Align::kRight},
                 {"p99", Align::kRight},
                 {"max", Align::kRight},
                 {"waiting p50", Align::kRight},
                 {"p90", Align::kRight},
                 {"p99", Align::kRight},
                 {"max", Align::kRight}});
    const auto row = [&](const std::string& name, const Percentiles& l, const Percentiles& w) {
        times.row({name, duration(l.p50), duration(l.p90), duration(l.p99), duration(l.max), duration(w.p50),
                   duration(w.p90), duration(w.p99), duration(w.max)});
    };
    for (const QueueStatistics& q : s.queues) {
        const std::string name = history.queue(q.queue->number, q.queue->created);
        table.row({name, class_name(q.queue->priority), fmt::format("{}", q.queue->weight), jobs_text(q),
                   duration(q.engine_time), percent(q.share), fmt::format("{}", q.preemptions),
                   q.queue->error == 0 ? "" : queue_error_name(q.queue->error)});
        if (q.jobs > 0 || q.waiting.max > 0) row(name, q.latency, q.waiting);
    }
    if (s.queues.size() > 1 && s.jobs > 0) row("all", s.latency, s.waiting);
    std::string text = table.text();
    if (!times.empty()) {
        text +=
            "\nby job: latency from the doorbell to the end; waiting: how much of it for a turn or an "
            "engine\n" +
            times.text();
    }
    text += fmt::format("\nmakespan {}  fairness {:.4f} (Jain, engine time for its weight)  {}, {}, {}",
                        makespan_text(s), s.fairness, plural(s.jobs, "job"), plural(s.decisions, "decision"),
                        plural(s.preemptions, "preemption"));
    if (s.errors > 0) text += ", " + plural(s.errors, "error");
    if (!history.deadlocks().empty()) text += ", " + plural(history.deadlocks().size(), "deadlock");
    text += "\n";
    if (!s.done) text += fmt::format("not all work was done by {}\n", moment(s.end));
    return text;
}

Json to_json(const History& history, const Statistics& s) {
    Json list = Json::array();
    for (const QueueStatistics& q : s.queues) {
        list.push_back(
            {{"queue", q.queue->number},
             {"name", q.queue->name},
             {"class", class_name(q.queue->priority)},
             {"weight", q.queue->weight},
             {"packets", q.queue->packets},
             {"jobs", q.jobs},
             {"unfinished", q.unfinished},
             {"done", q.done},
             {"engine_ps", q.engine_time},
             {"share", q.share},
             {"preemptions", q.preemptions},
             {"last_end_ps", q.last_end == 0 ? Json(nullptr) : Json(q.last_end)},
             {"error", q.queue->error == 0 ? Json(nullptr) : Json(queue_error_name(q.queue->error))},
             {"latency", json_of(q.latency)},
             {"waiting", json_of(q.waiting)}});
    }
    return {{"done", s.done},
            {"makespan_ps", s.done ? Json(s.makespan()) : Json(nullptr)},
            {"end_ps", s.end},
            {"fairness", s.fairness},
            {"jobs", s.jobs},
            {"unfinished", s.unfinished},
            {"decisions", s.decisions},
            {"preemptions", s.preemptions},
            {"errors", s.errors},
            {"engine_ps", s.engine_time},
            {"deadlocks", history.deadlocks().size()},
            {"latency", json_of(s.latency)},
            {"waiting", json_of(s.waiting)},
            {"queues", std::move(list)}};
}

}  // namespace orrery::records
