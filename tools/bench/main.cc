// orrery-bench: runs the programs that measure, and prints what they measured beside yardsticks, goals and
// the run before.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tools/bench/history.h"
#include "tools/bench/p2p.h"
#include "tools/bench/show.h"
#include "tools/bench/suite.h"

namespace {

using namespace orrery::bench;
namespace fs = std::filesystem;

struct Options {
    std::string only = ".*";
    std::vector<std::uint64_t> sizes;
    fs::path root = ".", output = "build/bench.json", history = "build/bench-history.jsonl";
    bool list = false, forget = false;
};

std::set<std::string_view> chosen(const Options& options) {
    auto suites = suites_that_match(options.only);
    if (suites.empty())
        throw std::runtime_error(fmt::format(
            "--only {}: no figure and no suite has such a name (--list shows them)", options.only));
    return suites;
}

// What was measured is of this state of the sources.
std::string commit(const fs::path& root) {
    std::string text;
    const std::string command = "git -C '" + root.string() + "' describe --always --dirty 2>/dev/null";
    if (std::FILE* out = ::popen(command.c_str(), "r"); out != nullptr) {
        char part[128];
        while (std::fgets(part, sizeof part, out) != nullptr)
            text += part;
        ::pclose(out);
    }
    text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
    return text.empty() ? "unknown" : text;
}

void write(const fs::path& file, const std::vector<Result>& results) {
    auto all = nlohmann::ordered_json::array();
    for (const Result& result : results)
        all.push_back(to_json(result));
    std::ofstream out(file);
    out << all.dump(2) << '\n';
    if (!out.flush())
        throw std::runtime_error(fmt::format("{} cannot be written: is the disk full?", file.string()));
}

int measure(const Options& options) {
    const auto wanted = chosen(options);
    const fs::path root = fs::absolute(options.root);
    const Places places{root, fs::read_symlink("/proc/self/exe").parent_path(), root / "build/bench"};
    fs::create_directories(places.out);
    std::vector<Result> results;
    bool failed = false;
    for (const Suite& suite : suites()) {
        if (!wanted.contains(suite.name)) continue;
        fmt::print("==> {}: {}\n", suite.name, suite.what);
        std::fflush(stdout);
        // One that cannot be measured takes no other along.
        try {
            const auto some = results_of(suite.name, run(suite, options.sizes, places), options.sizes);
            results.insert(results.end(), some.begin(), some.end());
        } catch (const std::exception& error) {
            fmt::print(stderr, "orrery-bench: {}\n", error.what());
            failed = true;
        }
    }
    const auto factor = host_factor(results);
    judge(results, factor.value_or(1));
    const History history = History::read(root / options.history);
    show(results, history);
    if (factor)
        fmt::print(
            "Unicorn makes {:.0f} MIPS here: times of the host may be {:.2f} of those that goals name.\n",
            kReferenceMips / *factor, *factor);
    else
        fmt::print("Unicorn was not measured (suite core): goals of host times are taken as they stand.\n");
    write(root / options.output, results);
    if (!options.forget) append(root / options.history, results, commit(root), factor);
    const auto missed =
        std::ranges::count_if(results, [](const Result& result) { return result.holds == false; });
    if (failed) fmt::print("A suite failed: see above.\n");
    if (missed != 0) fmt::print("{} goal{} missed.\n", missed, missed == 1 ? " is" : "s are");
    return failed || missed != 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{
        "Measures Orrery beside yardsticks of the same run. Exit status: 0 all goals hold, 1 one does "
        "not or a suite failed, 2 a mistake in the command line.",
        "orrery-bench"};
    app.add_flag("--list", options.list, "show the table of figures, and measure nothing");
    app.add_option("--only", options.only,
                   "measure the suite of this name; else those whose names, or whose figures' names, match")
        ->type_name("REGEX");
    app.add_option("--sizes", options.sizes, "other sizes than the table's, for figures that have some")
        ->delimiter(',')
        ->type_name("N,...");
    app.add_option("--root", options.root, "of the project's sources")->capture_default_str();
    app.add_option("--output", options.output, "what was measured, as JSON")->capture_default_str();
    app.add_option("--history", options.history, "results of earlier runs, a line of JSON each")
        ->capture_default_str();
    app.add_flag("--forget", options.forget, "leave the history as it is");
    P2pOptions pairs;
    auto* const p2p = app.add_subcommand("p2p",
                                         "what all pairs of cards reach over their links, in model time and "
                                         "in the host's, beside what those allow");
    p2p->add_option("--cards", pairs.cards, "number of cards (what --topology says, or 4 without it)");
    p2p->add_option("--topology", pairs.topology, "links between them, as orrery-vm takes it (ring)");
    p2p->add_option("--sku", pairs.sku, "kind of cards, as orrery-vm takes it");
    p2p->add_option("--vram", pairs.vram, "VRAM of each card, as orrery-vm takes it");
    p2p->add_option("--size", pairs.size, "bytes of a copy");
    p2p->add_flag("--patterns", pairs.patterns,
                  "copies over several links, of all to all and of all to one instead, in model time");
    p2p->add_flag("--json", pairs.json, "as JSON");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    try {
        if (p2p->parsed()) return measure_pairs(pairs, fs::read_symlink("/proc/self/exe").parent_path());
        if (options.list) {
            list();
            return std::fflush(stdout) == 0 ? 0 : 1;
        }
        return measure(options);
    } catch (const std::regex_error&) {
        fmt::print(stderr, "orrery-bench: --only {}: not a regular expression\n", options.only);
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-bench: {}\n", error.what());
        return 1;
    }
}
