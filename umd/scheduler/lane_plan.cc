#include "umd/scheduler/lane_plan.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

namespace orrery::umd {
namespace {

constexpr std::uint32_t kMaxHostLanes = 8;  // threads

std::uint64_t bit_of(int device) {
    return device < 0 ? 0 : 1ull << device;
}

class Planner {
  public:
    Planner(std::span<const PlanNode> nodes, std::uint32_t max_lanes)
        : nodes_(nodes), max_lanes_(max_lanes) {}

    Result<LanePlan> run();

  private:
    // How far each lane is known to be: number of its nodes that are done.
    using Clock = std::vector<std::uint32_t>;
    struct Placed {
        std::uint32_t lane = kNoLane;
        std::uint32_t position = 0;
        Clock clock;                // with the node itself
        std::uint64_t pending = 0;  // devices to which writes may be under way when it is done
        std::uint32_t rank = 0;     // in topological order
    };

    Status read_edges();
    Result<std::vector<std::uint32_t>> order() const;
    void inherit_through_host_nodes(const std::vector<std::uint32_t>& order);
    std::uint32_t choose_lane(int device, const Clock& known, std::span<const std::uint32_t> after);
    void place(std::uint32_t node);
    // Index in placed_ of the node on `device` that tells that u's writes have arrived there.
    std::uint32_t arrival(std::uint32_t u, int device);
    // `after` lists indices in placed_. Returns the index of the new one.
    std::uint32_t add(std::uint32_t node, std::uint32_t index, int device, std::uint64_t writes_to,
                      std::vector<std::uint32_t> after);
    void finish();

    static void merge(Clock& into, const Clock& from) {
        if (into.size() < from.size()) into.resize(from.size());
        for (std::size_t i = 0; i < from.size(); ++i)
            into[i] = std::max(into[i], from[i]);
    }
    static bool covers(const Clock& clock, std::uint32_t lane, std::uint32_t position) {
        return lane < clock.size() && clock[lane] > position;
    }

    std::span<const PlanNode> nodes_;
    std::uint32_t max_lanes_;
    LanePlan plan_;
    std::vector<std::vector<std::uint32_t>> after_;
    std::vector<std::vector<std::uint32_t>> before_;  // the other direction
    std::vector<Placed> placed_;                      // nodes, then arrivals
    std::vector<std::uint32_t> tail_;                 // of each lane: index in placed_
    std::map<std::pair<std::uint32_t, int>, std::uint32_t> arrivals_;
    std::uint32_t next_rank_ = 0;
};

Status Planner::read_edges() {
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    after_.resize(count);
    before_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        after_[i] = nodes_[i].after;
        std::ranges::sort(after_[i]);
        after_[i].erase(std::unique(after_[i].begin(), after_[i].end()), after_[i].end());
        if (!after_[i].empty() && after_[i].back() >= count) {
            return fail(orrErrorInternal, "node {} depends on node {}, which is not there", i,
                        after_[i].back());
        }
        plan_.edges += static_cast<std::uint32_t>(after_[i].size());
        for (const std::uint32_t from : after_[i])
            before_[from].push_back(i);
    }
    return {};
}

// Longest way to the end first, so that the critical successor takes over its predecessor's lane.
Result<std::vector<std::uint32_t>> Planner::order() const {
    const std::size_t count = nodes_.size();
    std::vector<std::uint32_t> missing(count), left(count), stack, level(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        missing[i] = static_cast<std::uint32_t>(after_[i].size());
        left[i] = static_cast<std::uint32_t>(before_[i].size());
        if (left[i] == 0) stack.push_back(i);
    }
    while (!stack.empty()) {
        const std::uint32_t node = stack.back();
        stack.pop_back();
        for (const std::uint32_t from : after_[node]) {
            level[from] = std::max(level[from], level[node] + 1);
            if (--left[from] == 0) stack.push_back(from);
        }
    }
    const auto later = [&](std::uint32_t a, std::uint32_t b) {
        return level[a] != level[b] ? level[a] < level[b] : a > b;
    };
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, decltype(later)> ready(later);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (missing[i] == 0) ready.push(i);
    }
    std::vector<std::uint32_t> sorted;
    sorted.reserve(count);
    while (!ready.empty()) {
        const std::uint32_t node = ready.top();
        ready.pop();
        sorted.push_back(node);
        for (const std::uint32_t to : before_[node]) {
            if (--missing[to] == 0) ready.push(to);
        }
    }
    if (sorted.size() != count) {
        const auto stuck = std::ranges::find_if(missing, [](std::uint32_t m) { return m != 0; });
        return fail(orrErrorInvalidValue,
                    "the graph has a cycle: node {} (counted from 0 in the order of adding) waits for itself "
                    "or is behind a node that does",
                    stuck - missing.begin());
    }
    return sorted;
}

