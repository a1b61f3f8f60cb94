// When the workers of a card are busy. A task that does not fill the card takes some of them, all at the same
// time, and leaves the others to its neighbours.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "umd/scheduler/timeline.h"

namespace orrery::umd {

// Bits of workers of one card.
using WorkerSet = std::uint8_t;
static_assert(kMaxWorkers <= 8 * sizeof(WorkerSet));

class Workers {
  public:
    explicit Workers(unsigned count = 1) : count_(count) {}

    void restart(unsigned worker, Ps end) { times_[worker] = Timeline(end); }
    Ps end() const {
        Ps end = 0;
        for (unsigned i = 0; i < count_; ++i)
            end = std::max(end, times_[i].end());
        return end;
    }
    // Earliest start, not before `ready`, of something that takes `width` workers for `duration`.
    Ps find(Ps ready, Ps duration, unsigned width) const {
        if (count_ == 1) return times_[0].find(ready, duration);
        while (true) {
            std::array<Ps, kMaxWorkers> starts{};
            for (unsigned i = 0; i < count_; ++i)
                starts[i] = times_[i].find(ready, duration);
            std::sort(starts.begin(), starts.begin() + count_);
            // No earlier moment has so many; at that one, those that could begin before may have lost their
            // gap.
            const Ps soonest = starts[width - 1];
            if (soonest == ready || fits(soonest, duration, width)) return soonest;
            ready = soonest;
        }
    }
    // start: of find(). Gives who is taken: the first that are free.
    WorkerSet reserve(Ps start, Ps duration, unsigned width) {
        WorkerSet taken = 0;
        for (unsigned i = 0; i < count_ && width != 0; ++i) {
            if (times_[i].find(start, duration) != start) continue;
            times_[i].reserve(start, duration);
            taken = static_cast<WorkerSet>(taken | 1u << i);
            --width;
        }
        return taken;
    }
    void forget_before(unsigned worker, Ps time) { times_[worker].forget_before(time); }
    unsigned count() const { return count_; }

  private:
    bool fits(Ps start, Ps duration, unsigned width) const {
        unsigned free = 0;
        for (unsigned i = 0; i < count_; ++i)
            free += times_[i].find(start, duration) == start;
        return free >= width;
    }

    std::array<Timeline, kMaxWorkers> times_{};
    unsigned count_;
};

}  // namespace orrery::umd
