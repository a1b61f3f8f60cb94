#include "tools/prof/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <set>
#include <tuple>

namespace orrery::prof {
namespace {

// Owners have numbers of their kind, in the order in which they are first seen.
class Owners {
  public:
    std::string title(const StepRecord& step) {
        const auto [found, is_new] = numbers_.try_emplace({step.of, step.owner}, 0);
        if (is_new) found->second = ++counts_[step.of];
        const auto of = static_cast<StepOf>(step.of);
        const char* const kind = of == StepOf::kGraph   ? "graph"
                                 : of == StepOf::kTasks ? "task graph"
                                 : of == StepOf::kGroup ? "group"
                                                        : "other";
        return fmt::format("{} {}", kind, found->second);
    }

  private:
    std::map<std::pair<std::uint16_t, std::uint64_t>, std::uint64_t> numbers_;
    std::map<std::uint16_t, std::uint64_t> counts_;
};

// "group 2" before "group 10", as people count.
struct Titled {
    std::string_view text;
    std::uint64_t number;
    auto operator<=>(const Titled&) const = default;
};
Titled titled(std::string_view title) {
    const std::size_t digits = title.find_last_not_of("0123456789") + 1;
    Titled all{title.substr(0, digits), 0};
    std::from_chars(title.data() + digits, title.data() + title.size(), all.number);
    return all;
}

bool is_barrier_in_stream(const StepRecord& step) {
    return kind_of(step) == StepKind::kBarrier && !on_host(step);
}

std::pair<std::uint64_t, std::uint64_t> time_of(const StepRecord& step) {
    return on_host(step) ? std::pair(step.begin_ns, step.end_ns) : std::pair(step.begin_ps, step.end_ps);
}

std::string row_title(const std::string& owner, const StepRecord& step) {
    if (static_cast<StepOf>(step.of) == StepOf::kGroup) return fmt::format("{}, rank {}", owner, step.number);
    if (static_cast<StepOf>(step.of) == StepOf::kTasks && on_host(step)) return owner + ", host tasks";
    return fmt::format("{}, lane {}", owner, step.lane);
}

// By rank, how long it waited. All are let go at one moment, so who came last waited least, by whatever
// clock.
std::optional<std::uint64_t> last_of(const std::map<std::uint64_t, std::uint64_t>& waits,
                                     std::size_t members) {
    if (waits.size() != members || members < 2) return {};
    const auto wait = [](const auto& one) { return one.second; };
    const auto least = std::ranges::min_element(waits, {}, wait);
    return std::ranges::count(waits, least->second, wait) == 1 ? std::optional(least->first) : std::nullopt;
}

}  // namespace

const char* name_of(StepKind kind) {
    switch (kind) {
        case StepKind::kKernel:
            return "kernel";
        case StepKind::kCopy:
            return "copy";
        case StepKind::kFill:
            return "fill";
        case StepKind::kHost:
            return "host";
        case StepKind::kMerge:
            return "merge";
        case StepKind::kBarrier:
            return "barrier";
        case StepKind::kBroadcast:
            return "broadcast";
        case StepKind::kGather:
            return "gather";
        case StepKind::kReduction:
            return "reduction";
    }
    return "unknown";
}

std::vector<StepRow> step_rows(const Activity& activity) {
    using Place = std::pair<std::int32_t, std::string>;
    Owners owners;
    std::map<Place, std::vector<const StepRecord*>> places;
    for (const StepRecord& step : activity.process->steps) {
        const std::string owner = owners.title(step);
        if (!has_time(step)) continue;
        if (!on_host(step)) {
            // Where the device's own work says when that is.
            const DeviceModel* const device = activity.device(static_cast<std::uint32_t>(step.device));
            if (device == nullptr || device->work.empty() || step.begin_ps < device->begin_ps ||
                step.end_ps > device->end_ps)
                continue;
            if (device->on_host_clock &&
                (!device->clock.host_of(step.begin_ps) || !device->clock.host_of(step.end_ps)))
                continue;
        }
        places[{std::max(step.device, -1), row_title(owner, step)}].push_back(&step);
    }
    std::vector<StepRow> rows;
    for (auto& [place, steps] : places) {
        std::ranges::sort(steps, {}, [](const StepRecord* step) { return std::pair(time_of(*step), step); });
        const std::size_t first = rows.size();
        for (const StepRecord* const step : steps) {
            std::size_t row = first;
            while (row < rows.size() && time_of(*rows[row].steps.back()).second > time_of(*step).first)
                ++row;
            if (row == rows.size()) rows.push_back({.device = place.first, .title = place.second});
            rows[row].steps.push_back(step);
        }
    }
    return rows;
}

std::vector<StepSums> step_sums(const Activity& activity) {
    Owners owners;
    std::map<std::tuple<std::string, std::uint16_t, std::uint32_t, bool>, StepSums> sums;
    for (const StepRecord& step : activity.process->steps) {
        const std::string owner = owners.title(step);
        StepSums& own = sums[{owner, step.kind, step.head.text, on_host(step)}];
        own.owner = owner;
        own.kind = kind_of(step);
        own.name = activity.text(step.head.text);
        own.host = on_host(step);
        ++own.count;
        if (!has_time(step)) continue;
        const auto [begin, end] = time_of(step);
        const std::uint64_t ps = on_host(step) ? (end - begin) * 1'000 : end - begin;
        ++own.timed;
        own.total_ps += ps;
        own.longest_ps = std::max(own.longest_ps, ps);
    }
    std::vector<StepSums> all;
    for (auto& [key, own] : sums)
        all.push_back(std::move(own));
    std::ranges::sort(all, {}, [](const StepSums& one) {
        return std::tuple(titled(one.owner), ~one.total_ps, std::string_view(one.name), one.kind, one.host);
    });
    return all;
}

BarrierLasts::Key BarrierLasts::key_of(const Activity& activity, const StepRecord& barrier) const {
    const bool shared = (barrier.owner & kOwnerOfAll) != 0;
    return {shared ? 0 : static_cast<std::size_t>(&activity - model_.processes.data()) + 1, barrier.owner,
            barrier.round};
}

BarrierLasts::BarrierLasts(const Model& model) : model_(model) {
    struct Round {
        std::map<std::uint64_t, std::uint64_t> waits;  // by rank
        std::size_t members = 0;
    };
    std::map<Key, Round> rounds;
    for (const Activity& activity : model.processes) {
        for (const StepRecord& step : activity.process->steps) {
            if (!is_barrier_in_stream(step)) continue;
            Round& round = rounds[key_of(activity, step)];
            round.members = step.members;
            // What is not here may have been its wait.
            const auto device = static_cast<std::uint32_t>(step.device);
            if (step.end_ps == 0 && activity.process->lost_work.contains(device)) continue;
            round.waits[step.number] = step.end_ps - step.begin_ps;
        }
    }
    for (const auto& [key, round] : rounds) {
        if (const auto last = last_of(round.waits, round.members)) lasts_.emplace(key, *last);
    }
}

std::optional<std::uint64_t> BarrierLasts::last(const Activity& activity, const StepRecord& step) const {
    if (!is_barrier_in_stream(step)) return {};
    const auto found = lasts_.find(key_of(activity, step));
    return found == lasts_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<LastRank> last_ranks(const Activity& activity, const BarrierLasts& lasts) {
    Owners owners;
    std::map<std::pair<std::uint64_t, std::uint64_t>, LastRank> ranks;
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;  // of several members in one process
    for (const StepRecord& step : activity.process->steps) {
        const std::string owner = owners.title(step);
        const auto last = lasts.last(activity, step);
        if (!last || !seen.emplace(step.owner, step.round).second) continue;
        LastRank& own = ranks[{step.owner, *last}];
        own.owner = owner;
        own.rank = *last;
        ++own.count;
    }
    std::vector<LastRank> all;
    for (auto& [key, own] : ranks)
        all.push_back(std::move(own));
    std::ranges::sort(all, {}, [](const LastRank& one) { return std::pair(titled(one.owner), one.rank); });
    return all;
}

}  // namespace orrery::prof
