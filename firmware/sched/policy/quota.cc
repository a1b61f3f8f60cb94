// SPDX-License-Identifier: MIT
// Quotas: vector core time that a context may have in each period. Used time is charged when a dispatch ends,
// and at an alarm for the moment at which the quota can be used up at the earliest; so nothing is polled, and
// a context goes over its quota by no more than the time to preempt.
#include "firmware/sched/recover/restart.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// Looking more often would cost more than it saves.
constexpr uint64_t kLeastWaitPs = 10 * kPsPerUs;

}  // namespace

void Scheduler::set_quota(Context& context, uint16_t permille, uint32_t period_us) {
    const bool limited = permille != 0 && period_us != 0;
    context.quota_permille = limited ? permille : uint16_t{0};
    context.quota_period_us = limited ? period_us : 0;
    if (limited && !context.listed) quota_contexts_.push_back(contexts_, context);
    if (!limited && context.listed) quota_contexts_.remove(contexts_, context);
    context.listed = limited;
    context.seal = seal_of(context);
    const uint64_t now = hal_->reg(SOC_TIME);
    context.used_ps = 0;
    if (limited) begin_period(context, now);
    if (context.throttled) release(context, now);
    if (limited) watch_quota(context, now);
}

// Periods begin at multiples of their length.
void Scheduler::begin_period(Context& context, uint64_t now) {
    const uint64_t period = context.quota_period_us * kPsPerUs;
    context.period_end_ps = (now / period + 1) * period;
    context.used_ps = 0;
}

void Scheduler::charge_quota(Context& context, uint64_t used_ps, uint64_t now) {
    if (now >= context.period_end_ps && !context.throttled) begin_period(context, now);
    context.used_ps += used_ps;
}

// A dispatch of the context runs: sets the alarm for when to look.
void Scheduler::watch_quota(Context& context, uint64_t now) {
    if (now >= context.period_end_ps && !context.throttled) begin_period(context, now);
    uint64_t at = context.period_end_ps;
    if (!context.throttled) {
        const uint64_t quota = quota_ps(context);
        const uint64_t left =
            quota > context.used_ps ? (quota - context.used_ps) / engines_.vector_cores() : 0;
        const uint64_t soonest = now + (left < kLeastWaitPs ? kLeastWaitPs : left);
        if (soonest < at) at = soonest;
    }
    if (at < alarm_->at(Alarm::kQuota)) alarm_->set(*hal_, Alarm::kQuota, at);
}

void Scheduler::check_quotas(uint64_t now) {
    alarm_->set(*hal_, Alarm::kQuota, kNever);
    Context* next = nullptr;
    for (Context* context = quota_contexts_.front(contexts_); context != nullptr; context = next) {
        next = ContextList::next(contexts_, *context);
        bool running = false;
        for (uint32_t n = 0; n < engines_.end(); ++n) {
            Port& port = engines_.row(n);
            if (!port.busy || port.kind != ORR_ENGINE_VECTOR || port.queue->context != context) continue;
            charge(port, hal_->reg(engines_.reg(port, SOC_ENGINE_USED_PS)), now);
            running = true;
        }
        if (now >= context->period_end_ps) {
            begin_period(*context, now);
            if (context->throttled) release(*context, now);
            running = true;
        } else if (!context->throttled && context->used_ps >= quota_ps(*context)) {
            throttle(*context, now);
        }
        if (running || context->throttled) watch_quota(*context, now);
    }
}

void Scheduler::throttle(Context& context, uint64_t now) {
    context.throttled = true;
    trace::quota(*hal_, context.number, true, context.used_ps);
    if (policy_.has(ORR_POLICY_F_NO_PREEMPTION)) return;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        Port& port = engines_.row(n);
        if (port.busy && port.kind == ORR_ENGINE_VECTOR && port.queue->context == &context && !port.gang)
            preempt(port, SOC_PREEMPT_GROUP, ORR_TRACE_NONE, now);
    }
}

// A new period, or no quota any more: its queues go on.
void Scheduler::release(Context& context, uint64_t now) {
    context.throttled = false;
    trace::quota(*hal_, context.number, false, context.used_ps);
    Queue* next = nullptr;
    for (Queue* queue = quota_waiters_.front(queues_); queue != nullptr; queue = next) {
        next = QueueList::next(queues_, *queue);
        if (queue->context != &context) continue;
        quota_waiters_.remove(queues_, *queue);
        make_ready(*queue);
    }
    for (uint32_t area = 0; area < SuspendedJobs::kMax; ++area) {
        Suspended& job = suspended_.row(static_cast<uint8_t>(area));
        if (!job.used || !job.held || job.queue->context != &context) continue;
        suspended_.remove(job);
        note_waiter(job.kind);
        suspended_.add(job);
    }
    grant_free_ports(ORR_ENGINE_VECTOR, now);
}

}  // namespace orrery::fw
