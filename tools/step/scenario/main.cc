// orrery-scenario: runs a scenario file and shows what came of it.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/step/scenario/metrics.h"
#include "tools/step/scenario/runner.h"

namespace {

using namespace orrery::scenario;

int complain(const std::string& what) {
    std::fprintf(stderr, "orrery-scenario: %s\n", what.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Runs a scenario (docs/scenarios.md) on emulated cards with the real firmware."};
    std::string file, firmware, json;
    std::vector<std::string> record, policy;
    bool print = false;
    app.add_option("scenario", file, "Scenario file (TOML)")->required();
    app.add_option("--firmware", firmware, "Firmware image or ELF [the build's own]");
    app.add_option("--policy", policy, "NAME=VALUE: a number of the firmware's policy, changed");
    app.add_option("--record", record, "Recordings to write, one a card");
    app.add_option("--json", json, "File for all results");
    app.add_flag("--print", print, "Show the scenario as it was understood, and do not run it");
    CLI11_PARSE(app, argc, argv);

    const auto scenario = Scenario::load(file);
    if (!scenario) return complain(scenario.error());
    if (print) {
        std::fputs(scenario->to_toml().c_str(), stdout);
        return 0;
    }
    Options options;
    options.record = record;
    if (!firmware.empty()) {
        auto image = Image::load(firmware);
        if (!image) return complain(image.error());
        options.image = *std::move(image);
    }
    for (const std::string& change : policy) {
        const auto equals = change.find('=');
        char* end = nullptr;
        const std::uint64_t value =
            equals == std::string::npos ? 0 : std::strtoull(change.c_str() + equals + 1, &end, 0);
        if (end == nullptr || end == change.c_str() + equals + 1 || *end != '\0')
            return complain(fmt::format("--policy {}: write NAME=VALUE, such as slice_us=500", change));
        if (const auto set = options.image.set_policy(change.substr(0, equals), value); !set)
            return complain(set.error());
    }
    const auto result = run(*scenario, options);
    if (!result) return complain(result.error());
    std::fputs(to_text(measure(*scenario, *result)).c_str(), stdout);
    if (!result->done) fmt::print("not all work was done when the scenario ended\n");
    for (const Message& event : result->events) {
        fmt::print("{:.3f} us: card {}: event {:#x} {} {} {}\n", static_cast<double>(event.at) / 1e6,
                   event.card, event.message.opcode, event.message.arg[0], event.message.arg[1],
                   event.message.arg[2]);
    }
    for (const std::string& line : result->log)
        fmt::print("{}\n", line);
    if (!json.empty()) {
        std::ofstream out(json);
        out << to_json(*scenario, *result).dump(1) << '\n';
        out.close();
        if (!out) return complain(fmt::format("{}: cannot be written", json));
    }
    return 0;
}
