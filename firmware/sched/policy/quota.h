// SPDX-License-Identifier: MIT
// Quotas: vector core time that a context may have in each period. Used time is charged when a dispatch ends,
// and at an alarm for the moment at which the quota can be used up at the earliest; so nothing is polled, and
// a context goes over its quota by no more than the time to preempt.
#pragma once

#include "firmware/hal/alarm.h"
#include "firmware/hal/hal.h"
#include "firmware/sched/policy/policy.h"
#include "firmware/sched/queue/list.h"
#include "firmware/sched/queue/queue.h"
#include "firmware/sched/run/engines.h"

namespace orrery::fw {

class Arbiter;
struct Tables;

// Zeroed memory is a valid object without limited contexts.
class Quotas {
  public:
    // Call once before all else.
    void init(Hal& hal, Alarm& alarm, Engines& engines, Tables& tables, Arbiter& arbiter);

    // 1/1000 of the card's core time in a period; 0, 0: no limit.
    void set(Context& context, uint16_t permille, uint32_t period_us);
    // After a restart of the core, which forgets nothing of what has been used.
    void revive(Context& context, uint64_t now);
    void forget(Context& context) {
        if (context.listed) contexts_.remove(rows_, context);
    }

    void charge(Context& context, uint64_t used_ps, uint64_t now);
    // A dispatch of the context runs: sets the alarm for when to look.
    void watch(Context& context, uint64_t now);
    void check(uint64_t now);  // Alarm::kQuota

    // A queue whose context is throttled, in Place::kQuota: ready again in the next period.
    void add_waiter(Queue& queue) { waiters_.push_back(queues_, queue); }
    void remove_waiter(Queue& queue) { waiters_.remove(queues_, queue); }

  private:
    void begin_period(Context& context, uint64_t now);
    void throttle(Context& context, uint64_t now);
    void release(Context& context, uint64_t now);
    uint64_t quota_ps(const Context& context) const {
        return context.quota_period_us * (kPsPerUs / 1000) * context.quota_permille *
               engines_->vector_cores();
    }
    bool runs(const Port& port, const Context& context) const {
        return port.busy && has_cores(port.kind) && port.queue->context == &context;
    }

    Hal* hal_;
    Alarm* alarm_;
    Engines* engines_;
    Context* rows_;
    Queue* queues_;
    Arbiter* arbiter_;
    ContextList contexts_;  // those with a limit
    QueueList waiters_;
};

}  // namespace orrery::fw
