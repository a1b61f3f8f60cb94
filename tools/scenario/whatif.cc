#include "tools/scenario/whatif.h"

#include <orrery/fw/trace.h>

#include <algorithm>
#include <span>

#include "tools/records/history.h"
#include "tools/scenario/extract.h"
#include "tools/scenario/runner.h"

namespace orrery::scenario {

namespace {

std::uint32_t resource_of(const records::Record& record) {
    return record.b >> 8 & 0xff;
}

WhatIfSide side_of(std::vector<records::Record> told, Ps end, std::span<const std::uint32_t> weights = {}) {
    WhatIfSide side;
    side.history = std::make_unique<records::History>(std::move(told));
    const records::History& history = *side.history;
    side.figures = records::statistics(history, end, weights);
    for (std::size_t n = 0; n < history.decisions().size(); ++n) {
        EngineDecision one;
        one.number = n;
        one.record = &history.records()[history.decisions()[n]];
        const std::uint32_t resource = resource_of(*one.record);
        if (resource != ORR_RESOURCE_COPY && resource != ORR_RESOURCE_VECTOR) continue;
        // The scenario has the queues in the order in which they came into being.
        if (const auto* life =
                one.record->a == ORR_TRACE_NONE ? nullptr : history.queue_at(one.record->a, one.record->time))
            one.queue = static_cast<std::size_t>(life - history.queues().data());
        side.decisions.push_back(one);
    }
    return side;
}

std::optional<std::size_t> first_difference(const WhatIf& result) {
    const auto &before = result.before.decisions, &after = result.after.decisions;
    const std::size_t both = std::min(before.size(), after.size());
    for (std::size_t n = 0; n < both; ++n)
        if (!before[n].same_choice(after[n])) return n;
    if (before.size() == after.size()) return std::nullopt;
    return both;
}

// At the recorded times if that can be: the cards boot faster than a guest does, but a recording may begin
// early.
std::expected<Result, std::string> play(Extract& from, const Options& options, std::int64_t& later) {
    const Ps recorded = from.scenario.start;
    if (recorded != 0) {
        if (auto played = run(from.scenario, options)) return played;
        from.scenario.start = 0;
    }
    auto played = run(from.scenario, options);
    if (played) later = static_cast<std::int64_t>(played->start - recorded);
    return played;
}

}  // namespace

bool EngineDecision::same_choice(const EngineDecision& other) const {
    return queue == other.queue && (record->b & 0xffff) == (other.record->b & 0xffff) &&
           record->word[0] == other.record->word[0];
}

records::QueueStatistics WhatIfSide::queue(std::size_t number) const {
    if (number >= history->queues().size()) return {};
    const records::QueueStatistics* found = figures.of(&history->queues()[number]);
    return found != nullptr ? *found : records::QueueStatistics{};
}

std::expected<WhatIf, std::string> what_if(const std::string& trace, const WhatIfOptions& options) {
    auto from = extract(trace);
    if (!from) return std::unexpected(from.error());
    Options run_options;
    run_options.image = from->image;
    run_options.keep_history = true;
    if (!options.record.empty()) run_options.record = {options.record};
    if (!options.firmware.empty()) {
        auto image = Image::load(options.firmware);
        if (!image) return std::unexpected(image.error());
        run_options.image = *std::move(image);
    }
    for (const auto& [name, value] : options.policy) {
        if (const auto set = run_options.image.set_policy(name, value); !set)
            return std::unexpected(set.error());
    }
    WhatIf out;
    out.before = side_of(std::move(from->records), from->end);
    const Ps recorded_start = from->scenario.start;
    // What was left over then would be done later: what got done in the same time is what can be compared.
    if (!out.before.figures.done) from->scenario.until = from->end - std::min(from->end, recorded_start);
    auto played = play(*from, run_options, out.later_ps);
    if (!played) return std::unexpected(played.error());
    from->scenario.start = recorded_start;

    out.trace = trace;
    out.recorded_firmware = from->build_id;
    out.firmware = run_options.image.build_id();
    out.scenario = std::move(from->scenario);
    out.notes = std::move(from->notes);
    // Both are judged by the weights that were asked for, whatever the other policy makes of them.
    std::vector<std::uint32_t> weights;
    for (const records::QueueLife& queue : out.before.history->queues())
        weights.push_back(queue.weight);
    out.after = side_of(std::move(played->history[0]), played->start + played->end, weights);
    // The firmware may have nothing to do while the driver has more to tell it.
    out.after.figures.done = out.after.figures.done && played->done;
    out.first_different = first_difference(out);
    return out;
}

}  // namespace orrery::scenario