// A signal that a host node causes carries the time at which the host sent it, not that of what the host
// waited for. So what follows a host node on a card also waits for the card nodes before it.
void Planner::inherit_through_host_nodes(const std::vector<std::uint32_t>& order) {
    for (const std::uint32_t node : order) {
        std::vector<std::uint32_t> more;
        for (const std::uint32_t from : after_[node]) {
            if (nodes_[from].device != kHostLane) continue;
            more.insert(more.end(), after_[from].begin(), after_[from].end());
        }
        if (more.empty()) continue;
        auto& after = after_[node];
        after.insert(after.end(), more.begin(), more.end());
        std::ranges::sort(after);
        after.erase(std::unique(after.begin(), after.end()), after.end());
    }
}

std::uint32_t Planner::choose_lane(int device, const Clock& known, std::span<const std::uint32_t> after) {
    const auto fits = [&](std::uint32_t lane) {
        return plan_.lanes[lane].device == device && covers(known, lane, placed_[tail_[lane]].position);
    };
    for (const std::uint32_t u : after) {
        if (fits(placed_[u].lane)) return placed_[u].lane;
    }
    std::uint32_t lanes = 0, oldest = kNoLane;
    for (std::uint32_t lane = 0; lane < plan_.lanes.size(); ++lane) {
        if (plan_.lanes[lane].device != device) continue;
        if (fits(lane)) return lane;
        ++lanes;
        if (oldest == kNoLane || placed_[tail_[lane]].rank < placed_[tail_[oldest]].rank) oldest = lane;
    }
    if (lanes >= (device == kHostLane ? kMaxHostLanes : max_lanes_)) return oldest;
    plan_.lanes.push_back({});
    plan_.lanes.back().device = device;
    tail_.push_back(kNoLane);
    return static_cast<std::uint32_t>(plan_.lanes.size() - 1);
}

std::uint32_t Planner::arrival(std::uint32_t u, int device) {
    const auto known = arrivals_.find({u, device});
    if (known != arrivals_.end()) return known->second;
    const auto index = static_cast<std::uint32_t>(placed_.size());
    placed_.push_back({});
    (void)add(kArrival, index, device, 0, {u});
    arrivals_.emplace(std::pair{u, device}, index);
    return index;
}

