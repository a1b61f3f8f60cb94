// Times in which something was so: sorted, and none touches another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace orrery::prof {

struct Interval {
    std::uint64_t begin = 0, end = 0;
    bool operator==(const Interval&) const = default;
};
using Intervals = std::vector<Interval>;

inline Intervals union_of(Intervals all) {
    std::ranges::sort(all, {}, [](const Interval& one) { return std::pair(one.begin, one.end); });
    Intervals joined;
    for (const Interval& one : all) {
        if (one.begin == one.end) continue;
        if (!joined.empty() && one.begin <= joined.back().end) {
            joined.back().end = std::max(joined.back().end, one.end);
        } else {
            joined.push_back(one);
        }
    }
    return joined;
}

inline std::uint64_t length_of(const Intervals& all) {
    std::uint64_t length = 0;
    for (const Interval& one : all)
        length += one.end - one.begin;
    return length;
}

// Of two such sets: the times in both.
inline Intervals both(const Intervals& some, const Intervals& others) {
    Intervals shared;
    for (std::size_t i = 0, j = 0; i < some.size() && j < others.size();) {
        const Interval part{std::max(some[i].begin, others[j].begin), std::min(some[i].end, others[j].end)};
        if (part.begin < part.end) shared.push_back(part);
        ++(some[i].end < others[j].end ? i : j);
    }
    return shared;
}

// The times in the first set and not in the second.
inline Intervals without(const Intervals& some, const Intervals& others) {
    Intervals left;
    std::size_t j = 0;
    for (Interval rest : some) {
        while (j < others.size() && others[j].end <= rest.begin)
            ++j;
        for (std::size_t k = j; k < others.size() && others[k].begin < rest.end; ++k) {
            if (others[k].begin > rest.begin) left.push_back({rest.begin, others[k].begin});
            rest.begin = std::min(rest.end, others[k].end);
        }
        if (rest.begin < rest.end) left.push_back(rest);
    }
    return left;
}

}  // namespace orrery::prof
