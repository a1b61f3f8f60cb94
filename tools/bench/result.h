// What was measured of a figure, and what it is worth.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/figures.h"

namespace orrery::bench {

struct Result {
    const Figure* figure = nullptr;
    std::optional<std::uint64_t> size;
    double value = 0;  // the median
    double p10 = 0, p90 = 0, p95 = 0, most = 0;
    std::size_t count = 0;
    std::optional<double> yardstick;  // its median
    std::optional<double> ratio;      // value over yardstick; for a goal of speed the other way round
    // Of the ratios of single samples to the yardstick's beside them, where there are as many of both.
    std::optional<double> ratio_p10, ratio_p90;
    std::optional<double> bound;  // of the goal, for this machine
    std::optional<bool> holds;    // nothing: no goal

    // "copy to card, pinned [1 MiB]"
    std::string label() const;
    // "p95 <= 100 ms", empty without a goal
    std::string goal_text() const;
};

// The measurements that a suite has printed, against the table. Throws std::runtime_error for what is no
// list of measurements, for one that is not in the table, and for one of the table's that is missing.
// `host_factor`: what this machine's times are longer than those that goals are meant for.
std::vector<Result> results_of(std::string_view suite, const nlohmann::ordered_json& measured,
                               const std::vector<std::uint64_t>& only_sizes);
void judge(std::vector<Result>& results, double host_factor);
// kReferenceMips over Unicorn's speed in this run; nothing if it was not measured.
std::optional<double> host_factor(const std::vector<Result>& results);

nlohmann::ordered_json to_json(const Result& result);

}  // namespace orrery::bench
