// How much a card's counters went up, and what follows from that, as `perf stat` prints it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::prof {

struct Count {
    std::string name;  // as docs/counters.md has it; others are shown, and in no metric
    std::string unit;
    std::uint64_t value = 0;
};

// A line for each that went up: value, unit, name, and behind # the metrics whose formulas have it, each
// beside the first one of its formula. vector_hz: 0 if it is not known.
std::string counts_text(const std::vector<Count>& counts, double vector_hz);

}  // namespace orrery::prof
