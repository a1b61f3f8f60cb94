// compare_starpu: makespans of the scheduler and of StarPU's dmdas on the same graphs, with workers that
// sleep. Prints every case, by the clock and by what the same decisions are worth in model time.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "tests/bench/scheduler/starpu/sides.h"

using namespace orrery::umd;

namespace {

constexpr const char* kHelp =
    "usage: compare_starpu [--quick] [ROUNDS]\n"
    "Medians of so many runs (1 to 100, default 3); --quick takes graphs of about a hundred tasks.\n"
    "Exit status: 0 never worse in model time, 1 worse or a failure, 2 a mistake in the command line.\n";
// By how much a case may be worse in model time: what the pace of a busy machine does to both sides.
constexpr double kWorst = 1.01;

// The scheduler's own upward ranks, from which dmdas gets its priorities: the longest way to the end.
std::vector<int> priorities(const graphs::TaskGraph& graph) {
    const auto before = graphs::predecessors(graph);
    std::vector<Ps> rank(graph.tasks.size());
    for (std::size_t i = rank.size(); i-- > 0;) {
        rank[i] += graph.tasks[i].cost;
        for (const std::uint32_t p : before[i])
            rank[p] = std::max(rank[p], rank[i]);
    }
    std::vector<int> result;
    for (const Ps r : rank)
        result.push_back(static_cast<int>(r / 1'000'000));  // microseconds
    return result;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

struct Options {
    int rounds = 3;
    bool quick = false;
};

// Medians over the rounds, of what one side needed.
struct Side {
    std::vector<double> wall, model;  // in bounds
    void add(const graphs::Case& one, const Machine& machine, Ps bound, const compare::Outcome& outcome) {
        const Ps makespan = compare::model_makespan(one.graph, machine, outcome.order);
        wall.push_back(outcome.seconds * 1e12 / static_cast<double>(bound));
        model.push_back(static_cast<double>(makespan) / static_cast<double>(bound));
    }
};

class ScratchDirectory {
  public:
    ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "compare-starpu-XXXXXX").string()) {
        if (::mkdtemp(path_.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), "making a directory " + path_);
        }
    }
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

int run_all(const Options& options) {
    // StarPU keeps notes in the user's home directory otherwise.
    const ScratchDirectory home;
    ::setenv("STARPU_HOME", home.path().c_str(), 1);
    // As many workers as cards, more than this machine may have CPUs: they sleep.
    ::setenv("STARPU_WORKERS_NOBIND", "1", 1);
    ::setenv("STARPU_SILENT", "1", 1);
    // StarPU makes no more workers than it finds cores: show it as many as there are cards at most.
    ::setenv("HWLOC_SYNTHETIC", "core:8 pu:1", 1);
    std::vector<double> wall, model;
    unsigned skipped = 0;
    fmt::print("{:14} {:>5} {:>7} {:>8} | {:^23} | {:^23}\n", "", "", "", "", "asleep", "model");
    fmt::print("{:14} {:>5} {:>7} {:>8} | {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7}\n", "graph", "tasks",
               "workers", "bound ms", "orrery", "dmdas", "ratio", "orrery", "dmdas", "ratio");
    for (const graphs::Case& one : options.quick ? graphs::tiny_cases() : graphs::small_cases()) {
        if (one.cards > compare::most_starpu_workers()) {
            ++skipped;
            continue;
        }
        const Machine machine = Machine::uniform(one.cards, 2'000'000, 12.5e9, 8e9);
        const auto prio = priorities(one.graph);
        const Ps bound = graphs::bounds(one.graph, machine).bound();
        Side ours, theirs;
        for (int round = 0; round < options.rounds; ++round) {
            ours.add(one, machine, bound, compare::run_orrery(one.graph, machine));
            theirs.add(one, machine, bound, compare::run_starpu(one.graph, machine, prio));
        }
        wall.push_back(median(ours.wall) / median(theirs.wall));
        model.push_back(median(ours.model) / median(theirs.model));
        fmt::print("{:14} {:5} {:7} {:8.1f} | {:7.3f} {:7.3f} {:7.3f} | {:7.3f} {:7.3f} {:7.3f}\n",
                   one.graph.name, one.graph.tasks.size(), one.cards, static_cast<double>(bound) * 1e-9,
                   median(ours.wall), median(theirs.wall), wall.back(), median(ours.model),
                   median(theirs.model), model.back());
        (void)std::fflush(stdout);
    }
    if (skipped != 0) {
        fmt::print("{} cases left out: this StarPU was built for at most {} workers\n", skipped,
                   compare::most_starpu_workers());
    }
    if (model.empty()) throw std::runtime_error("no case could be run");
    const auto summary = [](const char* what, const std::vector<double>& ratios) {
        fmt::print("ratio {}: median {:.3f}, best {:.3f}, worst {:.3f}, of {} cases\n", what, median(ratios),
                   std::ranges::min(ratios), std::ranges::max(ratios), ratios.size());
    };
    summary("asleep", wall);
    summary("model", model);
    return std::ranges::max(model) <= kWorst && median(model) <= 1.0 ? 0 : 1;
}

Options parse(std::span<char*> arguments) {
    Options options;
    for (const std::string_view text : arguments) {
        if (text == "--quick") {
            options.quick = true;
            continue;
        }
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.rounds);
        if (error != std::errc() || end != text.data() + text.size() || options.rounds < 1 ||
            options.rounds > 100) {
            throw std::invalid_argument(kHelp);
        }
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run_all(parse({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)}));
    } catch (const std::invalid_argument& help) {
        fmt::print(stderr, "{}", help.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "compare_starpu: {}\n", error.what());
        return 1;
    }
}
