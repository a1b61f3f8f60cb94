// What changed between two runs, or two sets of runs, of a program.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/prof/model.h"

namespace orrery::prof {

// Durations of one thing on a side, in picoseconds.
struct Sample {
    std::vector<double> values;
    double total() const;
    double mean() const;
    double deviation() const;  // of a single one, 0 of fewer than two
};

// The probability that two samples of one distribution differ as much as these: Mann-Whitney, two-sided, by
// the normal approximation with ties. 1 if one is empty.
double mann_whitney(std::span<const double> a, std::span<const double> b);

struct Change {
    enum class Kind : std::uint8_t { kKernel, kCopy, kWait, kCall };
    Kind kind = Kind::kKernel;
    std::string name;
    Sample a, b;
    double p = 1;
    bool equal = false;  // the same durations, as often: of model times that is exact

    double difference() const { return b.total() - a.total(); }  // of all runs of a side
};

// By kind, then by how much the totals of a run differ, the largest first. Neither side is empty.
std::vector<Change> changes_of(std::span<const Model> a, std::span<const Model> b);

std::string compare_text(std::span<const Model> a, std::span<const Model> b, std::size_t top);
std::string compare_json(std::span<const Model> a, std::span<const Model> b);

}  // namespace orrery::prof
