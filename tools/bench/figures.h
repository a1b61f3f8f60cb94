// What `make bench` measures: the table of figures, and the programs that measure them.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::bench {

enum class Statistic : std::uint8_t { kMedian, kP95, kMost };

struct Goal {
    enum class Kind : std::uint8_t {
        kNone,
        kAtMost,    // of the value
        kHostTime,  // of the value, on a machine on which Unicorn, counting, makes kReferenceMips: elsewhere
                    // it scales
        kOfYardstickAtMost,
        kOfYardstickAtLeast,
        kFasterAtLeast,  // the yardstick's time over the value
    };
    Kind kind = Kind::kNone;
    double bound = 0;
    Statistic of = Statistic::kMedian;
    std::uint64_t size = 0;  // 0: for all of the table's
};
constexpr double kReferenceMips = 108;

struct Figure {
    std::string_view name;             // as the measuring program says it; unique with its size
    std::string_view suite;            // that measures it
    std::vector<std::uint64_t> sizes;  // empty: it has none
    std::string_view size_unit;        // of the sizes
    std::string_view unit;             // of value and yardstick
    std::string_view yardstick = {};   // what it is compared with; empty: nothing
    Goal goal{};
};

// A shell command that prints measurements (tools/bench/measured.h). Its working directory is the root of the
// project, $BIN is the folder of the programs, $SIZES the sizes of its figures, with commas, $OUT a folder.
struct Suite {
    std::string_view name;
    std::string_view what;     // said while it runs
    std::string_view command;  // empty: `timed` is run so many times, and its seconds are the samples
    std::string_view timed = {};
    int times = 0;
};

std::span<const Figure> figures();
std::span<const Suite> suites();
// The suite of this name, else those whose names, or whose figures' names, match the regular expression:
// those are measured as a whole. Throws std::regex_error.
std::set<std::string_view> suites_that_match(const std::string& name);

}  // namespace orrery::bench
