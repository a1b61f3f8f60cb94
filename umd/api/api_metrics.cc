// Metrics: what follows from counters of a device.
#include <limits>
#include <vector>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/counter_catalogue.h"
#include "umd/runtime/metric_catalogue.h"

using namespace orrery::umd;

namespace {

constexpr double kNobodyKnows = std::numeric_limits<double>::quiet_NaN();

}  // namespace

namespace orrery::umd::api {

orrError_t orrGetMetricCount(size_t* count) {
    return guarded([&]() -> Status {
        if (count == nullptr) return null_argument("count");
        *count = metric_catalogue().size();
        return {};
    });
}

orrError_t orrGetMetricInfo(orrMetricInfo* info, size_t number) {
    return guarded([&]() -> Status {
        ORR_TRY(good, check_result_struct(info, "orrMetricInfo"));
        const auto all = metric_catalogue();
        if (number >= all.size())
            return fail(orrErrorInvalidValue, "there is no metric {}: there are {}", number, all.size());
        orrMetricInfo told{};
        told.name = all[number].name;
        told.unit = all[number].unit;
        told.formula = all[number].formula;
        told.meaning = all[number].meaning;
        told.high = all[number].high;
        told.low = all[number].low;
        told.metric = metric_of(number);
        return write_struct(info, told, "orrMetricInfo");
    });
}

orrError_t orrFindMetric(orrMetric_t* metric, const char* name) {
    return guarded([&]() -> Status {
        if (metric == nullptr || name == nullptr) return null_argument("metric or name");
        const auto number = find_metric(name);
        if (!number) {
            return fail(orrErrorNotFound,
                        "there is no metric '{}': orrGetMetricInfo goes through those that there are", name);
        }
        *metric = metric_of(*number);
        return {};
    });
}

orrError_t orrDeviceComputeMetrics(double* values, int device, const orrMetric_t* metrics, size_t count,
                                   const orrCounter_t* counters, const uint64_t* before,
                                   const uint64_t* after, size_t counter_count) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if ((values == nullptr || metrics == nullptr) && count != 0)
            return null_argument("values or metrics");
        if ((counters == nullptr || after == nullptr) && counter_count != 0)
            return null_argument("counters or after");
        ORR_TRY(winsys, runtime.device(device));
        ORR_TRY(card, (*winsys)->query());
        std::vector<double> by_number(catalogued(std::numeric_limits<std::size_t>::max()), kNobodyKnows);
        for (std::size_t i = 0; i < counter_count; ++i) {
            const auto number = number_of(counters[i]);
            if (!number) {
                return fail(orrErrorInvalidValue, "counters[{}] is {:#x}, which is no counter", i,
                            counters[i]);
            }
            const std::uint64_t from = before != nullptr ? before[i] : 0;
            if (after[i] >= from) by_number[*number] = static_cast<double>(after[i] - from);
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (metric_number_of(metrics[i])) continue;
            return fail(orrErrorInvalidValue, "metrics[{}] is {:#x}, which is no metric: ask orrFindMetric",
                        i, metrics[i]);
        }
        const CounterDeltas deltas{.by_number = by_number, .vector_hz = static_cast<double>(card->vector_hz)};
        for (std::size_t i = 0; i < count; ++i)
            values[i] = compute_metric(*metric_number_of(metrics[i]), deltas);
        return {};
    });
}

}  // namespace orrery::umd::api
