#include "emulator/switch/options.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace orrery::emu {

namespace {

// Beside those of cards (emulator/main/options.cc).
constexpr std::uint64_t kUidBase = 0x4f530000;
constexpr unsigned kMaxIndex = 65534;

}  // namespace

std::expected<SwitchOptions, std::string> SwitchOptions::parse(int argc, const char* const* argv) {
    SwitchOptions options;
    std::vector<std::string> links;
    std::string faults, model;
    unsigned index = 0;
    CLI::App app("A switch between Orrery cards: passes on what they send each other.", "orrery-switch");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_option("--index", index, "number of the switch; gives it its uid")
        ->required()
        ->check(CLI::Range(0u, kMaxIndex));
    app.add_option("--link", links, "PORT:listen:PATH or PORT:connect:PATH; once a link, two or more")
        ->take_all()
        ->required();
    app.add_option("--level", options.config.level,
                   "how far from the cards it is: what joins switches of level 0 has level 1 (0)")
        ->check(CLI::Range(0u, 255u));
    app.add_option("--model", model,
                   "what kind of switch: a name or a file as emulator/switch/switch-1.toml "
                   "(switch-1)");
    app.add_option("--lockstep", options.config.lockstep,
                   "file of the cards and switches that keep step in model time (docs/links.md)");
    app.add_option("--spin-us", options.config.spin_us, "microseconds without work before it sleeps (200)")
        ->check(CLI::Range(0u, 10'000'000u));
    app.add_option("--faults", faults, "fault plan, a file or its text (docs/faults.md)");
    app.add_option("--control", options.config.control,
                   "UNIX socket at which faults can be ordered and cables pulled (docs/faults.md)");
    app.add_option("--log", options.log, "file to append the switch's log to; without it: stderr");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& told) {
        app.exit(told);
        return std::unexpected("");
    } catch (const CLI::ParseError& error) {
        return std::unexpected(fmt::format("{}; try --help", error.what()));
    }
    options.config.uid = kUidBase + index + 1;
    auto found = SwitchModel::find(model.empty() ? "switch-1" : model);
    if (!found) return std::unexpected(fmt::format("--model: {}", found.error()));
    options.config.model = *std::move(found);
    if (!faults.empty()) {
        auto plan = FaultPlan::load(faults);
        if (!plan) return std::unexpected(fmt::format("--faults: {}", plan.error()));
        options.config.faults = *std::move(plan);
    }
    for (const std::string& text : links) {
        auto link = LinkConfig::parse(text, options.config.model.ports);
        if (!link) return std::unexpected(fmt::format("--link: {}", link.error()));
        options.config.links.push_back(*std::move(link));
    }
    return options;
}

}  // namespace orrery::emu
