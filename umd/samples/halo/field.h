// A field of cells that is a torus, on one card or in equal parts on many.
#pragma once

#include <cstdint>
#include <vector>

// How the cards lie in the field, or the cells in a card's part.
struct Grid {
    unsigned columns = 1, rows = 1;
    unsigned size() const { return columns * rows; }
    // Row by row; beyond the last comes the first.
    unsigned at(unsigned row, unsigned column) const { return row % rows * columns + column % columns; }
};

inline constexpr unsigned kSteps = 32;  // so many that all find room in the streams at once
inline constexpr unsigned kFirst = 4;   // and this many go by before the time counts

// Steps of the field `cells`, row by row, on devices 0 .. cards.size() - 1, each with a part of that size.
// What a step takes in model time, in ns. Without `exchange` no card hears of another: the cells are wrong,
// and the time is that of the kernels.
double run_steps(std::vector<float>& cells, Grid cards, Grid part, bool exchange);
