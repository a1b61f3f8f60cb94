#include "tools/prof/queues.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "tools/prof/counter_series.h"

namespace orrery::prof {
namespace {

// A stream as its work comes by, in the order in which it began.
struct Queue {
    QueueSums sums;
    bool begun = false;
    std::uint64_t end_ps = 0;        // of what was until now
    std::set<std::uint64_t> parted;  // packets of which another part follows
    std::vector<const WorkRecord*> work;
};

// The card's time that it had not passed at that moment of the host; nothing: nobody looked then or later.
std::optional<std::uint64_t> not_passed(const HostClock& clock, std::uint64_t ns) {
    const auto later =
        std::ranges::lower_bound(clock.before(), ns, {}, [](const auto& point) { return point.second; });
    return later == clock.before().end() ? std::nullopt : std::optional(later->first);
}

void add_gap(QueueSums& sums, std::uint64_t end_ps, const WorkRecord& work, const HostClock& clock) {
    const std::uint64_t ps = work.begin_ps - end_ps;
    const auto was_there = [&](std::uint64_t there_ps) {
        (there_ps > kLongestLaunchPs ? sums.held_back : sums.launches).add(there_ps, false);
    };
    const auto end = clock.empty() ? std::nullopt : clock.host_of(end_ps);
    if (end && work.submitted_ns <= end->least_ns) return was_there(ps);
    Totals& before = end && work.submitted_ns > end->most_ns ? sums.late : sums.unknown;
    // What is left behind the time at which it was there for certain may be the end of a launch.
    const std::uint64_t there_ps = not_passed(clock, work.submitted_ns).value_or(work.begin_ps);
    const std::uint64_t left_ps = work.begin_ps - std::clamp(there_ps, end_ps, work.begin_ps);
    if (left_ps <= kLongestLaunchPs) return before.add(ps, false);
    sums.held_back.add(left_ps, false);
    before.add(ps - left_ps, false);
}

void add(Queue& queue, const Work& one, const HostClock& clock) {
    const WorkRecord& work = *one.record;
    if (one.operation() == Operation::kWait) {
        queue.sums.waits.add(one.ps(), one.outcome() == Outcome::kFailed);
    } else if (one.operation() != Operation::kOther) {
        const bool part = queue.parted.erase(work.index) != 0;  // of one that was preempted
        if (one.goes_on) queue.parted.insert(work.index);
        if (!part) {
            ++queue.sums.work;
            queue.work.push_back(&work);
        }
        if (queue.begun && work.begin_ps >= queue.end_ps) {
            if (part)
                queue.sums.held_back.add(work.begin_ps - queue.end_ps, false);
            else
                add_gap(queue.sums, queue.end_ps, work, clock);
        }
    }
    queue.begun = true;
    queue.end_ps = std::max(queue.end_ps, work.end_ps);
}

// Begins are moments of which only bounds are known: all as early as can be, or all as late.
std::optional<QueueSums::Depth> deepest(const std::vector<const WorkRecord*>& work, const HostClock& clock) {
    if (clock.empty()) return {};
    std::vector<std::uint64_t> submitted, early, late;
    for (const WorkRecord* one : work) {
        const auto begin = clock.host_of(one->begin_ps);
        if (!begin) return {};
        submitted.push_back(one->submitted_ns);
        early.push_back(std::max(one->submitted_ns, begin->least_ns));
        late.push_back(std::max(one->submitted_ns, begin->most_ns));
    }
    std::ranges::sort(submitted);
    const auto most = [&](std::vector<std::uint64_t>& begins) {
        std::ranges::sort(begins);
        std::uint64_t came = 0, gone = 0, highest = 0;
        for (const std::uint64_t ns : submitted) {
            // At one moment what comes is there before others go.
            while (gone < begins.size() && begins[gone] < ns)
                ++gone;
            highest = std::max(highest, ++came - gone);
        }
        return highest;
    };
    return QueueSums::Depth{most(early), most(late)};
}

}  // namespace

std::vector<QueueSums> queue_sums(const Activity& activity, const DeviceModel& device) {
    std::map<std::uint32_t, Queue> queues;
    for (const std::uint32_t number : device.work) {
        const Work& one = activity.work[number];
        add(queues[one.stream], one, device.clock);
    }
    std::vector<QueueSums> all;
    for (auto& [stream, queue] : queues) {
        if (queue.sums.work == 0) continue;
        queue.sums.stream = stream;
        queue.sums.deepest = deepest(queue.work, device.clock);
        all.push_back(queue.sums);
    }
    return all;
}

std::optional<QueueCounts> queue_counts(const Activity& activity, const DeviceModel& device) {
    static constexpr std::array<std::string_view, 4> kNames = {"doorbell_pops", "doorbell_wait_ps",
                                                               "ring_packets", "ring_wait_ps"};
    const auto ups = sampled_ups(*activity.process, device.number, kNames);
    if (!ups) return {};
    const auto value = [&](std::size_t i) { return static_cast<double>(ups->values[i]); };
    QueueCounts counts{.ps = ups->ps, .packets = ups->values[2]};
    counts.depth = value(3) / static_cast<double>(ups->ps);
    for (const auto& [count, wait] : {std::pair<std::size_t, std::size_t>(0, 1), {2, 3}})
        counts.latency_us += value(count) > 0 ? value(wait) / value(count) / 1e6 : 0;
    return counts;
}

}  // namespace orrery::prof
