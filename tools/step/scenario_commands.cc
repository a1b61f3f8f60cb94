#include "tools/step/scenario_commands.h"

#include <fmt/format.h>

#include <cstdio>

#include "tools/scenario/policy.h"
#include "tools/scenario/report.h"
#include "tools/scenario/runner.h"
#include "tools/scenario/whatif.h"
#include "tools/text/shown.h"

namespace orrery::step {
namespace {

int complain(const std::string& reason) {
    fmt::print(stderr, "orrery-step: {}\n", text::shown(reason));
    return 1;
}

// "run.otrace" for one card; with more "run-0.otrace" and so on.
std::vector<std::string> recordings(const std::string& output, std::size_t cards) {
    if (output.empty()) return {};
    if (cards == 1) return {output};
    const std::size_t dot = output.rfind('.');
    const std::size_t slash = output.rfind('/');
    const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash);
    const std::string stem = has_ending ? output.substr(0, dot) : output;
    const std::string ending = has_ending ? output.substr(dot) : "";
    std::vector<std::string> files;
    for (std::size_t card = 0; card < cards; ++card)
        files.push_back(fmt::format("{}-{}{}", stem, card, ending));
    return files;
}

}  // namespace

int run_scenario(const RunOptions& options) {
    const auto scenario = scenario::Scenario::load(options.scenario);
    if (!scenario) return complain(scenario.error());
    if (options.print) {
        fmt::print("{}", text::shown(scenario->to_toml()));
        return std::fflush(stdout) == 0 ? 0 : complain("the standard output cannot be written");
    }
    scenario::Options setup;
    if (!options.firmware.empty()) {
        auto image = scenario::Image::load(options.firmware);
        if (!image) return complain(image.error());
        setup.image = std::move(*image);
    }
    const auto policy = scenario::parse_policy(options.policy);
    if (!policy) return complain(policy.error().text);
    for (const auto& [name, value] : *policy)
        if (const auto set = setup.image.set_policy(name, value); !set) return complain(set.error());
    setup.keep_history = true;
    setup.record = recordings(options.output, scenario->cards.size());
    const auto result = scenario::run(*scenario, setup);
    if (!result) return complain(result.error());
    if (options.json) {
        fmt::print("{}\n", scenario::to_json(*scenario, *result).dump(2));
    } else {
        fmt::print("{}", text::shown(scenario::to_text(*scenario, *result)));
        for (const std::string& file : setup.record)
            fmt::print("recorded in {}\n", file);
    }
    for (const std::string& line : result->log)
        fmt::print(stderr, "orrery-step: card: {}\n", text::shown(line));
    if (std::fflush(stdout) != 0) return complain("the standard output cannot be written");
    if (!result->done) return complain("not all work was done when the scenario ended");
    return 0;
}

int run_whatif(const WhatIfCommand& options) {
    const auto policy = scenario::parse_policy(options.policy);
    if (!policy) return complain(policy.error().text);
    const auto result = scenario::what_if(options.trace, {options.firmware, *policy, options.output});
    if (!result) return complain(result.error());
    if (options.json) {
        fmt::print("{}\n", scenario::to_json(*result).dump(2));
    } else {
        fmt::print("{}", text::shown(scenario::to_text(*result)));
        if (!options.output.empty()) fmt::print("recorded in {}\n", options.output);
    }
    if (std::fflush(stdout) != 0) return complain("the standard output cannot be written");
    if (result->fell_short()) return complain(scenario::kFellShort);
    return 0;
}

}  // namespace orrery::step
