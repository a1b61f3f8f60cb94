// The factorisation as a task graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

struct Matrix {
    unsigned tiles = 0;  // a side
    unsigned size = 0;   // of a tile
    // The lower tiles, row by row, each size x size.
    std::vector<std::vector<double>> tile;

    std::vector<double>& at(unsigned i, unsigned j) { return tile[i * (i + 1) / 2 + j]; }
    const std::vector<double>& at(unsigned i, unsigned j) const { return tile[i * (i + 1) / 2 + j]; }
};

// Symmetric and positive definite; the same for the same seed.
Matrix make_matrix(unsigned tiles, unsigned size, std::uint32_t seed);
// Largest |A - L L^T| over the lower triangle, over the largest |A|.
double residual(const Matrix& a, const Matrix& factor);

struct CardUse {
    int device = 0;
    unsigned tasks = 0;
    double busy_ns = 0;  // model time
};

struct Run {
    Matrix factor;
    std::size_t devices = 0;  // that it was given
    std::uint64_t tasks = 0, transfers = 0, transfer_bytes = 0;
    double model_ns = 0;         // end of the last task
    double longest_path_ns = 0;  // by the measured durations: no schedule is shorter
    std::vector<CardUse> cards;  // that had tasks

    // Of those that it was given, also of one that had none.
    double work_over_cards_ns() const {
        double work = 0;
        for (const CardUse& card : cards)
            work += card.busy_ns;
        return work / static_cast<double>(devices);
    }
    double bound_ns() const { return std::max(work_over_cards_ns(), longest_path_ns); }
};

// On these devices. costs: a file in which measured durations are kept, or null. ahead: tasks that a card
// gets before others are done; 0: as the library likes.
Run factor(const Matrix& matrix, const std::vector<int>& devices, const char* costs, unsigned ahead);
