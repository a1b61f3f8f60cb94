// SPDX-License-Identifier: MIT
#include "firmware/sched/policy/quota.h"

#include "firmware/sched/arbiter.h"
#include "firmware/sched/recover/restart.h"
#include "firmware/sched/show/trace.h"
#include "firmware/sched/tables.h"

namespace orrery::fw {
namespace {

// Looking more often would cost more than it saves.
constexpr uint64_t kLeastWaitPs = 10 * kPsPerUs;

}  // namespace

void Quotas::init(Hal& hal, Alarm& alarm, Engines& engines, Tables& tables, Arbiter& arbiter) {
    hal_ = &hal;
    alarm_ = &alarm;
    engines_ = &engines;
    rows_ = tables.contexts;
    queues_ = tables.queues;
    arbiter_ = &arbiter;
}

void Quotas::set(Context& context, uint16_t permille, uint32_t period_us) {
    const bool limited = permille != 0 && period_us != 0;
    context.quota_permille = limited ? permille : uint16_t{0};
    context.quota_period_us = limited ? period_us : 0;
    if (limited && !context.listed) contexts_.push_back(rows_, context);
    if (!limited && context.listed) contexts_.remove(rows_, context);
    context.listed = limited;
    context.seal = seal_of(context);
    const uint64_t now = hal_->reg(SOC_TIME);
    context.used_ps = 0;
    if (limited) begin_period(context, now);
    if (context.throttled) release(context, now);
    if (limited) watch(context, now);
}

void Quotas::revive(Context& context, uint64_t now) {
    if (context.quota_period_us == 0) return;
    // What it has used stays used; a period longer than its own is none.
    if (context.period_end_ps > now + context.quota_period_us * kPsPerUs) begin_period(context, now);
    contexts_.push_back(rows_, context);
    context.listed = true;
}

// Periods begin at multiples of their length.
void Quotas::begin_period(Context& context, uint64_t now) {
    const uint64_t period = context.quota_period_us * kPsPerUs;
    context.period_end_ps = (now / period + 1) * period;
    context.used_ps = 0;
}

void Quotas::charge(Context& context, uint64_t used_ps, uint64_t now) {
    if (now >= context.period_end_ps && !context.throttled) begin_period(context, now);
    context.used_ps += used_ps;
}

void Quotas::watch(Context& context, uint64_t now) {
    if (now >= context.period_end_ps && !context.throttled) begin_period(context, now);
    uint64_t at = context.period_end_ps;
    if (!context.throttled) {
        const uint64_t quota = quota_ps(context);
        const uint64_t left =
            quota > context.used_ps ? (quota - context.used_ps) / engines_->vector_cores() : 0;
        const uint64_t soonest = now + (left < kLeastWaitPs ? kLeastWaitPs : left);
        if (soonest < at) at = soonest;
    }
    if (at < alarm_->at(Alarm::kQuota)) alarm_->set(*hal_, Alarm::kQuota, at);
}

void Quotas::check(uint64_t now) {
    alarm_->set(*hal_, Alarm::kQuota, kNever);
    Context* next = nullptr;
    for (Context* context = contexts_.front(rows_); context != nullptr; context = next) {
        next = ContextList::next(rows_, *context);
        bool running = false;
        for (uint32_t n = 0; n < engines_->end(); ++n) {
            Port& port = engines_->row(n);
            if (!runs(port, *context)) continue;
            arbiter_->charge(port, now);
            running = true;
        }
        if (now >= context->period_end_ps) {
            begin_period(*context, now);
            if (context->throttled) release(*context, now);
            running = true;
        } else if (!context->throttled && context->used_ps >= quota_ps(*context)) {
            throttle(*context, now);
        }
        if (running || context->throttled) watch(*context, now);
    }
}

void Quotas::throttle(Context& context, uint64_t now) {
    context.throttled = true;
    trace::quota(*hal_, context.number, true, context.used_ps);
    if (!arbiter_->preempts()) return;
    for (uint32_t n = 0; n < engines_->end(); ++n) {
        Port& port = engines_->row(n);
        if (!runs(port, context)) continue;
        if (port.gang != 0)
            arbiter_->preempt_gang(port.gang, now);
        else
            arbiter_->preempt(port, ORR_TRACE_NONE, now);
    }
}

// A new period, or no quota any more: its queues go on.
void Quotas::release(Context& context, uint64_t now) {
    context.throttled = false;
    trace::quota(*hal_, context.number, false, context.used_ps);
    Queue* next = nullptr;
    for (Queue* queue = waiters_.front(queues_); queue != nullptr; queue = next) {
        next = QueueList::next(queues_, *queue);
        if (queue->context != &context) continue;
        waiters_.remove(queues_, *queue);
        arbiter_->make_ready(*queue);
    }
    arbiter_->release_held(context);
    arbiter_->grant_vector_ports(now);
}

}  // namespace orrery::fw
