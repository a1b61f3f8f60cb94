// When one resource (a card, a channel) is busy: everything before end() but a few remembered gaps.
#pragma once

#include <array>
#include <cstddef>

#include "umd/scheduler/machine.h"

namespace orrery::umd {

class Timeline {
  public:
    Timeline() = default;
    explicit Timeline(Ps end) : end_(end) {}

    Ps end() const { return end_; }
    // Earliest start, not before `ready`, of something that lasts `duration`.
    Ps find(Ps ready, Ps duration) const {
        Ps best = ready > end_ ? ready : end_;
        for (std::size_t i = count_; i-- > 0;) {
            const Gap& gap = gaps_[i];
            const Ps start = ready > gap.from ? ready : gap.from;
            if (start + duration <= gap.to)
                best = start;
            else if (gap.to <= ready)
                break;  // and all earlier ones
        }
        return best;
    }
    // start: of find().
    void reserve(Ps start, Ps duration) {
        if (start >= end_) {
            if (start > end_) insert(count_, {end_, start});
            end_ = start + duration;
            return;
        }
        for (std::size_t i = count_; i-- > 0;) {
            Gap& gap = gaps_[i];
            if (start < gap.from || start >= gap.to) continue;
            const Gap before{gap.from, start}, after{start + duration, gap.to};
            const bool keep_before = before.to > before.from, keep_after = after.to > after.from;
            if (keep_before && keep_after) {
                gap = before;
                insert(i + 1, after);
            } else if (keep_before || keep_after) {
                gap = keep_before ? before : after;
            } else {
                erase(i);
            }
            return;
        }
    }
    // Nothing can start before `time` any more.
    void forget_before(Ps time) {
        while (count_ != 0 && gaps_[0].to <= time)
            erase(0);
        if (count_ != 0 && gaps_[0].from < time) gaps_[0].from = time;
        if (end_ < time) end_ = time;
    }

  private:
    struct Gap {
        Ps from, to;
    };
    static constexpr std::size_t kGaps = 12;

    void erase(std::size_t at) {
        for (std::size_t i = at + 1; i < count_; ++i)
            gaps_[i - 1] = gaps_[i];
        --count_;
    }
    // A full list forgets its earliest gap: the planner goes forward in time.
    void insert(std::size_t at, Gap gap) {
        if (count_ == kGaps) {
            if (at == 0) return;
            erase(0);
            --at;
        }
        for (std::size_t i = count_; i > at; --i)
            gaps_[i] = gaps_[i - 1];
        gaps_[at] = gap;
        ++count_;
    }

    Ps end_ = 0;
    std::size_t count_ = 0;
    std::array<Gap, kGaps> gaps_{};
};

}  // namespace orrery::umd
