#include "tools/step/scenario/whatif.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/step/scenario/extract.h"
#include "tools/step/scenario/words.h"

namespace orrery::scenario {

namespace {

constexpr std::size_t kShownDecisions = 5;  // from the first different one on

std::string decision_text(const WhatIf& result, const Decision* decision) {
    if (decision == nullptr) return "-";
    const std::string queue = decision->queue < result.scenario.queues.size()
                                  ? result.scenario.queues[decision->queue].name
                                  : "nobody";
    return fmt::format("{:.3f} us {} packet {} {} ({} of {})", static_cast<double>(decision->at) / 1e6, queue,
                       decision->index, resource_word(decision->resource), rule_word(decision->rule),
                       decision->candidates);
}

const Decision* at(const std::vector<Decision>& list, std::size_t n) {
    return n < list.size() ? &list[n] : nullptr;
}

// Decisions over engines only: turns of the core depend on when it looks, and say little.
std::vector<Decision> of_engines(const std::vector<Decision>& all) {
    std::vector<Decision> kept;
    std::ranges::copy_if(all, std::back_inserter(kept),
                         [](const Decision& one) { return is_engine(one.resource); });
    return kept;
}

}  // namespace

std::expected<WhatIf, std::string> what_if(const std::string& trace, const WhatIfOptions& options) {
    auto from = extract(trace);
    if (!from) return std::unexpected(from.error());
    Options run_options;
    run_options.image = from->image;
    if (!options.firmware.empty()) {
        auto image = Image::load(options.firmware);
        if (!image) return std::unexpected(image.error());
        run_options.image = *std::move(image);
    }
    for (const auto& [name, value] : options.policy) {
        if (const auto set = run_options.image.set_policy(name, value); !set)
            return std::unexpected(set.error());
    }
    auto played = run(from->scenario, run_options);
    if (!played) return std::unexpected(played.error());

    WhatIf out;
    out.trace = trace;
    out.recorded_firmware = from->build_id;
    out.firmware = run_options.image.build_id();
    out.scenario = std::move(from->scenario);
    out.start = from->start;
    out.notes = std::move(from->notes);
    if (!played->done) out.notes.emplace_back("not all work was done when the what-if ended");
    out.before = measure(out.scenario, from->recorded);
    // Engine time of both sides from the same source: the jobs that have ended.
    played->queues.clear();
    out.after = measure(out.scenario, *played);
    out.decisions_before = of_engines(from->recorded.decisions);
    out.decisions_after = of_engines(played->decisions);
    const std::size_t longer = std::max(out.decisions_before.size(), out.decisions_after.size());
    for (std::size_t n = 0; n < longer && !out.first_different; ++n) {
        const Decision *before = at(out.decisions_before, n), *after = at(out.decisions_after, n);
        if (before == nullptr || after == nullptr || !before->same_choice(*after)) out.first_different = n;
    }
    return out;
}

std::string to_text(const WhatIf& result) {
    const auto us = [](Ps time) { return static_cast<double>(time) / 1e6; };
    std::string out = fmt::format("what if: {}\n  recorded with {}, played with {}\n", result.trace,
                                  result.recorded_firmware, result.firmware);
    out += fmt::format("  {} jobs of {} queues arrive at their recorded times\n", result.before.jobs,
                       result.scenario.queues.size());
    if (result.start != 0)
        out += fmt::format("  times count from {:.3f} us of the recording\n", us(result.start));
    for (const std::string& note : result.notes)
        out += "  note: " + note + "\n";
    out += fmt::format("\n{:<28}{:>16}{:>16}{:>10}\n", "", "recorded", "what if", "change");
    const auto row = [&](const char* name, double before, double after, int digits) {
        const std::string change = before == after ? "="
                                   : before == 0   ? ""
                                                   : fmt::format("{:+.1f} %", 100 * (after / before - 1));
        out += fmt::format("{:<28}{:>16.{}f}{:>16.{}f}{:>10}\n", name, before, digits, after, digits, change);
    };
    const Metrics &before = result.before, &after = result.after;
    row("makespan us", us(before.makespan), us(after.makespan), 3);
    row("mean wait us", us(before.mean_wait), us(after.mean_wait), 3);
    row("median wait us", us(before.p50_wait), us(after.p50_wait), 3);
    row("95 % wait us", us(before.p95_wait), us(after.p95_wait), 3);
    row("longest wait us", us(before.max_wait), us(after.max_wait), 3);
    row("fairness (Jain)", before.fairness, after.fairness, 4);
    row("preemptions", static_cast<double>(before.preemptions), static_cast<double>(after.preemptions), 0);
    row("jobs finished", static_cast<double>(before.jobs), static_cast<double>(after.jobs), 0);
    out += fmt::format("\n{:<24}{:>13}{:>13}{:>14}{:>14}{:>10}{:>10}\n", "queue", "mean wait", "what if",
                       "finish us", "what if", "share", "what if");
    for (std::size_t n = 0; n < before.queues.size() && n < after.queues.size(); ++n) {
        const QueueMetrics &was = before.queues[n], &is = after.queues[n];
        out += fmt::format("{:<24}{:>13.3f}{:>13.3f}{:>14.3f}{:>14.3f}{:>9.1f}%{:>9.1f}%\n", was.name,
                           us(was.mean_wait), us(is.mean_wait), us(was.finish), us(is.finish),
                           100 * was.share, 100 * is.share);
    }
    if (!result.first_different) {
        out += fmt::format("\nall {} decisions over engines are the same\n", result.decisions_before.size());
        return out;
    }
    const std::size_t first = *result.first_different;
    out += fmt::format("\nthe first different decision over engines is number {} (of {} and {})\n", first + 1,
                       result.decisions_before.size(), result.decisions_after.size());
    for (std::size_t n = first; n < first + kShownDecisions; ++n) {
        const Decision *was = at(result.decisions_before, n), *is = at(result.decisions_after, n);
        if (was == nullptr && is == nullptr) break;
        out += fmt::format("  recorded {}\n  what if  {}\n", decision_text(result, was),
                           decision_text(result, is));
    }
    return out;
}

nlohmann::json to_json(const WhatIf& result) {
    const auto decision = [&](const Decision* one) {
        if (one == nullptr) return nlohmann::json();
        return nlohmann::json{{"at_ps", one->at},
                              {"queue", one->queue < result.scenario.queues.size()
                                            ? nlohmann::json(result.scenario.queues[one->queue].name)
                                            : nlohmann::json()},
                              {"index", one->index},
                              {"resource", resource_word(one->resource)},
                              {"rule", rule_word(one->rule)},
                              {"candidates", one->candidates}};
    };
    nlohmann::json different;
    if (result.first_different) {
        different = {{"number", *result.first_different},
                     {"recorded", decision(at(result.decisions_before, *result.first_different))},
                     {"what_if", decision(at(result.decisions_after, *result.first_different))}};
    }
    return {{"trace", result.trace},
            {"recorded_firmware", result.recorded_firmware},
            {"firmware", result.firmware},
            {"start_ps", result.start},
            {"notes", result.notes},
            {"recorded", to_json(result.before)},
            {"what_if", to_json(result.after)},
            {"decisions",
             {{"recorded", result.decisions_before.size()}, {"what_if", result.decisions_after.size()}}},
            {"first_different", different}};
}

}  // namespace orrery::scenario
