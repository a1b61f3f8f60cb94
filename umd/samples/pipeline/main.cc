// pipeline: the layers of a network lie on cards one behind the other, and micro-batches go through them,
// each card at work on another one. Cards wait for each other by events, with no host in between.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <span>

#include "umd/samples/pipeline/stages.h"
#include "umd/samples/support/sample.h"

namespace {

using namespace orrery::sample;

constexpr const char* kHelp =
    "usage: pipeline [--quick] [--cards N]\n"
    "Micro-batches go through a layer on each card, checked against all layers on one card.\n"
    "\n"
    "  --quick     smaller micro-batches\n"
    "  --cards N   cards to use, at most 16 (default: all)\n"
    "Exit status: 0 correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

// The first row of the first micro-batch through all layers.
std::vector<float> row_by_cpu(std::span<const float> input, std::span<const float> weights) {
    std::vector<float> row(input.begin(), input.begin() + kWidth);
    for (; !weights.empty(); weights = weights.subspan(std::size_t{kWidth} * kWidth)) {
        std::vector<float> sums(kWidth);
        for (std::size_t k = 0; k < kWidth; ++k)
            for (std::size_t column = 0; column < kWidth; ++column)
                sums[column] += weights[k * kWidth + column] * row[k];
        std::ranges::transform(sums, row.begin(), [](float sum) { return std::max(sum, 0.0f); });
    }
    return row;
}

int run(bool quick, unsigned cards) {
    const std::uint32_t rows = quick ? 16 : 64;
    std::vector<int> devices(cards);
    std::iota(devices.begin(), devices.end(), 0);
    const std::vector<int> one_card(cards, 0);
    const std::vector<float> input = random_floats(kBatches * rows * kWidth, 1);
    std::vector<float> weights = random_floats(std::size_t{cards} * kWidth * kWidth, 2);
    for (float& weight : weights)
        weight /= 8;  // so that numbers neither grow nor vanish from layer to layer

    std::vector<float> output(input.size()), expected(input.size());
    const std::uint64_t late = late_messages();
    const double ns = run_pipeline(devices, weights, rows, input, output);
    const bool was_late = late_messages() != late;
    const double one_card_ns = run_pipeline(one_card, weights, rows, input, expected);
    const std::vector<float> row = row_by_cpu(input, weights);

    // Each card has a turn for each micro-batch, and the last one begins when all others have had one.
    const double turns = static_cast<double>(kBatches + cards - 1);
    const double bound_ns = one_card_ns / cards / kBatches * turns;
    fmt::print("{} micro-batches of {} x {} through {} layer{}, on {} card{}\n", kBatches, rows, kWidth,
               cards, cards == 1 ? "" : "s", cards, cards == 1 ? "" : "s");
    fmt::print("  model time {}, {:.3f} x the bound ({}): {:.1f} micro-batches a ms, {:.2f} x one card's\n",
               time_text(ns), ns / bound_ns, time_text(bound_ns), kBatches / ns * 1e6, one_card_ns / ns);
    fmt::print("  bubble {:.1f} % of the cards' time, {:.1f} % at least\n",
               100 * (1 - one_card_ns / cards / ns), 100 * (cards - 1) / turns);
    if (was_late) fmt::print("{}", kLate);
    const bool same = std::memcmp(output.data(), expected.data(), output.size() * sizeof(float)) == 0;
    const bool right = std::memcmp(row.data(), output.data(), row.size() * sizeof(float)) == 0;
    fmt::print("  {}\n", !same    ? "WRONG: one card makes something else of it"
                         : !right ? "WRONG: the CPU makes something else of the first row"
                                  : "the same bits as on one card, and the first row as by the CPU: correct");
    fmt::print("  {}\n", digest(std::as_bytes(std::span(output))));
    return same && right && std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return run_main(argc, argv, kHelp, run);
}