std::uint32_t Planner::add(std::uint32_t node, std::uint32_t index, int device, std::uint64_t writes_to,
                           std::vector<std::uint32_t> after) {
    std::ranges::sort(after,
                      [&](std::uint32_t a, std::uint32_t b) { return placed_[a].rank > placed_[b].rank; });
    Clock known;
    for (const std::uint32_t u : after)
        merge(known, placed_[u].clock);
    const std::uint32_t lane = choose_lane(device, known, after);
    PlannedNode planned;
    planned.node = node;
    Placed placed;
    placed.lane = lane;
    placed.pending = writes_to;
    placed.rank = next_rank_++;
    if (tail_[lane] != kNoLane) {
        placed.position = placed_[tail_[lane]].position + 1;
        placed.clock = placed_[tail_[lane]].clock;
        placed.pending |= placed_[tail_[lane]].pending;
    }
    for (const std::uint32_t u : after) {
        const Placed& before = placed_[u];
        const int from = plan_.lanes[before.lane].device;
        if (from == device) placed.pending |= before.pending;
        if (before.lane == lane || covers(placed.clock, before.lane, before.position)) continue;
        planned.waits.push_back({before.lane, before.position});
        PlannedNode& source = plan_.lanes[before.lane].nodes[before.position];
        if (device == kHostLane) {
            source.signals_host = true;
        } else if (from != kHostLane) {
            if ((source.signals & bit_of(device)) == 0) ++plan_.signals;
            source.signals |= bit_of(device);
            ++plan_.waits;
        } else {
            source.signals |= bit_of(device);
            ++plan_.waits;
        }
        merge(placed.clock, before.clock);
    }
    if (device == kHostLane && nodes_[index].apart) {
        placed.pending = 0;
    } else if (device == kHostLane) {
        // Times do not pass through the host: see inherit_through_host_nodes().
        const std::uint32_t own = lane < placed.clock.size() ? placed.clock[lane] : 0;
        placed.clock.assign(placed.clock.size(), 0);
        if (lane < placed.clock.size()) placed.clock[lane] = own;
        placed.pending = 0;
    }
    if (placed.clock.size() <= lane) placed.clock.resize(lane + 1);
    placed.clock[lane] = placed.position + 1;
    if (planned.waits.empty() && placed.position == 0) plan_.lanes[lane].starts = true;
    plan_.lanes[lane].nodes.push_back(std::move(planned));
    placed_[index] = std::move(placed);
    tail_[lane] = index;
    return index;
}

void Planner::place(std::uint32_t node) {
    const int device = nodes_[node].device;
    std::vector<std::uint32_t> after = after_[node];
    for (const std::uint32_t u : after_[node]) {
        const int from = plan_.lanes[placed_[u].lane].device;
        if (from == device) continue;
        // Writes to a third card are announced by that card; those to `device` come before the signal.
        const std::uint64_t others = placed_[u].pending & ~bit_of(device);
        for (int third = 0; third < 64; ++third) {
            if ((others >> third & 1) != 0) after.push_back(arrival(u, third));
        }
    }
    (void)add(node, node, device, nodes_[node].writes_to, std::move(after));
}

void Planner::finish() {
    if (plan_.lanes.size() == 1) {
        plan_.lanes[0].ends = true;
        plan_.lanes[0].unarrived = placed_[tail_[0]].pending;
        return;
    }
    const std::vector<std::uint32_t> tails = tail_;
    for (const std::uint32_t last : tails) {
        for (int device = 0; device < 64; ++device) {
            if ((placed_[last].pending >> device & 1) == 0) continue;
            const auto knows = [&](std::uint32_t tail) {
                return plan_.lanes[placed_[tail].lane].device == device &&
                       covers(placed_[tail].clock, placed_[last].lane, placed_[last].position);
            };
            if (std::ranges::none_of(tail_, knows)) (void)arrival(last, device);
        }
    }
    for (std::uint32_t lane = 0; lane < plan_.lanes.size(); ++lane) {
        const Placed& last = placed_[tail_[lane]];
        plan_.lanes[lane].ends = std::ranges::none_of(tail_, [&](std::uint32_t other) {
            return placed_[other].lane != lane && covers(placed_[other].clock, lane, last.position);
        });
    }
}

Result<LanePlan> Planner::run() {
    ORR_TRY(read, read_edges());
    ORR_TRY(sorted, order());
    inherit_through_host_nodes(*sorted);
    placed_.resize(nodes_.size());
    for (const std::uint32_t node : *sorted)
        place(node);
    if (!sorted->empty()) finish();
    return std::move(plan_);
}

}  // namespace

Result<LanePlan> plan_lanes(std::span<const PlanNode> nodes, std::uint32_t max_lanes) {
    return Planner(nodes, max_lanes).run();
}

}  // namespace orrery::umd
