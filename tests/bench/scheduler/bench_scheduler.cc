// bench_scheduler: the scheduler's figures in model time, as a table, or as JSON for the report.
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/unit/policy/figures.h"

int main(int argc, char** argv) {
    using namespace orrery::policy;
    const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
    bool all_hold = true;
    nlohmann::json list = nlohmann::json::array();
    for (const auto measure :
         {dispatch_figures, share_figures, preemption_figures, waiting_figures, guard_figures}) {
        const Figures figures = measure();
        if (!figures) {
            std::fprintf(stderr, "bench_scheduler: %s\n", figures.error().c_str());
            return 1;
        }
        for (const Figure& one : *figures) {
            all_hold &= one.holds();
            if (!json) {
                fmt::print("{:<52}{:>10.3f} {:<7} {} {:<8}{}\n", one.name, one.value, one.unit,
                           one.at_most ? "<=" : ">=", one.goal, one.holds() ? "" : "  MISSED");
                std::fflush(stdout);
            }
            list.push_back({{"name", one.name},
                            {"value", one.value},
                            {"unit", one.unit},
                            {"goal", fmt::format("{} {}", one.at_most ? "<=" : ">=", one.goal)},
                            {"holds", one.holds()}});
        }
    }
    if (json) fmt::print("{}\n", list.dump(1));
    return all_hold ? 0 : 1;
}
