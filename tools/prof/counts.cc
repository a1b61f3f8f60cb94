#include "tools/prof/counts.h"

#include <fmt/format.h>
#include <orrery/hw/metric_values.h>

#include <cmath>
#include <iterator>
#include <map>

#include "tools/prof/show.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

MetricValues values_of(const std::vector<Count>& counts, double vector_hz) {
    MetricValues values{.VECTOR_HZ = vector_hz};
    for (const Count& count : counts) {
#define ORR_SET(number, NAME, text, ...) \
    if (count.name == text) values.NAME = static_cast<double>(count.value);
        ORR_COUNTER_LIST(ORR_SET)
#undef ORR_SET
    }
    return values;
}

struct Metric {
    const char* name;
    const char* unit;
    std::string_view formula;
    MetricFormula value;
};
#define ORR_ENTRY(NAME, name, unit, formula, ...) {name, unit, #formula, &MetricValues::metric_##NAME},
constexpr Metric kMetrics[] = {ORR_METRIC_LIST(ORR_ENTRY)};
#undef ORR_ENTRY

// The counter of this NAME, in the formula as a word of its own.
std::size_t place_in(std::string_view formula, std::string_view name) {
    constexpr std::string_view kWord = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (std::size_t at = formula.find(name); at != formula.npos; at = formula.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || kWord.find(formula[at - 1]) == kWord.npos) &&
            (end == formula.size() || kWord.find(formula[end]) == kWord.npos))
            return at;
    }
    return formula.npos;
}
std::string_view formula_name(std::string_view counter) {
    static const std::map<std::string_view, std::string_view> names = {
#define ORR_NAME(number, NAME, text, ...) {text, #NAME},
        ORR_COUNTER_LIST(ORR_NAME)
#undef ORR_NAME
    };
    const auto found = names.find(counter);
    return found == names.end() ? std::string_view() : found->second;
}

std::string shown(double value) {
    if (value >= 100) return fmt::format("{:.0f}", value);
    return value != 0 && value < 0.001 ? "<0.001" : fmt::format("{:.3g}", value);
}

}  // namespace

std::string counts_text(const std::vector<Count>& counts, double vector_hz) {
    const MetricValues values = values_of(counts, vector_hz);
    std::multimap<const Count*, std::string> beside;
    for (const Metric& metric : kMetrics) {
        const double value = (values.*metric.value)();
        if (!std::isfinite(value)) continue;
        const Count* place = nullptr;
        std::size_t first = metric.formula.npos;
        for (const Count& count : counts) {
            const std::string_view name = formula_name(count.name);
            if (count.value == 0 || name.empty()) continue;
            if (const std::size_t at = place_in(metric.formula, name); at < first) {
                first = at;
                place = &count;
            }
        }
        // Of one that is 0 as nothing of it happened, nothing is said, as of what did not go up.
        if (place == nullptr || value == 0) continue;
        beside.emplace(place, fmt::format("# {:>8} {}  {}", shown(value), metric.unit, metric.name));
    }
    text::Table table({{"", text::Align::kRight}, {""}, {""}, {""}});
    std::size_t still = 0;
    for (const Count& count : counts) {
        if (count.value == 0) {
            ++still;
            continue;
        }
        auto [at, end] = beside.equal_range(&count);
        table.row(
            {text::grouped(count.value), plain(count.unit), plain(count.name), at == end ? "" : at->second});
        for (; at != end && std::next(at) != end; ++at)
            table.row({"", "", "", std::next(at)->second});
    }
    std::string text = table.text("    ");
    if (still > 0) text += fmt::format("    and {} that did not go up\n", still);
    return text;
}

}  // namespace orrery::prof
