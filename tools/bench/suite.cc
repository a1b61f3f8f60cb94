#include "tools/bench/suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

#include "tools/text/shell.h"

namespace orrery::bench {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string last_lines(const fs::path& file) {
    std::deque<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        lines.push_back("  " + line);
        if (lines.size() > 12) lines.pop_front();
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
}

void shell(const Suite& suite, std::string_view command, const std::vector<std::uint64_t>& sizes,
           const Places& places) {
    const fs::path log = places.out / fmt::format("{}.log", suite.name);
    const std::string line = fmt::format(
        "cd {} && export BIN={} OUT={} SIZES={} && {{ {} ; }} > {} 2> {}", text::shell_quote(places.root),
        text::shell_quote(places.programs), text::shell_quote(places.out),
        text::shell_quote(fmt::format("{}", fmt::join(sizes, ","))), command,
        text::shell_quote(places.out / fmt::format("{}.json", suite.name)), text::shell_quote(log));
    if (const int status = std::system(line.c_str()); status != 0) {
        throw std::runtime_error(fmt::format("suite {} failed (status {:#x}); {} ends with\n{}", suite.name,
                                             status, log.string(), last_lines(log)));
    }
}

Json timed(const Suite& suite, const Places& places) {
    std::vector<double> seconds;
    for (int i = 0; i < suite.times; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        shell(suite, suite.timed, {}, places);
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    for (const Figure& figure : figures()) {
        if (figure.suite != suite.name) continue;
        return Json::array(
            {{{"name", figure.name}, {"size", nullptr}, {"samples", seconds}, {"yardstick", Json::array()}}});
    }
    return Json::array();
}

}  // namespace

Json run(const Suite& suite, const std::vector<std::uint64_t>& sizes, const Places& places) {
    if (suite.command.empty()) return timed(suite, places);
    std::set<std::uint64_t> all(sizes.begin(), sizes.end());
    for (const Figure& figure : figures()) {
        if (figure.suite == suite.name && sizes.empty()) all.insert(figure.sizes.begin(), figure.sizes.end());
    }
    shell(suite, suite.command, {all.begin(), all.end()}, places);
    const fs::path output = places.out / fmt::format("{}.json", suite.name);
    std::ifstream in(output);
    Json measured = Json::parse(in, nullptr, false);
    if (!measured.is_array())
        throw std::runtime_error(
            fmt::format("suite {} printed no list of measurements: see {}", suite.name, output.string()));
    return measured;
}

}  // namespace orrery::bench
