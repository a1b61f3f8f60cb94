// queues, contexts, engines, events, and why
#include <orrery/fw/mailbox.h>
#include <orrery/fw/trace.h>

#include <algorithm>

#include "tools/records/names.h"
#include "tools/records/why.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

constexpr std::size_t kAllQueues = 40;  // more are shown only if they do something

std::string since(Time from, Time now) {
    return from == 0 || from > now ? "-" : duration(now - from);
}

Json queue_json(const QueueRow& q) {
    return {{"queue", q.number},
            {"name", q.name},
            {"context", q.context},
            {"class", class_name(q.priority)},
            {"weight", q.weight},
            {"slice_us", q.slice_us},
            {"state", state_name(q.state)},
            {"producer", q.producer},
            {"next", q.next},
            {"retired", q.retired},
            {"in_flight", q.in_flight},
            {"vtime", q.vtime},
            {"used_ps", q.used_ps},
            {"ready_since_ps", q.ready_since_ps},
            {"slot", q.slot == 0xff ? Json(nullptr) : Json(q.slot)},
            {"error", q.error == 0 ? Json(nullptr) : Json(queue_error_name(q.error))}};
}

std::string job_count(std::uint64_t n) {
    return fmt::format("{}", n);
}

}  // namespace

Json record_json(const Record& record, const Labels& labels) {
    Json json = {{"type", record_name(record.type)},
                 {"step", record.step},
                 {"time_ps", record.time},
                 {"text", describe(record, labels)}};
    const std::uint32_t queue = queue_of(record);
    if (queue != ORR_TRACE_NONE) json["queue"] = queue;
    if (record.type == ORR_TRACE_DECISION) {
        json["rule"] = rule_name(record.b & 0xff);
        json["resource"] = resource_name(record.b >> 8 & 0xff);
        json["candidates"] = record.b >> 16;
        json["index"] = record.word[0];
    }
    return json;
}

std::string moment_text(Time time) {
    return moment(time);
}

Result<Reply> cmd_queues(Debugger& debugger, const Args& args) {
    const auto snapshot = debugger.snapshot();
    if (!snapshot) return std::unexpected(snapshot.error());
    if (!args.words.empty() && args.words.front() != "all")
        return fail("'queues' or 'queues all'; 'print queue[3]' shows all of one");
    const bool all = !args.words.empty() || snapshot->queues.size() <= kAllQueues;
    const Time now = debugger.session().time();
    Reply reply;
    Json list = Json::array();
    std::size_t hidden = 0;
    Table table({{"queue", Align::kRight},
                 {"name"},
                 {"ctx", Align::kRight},
                 {"class"},
                 {"weight", Align::kRight},
                 {"state"},
                 {"for", Align::kRight},
                 {"written", Align::kRight},
                 {"next", Align::kRight},
                 {"done", Align::kRight},
                 {"flying", Align::kRight},
                 {"vtime", Align::kRight},
                 {"used", Align::kRight},
                 {"slot", Align::kRight},
                 {"error"}});
    for (const QueueRow& q : snapshot->queues) {
        list.push_back(queue_json(q));
        if (!all && q.state == ORR_TSTATE_IDLE) {
            ++hidden;
            continue;
        }
        const QueueLife* life = debugger.history().queue_at(q.number, now);
        std::string lasts = "-";
        if (life != nullptr && !life->states.empty()) {
            const auto after = std::ranges::upper_bound(life->states, now, {}, &StateChange::time);
            if (after != life->states.begin()) lasts = duration(now - std::prev(after)->time);
        }
        table.row({job_count(q.number), q.name, fmt::format("{}", q.context), class_name(q.priority),
                   fmt::format("{}", q.weight), state_name(q.state), lasts, fmt::format("{}", q.producer),
                   fmt::format("{}", q.next), fmt::format("{}", q.retired), fmt::format("{}", q.in_flight),
                   q.vtime_text, duration(q.used_ps), q.slot == 0xff ? "-" : fmt::format("{}", q.slot),
                   q.error == 0 ? "" : queue_error_name(q.error)});
    }
    reply.data["queues"] = std::move(list);
    reply.text = table.text();
    if (snapshot->queues.empty()) reply.text = "there is no queue\n";
    if (hidden > 0)
        reply.text +=
            fmt::format("{} idle queue{} not shown ('queues all')\n", hidden, hidden == 1 ? "" : "s");
    return reply;
}

