#include "umd/runtime/metric_catalogue.h"

#include <orrery/hw/metric_values.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace orrery::umd {
namespace {

// Above all numbers, and no counter.
constexpr orrMetric_t kFirst = 0x2000;

#define ORR_ENTRY(NAME, name, unit, formula, meaning, high, low) {name, unit, #formula, meaning, high, low},
constexpr MetricEntry kMetrics[] = {ORR_METRIC_LIST(ORR_ENTRY)};
#undef ORR_ENTRY

MetricValues values_of(const CounterDeltas& deltas) {
    MetricValues values{.VECTOR_HZ = deltas.vector_hz};
#define ORR_SET(number, NAME, ...) \
    if (number < deltas.by_number.size()) values.NAME = deltas.by_number[number];
    ORR_COUNTER_LIST(ORR_SET)
#undef ORR_SET
    return values;
}

#define ORR_POINTER(NAME, ...) &MetricValues::metric_##NAME,
constexpr MetricFormula kFormulas[] = {ORR_METRIC_LIST(ORR_POINTER)};
#undef ORR_POINTER

}  // namespace

std::span<const MetricEntry> metric_catalogue() {
    return kMetrics;
}

std::optional<std::size_t> find_metric(std::string_view name) {
    const auto* const found =
        std::ranges::find_if(kMetrics, [&](const MetricEntry& entry) { return name == entry.name; });
    if (found == std::end(kMetrics)) return std::nullopt;
    return static_cast<std::size_t>(found - kMetrics);
}

orrMetric_t metric_of(std::size_t number) {
    return kFirst + static_cast<orrMetric_t>(number);
}

std::optional<std::size_t> metric_number_of(orrMetric_t metric) {
    if (metric < kFirst || metric - kFirst >= std::size(kMetrics)) return std::nullopt;
    return metric - kFirst;
}

double compute_metric(std::size_t number, const CounterDeltas& deltas) {
    const MetricValues values = values_of(deltas);
    const double value = (values.*kFormulas[number])();
    return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace orrery::umd
