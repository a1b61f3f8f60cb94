#include "tools/prof/clocks.h"

#include <limits>

namespace orrery::prof {
namespace {

// A card that keeps step is granted 20 us beyond what it has to do next, and a link's latency; with room.
constexpr std::uint64_t kLongestGrantPs = 50'000'000;

// Of those that a card's later time goes with an earlier one of the host, the former says all: the latest
// `before` so far, the earliest `after` from there on.
void settle_before(HostClock::Points& points) {
    std::ranges::sort(points);
    std::uint64_t latest = 0;
    for (auto& [ps, ns] : points)
        ns = latest = std::max(latest, ns);
}
void settle_after(HostClock::Points& points) {
    std::ranges::sort(points);
    std::uint64_t earliest = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = points.size(); i-- > 0;)
        points[i].second = earliest = std::min(earliest, points[i].second);
}

// The least difference of a moment at which `late` had come to a time and one before which `early` had not
// begun what it did before that time: by so much `late` can be ahead of `early` at most.
std::optional<std::int64_t> most_ahead(const HostClock::Points& early, const HostClock::Points& late) {
    std::optional<std::int64_t> least;
    std::size_t next = 0;
    for (const auto& [ps, ns] : early) {
        while (next < late.size() && late[next].first < ps + kLongestGrantPs)
            ++next;
        if (next == late.size()) break;
        const auto ahead = static_cast<std::int64_t>(late[next].second - ns);
        least = std::min(least.value_or(ahead), ahead);
    }
    return least;
}

}  // namespace

void HostClock::add(const ClockRecord& clock) {
    not_passed(clock.before_ns, clock.device_ps);
    reached(clock.after_ns, clock.device_ps);
}

void HostClock::settle() {
    settle_before(before_);
    settle_after(after_);
}

std::optional<HostClock::Moment> HostClock::host_of(std::uint64_t ps) const {
    const auto time = [](const auto& point) { return point.first; };
    const auto behind = std::ranges::upper_bound(before_, ps, {}, time);
    const auto there = std::ranges::lower_bound(after_, ps, {}, time);
    if (behind == before_.begin() || there == after_.end()) return {};
    const Moment moment{std::prev(behind)->second, there->second};
    return moment.least_ns <= moment.most_ns ? std::optional(moment) : std::nullopt;
}

std::optional<HostOffset> host_offset(const StepTimes& reference, const StepTimes& machine) {
    StepTimes one = reference, other = machine;
    for (StepTimes* times : {&one, &other}) {
        settle_before(times->begun);
        settle_after(times->reached);
    }
    const auto most = most_ahead(one.begun, other.reached), least = most_ahead(other.begun, one.reached);
    // `least` is how far the reference can be ahead.
    if (!most || !least || *most < -*least) return {};
    const std::int64_t low = -*least;
    const std::int64_t width = *most - low;
    return HostOffset{low + width / 2, static_cast<std::uint64_t>(width - width / 2)};
}

}  // namespace orrery::prof
