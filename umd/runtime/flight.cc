#include "umd/runtime/flight.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace orrery::umd {
namespace {

// A queue that stops fails what it has not signalled over the same link, behind what it has: so a failure
// that is there says that the earlier signals were. `lost` is set before anybody else fails one.
bool arrived(const FlightSignal& signal, std::uint64_t executed) {
    if (signal.lost) return false;
    return signal.slot->reached(signal.value) || (signal.index <= executed && signal.slot->failed());
}

}  // namespace

bool FlightSignal::over() const {
    return lost || slot->failed() || slot->reached(value);
}

bool FlightSignal::given_up(std::int64_t now_ns, std::int64_t patience_ns) {
    if (doubted_ns == 0) doubted_ns = now_ns;
    return now_ns - doubted_ns >= patience_ns;
}

// What it gives goes after the lock: slots come back through their pool's.
std::vector<FlightSignal> Flight::tidy(std::uint64_t executed) const {
    const auto gone = std::ranges::partition(signals_, [&](const FlightSignal& signal) {
        return !arrived(signal, executed) && (!signal.lost || signal.landing);
    });
    std::vector<FlightSignal> taken(std::make_move_iterator(gone.begin()),
                                    std::make_move_iterator(gone.end()));
    signals_.erase(gone.begin(), gone.end());
    any_landing_.store(std::ranges::any_of(signals_, &FlightSignal::landing), std::memory_order_release);
    return taken;
}

void Flight::set_way(const Context& there, std::uint64_t way, std::uint64_t executed, std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    ways_[&there] = {way, now_ns};
    for (FlightSignal& signal : signals_) {
        if (signal.slot->context == &there && signal.index > executed) signal.way = way;
    }
}

bool Flight::knows_way(const Context& there, std::int64_t since_ns) const {
    const std::lock_guard lock(mutex_);
    const auto known = ways_.find(&there);
    return known != ways_.end() && known->second.asked_ns >= since_ns;
}

void Flight::add(FlightSignal signal) {
    std::vector<FlightSignal> gone;
    const std::lock_guard lock(mutex_);
    signal.way = ways_[signal.slot->context].way;
    // Now and then only: looking at them is a read of another card's memory.
    if (signals_.size() >= tidy_at_) {
        gone = tidy(0);
        tidy_at_ = std::max(kTidyAt, 2 * signals_.size());
    }
    const bool landing = signal.landing;
    signals_.push_back(std::move(signal));
    if (landing) any_landing_.store(true, std::memory_order_release);
}

bool Flight::all_landed(std::uint64_t index, std::uint64_t executed) const {
    std::vector<FlightSignal> gone;
    const std::lock_guard lock(mutex_);
    gone = tidy(executed);
    return std::ranges::none_of(
        signals_, [&](const FlightSignal& signal) { return signal.landing && signal.index <= index; });
}

bool Flight::quiet() const {
    if (!any_landing_.load(std::memory_order_acquire)) return true;
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(signals_,
                               [](const FlightSignal& signal) { return !signal.landing || signal.over(); });
}

std::vector<FlightSignal> Flight::under_way(std::uint64_t executed) const {
    const std::lock_guard lock(mutex_);
    std::vector<FlightSignal> found;
    std::ranges::copy_if(signals_, std::back_inserter(found), [&](const FlightSignal& signal) {
        return signal.index <= executed && !signal.over();
    });
    return found;
}

std::set<Context*> Flight::destinations() {
    const std::lock_guard lock(mutex_);
    std::set<Context*> found;
    for (FlightSignal& signal : signals_) {
        if (!signal.over() && std::exchange(signal.looked, true)) found.insert(signal.slot->context);
    }
    return found;
}

std::vector<SemaphorePoint> Flight::points(std::uint64_t executed) const {
    std::vector<SemaphorePoint> found;
    for (const FlightSignal& signal : under_way(executed))
        found.push_back({signal.slot->va, signal.value});
    return found;
}

bool Flight::under_way_to(std::uint64_t va, std::uint64_t executed) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(signals_, [&](const FlightSignal& signal) {
        return signal.slot->va == va && signal.index <= executed && !signal.over();
    });
}

template <typename Judge>
std::vector<FlightSignal> Flight::lose_if(const Context& there, std::uint64_t executed, Judge is_lost) {
    const std::lock_guard lock(mutex_);
    std::vector<FlightSignal> gone;
    for (FlightSignal& signal : signals_) {
        if (signal.slot->context != &there || signal.index > executed || signal.over()) continue;
        if (!is_lost(signal)) continue;
        signal.lost = true;
        gone.push_back(signal);
    }
    return gone;
}

std::vector<FlightSignal> Flight::doubt(const Context& there, std::uint64_t executed, std::int64_t now_ns,
                                        WayLook& look) {
    return lose_if(there, executed, [&](FlightSignal& signal) { return look.never_comes(signal, now_ns); });
}

std::vector<FlightSignal> Flight::lose(const Context& there, std::uint64_t executed) {
    return lose_if(there, executed, [](const FlightSignal&) { return true; });
}

std::vector<FlightSignal> Flight::take() {
    std::vector<FlightSignal> taken;
    {
        const std::lock_guard lock(mutex_);
        taken.swap(signals_);
        any_landing_.store(false, std::memory_order_release);
    }
    std::erase_if(taken, [](const FlightSignal& signal) { return signal.over(); });
    return taken;
}

}  // namespace orrery::umd
