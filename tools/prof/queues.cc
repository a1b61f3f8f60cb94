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

using Ends = std::map<std::uint32_t, std::vector<std::uint64_t>>;

// A stream as its work comes by, in the order in which it began.
struct Queue {
    QueueSums sums;
    bool begun = false;
    std::uint64_t end_ps = 0;        // of what was until now
    std::uint64_t submitted_ns = 0;  // of that, the latest
    std::set<std::uint64_t> seen;    // packets
    std::vector<const WorkRecord*> work;
};

void add(Queue& queue, const Work& one, const Ends& done) {
    const WorkRecord& work = *one.record;
    if (one.operation() == Operation::kWait) {
        queue.sums.waits.add(one.ps(), one.outcome() == Outcome::kFailed);
    } else if (one.operation() != Operation::kOther) {
        const bool part = !queue.seen.insert(work.index).second;  // of one that was preempted
        if (!part) {
            ++queue.sums.work;
            queue.work.push_back(&work);
        }
        if (queue.begun && work.begin_ps >= queue.end_ps) {
            const std::uint64_t ps = work.begin_ps - queue.end_ps;
            switch (part ? Idle::kHeldBack : why_late(queue.submitted_ns, work.submitted_ns, ps, done)) {
                case Idle::kLaunch:
                    queue.sums.launches.add(ps, false);
                    break;
                case Idle::kHeldBack:
                    queue.sums.held_back.add(ps, false);
                    break;
                default:
                    queue.sums.late.add(ps, false);
                    break;
            }
        }
    }
    queue.begun = true;
    queue.end_ps = std::max(queue.end_ps, work.end_ps);
    queue.submitted_ns = std::max(queue.submitted_ns, work.submitted_ns);
}

// Begins are moments of which only bounds are known: all as early as can be, or all as late.
std::optional<QueueSums::Depth> deepest(const std::vector<const WorkRecord*>& work, const HostClock& clock) {
    if (clock.empty()) return {};
    // At one moment what comes is there before others go.
    std::vector<std::pair<std::uint64_t, int>> early, late;
    for (const WorkRecord* one : work) {
        const auto begin = clock.host_of(one->begin_ps);
        if (!begin) return {};
        early.emplace_back(one->submitted_ns, 0);
        late.emplace_back(one->submitted_ns, 0);
        early.emplace_back(std::max(one->submitted_ns, begin->least_ns), 1);
        late.emplace_back(std::max(one->submitted_ns, begin->most_ns), 1);
    }
    const auto most = [](std::vector<std::pair<std::uint64_t, int>>& moments) {
        std::ranges::sort(moments);
        std::uint64_t now = 0, highest = 0;
        for (const auto& [ns, begins] : moments) {
            now = begins != 0 ? now - 1 : now + 1;
            highest = std::max(highest, now);
        }
        return highest;
    };
    return QueueSums::Depth{most(early), most(late)};
}

}  // namespace

std::vector<QueueSums> queue_sums(const Activity& activity, const DeviceModel& device) {
    const Ends done = blocking_ends(activity);
    std::map<std::uint32_t, Queue> queues;
    for (const std::uint32_t number : device.work) {
        const Work& one = activity.work[number];
        add(queues[one.stream], one, done);
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
