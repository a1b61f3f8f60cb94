#include "tests/unit/policy/history.h"

#include <orrery/fw/trace.h>

#include <algorithm>
#include <iterator>

#include "tools/scenario/layout.h"
#include "tools/scenario/runner.h"

namespace orrery::policy {

bool decode(Ps at, const std::vector<std::uint64_t>& words, Happening& out) {
    using Kind = Happening::Kind;
    const auto word = [&](std::size_t n) { return n < words.size() ? words[n] : 0; };
    const std::uint32_t b = ORR_TRACE_B(words[0]);
    out = {};
    out.at = at;
    out.queue = ORR_TRACE_A(words[0]);
    out.index = word(1);
    switch (ORR_TRACE_TYPE(words[0])) {
        case ORR_TRACE_DECISION:
            out.kind = Kind::kDecision;
            out.rule = b & 0xff;
            out.resource = b >> 8 & 0xff;
            return true;
        case ORR_TRACE_START_JOB:
            out.kind = Kind::kStart;
            out.port = b & 0xffff;
            return true;
        case ORR_TRACE_END_JOB:
            out.kind = Kind::kEnd;
            out.port = b & 0xffff;
            out.status = b >> 16;
            out.used_ps = word(4);
            return true;
        case ORR_TRACE_PREEMPT:
            out.kind = Kind::kPreempt;
            out.port = b & 0xff;
            return true;
        case ORR_TRACE_RESUME:
            out.kind = Kind::kResume;
            out.port = b & 0xffff;
            return true;
        case ORR_TRACE_RETIRE:
            out.kind = Kind::kRetire;
            return true;
        case ORR_TRACE_SIGNAL:
            out.kind = Kind::kSignal;
            out.semaphore = word(3);
            out.value = word(2);
            return true;
        case ORR_TRACE_QUOTA:
            out.kind = Kind::kQuota;
            out.status = b;
            return true;
        case ORR_TRACE_ERROR:
            out.kind = Kind::kError;
            out.status = b;
            return true;
        case ORR_TRACE_DEADLOCK:
            out.kind = Kind::kDeadlock;
            out.holder = b & 0xffff;
            out.edge = b >> 16 & 0xff;
            out.edges = b >> 24;
            return true;
        default:
            return false;
    }
}

std::expected<History, std::string> run_on_card(const scenario::Scenario& scenario) {
    return run_on_card(scenario, {});
}

std::expected<History, std::string> run_on_card(
    const scenario::Scenario& scenario, const std::vector<std::pair<std::string, std::uint64_t>>& policy) {
    scenario::Options options;
    for (const auto& [name, value] : policy) {
        if (const auto set = options.image.set_policy(name, value); !set) return std::unexpected(set.error());
    }
    options.keep_records = true;
    auto result = scenario::run(scenario, options);
    if (!result) return std::unexpected(result.error());
    History history;
    history.copy_engines = scenario.cards[0].sku.copy_engines;
    history.vector_ports = scenario.cards[0].sku.vector_ports;
    history.semaphores_at = scenario::kSemaphoreVa;
    history.done = result->done;
    // That the core halts and is started again is what a crash is.
    const auto expected = [&](const std::string& line) {
        return !scenario.actions.empty() && (line.find("the control core halted") != std::string::npos ||
                                             line.find("the control core is restarted") != std::string::npos);
    };
    std::ranges::remove_copy_if(result->log, std::back_inserter(history.complaints), expected);
    for (const auto& record : result->records) {
        Happening one;
        if (decode(record.at, record.words, one)) history.all.push_back(one);
    }
    for (const auto& queue : result->queues) {
        history.completed.push_back(queue.completed);
        history.errors.push_back(queue.error);
    }
    history.submitted.resize(scenario.queues.size());
    for (const auto& job : result->jobs)
        history.submitted[job.queue].push_back(job.submitted);
    return history;
}

}  // namespace orrery::policy
