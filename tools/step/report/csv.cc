#include <orrery/fw/trace.h>

#include "tools/records/names.h"
#include "tools/step/report/export.h"
#include "tools/step/words.h"

namespace orrery::step {
namespace {

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

std::string time_or_nothing(Time time) {
    return time == 0 || time == kNever ? "" : fmt::format("{}", time);
}

}  // namespace

std::string jobs_csv(const History& history) {
    std::string out =
        "queue,name,context,class,weight,index,packet,size,doorbell_ps,start_ps,end_ps,used_ps,latency_ps,"
        "waiting_ps,"
        "preemptions,port,status\n";
    for (const Job& job : history.jobs()) {
        const QueueLife* queue = history.queue_at(job.queue, job.start());
        const Segment& last = job.segments.back();
        const bool measured = job.finished && job.rung != 0;
        out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", job.queue,
                           quoted(queue->name), job.context, class_name(queue->priority), queue->weight,
                           job.index, packet_name(job.opcode), job.size, time_or_nothing(job.rung),
                           job.start(), job.finished ? fmt::format("{}", job.end()) : "", job.used(),
                           measured ? fmt::format("{}", job.latency()) : "",
                           measured ? fmt::format("{}", history.waiting(job)) : "", job.preemptions,
                           last.port, job.finished ? done_name(last.status) : "unfinished");
    }
    return out;
}

std::string decisions_csv(const History& history) {
    std::string out = "decision,time_ps,step,resource,queue,name,index,rule,candidates\n";
    std::size_t number = 0;
    for (const std::size_t at : history.decisions()) {
        const Record& r = history.records()[at];
        const bool nobody = r.a == ORR_TRACE_NONE;
        const QueueLife* queue = nobody ? nullptr : history.queue_at(r.a, r.time);
        out += fmt::format("{},{},{},{},{},{},{},{},{}\n", number++, r.time, r.step,
                           resource_name(r.b >> 8 & 0xff), nobody ? "" : fmt::format("{}", r.a),
                           queue == nullptr ? "" : quoted(queue->name),
                           nobody ? "" : fmt::format("{}", r.word[0]), rule_name(r.b & 0xff), r.b >> 16);
    }
    return out;
}

}  // namespace orrery::step
