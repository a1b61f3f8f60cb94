// summary
#include "tools/step/base/units.h"
#include "tools/step/commands/commands.h"
#include "tools/step/records/names.h"
#include "tools/step/records/statistics.h"

namespace orrery::step {
namespace {

Json json_of(const Percentiles& p) {
    return {{"p50_ps", p.p50}, {"p90_ps", p.p90}, {"p99_ps", p.p99}, {"max_ps", p.max}};
}

}  // namespace

Result<Reply> cmd_summary(Debugger& debugger, const Args&) {
    const History& history = debugger.history();
    const Statistics s = statistics(history);
    if (s.queues.empty()) return fail("no queue had any work in this recording");
    Reply reply;
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
    Json list = Json::array();
    const auto row = [&](const std::string& name, const Percentiles& l, const Percentiles& w) {
        times.row({name, duration(l.p50), duration(l.p90), duration(l.p99), duration(l.max), duration(w.p50),
                   duration(w.p90), duration(w.p99), duration(w.max)});
    };
    for (const QueueStatistics& q : s.queues) {
        const std::string name = history.queue(q.queue->number, q.queue->created);
        table.row({name, class_name(q.queue->priority), fmt::format("{}", q.queue->weight),
                   q.unfinished == 0 ? fmt::format("{}", q.jobs)
                                     : fmt::format("{} of {}", q.jobs, q.jobs + q.unfinished),
                   duration(q.engine_time), percent(q.share), fmt::format("{}", q.preemptions),
                   q.queue->error == 0 ? "" : queue_error_name(q.queue->error)});
        if (q.jobs > 0) row(name, q.latency, q.waiting);
        list.push_back(
            {{"queue", q.queue->number},
             {"name", q.queue->name},
             {"class", class_name(q.queue->priority)},
             {"weight", q.queue->weight},
             {"packets", q.queue->packets},
             {"jobs", q.jobs},
             {"unfinished", q.unfinished},
             {"engine_ps", q.engine_time},
             {"share", q.share},
             {"preemptions", q.preemptions},
             {"error", q.queue->error == 0 ? Json(nullptr) : Json(queue_error_name(q.queue->error))},
             {"latency", json_of(q.latency)},
             {"waiting", json_of(q.waiting)}});
    }
    if (s.queues.size() > 1 && s.jobs > 0) row("all", s.latency, s.waiting);
    reply.data = {{"makespan_ps", s.makespan()},
                  {"fairness", s.fairness},
                  {"jobs", s.jobs},
                  {"decisions", s.decisions},
                  {"preemptions", s.preemptions},
                  {"errors", s.errors},
                  {"engine_ps", s.engine_time},
                  {"deadlocks", history.deadlocks().size()},
                  {"latency", json_of(s.latency)},
                  {"waiting", json_of(s.waiting)},
                  {"queues", std::move(list)}};
    reply.text = table.text();
    if (!times.empty()) {
        reply.text +=
            "\nby job: latency from the doorbell to the end; waiting: how much of it for a turn or an "
            "engine\n" +
            times.text();
    }
    reply.text += fmt::format(
        "\nmakespan {}  fairness {:.4f} (Jain, engine time for its weight)  {} jobs, {} decisions, {} "
        "preemption{}",
        duration(s.makespan()), s.fairness, s.jobs, s.decisions, s.preemptions,
        s.preemptions == 1 ? "" : "s");
    if (s.errors > 0) reply.text += fmt::format(", {} error{}", s.errors, s.errors == 1 ? "" : "s");
    if (!history.deadlocks().empty())
        reply.text += fmt::format(", {} deadlock{}", history.deadlocks().size(),
                                  history.deadlocks().size() == 1 ? "" : "s");
    reply.text += "\n";
    return reply;
}

}  // namespace orrery::step
