// charge_vector() for instructions in a row that nobody waits for, with its state at hand.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/core/core.h"

namespace orrery::emu {

class VectorClock {
  public:
    VectorClock(const Core* core, std::int64_t left)
        : now_(core->steps_end - static_cast<std::uint64_t>(left) + core->extra_cycles),
          left_(left),
          arithmetic_until_(core->vector->arithmetic_until),
          memory_until_(core->vector->memory_until),
          oldest_(core->vector->oldest),
          last_(core->vector->began[(oldest_ + VectorFile::kAhead - 1) % VectorFile::kAhead]) {
        std::copy_n(core->vector->began, VectorFile::kAhead, began_);
    }
    // An instruction takes its step. Each false: the budget is used up.
    bool step() {
        ++now_;
        return --left_ != 0;
    }
    bool arithmetic(std::uint64_t cycles) { return vector(arithmetic_until_, cycles); }
    bool memory(std::uint64_t cycles) { return vector(memory_until_, cycles); }
    std::int64_t left() const { return left_; }
    void finish(Core* core) const {
        VectorFile& file = *core->vector;
        file.arithmetic_until = arithmetic_until_;
        file.memory_until = memory_until_;
        std::copy_n(began_, VectorFile::kAhead, file.began);
        file.oldest = oldest_;
        core->extra_cycles += extra_;
        core->mcycle_delta += extra_;
        core->steps_end -= extra_ - beyond_;
        core->deferred -=
            static_cast<std::int64_t>(std::min(beyond_, static_cast<std::uint64_t>(core->deferred)));
    }

    // What the time of the next instructions depends on. Where it is what it was a turn of a loop before,
    // each further turn of the same instructions takes what that one took.
    struct Phase {
        std::uint64_t arithmetic = 0, memory = 0, began[VectorFile::kAhead] = {};
        bool operator==(const Phase&) const = default;
    };
    Phase phase() const {
        Phase all{.arithmetic = arithmetic_until_ - now_, .memory = memory_until_ - now_};
        for (std::size_t i = 0; i < VectorFile::kAhead; ++i)
            all.began[i] = began_[(oldest_ + i) % VectorFile::kAhead] - now_;
        return all;
    }
    struct Turn {
        std::uint64_t now = 0, extra = 0;
    };
    Turn at() const { return {now_, extra_}; }
    // So many turns as the one since `then`; there is more left.
    void repeat(const Turn& then, std::uint64_t turns) {
        const std::uint64_t all = (now_ - then.now) * turns;
        extra_ += (extra_ - then.extra) * turns;
        left_ -= static_cast<std::int64_t>(all);
        for (std::uint64_t* each : {&now_, &arithmetic_until_, &memory_until_, &last_})
            *each += all;
        for (std::uint64_t& each : began_)
            each += all;
    }

  private:
    bool vector(std::uint64_t& until, std::uint64_t cycles) {
        const std::uint64_t given = std::max(now_, began_[oldest_]);
        last_ = std::max({given, last_, until});
        until = last_ + cycles;
        began_[oldest_] = last_;
        oldest_ = (oldest_ + 1) % VectorFile::kAhead;
        const std::uint64_t extra = given - now_;
        now_ = given;
        if (extra >= static_cast<std::uint64_t>(left_)) [[unlikely]] {
            beyond_ = extra - static_cast<std::uint64_t>(left_ - 1);
            left_ = 1;
        } else {
            left_ -= static_cast<std::int64_t>(extra);
        }
        extra_ += extra;
        return step();
    }

    std::uint64_t now_;
    std::int64_t left_;
    std::uint64_t arithmetic_until_, memory_until_, extra_ = 0, beyond_ = 0;
    std::size_t oldest_;
    std::uint64_t last_;
    std::uint64_t began_[VectorFile::kAhead];
};

}  // namespace orrery::emu
