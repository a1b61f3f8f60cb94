// cholesky: factors a matrix as a task graph on all Orrery cards, and checks the factor against the matrix.
#include <fmt/format.h>
#include <orrery/orrery.hpp>

#include <cstdio>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "umd/samples/cholesky/factor.h"
#include "umd/samples/support/sample.h"

using orrery::sample::number;
using orrery::sample::run_command;
using orrery::sample::UsageError;

namespace {

constexpr const char* kHelp =
    "usage: cholesky [--tiles N] [--size N] [--cards N] [--costs FILE] [--ahead N]\n"
    "Factors a symmetric matrix of N x N tiles on Orrery cards and checks the result.\n"
    "\n"
    "  --tiles N     tiles a side (default 8, at most 64)\n"
    "  --size N      rows of a tile (default 64, at most 128)\n"
    "  --cards N     cards to use (default: all)\n"
    "  --costs FILE  keep measured task durations there, for the next run's plan\n"
    "  --ahead N     tasks that a card gets before others are done (default: as the library likes, at most "
    "32)\n"
    "Exit status: 0 correct, 1 a wrong factor or a failure, 2 a mistake in the command line.\n";

struct Options {
    unsigned tiles = 8, size = 64, cards = 0, ahead = 0;
    const char* costs = nullptr;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        const char* value = i + 1 < argc ? argv[++i] : "";
        if (option == "--tiles")
            options.tiles = number(option, value, 1, 64);
        else if (option == "--size")
            options.size = number(option, value, 1, 128);
        else if (option == "--cards")
            options.cards = number(option, value, 1, 8);
        else if (option == "--ahead")
            options.ahead = number(option, value, 1, 32);
        else if (option == "--costs")
            options.costs = value;
        else
            throw UsageError(fmt::format("unknown option {}\n{}", option, kHelp));
    }
    return options;
}

void print(const Run& run) {
    fmt::print("  {} tasks, {} transfers of {:.1f} MB\n", run.tasks, run.transfers,
               static_cast<double>(run.transfer_bytes) / 1e6);
    fmt::print(
        "  model time {:.3f} ms, {:.3f} x the bound (work / cards {:.3f} ms, longest path {:.3f} ms)\n",
        run.model_ns / 1e6, run.model_ns / run.bound_ns(), run.work_over_cards_ns() / 1e6,
        run.longest_path_ns / 1e6);
    for (const CardUse& card : run.cards) {
        fmt::print("  card {}: {:4} tasks, busy {:.1f} % of the time\n", card.device, card.tasks,
                   100 * card.busy_ns / run.model_ns);
    }
}

int run(const Options& options) {
    const int found = orrery::device_count();
    if (found == 0)
        throw std::runtime_error("there is no Orrery card: is the module loaded (modprobe orrery)?");
    if (options.cards > static_cast<unsigned>(found)) {
        throw UsageError(fmt::format("--cards {}: there are only {}", options.cards, found));
    }
    std::vector<int> devices(options.cards == 0 ? static_cast<unsigned>(found) : options.cards);
    std::iota(devices.begin(), devices.end(), 0);
    const Matrix matrix = make_matrix(options.tiles, options.size, 1);
    const Run result = factor(matrix, devices, options.costs, options.ahead);
    const double error = residual(matrix, result.factor);
    fmt::print("Cholesky of {} x {} doubles in {} x {} tiles, on {} card{}\n", options.tiles * options.size,
               options.tiles * options.size, options.tiles, options.tiles, devices.size(),
               devices.size() == 1 ? "" : "s");
    print(result);
    const bool correct = error < 1e-12;
    fmt::print("  residual {:.1e}: {}\n", error, correct ? "correct" : "WRONG");
    std::vector<double> all;
    for (const std::vector<double>& tile : result.factor.tile)
        all.insert(all.end(), tile.begin(), tile.end());
    fmt::print("  {}\n", orrery::sample::digest(std::as_bytes(std::span(all))));
    return correct && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return run_command(argc, argv, kHelp, [&] { return run(parse(argc, argv)); });
}
