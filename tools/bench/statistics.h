// What is kept of many measurements of one thing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace orrery::bench {

struct Summary {
    double median = 0, p10 = 0, p90 = 0, p95 = 0, most = 0;
    std::size_t count = 0;
};

inline Summary summarise(std::vector<double> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    const auto at = [&](double share) {
        return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
    };
    return {at(0.5), at(0.1), at(0.9), at(0.95), values.back(), values.size()};
}

}  // namespace orrery::bench
