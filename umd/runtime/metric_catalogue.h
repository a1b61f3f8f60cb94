// Metrics as the API names them: derived from counters by formulas (orrery/hw/metrics.h).
#pragma once

#include <orrery/device.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace orrery::umd {

struct MetricEntry {
    const char* name;
    const char* unit;
    const char* formula;
    const char* meaning;
    const char* high;  // what a high value means, and a low one
    const char* low;
};

std::span<const MetricEntry> metric_catalogue();
std::optional<std::size_t> find_metric(std::string_view name);

// What the API calls it, and back; nothing of what is not in the catalogue.
orrMetric_t metric_of(std::size_t number);
std::optional<std::size_t> metric_number_of(orrMetric_t metric);

// How much the counter of this number has gone up; NaN: nobody knows.
struct CounterDeltas {
    std::span<const double> by_number;
    double vector_hz = 0;
};
// NaN: a counter of it is not known, or nothing happened of which it is a share.
double compute_metric(std::size_t number, const CounterDeltas& deltas);

}  // namespace orrery::umd
