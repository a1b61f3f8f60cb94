// SPDX-License-Identifier: MIT
#include "firmware/sched/arbiter.h"

#include "firmware/sched/scheduler.h"

namespace orrery::fw {

void Arbiter::fail(Queue& queue, const QueueError& error) {
    scheduler_->fail(queue, error);
}

void Arbiter::place(Queue& queue, Place place) {
    scheduler_->place(queue, place);
}

void Arbiter::make_ready(Queue& queue) {
    scheduler_->make_ready(queue);
}

uint64_t Arbiter::cause_of(const Queue& queue) {
    return scheduler_->cause_of(queue);
}

uint64_t Arbiter::fail_semaphore(const Queue& by, uint64_t va, uint64_t value) {
    return scheduler_->fail_semaphore(by, va, value);
}

bool Arbiter::fail_packet(Queue& queue) {
    return scheduler_->fail_packet(queue);
}

void Arbiter::all_failed(Queue& queue) {
    scheduler_->all_failed(queue);
}

bool Arbiter::busy() const {
    return scheduler_->engines_.busy() || scheduler_->has_ready();
}

void Arbiter::start_member(Queue& queue, Port& port, uint32_t members, uint64_t now) {
    trace::decision(*scheduler_->hal_, queue.number, ORR_RULE_GANG,
                    of_kind<&EngineKind::trace_resource>(kCoreKind), members, queue.next);
    scheduler_->place(queue, Place::kNone);
    scheduler_->run_queue(kCoreKind).limit_lag(queue);
    scheduler_->start_job(queue, port, now, 0);
}

const Policy& Arbiter::policy() const {
    return scheduler_->policy_;
}

Precedence Arbiter::precedence(const Queue& leader, uint64_t now) {
    Precedence result = {};
    // HIGH beyond its share is as NORMAL.
    const uint32_t least = leader.priority == ORR_PRIORITY_HIGH ? ORR_PRIORITY_NORMAL : leader.priority;
    const auto look_at = [&](const Queue& queue, uint32_t level, auto lacks) {
        if (level == ORR_PRIORITY_REALTIME && leader.priority != ORR_PRIORITY_REALTIME) return;
        const bool above = level > leader.priority && !scheduler_->exceeds_share(queue, leader, kCoreKind);
        const bool other = level >= least && queue.process != leader.process;
        const uint64_t lead = other ? scheduler_->tenants_.lead(leader, queue, kCoreKind) : 0;
        result.above |= above;
        result.any |= other;
        if (lead > result.lead_ps) result.lead_ps = lead;
        if (above || lead > scheduler_->policy_.slice_ps) result.lacks = result.lacks || lacks();
    };
    Engines& engines = scheduler_->engines_;
    for (uint32_t n = 0; n < engines.end(); ++n) {
        Port& port = engines.row(n);
        if (!port.busy || !has_cores(port.kind) || port.gang) continue;
        charge(port, now);
        look_at(*port.queue, port.level, [&] {
            const uint64_t part = scheduler_->fair_cores(port);
            const uint64_t most = port.groups != 0 && port.groups < part ? port.groups : part;
            return scheduler_->active_groups(port) < most;
        });
    }
    const uint32_t classes = scheduler_->waiting_classes(kCoreKind);
    for (uint32_t level = 0; level < kClasses; ++level) {
        if ((classes >> level & 1) == 0) continue;
        const Queue* const queue = scheduler_->next_of(kCoreKind, level).queue;
        if (queue != nullptr) look_at(*queue, level, [] { return true; });
    }
    return result;
}

bool Arbiter::preempts() const {
    return !scheduler_->policy_.has(ORR_POLICY_F_NO_PREEMPTION);
}

void Arbiter::preempt(Port& port, uint32_t for_queue, uint64_t now) {
    scheduler_->preempt(port, SOC_PREEMPT_GROUP, for_queue, now);
}

void Arbiter::preempt_gang(uint8_t gang, uint64_t now) {
    scheduler_->gangs_.preempt(gang, ORR_TRACE_NONE, now);
}

GangAreas Arbiter::areas_for_gang(const Queue& leader, uint32_t jobs) {
    return scheduler_->areas_for_gang(leader, jobs);
}

Queue* Arbiter::resume_member(uint8_t gang, Port& port, uint64_t now) {
    for (uint32_t area = 0; area < SuspendedJobs::kMax; ++area) {
        Suspended& job = scheduler_->suspended_.row(static_cast<uint8_t>(area));
        if (!job.used || job.gang != gang) continue;
        const uint32_t groups = job.groups;
        scheduler_->resume_job(job, port, now);
        port.groups = groups;
        return port.queue;
    }
    return nullptr;
}

Arbiter::Member Arbiter::take_member(uint8_t gang) {
    for (uint32_t area = 0; area < SuspendedJobs::kMax; ++area) {
        Suspended& job = scheduler_->suspended_.row(static_cast<uint8_t>(area));
        if (!job.used || job.gang != gang) continue;
        job.gang = 0;
        return {job.queue, job.index};
    }
    for (uint32_t n = 0; n < scheduler_->engines_.end(); ++n) {
        Port& port = scheduler_->engines_.row(n);
        if (!port.busy || port.gang != gang) continue;
        port.gang = kNoGangRow;
        return {port.queue, port.index};
    }
    return {nullptr, 0};
}

uint64_t Arbiter::slice_ps(const Queue& queue) const {
    return scheduler_->slice_ps(queue);
}

void Arbiter::charge(Port& port, uint64_t now) {
    const uint64_t used_ps = scheduler_->hal_->reg(scheduler_->engines_.reg(port, SOC_ENGINE_USED_PS));
    scheduler_->charge(port, used_ps, now);
}

void Arbiter::charge_idle(Queue& queue, uint64_t idle_ps, uint64_t now) {
    scheduler_->add_vtime(queue, ports_of(kCoreKind), idle_ps);
    if (queue.context->quota_period_us != 0)
        scheduler_->quotas_.charge(*queue.context, idle_ps * scheduler_->engines_.vector_cores(), now);
}

bool Arbiter::others_wait(const Queue& queue) const {
    const Tenants& tenants = scheduler_->tenants_;
    const uint16_t user = tenants.user_of(queue.process);
    if (scheduler_->run_queue(kCoreKind).has_others(user)) return true;
    for (uint32_t area = 0; area < SuspendedJobs::kMax; ++area) {
        const Suspended& job = scheduler_->suspended_.row(static_cast<uint8_t>(area));
        if (job.used && !job.held && has_cores(job.kind) && tenants.user_of(job.queue->process) != user)
            return true;
    }
    return false;
}

void Arbiter::release_held(const Context& context) {
    SuspendedJobs& jobs = scheduler_->suspended_;
    for (uint32_t area = 0; area < SuspendedJobs::kMax; ++area) {
        Suspended& job = jobs.row(static_cast<uint8_t>(area));
        if (!job.used || !job.held || job.gang != 0 || job.queue->context != &context) continue;
        jobs.remove(job);
        scheduler_->note_waiter(job.kind, job.queue->priority);
        jobs.add(job);
    }
    scheduler_->gangs_.set_due();
}

void Arbiter::grant_vector_ports(uint64_t now) {
    scheduler_->grant_free_ports(kCoreKind, now);
}

}  // namespace orrery::fw
