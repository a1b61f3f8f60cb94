// How much of something was used when: each piece of work uses it evenly, and several may do so at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "tools/prof/intervals.h"

namespace orrery::prof {

class UseOverTime {
  public:
    void add(const Interval& time, double amount) {
        if (time.begin >= time.end || amount <= 0) return;
        const double rate = amount / static_cast<double>(time.end - time.begin);
        steps_.push_back({time.begin, rate, 0});
        steps_.push_back({time.end, -rate, 0});
    }
    // All has been added: of any time the amount can be asked for now.
    void settle() {
        std::ranges::sort(steps_, {}, &Step::at);
        double rate = 0, amount = 0;
        std::uint64_t before = steps_.empty() ? 0 : steps_.front().at;
        for (Step& step : steps_) {
            amount += rate * static_cast<double>(step.at - before);
            rate += step.rate;
            before = step.at;
            step = {step.at, rate, amount};
        }
    }
    double within(const Interval& time) const { return until(time.end) - until(time.begin); }

  private:
    struct Step {
        std::uint64_t at;
        double rate;    // until settled: by how much it changes; then: from here on
        double amount;  // until here
    };
    double until(std::uint64_t at) const {
        const auto behind = std::ranges::upper_bound(steps_, at, {}, &Step::at);
        if (behind == steps_.begin()) return 0;
        const Step& step = *std::prev(behind);
        return step.amount + step.rate * static_cast<double>(at - step.at);
    }

    std::vector<Step> steps_;
};

}  // namespace orrery::prof
