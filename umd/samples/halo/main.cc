// halo: steps of a field that lies over several cards, which send each other the edges of their parts, with
// no host in between; checked bit by bit against one card that has the whole field.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "umd/samples/halo/field.h"
#include "umd/samples/support/sample.h"

namespace {

using namespace orrery::sample;

constexpr const char* kHelp =
    "usage: halo [--quick] [--cards N]\n"
    "Steps of a field of cells that is a torus, in equal parts on the cards, whose edges travel over the "
    "links.\n"
    "\n"
    "  --quick     smaller parts\n"
    "  --cards N   cards to use, at most 16 (default: all)\n"
    "Exit status: 0 correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

bool linked(unsigned from, unsigned to) {
    return from == to || link_between(static_cast<int>(from), static_cast<int>(to)).has_value();
}

unsigned neighbours_without_link(Grid grid) {
    unsigned count = 0;
    for (unsigned row = 0; row < grid.rows; ++row)
        for (unsigned column = 0; column < grid.columns; ++column) {
            const unsigned card = grid.at(row, column);
            count += !linked(card, grid.at(row + 1, column)) + !linked(card, grid.at(row, column + 1));
        }
    return count;
}

// Of the grids with so many cards the one whose neighbours are linked, if there is one, and the squarest.
Grid grid_of(unsigned cards) {
    Grid best{cards, 1};
    for (unsigned rows = 2; rows <= cards; ++rows) {
        if (cards % rows != 0) continue;
        const Grid grid{cards / rows, rows};
        const auto rank = [](Grid g) {
            return std::pair(neighbours_without_link(g), std::max(g.columns, g.rows));
        };
        if (rank(grid) < rank(best)) best = grid;
    }
    return best;
}

// What the CPU makes of the cell in the corner where the parts meet, out of all cells that get there in time.
float corner_by_cpu(const std::vector<float>& cells, Grid field) {
    constexpr unsigned kWide = 2 * kSteps + 1;
    std::vector<float> now(kWide * kWide);
    for (unsigned row = 0; row < kWide; ++row)
        for (unsigned column = 0; column < kWide; ++column)
            now[row * kWide + column] =
                cells[field.at(field.rows - kSteps + row, field.columns - kSteps + column)];
    for (unsigned step = 1; step <= kSteps; ++step) {
        const std::vector<float> before = now;
        for (unsigned row = step; row < kWide - step; ++row)
            for (unsigned at = row * kWide + step; at < row * kWide + kWide - step; ++at)
                now[at] =
                    before[at] * 0.5f +
                    ((before[at - kWide] + before[at + kWide]) + (before[at - 1] + before[at + 1])) * 0.125f;
    }
    return now[kSteps * kWide + kSteps];
}

int run(bool quick, unsigned count) {
    const Grid cards = grid_of(count);
    const Grid part = quick ? Grid{256, 256} : Grid{1024, 1024};
    const Grid field{cards.columns * part.columns, cards.rows * part.rows};
    const std::vector<float> input = random_floats(field.size(), 1);

    std::vector<float> cells = input, whole = input, alone(input.begin(), input.begin() + part.size());
    const std::uint64_t late = late_messages();
    const double step_ns = run_steps(cells, cards, part, true);
    const bool was_late = late_messages() != late;
    const double one_card_ns = run_steps(whole, {1, 1}, field, true);
    const double kernels_ns = run_steps(alone, {1, 1}, part, false);
    const auto link = link_between(0, static_cast<int>(cards.at(0, 1)));
    const double edge_ns = link ? part.columns * sizeof(float) * 8.0 / link->gbps + link->latency_ns : 0;
    const double bound_ns = std::max(kernels_ns, edge_ns);

    const auto same = [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    };
    const auto wrong =
        static_cast<std::size_t>(std::ranges::mismatch(cells, whole, same).in1 - cells.begin());
    fmt::print("Field of {} x {} cells on {} x {} cards, {} steps\n", field.columns, field.rows,
               cards.columns, cards.rows, kSteps);
    fmt::print("  model time {} a step, {:.3f} x the bound (kernels {}, an edge over a link {})\n",
               time_text(step_ns), step_ns / bound_ns, time_text(kernels_ns),
               link ? time_text(edge_ns) : "-");
    fmt::print("  one card takes {}, {:.2f} x as long; of {} neighbours {} have no link of their own\n",
               time_text(one_card_ns), one_card_ns / step_ns, 2 * cards.size(),
               neighbours_without_link(cards));
    if (was_late) fmt::print("{}", kLate);
    if (wrong != cells.size()) {
        fmt::print("  WRONG: row {}, column {}: {} here, {} on one card\n", wrong / field.columns,
                   wrong % field.columns, cells[wrong], whole[wrong]);
        return 1;
    }
    if (const float corner = corner_by_cpu(input, field); !same(corner, cells[0])) {
        fmt::print("  WRONG: the first cell is {}, by the CPU {}\n", cells[0], corner);
        return 1;
    }
    fmt::print("  the same bits as on one card, and the first cell as by the CPU: correct\n  {}\n",
               digest(std::as_bytes(std::span(cells))));
    return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return run_main(argc, argv, kHelp, run);
}
