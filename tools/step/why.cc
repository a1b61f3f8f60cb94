#include "tools/step/why.h"

#include <orrery/fw/mailbox.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <map>

#include "tools/step/names.h"

namespace orrery::step {
namespace {

// Kind of the engine on which the queue's preempted work ran: that is where it wants to go on.
std::uint64_t suspended_kind(const History& history, const Snapshot& snapshot, std::uint32_t queue,
                             Time now) {
    std::uint64_t kind = ORR_ENGINE_VECTOR;
    const QueueLife* life = history.queue_at(queue, now);
    if (life == nullptr) return kind;
    for (const std::size_t at : life->jobs) {
        const Job& job = history.jobs()[at];
        if (job.start() > now) break;
        for (const Segment& segment : job.segments) {
            if (segment.start > now) break;
            const auto port = std::ranges::find(snapshot.ports, segment.port, &PortRow::number);
            if (port != snapshot.ports.end()) kind = port->kind;
        }
    }
    return kind;
}

bool wants(const History& history, const Snapshot& snapshot, const QueueRow& row, std::uint32_t resource,
           std::uint32_t rule, Time now) {
    switch (row.state) {
        case ORR_TSTATE_READY:
            return resource == ORR_RESOURCE_TURN || resource == ORR_RESOURCE_SLOT;
        case ORR_TSTATE_COPY_PORT:
            return resource == ORR_RESOURCE_COPY;
        case ORR_TSTATE_VECTOR_PORT:
            return resource == ORR_RESOURCE_VECTOR;
        case ORR_TSTATE_SUSPENDED:
            if (resource != ORR_RESOURCE_COPY && resource != ORR_RESOURCE_VECTOR) return false;
            return suspended_kind(history, snapshot, row.number, now) ==
                   (resource == ORR_RESOURCE_COPY ? ORR_ENGINE_COPY : ORR_ENGINE_VECTOR);
        case ORR_TSTATE_QUOTA:
            return rule == ORR_RULE_NOBODY;
        case ORR_TSTATE_GANG:
            return rule == ORR_RULE_GANG && resource == ORR_RESOURCE_VECTOR;
        default:
            return false;
    }
}

std::string since(const QueueRow& row, Time now) {
    if (row.ready_since_ps == 0 || row.ready_since_ps > now || row.ready_since_ps == kNever) return "";
    return duration(now - row.ready_since_ps);
}

std::string why_not(const QueueRow& q, const QueueRow* chosen, std::uint32_t rule, Time now) {
    if (q.state == ORR_TSTATE_QUOTA) return "its context is over its quota for this period";
    if (chosen == nullptr) return "a gang holds the resource, or its context is over its quota";
    const std::string its_class = class_name(q.priority), other = class_name(chosen->priority);
    if (rule == ORR_RULE_GANG && q.state != ORR_TSTATE_GANG)
        return "is not of the gang, whose members start together";
    if (q.priority < chosen->priority) {
        const std::string waits = since(q, now);
        return fmt::format(
            "class {} is below {}{}", its_class, other,
            waits.empty() ? "" : fmt::format(", and its bound on waiting has not come (it waits {})", waits));
    }
    if (q.priority > chosen->priority) {
        if (rule == ORR_RULE_BOUND)
            return fmt::format("class {} is above, but {}'s bound on waiting had come", its_class, other);
        if (rule == ORR_RULE_RESUME || rule == ORR_RULE_GANG)
            return fmt::format("class {} is above, but rule '{}' goes first", its_class, rule_name(rule));
        return fmt::format("class {} is above {}: it became a candidate behind this decision's search",
                           its_class, other);
    }
    if (rule == ORR_RULE_RESUME && q.state != ORR_TSTATE_SUSPENDED)
        return fmt::format("was not preempted: what was goes first in class {}", its_class);
    if (q.vtime > chosen->vtime)
        return fmt::format("has used more engine time for its weight: vtime {} against {}", q.vtime_text,
                           chosen->vtime_text);
    if (q.vtime == chosen->vtime) return "same vtime; the other one came first";
    return fmt::format("vtime {} is within the same bucket as {}; the other one came first", q.vtime_text,
                       chosen->vtime_text);
}

std::string rule_in_words(const Why& why, const QueueRow* chosen, Time now) {
    const std::uint32_t rule = why.record.b & 0xff;
    const std::string its_class = chosen == nullptr ? "" : class_name(chosen->priority);
    const auto of_class =
        chosen == nullptr ? 0 : std::ranges::count_if(why.candidates, [&](const Candidate& c) {
            return c.row.priority == chosen->priority;
        });
    switch (rule) {
        case ORR_RULE_ONLY:
            return "it is the only candidate";
        case ORR_RULE_PRIORITY:
            return fmt::format("it is the only one of the highest class, {}", its_class);
        case ORR_RULE_SHARE:
            return fmt::format("it has used the least engine time for its weight of {} in class {}{}",
                               of_class, its_class,
                               chosen == nullptr ? "" : fmt::format(" (vtime {})", chosen->vtime_text));
        case ORR_RULE_BOUND: {
            const std::string waits = chosen == nullptr ? "" : since(*chosen, now);
            return fmt::format("class {} is lower, but has waited for its bound{}: it gets one slice",
                               its_class, waits.empty() ? "" : " (" + waits + ")");
        }
        case ORR_RULE_RESUME:
            return fmt::format("it was preempted, and is first of class {} again", its_class);
        case ORR_RULE_GANG:
            return "its gang is complete: all members start together";
        case ORR_RULE_PREEMPT:
            return fmt::format("class {} takes the place of a lower class{}", its_class,
                               why.victim.empty() ? "" : ": " + why.victim);
        case ORR_RULE_SLICE:
            return fmt::format("it takes the place of one whose time slice is over{}",
                               why.victim.empty() ? "" : ": " + why.victim);
        case ORR_RULE_NOBODY:
            return "nobody may have it: the candidates are over their quota, or a gang holds it";
        default:
            break;
    }
    return fmt::format("rule {} of a firmware that is newer than this tool", rule);
}

// The preemption that goes with a decision: the next record but states.
std::string victim_of(const History& history, std::size_t at) {
    const auto& records = history.records();
    for (std::size_t i = at + 1; i < records.size() && i < at + 8; ++i) {
        if (records[i].type == ORR_TRACE_DECISION) break;
        if (records[i].type != ORR_TRACE_PREEMPT) continue;
        return fmt::format("{} on port {}, {}", history.queue(records[i].a), records[i].b & 0xff,
                           preempt_name(records[i].b >> 8 & 0xff));
    }
    return "";
}

}  // namespace

Why explain(const History& history, std::size_t decision, const Snapshot& snapshot) {
    Why why;
    const std::size_t at = history.decisions()[decision];
    why.number = decision;
    why.record = history.records()[at];
    const Record& r = why.record;
    const std::uint32_t rule = r.b & 0xff, resource = r.b >> 8 & 0xff;
    why.counted = r.b >> 16;
    why.rule = rule_name(rule);
    why.resource = resource_name(resource);
    why.victim = victim_of(history, at);
    const QueueRow* chosen = r.a == ORR_TRACE_NONE ? nullptr : snapshot.queue(r.a);

    std::map<std::uint64_t, unsigned> rest;
    for (const QueueRow& row : snapshot.queues) {
        const bool is_chosen = &row == chosen;
        if (!is_chosen && !wants(history, snapshot, row, resource, rule, r.time)) {
            ++rest[row.state];
            continue;
        }
        why.candidates.push_back({row, is_chosen, is_chosen ? "" : why_not(row, chosen, rule, r.time)});
    }
    std::ranges::sort(why.candidates, [](const Candidate& a, const Candidate& b) {
        if (a.chosen != b.chosen) return a.chosen;
        if (a.row.priority != b.row.priority) return a.row.priority > b.row.priority;
        if (a.row.vtime != b.row.vtime) return a.row.vtime < b.row.vtime;
        return a.row.number < b.row.number;
    });
    why.rule_text = rule_in_words(why, chosen, r.time);
    for (Candidate& candidate : why.candidates)
        if (candidate.chosen) candidate.why = "chosen";
    for (const auto& [state, count] : rest)
        why.others.push_back(fmt::format("{} {}", count, state_name(state)));
    return why;
}

}  // namespace orrery::step
