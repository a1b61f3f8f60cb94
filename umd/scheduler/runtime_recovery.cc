// After a failure on a card: what can still end ends, everything behind what failed is told to be lost, and
// its lanes are made anew when they are needed again. It goes in steps, none of which waits for a card:
// kernels may run for seconds, and their task graph can be asked meanwhile.
#include <algorithm>
#include <span>
#include <utility>

#include "umd/scheduler/runtime_executor.h"

namespace orrery::umd {
namespace {

constexpr std::uint64_t kNothing = ~0ull;

}  // namespace

// Nothing that is left of the lane will end.
bool RuntimeExecutor::is_lost(LaneId id) const {
    const Lane& lane = lanes_[id];
    return lane.in_flight.empty() || lane.in_flight.front().position >= lost_from_[id];
}

void RuntimeExecutor::lose_from_front(Listener& listener, LaneId id, const Error& error) {
    const InFlight& entry = lanes_[id].in_flight.front();
    lost_from_[id] = entry.position;
    if (entry.task != kNoTask) return listener.failed(entry.task, error);
    // Nobody's: no task fails, so without this it would be tried for ever. It is a signal to another card, or
    // waited for one that was lost on its way.
    const auto lost_its_link = [&](const Lane& lane) {
        if (lane.card != lane.signals) cut(lane.card, lane.signals);
    };
    lost_its_link(lanes_[id]);
    for (const Wait& wait : entry.waits) {
        if (lanes_[wait.lane].slot->failed()) lost_its_link(lanes_[wait.lane]);
    }
}

// From now on all between them goes over the host.
void RuntimeExecutor::cut(unsigned a, unsigned b) {
    machine_.channel[a][b].exists = machine_.channel[b][a].exists = false;
}

// What waits for something lost is lost.
void RuntimeExecutor::spread_losses() {
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t id = 0; id < lanes_.size(); ++id) {
            for (const InFlight& entry : lanes_[id].in_flight) {
                if (entry.position >= lost_from_[id]) break;
                const bool lost = std::ranges::any_of(
                    entry.waits, [&](const Wait& wait) { return wait.position >= lost_from_[wait.lane]; });
                if (!lost) continue;
                lost_from_[id] = entry.position;
                changed = true;
                break;
            }
        }
    }
}

// It has done all that it was given, and can go on. To make queues for many cards takes longer than all else
// that a failure costs.
bool RuntimeExecutor::is_idle(const Lane& lane) {
    return lane.stream != nullptr && lane.in_flight.empty() && lane.slot->reached(lane.position) &&
           !lane.stream->error();
}

// All lanes have said what they have to say. The cause of poison is another lane's as a rule, and then its
// own task has failed. If it was none's, it came from elsewhere.
void RuntimeExecutor::lose_poisoned(Listener& listener, std::span<const std::pair<LaneId, Error>> poisoned) {
    // A semaphore that fails does so for all its values, also for one that was reached before.
    const auto has_stopped = [&](const Wait& wait) { return lost_from_[wait.lane] != kNothing; };
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [id, error] : poisoned) {
            if (is_lost(id) || std::ranges::none_of(lanes_[id].in_flight.front().waits, has_stopped))
                continue;
            lost_from_[id] = lanes_[id].in_flight.front().position;
            spread_losses();
            changed = true;
        }
        if (changed) continue;
        const auto first =
            std::ranges::find_if(poisoned, [&](const auto& lane) { return !is_lost(lane.first); });
        if (first == poisoned.end()) return;
        lose_from_front(listener, first->first, first->second);
        spread_losses();
        changed = true;
    }
}

bool RuntimeExecutor::recover(Listener& listener) {
    if (lost_from_.size() != lanes_.size()) {
        lost_from_.assign(lanes_.size(), kNothing);
        flush();
    }
    for (const auto& [task, error] : std::exchange(lost_, {}))
        listener.failed(task, error);
    bool works = false;
    std::vector<std::pair<LaneId, Error>> poisoned;
    for (LaneId id = 0; id < lanes_.size(); ++id) {
        Lane& lane = lanes_[id];
        poll_lane(listener, lane);
        if (is_lost(id)) continue;
        const auto error = lane.stream->look();
        if (!error)
            works = true;  // every dispatch has a limit of model time, and a card that goes is seen
        else if (lane.stream->poisoned())
            poisoned.emplace_back(id, *error);
        else
            lose_from_front(listener, id, *error);
    }
    spread_losses();
    if (!works) lose_poisoned(listener, poisoned);
    for (LaneId id = 0; id < lanes_.size(); ++id) {
        if (!is_lost(id)) return false;
    }
    return true;
}

// Whether there is one that was not known.
bool RuntimeExecutor::find_lost_cards() {
    const unsigned before = lost_cards_;
    for (unsigned card = 0; card < cards_.size(); ++card) {
        const auto there = cards_[card].context->winsys().query();
        if (!there && there.error().code == orrErrorDeviceLost) lost_cards_ |= 1u << card;
    }
    return lost_cards_ != before;
}

void RuntimeExecutor::find_cut_links() {
    for (unsigned a = 0; a < cards_.size(); ++a) {
        for (unsigned b = a + 1; b < cards_.size(); ++b) {
            if (machine_.channel[a][b].exists && !cards_[a].context->way_to(*cards_[b].context)) cut(a, b);
        }
    }
}

void RuntimeExecutor::start_anew() {
    const bool ends = stopped();
    if (!ends) {
        (void)find_lost_cards();
        find_cut_links();
    }
    std::vector<Lane*> gone;
    for (Lane& lane : lanes_) {
        const bool joined = lane.card == lane.signals || machine_.channel[lane.card][lane.signals].exists;
        const bool lost = ((lost_cards_ >> lane.card | lost_cards_ >> lane.signals) & 1) != 0;
        if (!ends && joined && !lost && is_idle(lane)) continue;
        // The model time of the graph's start is known by now, or will be taken anew.
        if (lane.kind == LaneKind::kRun) cards_[lane.card].base_stamp = nullptr;
        gone.push_back(&lane);
    }
    close(gone);
    held_.clear();
    host_ready_.clear();
    host_running_.clear();  // they were taken, but none runs: the core issues them anew
    for (Ref& old : refs_) {
        if (old.state != RefState::kDone) old.state = RefState::kNone;
        old.passed.clear();
    }
    ++epoch_;
    lost_from_.clear();
    fate_ = std::make_unique<Fate>();
    lost_.clear();
    gave_up_ = ends;
    synchronised_ = false;
}

}  // namespace orrery::umd
