// SPDX-License-Identifier: MIT
// Limits of waits. They run by a clock of their own: the card's model time while anybody waits with a limit,
// but a jump of the model clock counts as kStepPs at most. While the card is idle its clock moves to the next
// alarm no faster than the host's time passes (docs/hardware.md, Model time), and the alarm is never more
// than a step away: so a wait whose signaller is slow on the host has the time that its limit promises.
#pragma once

#include <stdint.h>

#include "firmware/hal/alarm.h"
#include "firmware/sched/run/engines.h"

namespace orrery::fw {

class WaitLimits {
  public:
    static constexpr uint64_t kStepPs = 1'000'000'000;
    // Between two looks at all who wait: limits are exact to this.
    static constexpr uint64_t kGrainPs = 100'000'000;

    void init(Alarm& alarm) {
        alarm_ = &alarm;
        next_ = kNever;
    }

    // When a limit that begins now ends, by the clock of limits; never 0.
    uint64_t end_of(Hal& hal, uint64_t limit_ps) {
        settle(hal.reg(SOC_TIME));
        return clock_ + limit_ps;
    }
    // Somebody waits until `end`, or does not any more.
    void enter(Hal& hal, uint64_t end) {
        ++count_;
        if (end >= next_) return;
        next_ = end;
        set_alarm(hal, last_);
    }
    void leave(Hal& hal) {
        if (--count_ != 0) return;
        next_ = kNever;
        alarm_->set(hal, Alarm::kWaitLimit, kNever);
    }

    // Whether somebody's limit may have come; then next() must be told the earliest that has not.
    bool due(Hal& hal, uint64_t now) {
        if (alarm_->at(Alarm::kWaitLimit) > now) return false;
        settle(now);
        if (clock_ >= next_) return true;
        set_alarm(hal, now);
        return false;
    }
    bool over(uint64_t end) const { return end <= clock_; }
    void next(Hal& hal, uint64_t end) {
        next_ = end;
        if (count_ == 0)
            alarm_->set(hal, Alarm::kWaitLimit, kNever);
        else
            set_alarm(hal, last_);
    }

  private:
    void settle(uint64_t now) {
        const uint64_t passed = now - last_;
        if (count_ != 0 && now > last_) clock_ += passed < kStepPs ? passed : kStepPs;
        if (clock_ == 0) clock_ = 1;
        last_ = now;
    }
    void set_alarm(Hal& hal, uint64_t now) {
        uint64_t left = next_ > clock_ ? next_ - clock_ : 0;
        if (left < kGrainPs) left = kGrainPs;
        alarm_->set(hal, Alarm::kWaitLimit, now + (left < kStepPs ? left : kStepPs));
    }

    Alarm* alarm_;
    uint64_t clock_;  // counts while count_ is not 0
    uint64_t last_;   // model time when the clock was looked at
    uint64_t next_;   // no limit ends before; kNever: there is none
    uint32_t count_;
};

}  // namespace orrery::fw
