#include "umd/runtime/metric_catalogue.h"

#include <orrery/hw/counters.h>
#include <orrery/hw/metrics.h>

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

// Formulas see counters by their names.
struct Names {
    explicit Names(const CounterDeltas& deltas) : VECTOR_HZ(deltas.vector_hz) {
        const auto of = [&](std::size_t number) {
            return number < deltas.by_number.size() ? deltas.by_number[number]
                                                    : std::numeric_limits<double>::quiet_NaN();
        };
#define ORR_SET(number, NAME, ...) NAME = of(number);
        ORR_COUNTER_LIST(ORR_SET)
#undef ORR_SET
    }
    double VECTOR_HZ = 0;
#define ORR_MEMBER(number, NAME, ...) double NAME = 0;
    ORR_COUNTER_LIST(ORR_MEMBER)
#undef ORR_MEMBER
#define ORR_FORMULA(NAME, name, unit, formula, ...) \
    double metric_##NAME() const { return formula; }
    ORR_METRIC_LIST(ORR_FORMULA)
#undef ORR_FORMULA
};

using Formula = double (Names::*)() const;
#define ORR_POINTER(NAME, ...) &Names::metric_##NAME,
constexpr Formula kFormulas[] = {ORR_METRIC_LIST(ORR_POINTER)};
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
    const Names names(deltas);
    const double value = (names.*kFormulas[number])();
    return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace orrery::umd
