// What a what-if says, to people and to programs.
#include <orrery/fw/trace.h>

#include "tools/records/figures.h"
#include "tools/records/names.h"
#include "tools/scenario/whatif.h"
#include "tools/text/table.h"

namespace orrery::scenario {

namespace {

using Json = nlohmann::ordered_json;
using records::Percentiles;
using records::QueueStatistics;
using records::Statistics;
using text::Align;

constexpr std::size_t kShownDecisions = 5;  // from the first different one on

const EngineDecision* at(const std::vector<EngineDecision>& list, std::size_t n) {
    return n < list.size() ? &list[n] : nullptr;
}

std::string queue_name(const WhatIf& result, std::size_t queue) {
    return queue < result.scenario.queues.size() ? result.scenario.queues[queue].name : "nobody";
}

std::vector<std::string> decision_row(const WhatIf& result, const char* side,
                                      const EngineDecision* decision) {
    if (decision == nullptr) return {side, "-"};
    const records::Record& r = *decision->record;
    return {side,
            fmt::format("{}", decision->number),
            text::moment(r.time),
            queue_name(result, decision->queue),
            fmt::format("{}", r.word[0]),
            records::resource_phrase(r.b >> 8 & 0xff),
            records::rule_name(r.b & 0xff),
            fmt::format("{}", r.b >> 16)};
}

// Of two figures. What was not done to its end says nothing about who is better.
std::string change(double before, double after, bool comparable) {
    if (!comparable) return "?";
    if (before == after) return "=";
    return before == 0 ? "" : fmt::format("{:+.1f} %", 100 * (after / before - 1));
}

std::string figures_text(const WhatIf& result) {
    const Statistics &before = result.before.figures, &after = result.after.figures;
    // Waiting counts all that waited; all else is of what has finished.
    const bool both_done = before.done && after.done, comparable = before.done == after.done;
    text::Table table(
        {{""}, {"recorded", Align::kRight}, {"what if", Align::kRight}, {"change", Align::kRight}});
    table.row(
        {"makespan", makespan_text(before), makespan_text(after),
         change(static_cast<double>(before.makespan()), static_cast<double>(after.makespan()), both_done)});
    const auto times = [&](const std::string& what, const Percentiles& was, const Percentiles& is,
                           bool judged) {
        const auto row = [&](const char* of, text::Time one, text::Time other) {
            table.row({what + of, text::duration(one), text::duration(other),
                       change(static_cast<double>(one), static_cast<double>(other), judged)});
        };
        row(" mean", was.mean, is.mean);
        row(" p50", was.p50, is.p50);
        row(" p99", was.p99, is.p99);
        row(" max", was.max, is.max);
    };
    times("latency", before.latency, after.latency, both_done);
    times("waiting", before.waiting, after.waiting, comparable);
    table.row({"fairness", fmt::format("{:.4f}", before.fairness), fmt::format("{:.4f}", after.fairness),
               change(before.fairness, after.fairness, both_done)});
    const auto count = [&](const char* name, std::uint64_t was, std::uint64_t is) {
        table.row({name, fmt::format("{}", was), fmt::format("{}", is),
                   change(static_cast<double>(was), static_cast<double>(is), both_done)});
    };
    count("preemptions", before.preemptions, after.preemptions);
    count("jobs finished", before.jobs, after.jobs);
    return table.text();
}

std::string queues_text(const WhatIf& result) {
    text::Table table({{"queue"},
                       {"latency mean", Align::kRight},
                       {"what if", Align::kRight},
                       {"waiting mean", Align::kRight},
                       {"what if", Align::kRight},
                       {"share", Align::kRight},
                       {"what if", Align::kRight}});
    const auto latency = [](const QueueStatistics& q) {
        if (!q.done) return std::string("not done");
        return q.jobs == 0 ? std::string("-") : text::duration(q.latency.mean);
    };
    for (std::size_t n = 0; n < result.scenario.queues.size(); ++n) {
        const QueueStatistics was = result.before.queue(n), is = result.after.queue(n);
        table.row({queue_name(result, n), latency(was), latency(is), text::duration(was.waiting.mean),
                   text::duration(is.waiting.mean), text::percent(was.share), text::percent(is.share)});
    }
    return table.text();
}

std::string decisions_text(const WhatIf& result) {
    const auto &before = result.before.decisions, &after = result.after.decisions;
    if (!result.first_different)
        return fmt::format("all {} decisions over engines are the same\n", before.size());
    std::string out = fmt::format("of {} and {} decisions over engines the first {} are the same, then:\n",
                                  before.size(), after.size(), *result.first_different);
    text::Table table({{""},
                       {"decision", Align::kRight},
                       {"time", Align::kRight},
                       {"queue"},
                       {"packet", Align::kRight},
                       {"gets"},
                       {"rule"},
                       {"candidates", Align::kRight}});
    const std::size_t first = *result.first_different;
    for (std::size_t n = first; n < first + kShownDecisions; ++n) {
        const EngineDecision *was = at(before, n), *is = at(after, n);
        if (was == nullptr && is == nullptr) break;
        table.row(decision_row(result, "recorded", was));
        table.row(decision_row(result, "what if", is));
    }
    return out + table.text("  ");
}

Json side_json(const WhatIfSide& side) {
    return records::to_json(*side.history, side.figures);
}

}  // namespace

std::string to_text(const WhatIf& result) {
    const Statistics &before = result.before.figures, &after = result.after.figures;
    std::string out = fmt::format("what if: {}\n  recorded with {}, played with {}\n", result.trace,
                                  result.recorded_firmware, result.firmware);
    out += fmt::format("  {} jobs of {} queues arrive at their recorded times\n",
                       before.jobs + before.unfinished, result.scenario.queues.size());
    if (result.later_ps != 0)
        out += fmt::format("  note: what was played is {} later than the recording in all its times\n",
                           text::duration(static_cast<text::Time>(result.later_ps)));
    for (const std::string& note : result.notes)
        out += "  note: " + note + "\n";
    if (!before.done)
        out += fmt::format("  the recording ends at {} with work left over\n", text::moment(before.end));
    if (!after.done) {
        out += fmt::format(
            "  NOT DONE: the what-if ended at {} with work left over; its figures say how far it came\n",
            text::moment(after.end));
    }
    return out + "\n" + figures_text(result) + "\n" + queues_text(result) + "\n" + decisions_text(result);
}

Json to_json(const WhatIf& result) {
    const auto decision = [&](const EngineDecision* one) {
        if (one == nullptr) return Json();
        const records::Record& r = *one->record;
        return Json{{"number", one->number},
                    {"time_ps", r.time},
                    {"queue", one->queue < result.scenario.queues.size()
                                  ? Json(result.scenario.queues[one->queue].name)
                                  : Json()},
                    {"index", r.word[0]},
                    {"resource", records::resource_name(r.b >> 8 & 0xff)},
                    {"rule", records::rule_name(r.b & 0xff)},
                    {"candidates", r.b >> 16}};
    };
    Json different;
    if (result.first_different) {
        different = {{"same_before", *result.first_different},
                     {"recorded", decision(at(result.before.decisions, *result.first_different))},
                     {"what_if", decision(at(result.after.decisions, *result.first_different))}};
    }
    return {{"trace", result.trace},
            {"recorded_firmware", result.recorded_firmware},
            {"firmware", result.firmware},
            {"later_ps", result.later_ps},
            {"notes", result.notes},
            {"recorded", side_json(result.before)},
            {"what_if", side_json(result.after)},
            {"engine_decisions",
             {{"recorded", result.before.decisions.size()}, {"what_if", result.after.decisions.size()}}},
            {"first_different", different}};
}

}  // namespace orrery::scenario
