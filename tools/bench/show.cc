#include "tools/bench/show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace orrery::bench {
namespace {

// Four digits, without an exponent.
std::string short_number(double value) {
    const double size = std::abs(value);
    return fmt::format("{:.{}f}", value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

// With its spread: "0.97 (0.91 - 1.02)".
std::string ratio_text(const Result& result) {
    if (!result.ratio) return {};
    if (!result.ratio_p10) return fmt::format("{:.3g}", *result.ratio);
    return fmt::format("{:.3g} ({:.3g} - {:.3g})", *result.ratio, *result.ratio_p10, *result.ratio_p90);
}

}  // namespace

void show(const std::vector<Result>& results, const History& history) {
    fmt::print("\n{:<34}{:>10} {:<5}{:>20}  {:<38}{:>23}  {:<18}{:<6}{}\n", "what", "median", "", "p10 - p90",
               "yardstick", "ratio", "goal", "holds", "before");
    for (const Result& r : results) {
        const std::string yardstick = !r.yardstick ? std::string()
                                                   : fmt::format("{}: {} {}", r.figure->yardstick,
                                                                 short_number(*r.yardstick), r.figure->unit);
        const auto earlier = history.latest(r.label());
        const char* holds = !r.holds ? "" : *r.holds ? "yes" : "NO";
        fmt::print("{:<34}{:>10} {:<5}{:>20}  {:<38}{:>23}  {:<18}{:<6}{}\n", r.label(),
                   short_number(r.value), r.figure->unit, short_number(r.p10) + " - " + short_number(r.p90),
                   yardstick, ratio_text(r), r.goal_text(), holds, earlier ? change(r, *earlier) : "");
    }
}

void list() {
    fmt::print("{:<28}{:<10}{:<28}{:<28}{}\n", "figure", "suite", "sizes", "yardstick", "goal");
    for (const Figure& figure : figures()) {
        Result shown;
        shown.figure = &figure;
        fmt::print("{:<28}{:<10}{:<28}{:<28}{}\n", figure.name, figure.suite,
                   fmt::format("{}{}{}", fmt::join(figure.sizes, " "), figure.sizes.empty() ? "" : " ",
                               figure.size_unit),
                   figure.yardstick, shown.goal_text());
    }
}

}  // namespace orrery::bench
