// After a failure on a card: what can still end ends, everything behind what failed is told to be lost, and
// the lanes are made anew when they are needed again.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "umd/scheduler/runtime_executor.h"

namespace orrery::umd {

void RuntimeExecutor::recover(Listener& listener) {
    for (const auto& [task, error] : std::exchange(lost_, {}))
        listener.failed(task, error);
    constexpr std::uint64_t kNone = ~0ull;
    std::vector<std::uint64_t> lost_from(lanes_.size(), kNone);  // position
    const auto spread = [&] {
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t id = 0; id < lanes_.size(); ++id) {
                for (const InFlight& entry : lanes_[id]->in_flight) {
                    if (entry.position >= lost_from[id]) break;
                    const bool lost = std::ranges::any_of(
                        entry.waits, [&](const Wait& wait) { return wait.position >= lost_from[wait.lane]; });
                    if (!lost) continue;
                    lost_from[id] = entry.position;
                    changed = true;
                    break;
                }
            }
        }
    };
    flush();
    // Every dispatch has a limit of model time, so that this ends.
    for (bool left = true; left;) {
        left = false;
        for (std::size_t id = 0; id < lanes_.size(); ++id) {
            Lane& lane = *lanes_[id];
            poll_lane(listener, lane);
            if (lane.in_flight.empty() || lane.in_flight.front().position >= lost_from[id]) continue;
            left = true;
            const auto error = lane.stream->error();
            if (!error) continue;
            const InFlight& entry = lane.in_flight.front();
            lost_from[id] = entry.position;
            if (entry.task != kNoTask) listener.failed(entry.task, *error);
        }
        spread();
        if (left) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    for (const auto& lane : lanes_) {
        lane->stream->close();
        // Model times of the graph's start are known by now, or will be taken anew.
        if (lane->kind == LaneKind::kRun) cards_[lane->card].base_stamp = nullptr;
    }
    lanes_.clear();
    lane_ids_.clear();
    held_.clear();
    host_ready_.clear();
    for (Ref& old : refs_) {
        if (old.state != RefState::kDone) old.state = RefState::kNone;
        old.passed.clear();
    }
    ++epoch_;
    broken_ = false;
    synchronised_ = false;
}

}  // namespace orrery::umd
