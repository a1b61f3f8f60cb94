#include "tools/scenario/report.h"

#include <orrery/hw/counters.h>

#include "tools/records/figures.h"
#include "tools/records/history.h"
#include "tools/records/names.h"

namespace orrery::scenario {

namespace {

using Json = nlohmann::ordered_json;

Json counters_json(const std::vector<std::uint64_t>& counters) {
    Json card;
#define ORR_COUNTER_JSON(number, NAME, name, ...) card[name] = counters[number];
    ORR_COUNTER_LIST(ORR_COUNTER_JSON)
#undef ORR_COUNTER_JSON
    return card;
}

}  // namespace

std::string to_text(const Scenario& scenario, const Result& result) {
    std::string out;
    for (std::size_t card = 0; card < result.history.size(); ++card) {
        const records::History history(result.history[card]);
        if (result.history.size() > 1) out += fmt::format("{}card {}\n", card == 0 ? "" : "\n", card);
        auto figures = records::statistics(history, result.start + result.end);
        figures.done = figures.done && (result.done || result.history.size() > 1);
        out += records::to_text(history, figures);
        out += fmt::format("the control core was busy for {}\n",
                           text::duration(result.counters[card][ORR_CTR_CORE_BUSY_PS]));
    }
    if (!result.done)
        out += fmt::format("NOT DONE: the scenario ended at {} with work left over\n",
                           text::moment(result.start + scenario.until));
    for (const Message& event : result.events) {
        out += fmt::format("{}: card {}: event {:#x} {} {} {}\n", text::moment(result.start + event.at),
                           event.card, event.message.opcode, event.message.arg[0], event.message.arg[1],
                           event.message.arg[2]);
    }
    return out;
}

Json to_json(const Scenario& scenario, const Result& result) {
    const auto time = [&](Ps at) { return at == kUnknown ? Json() : Json(result.start + at); };
    Json out = {{"scenario", scenario.name},
                {"done", result.done},
                {"start_ps", result.start},
                {"end_ps", result.start + result.end},
                {"cards", Json::array()}};
    for (std::size_t card = 0; card < result.history.size(); ++card) {
        const records::History history(result.history[card]);
        const auto figures = records::statistics(history, result.start + result.end);
        out["cards"].push_back({{"figures", records::to_json(history, figures)},
                                {"counters", counters_json(result.counters[card])}});
    }
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
    std::vector<std::size_t> numbers(result.history.size());
    for (const Decision& one : result.decisions) {
        out["decisions"].push_back(
            {{"card", one.card},
             {"number", numbers[one.card]++},
             {"time_ps", time(one.at)},
             {"queue", one.queue < scenario.queues.size() ? Json(scenario.queues[one.queue].name) : Json()},
             {"rule", records::rule_name(one.rule)},
             {"resource", records::resource_name(one.resource)},
             {"candidates", one.candidates},
             {"index", one.index}});
    }
    for (const Message& event : result.events) {
        out["events"].push_back(
            {{"time_ps", time(event.at)},
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
    out["log"] = result.log;
    return out;
}

}  // namespace orrery::scenario