Result<Reply> cmd_contexts(Debugger& debugger, const Args&) {
    const auto snapshot = debugger.snapshot();
    if (!snapshot) return std::unexpected(snapshot.error());
    Reply reply;
    Json list = Json::array();
    Table table({{"context", Align::kRight},
                 {"name"},
                 {"queues", Align::kRight},
                 {"quota"},
                 {"used in the period", Align::kRight},
                 {"state"}});
    for (const ContextRow& c : snapshot->contexts) {
        list.push_back({{"context", c.number},
                        {"name", c.name},
                        {"queues", c.queues},
                        {"quota_permille", c.quota_permille},
                        {"period_us", c.quota_period_us},
                        {"used_ps", c.used_ps},
                        {"throttled", c.throttled}});
        table.row({fmt::format("{}", c.number), c.name, fmt::format("{}", c.queues),
                   c.quota_permille == 0
                       ? "none"
                       : fmt::format("{} of {} us", percent(static_cast<double>(c.quota_permille) / 1000),
                                     c.quota_period_us),
                   c.quota_permille == 0 ? "-" : duration(c.used_ps), c.throttled ? "over its quota" : ""});
    }
    reply.data["contexts"] = std::move(list);
    reply.text = snapshot->contexts.empty() ? "there is no context\n" : table.text();
    return reply;
}

Result<Reply> cmd_engines(Debugger& debugger, const Args&) {
    const auto snapshot = debugger.snapshot();
    if (!snapshot) return std::unexpected(snapshot.error());
    const Time now = debugger.session().time();
    Reply reply;
    Json list = Json::array();
    Table table({{"port", Align::kRight},
                 {"kind"},
                 {"state"},
                 {"queue"},
                 {"packet", Align::kRight},
                 {"for", Align::kRight},
                 {"limit in", Align::kRight}});
    for (const PortRow& p : snapshot->ports) {
        Json json = {{"port", p.number}, {"kind", engine_kind_name(p.kind)}, {"busy", p.busy}};
        if (p.busy) {
            json["queue"] = p.queue;
            json["index"] = p.index;
            json["started_ps"] = p.started_ps;
            json["preempting"] = p.preempting != 0;
            const bool limited = p.deadline_ps != 0 && p.deadline_ps != kNever;
            table.row({fmt::format("{}", p.number), engine_kind_name(p.kind),
                       p.preempting != 0 ? "is being preempted" : "busy",
                       debugger.history().queue(static_cast<std::uint32_t>(p.queue), now),
                       fmt::format("{}", p.index), since(p.started_ps, now),
                       !limited              ? "-"
                       : p.deadline_ps > now ? duration(p.deadline_ps - now)
                                             : "over"});
        } else {
            table.row({fmt::format("{}", p.number), engine_kind_name(p.kind), "free"});
        }
        list.push_back(std::move(json));
    }
    reply.data["engines"] = std::move(list);
    reply.text = snapshot->ports.empty() ? "the firmware shows no engines\n" : table.text();
    return reply;
}

Result<Reply> cmd_events(Debugger& debugger, const Args& args) {
    std::uint64_t count = 10;
    if (!args.words.empty()) {
        const auto number = parse_number(args.words.front());
        if (!number) return std::unexpected(number.error());
        if (args.words.size() > 1 || *number == 0) return fail("'events' or 'events 30'");
        count = std::min<std::uint64_t>(*number, debugger.history().records().size());
    }
    const auto& records = debugger.history().records();
    const std::size_t here = debugger.history().first_at_or_after(debugger.session().position());
    std::size_t from = here - std::min<std::size_t>(here, count / 2);
    const std::size_t to = std::min<std::size_t>(records.size(), from + count);
    if (to - from < count) from = to - std::min<std::size_t>(to, count);
    Reply reply;
    Json list = Json::array();
    Table table({{"", Align::kLeft}, {"event", Align::kRight}, {"time", Align::kRight}, {"what"}, {""}});
    for (std::size_t i = from; i < to; ++i) {
        const Record& record = records[i];
        Json json = record_json(record, debugger.history());
        json["number"] = i;
        list.push_back(std::move(json));
        table.row({i == here ? "=>" : "", fmt::format("{}", i), moment(record.time), record_name(record.type),
                   describe(record, debugger.history())});
    }
    reply.data["events"] = std::move(list);
    reply.text = records.empty() ? "the firmware wrote no trace records\n" : table.text();
    return reply;
}

