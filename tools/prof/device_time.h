// Where work of cards stands on a timeline of the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/prof/profile.h"

namespace orrery::prof {

// A card's time is its own. Here its first work of the process begins when that was submitted; all else is as
// far from it as on the card.
class DeviceTime {
  public:
    explicit DeviceTime(const Process& process) {
        for (const WorkRecord& work : process.work) {
            const auto [first, is_new] = first_.try_emplace(work.device, work.begin_ps, work.submitted_ns);
            if (!is_new && work.begin_ps < first->second.first)
                first->second = {work.begin_ps, work.submitted_ns};
        }
    }
    // Of a moment at or behind the first.
    std::uint64_t ns(std::uint32_t device, std::uint64_t ps) const {
        const auto& [first_ps, first_ns] = first_.at(device);
        return first_ns + (ps - first_ps) / 1000;
    }
    // The same with what is less than a nanosecond, from `begin_ns` on.
    double us(std::uint32_t device, std::uint64_t ps, std::uint64_t begin_ns) const {
        const auto& [first_ps, first_ns] = first_.at(device);
        return static_cast<double>(first_ns - begin_ns) / 1e3 + static_cast<double>(ps - first_ps) / 1e6;
    }

  private:
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> first_;
};

// Work in the order in which it began, each with a lane of its stream: what overlaps has different ones.
struct Placed {
    const WorkRecord* work;
    std::uint32_t lane;
};
inline std::vector<Placed> placed_work(const Process& process) {
    std::vector<Placed> placed;
    for (const WorkRecord& work : process.work)
        placed.push_back({&work, 0});
    std::ranges::sort(placed, {}, [](const Placed& one) {
        return std::tuple(one.work->begin_ps, one.work->end_ps, one.work->stream, one.work->index);
    });
    std::map<std::uint64_t, std::vector<std::uint64_t>> ends;  // of the lanes of a stream
    for (Placed& one : placed) {
        auto& lanes = ends[one.work->stream];
        const auto free =
            std::ranges::find_if(lanes, [&](std::uint64_t end) { return end <= one.work->begin_ps; });
        one.lane = static_cast<std::uint32_t>(free - lanes.begin());
        if (free == lanes.end()) {
            lanes.push_back(one.work->end_ps);
        } else {
            *free = one.work->end_ps;
        }
    }
    return placed;
}

}  // namespace orrery::prof
