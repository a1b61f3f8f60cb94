#include "tools/bench/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tools/bench/statistics.h"

namespace orrery::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string of_size(std::uint64_t size, std::string_view unit) {
    if (unit != "B") return fmt::format("{} {}", size, unit);
    if (size >= 1 << 20 && size % (1 << 20) == 0) return fmt::format("{} MiB", size >> 20);
    if (size >= 1 << 10 && size % (1 << 10) == 0) return fmt::format("{} KiB", size >> 10);
    return fmt::format("{} B", size);
}

double judged(const Result& result) {
    switch (result.figure->goal.of) {
        case Statistic::kMedian:
            return result.value;
        case Statistic::kP95:
            return result.p95;
        case Statistic::kMost:
            return result.most;
    }
    return result.value;
}

bool at_least(Goal::Kind kind) {
    return kind == Goal::Kind::kOfYardstickAtLeast || kind == Goal::Kind::kFasterAtLeast;
}

const Figure& find_figure(std::string_view suite, const std::string& name,
                          std::optional<std::uint64_t> size) {
    const auto all = figures();
    const auto found = std::ranges::find_if(all, [&](const Figure& figure) {
        return figure.suite == suite && figure.name == name && figure.sizes.empty() == !size;
    });
    if (found == all.end())
        throw std::runtime_error(
            fmt::format("suite {} has measured '{}', which is not in the table of figures", suite, name));
    return *found;
}

Result summary(const Figure& figure, std::optional<std::uint64_t> size, const Json& measured) {
    Result result;
    result.figure = &figure;
    result.size = size;
    const auto samples = measured.at("samples").get<std::vector<double>>();
    if (samples.empty()) throw std::runtime_error(fmt::format("'{}' has no samples", figure.name));
    const Summary s = summarise(samples);
    result.value = s.median;
    result.p10 = s.p10;
    result.p90 = s.p90;
    result.p95 = s.p95;
    result.most = s.most;
    result.count = s.count;
    const auto yardstick = measured.at("yardstick").get<std::vector<double>>();
    if (yardstick.empty() != figure.yardstick.empty())
        throw std::runtime_error(
            fmt::format("'{}': its yardstick was not measured as the table has it", figure.name));
    if (yardstick.empty()) return result;
    result.yardstick = summarise(yardstick).median;
    const auto ratio = [&](double value, double beside) {
        return figure.goal.kind == Goal::Kind::kFasterAtLeast ? beside / value : value / beside;
    };
    result.ratio = ratio(result.value, *result.yardstick);
    if (samples.size() < 2 || samples.size() != yardstick.size()) return result;
    std::vector<double> each;
    for (std::size_t i = 0; i < samples.size(); ++i)
        each.push_back(ratio(samples[i], yardstick[i]));
    const Summary spread = summarise(std::move(each));
    result.ratio_p10 = spread.p10;
    result.ratio_p90 = spread.p90;
    return result;
}

}  // namespace

std::string Result::label() const {
    if (!size) return std::string(figure->name);
    return fmt::format("{} [{}]", figure->name, of_size(*size, figure->size_unit));
}

std::string Result::goal_text() const {
    static constexpr const char* kOf[] = {"", "95 % ", "all "};
    const Goal& goal = figure->goal;
    if (size && !holds) return {};
    const char* of = kOf[static_cast<std::size_t>(goal.of)];
    switch (goal.kind) {
        case Goal::Kind::kNone:
            return {};
        case Goal::Kind::kAtMost:
        case Goal::Kind::kHostTime:
            return fmt::format("{}<= {:.3g} {}", of, bound.value_or(goal.bound), figure->unit);
        case Goal::Kind::kOfYardstickAtMost:
            return fmt::format("<= {:.3g} of it", goal.bound);
        case Goal::Kind::kOfYardstickAtLeast:
            return fmt::format(">= {:.3g} of it", goal.bound);
        case Goal::Kind::kFasterAtLeast:
            return fmt::format(">= {:.3g} x faster", goal.bound);
    }
    return {};
}

std::vector<Result> results_of(std::string_view suite, const Json& measured,
                               const std::vector<std::uint64_t>& only_sizes) {
    std::vector<Result> results;
    for (const Json& one : measured) {
        std::optional<std::uint64_t> size;
        if (!one.at("size").is_null()) size = one.at("size").get<std::uint64_t>();
        results.push_back(summary(find_figure(suite, one.at("name"), size), size, one));
    }
    for (const Figure& figure : figures()) {
        if (figure.suite != suite) continue;
        const auto& sizes = only_sizes.empty() || figure.sizes.empty() ? figure.sizes : only_sizes;
        const auto there = [&](std::optional<std::uint64_t> size) {
            return std::ranges::any_of(results, [&](const Result& result) {
                return result.figure == &figure && (!size || result.size == size);
            });
        };
        const bool all = sizes.empty()
                             ? there(std::nullopt)
                             : std::ranges::all_of(sizes, [&](std::uint64_t s) { return there(s); });
        if (!all)
            throw std::runtime_error(
                fmt::format("suite {} has not measured '{}' as the table has it", suite, figure.name));
    }
    return results;
}

void judge(std::vector<Result>& results, double host_factor) {
    for (Result& result : results) {
        const Goal& goal = result.figure->goal;
        if (goal.kind == Goal::Kind::kNone) continue;
        // Other sizes than the table's are shown.
        const auto& sizes = result.figure->sizes;
        if (result.size && std::ranges::find(sizes, *result.size) == sizes.end()) continue;
        if (result.size && goal.size != 0 && goal.size != *result.size) continue;
        result.bound = goal.kind == Goal::Kind::kHostTime ? goal.bound * host_factor : goal.bound;
        const bool absolute = goal.kind == Goal::Kind::kAtMost || goal.kind == Goal::Kind::kHostTime;
        const double value = absolute ? judged(result) : result.ratio.value();
        result.holds = at_least(goal.kind) ? value >= *result.bound : value <= *result.bound;
    }
}

std::optional<double> host_factor(const std::vector<Result>& results) {
    for (const Result& result : results) {
        if (result.figure->yardstick == "Unicorn, counting" && result.size == result.figure->goal.size)
            return kReferenceMips / result.yardstick.value();
    }
    return std::nullopt;
}

Json to_json(const Result& result) {
    const auto maybe = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
    const std::string goal = result.goal_text();
    return {{"name", result.figure->name},
            {"size", maybe(result.size)},
            {"value", result.value},
            {"p10", result.p10},
            {"p90", result.p90},
            {"p95", result.p95},
            {"most", result.most},
            {"samples", result.count},
            {"unit", result.figure->unit},
            {"yardstick", result.figure->yardstick.empty() ? Json(nullptr) : Json(result.figure->yardstick)},
            {"yardstick_value", maybe(result.yardstick)},
            {"ratio", maybe(result.ratio)},
            {"ratio_p10", maybe(result.ratio_p10)},
            {"ratio_p90", maybe(result.ratio_p90)},
            {"goal", goal.empty() ? Json(nullptr) : Json(goal)},
            {"holds", maybe(result.holds)}};
}

}  // namespace orrery::bench