Result<Reply> cmd_why(Debugger& debugger, const Args& args) {
    const History& history = debugger.history();
    const auto& decisions = history.decisions();
    if (decisions.empty()) return fail("the recording holds no decision: 'info' tells what it has");
    Session& session = debugger.session();
    const std::uint64_t here = session.position();
    std::size_t which = 0;
    if (!args.words.empty()) {
        const auto number = parse_number(args.words.front());
        if (!number) return std::unexpected(number.error());
        if (*number >= decisions.size())
            return fail("there is no decision {}: they run from 0 to {}", *number, decisions.size() - 1);
        if (args.words.size() > 1) return fail("'why' or 'why 17'");
        which = *number;
    } else {
        const auto after = std::ranges::upper_bound(decisions, here, {},
                                                    [&](std::size_t i) { return history.records()[i].step; });
        if (after == decisions.begin())
            return fail("no decision has been taken at this position: 'step decision' goes to the first");
        which = static_cast<std::size_t>(after - decisions.begin()) - 1;
    }
    const Record& record = history.records()[decisions[which]];
    session.seek(record.step);
    const auto snapshot = debugger.snapshot();
    const auto policy = find_policy(session.sram());
    session.seek(here);
    if (!snapshot) return std::unexpected(snapshot.error());
    return why_reply(explain(history, which, *snapshot, policy ? &*policy : nullptr), history,
                     debugger.style());
}

Reply why_reply(const Why& why, const History& history, const Style& style) {
    Reply reply;
    const Record& r = why.record;
    const bool nobody = r.a == ORR_TRACE_NONE;
    reply.data = {{"decision", why.number},
                  {"step", r.step},
                  {"time_ps", r.time},
                  {"resource", why.resource},
                  {"queue", nobody ? Json(nullptr) : Json(r.a)},
                  {"index", r.word[0]},
                  {"rule", why.rule},
                  {"rule_text", why.rule_text},
                  {"counted", why.counted}};
    std::string& t = reply.text;
    t = fmt::format("decision {} at {} (step {}): {} {}\n", why.number, moment(r.time), r.step,
                    resource_phrase(r.b >> 8 & 0xff),
                    nobody ? "goes to nobody"
                           : "goes to " + style.strong(history.queue(r.a, r.time)) +
                                 fmt::format(", packet {}", r.word[0]));
    t += fmt::format("rule {}: {}\n", style.strong(why.rule), why.rule_text);
    if (!why.victim.empty()) reply.data["victim"] = why.victim;
    Json list = Json::array();
    Table table({{""},
                 {"queue", Align::kRight},
                 {"name"},
                 {"packet", Align::kRight},
                 {"class"},
                 {"weight", Align::kRight},
                 {"vtime", Align::kRight},
                 {"state"},
                 {"for", Align::kRight},
                 {"why"}});
    for (const Candidate& c : why.candidates) {
        const QueueRow& q = c.row;
        const bool known = c.since != kNever && c.since <= r.time;
        table.row({c.chosen ? "=>" : "", fmt::format("{}", q.number), q.name, fmt::format("{}", c.index),
                   class_name(q.priority), fmt::format("{}", q.weight), duration(c.vtime), c.state,
                   known ? duration(r.time - c.since) : "-", c.why});
        Json json = queue_json(q);
        json["packet"] = c.index;
        json["candidate_as"] = c.state;
        json["vtime_compared"] = c.vtime;
        json["chosen"] = c.chosen;
        json["why"] = c.why;
        if (known) json["for_ps"] = r.time - c.since;
        list.push_back(std::move(json));
    }
    t += table.text("  ");
    std::string others;
    for (const std::string& other : why.others)
        others += (others.empty() ? "" : ", ") + other;
    if (!others.empty()) t += style.faint(fmt::format("no candidates: {}", others)) + "\n";
    if (why.counted != why.candidates.size() && !(nobody && why.counted == 0))
        t += style.faint(fmt::format("(the firmware counted {} candidate{})", why.counted,
                                     why.counted == 1 ? "" : "s")) +
             "\n";
    reply.data["candidates"] = std::move(list);
    reply.data["others"] = why.others;
    return reply;
}

}  // namespace orrery::step
