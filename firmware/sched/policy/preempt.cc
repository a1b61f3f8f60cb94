// SPDX-License-Identifier: MIT
// Preemption: for a higher class, at the end of a time slice, and at a time limit. First at a work-group
// boundary; after the policy's grace period inside the kernel.
#include "firmware/sched/recover/restart.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

constexpr uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t add_sat(uint64_t a, uint64_t b) {
    return a < kNever - b ? a + b : kNever - 1;
}

// The watchdog counts core time, so a dispatch that gets no cores has its deadline extended; at most so many
// times, because an engine that hangs looks the same.
constexpr uint64_t kMostExtensions = 16;

// For this long after its start a dispatch of a higher class preempts for all the cores that it can use;
// later it waits for groups to end.
constexpr uint64_t kSettlePs = 20 * kPsPerUs;

// Port weight during a slice by the starvation bound: twice that of the heaviest queue.
constexpr uint16_t kBoostWeight = 0xffff;

}  // namespace

// The port's job has been saved: it is queued for resumption.
void Scheduler::suspend(Queue& queue, const Port& port, uint64_t ran_ps) {
    Suspended& job = suspended_.row(port.area);
    job.kind = static_cast<uint8_t>(port.kind);
    job.level = queue.priority;
    job.opcode = port.opcode;
    job.queue = &queue;
    job.index = port.index;
    job.seal = seal_of(job);
    job.limit_ps = port.limit_ps > ran_ps ? port.limit_ps - ran_ps : 1;
    job.gang = port.gang == kNoGangRow ? uint8_t{0} : port.gang;
    job.groups = static_cast<uint16_t>(port.groups);  // no more than there are cores
    // A job whose slice is over goes behind those that have used less; one that a higher class has displaced
    // goes first.
    const uint64_t stopped = add_sat(port.started_ps, ran_ps);
    job.first = port.slice_end_ps > stopped;
    // If REALTIME cuts a boosted slice short, the rest of it is given later.
    const bool due = port.boosted && job.first;
    job.slice_left_us = due ? static_cast<uint32_t>((port.slice_end_ps - stopped) / kPsPerUs) + 1 : 0;
    ++queue.suspended;
    ++queue.stats.preempted;
    if (job.gang != 0 || (queue.context->throttled && has_cores(port.kind))) {
        suspended_.hold(job);
    } else {
        note_waiter(port.kind, queue.priority);
        suspended_.add(job);
    }
    if (due) starvation_bound(port.kind).make_due(queue.priority);
    update_idle_state(queue);
}

void Scheduler::drop_suspended(Queue& queue, uint64_t first) {
    for (uint32_t area = 0; area < SuspendedJobs::kMax; ++area) {
        Suspended& job = suspended_.row(static_cast<uint8_t>(area));
        if (!job.used || job.queue != &queue || job.index < first) continue;
        suspended_.remove(job);
        suspended_.free_area(static_cast<uint8_t>(area));
        --queue.suspended;
        --queue.in_flight;
        if (job.gang != 0) gangs_.dropped(job.gang, queue, job.groups);
    }
    areas_freed();
}

// Tells the port to save its job. False: it cannot be preempted, or has already been told.
bool Scheduler::preempt(Port& port, uint32_t how, uint32_t for_queue, uint64_t now) {
    if (port.preempting >= how || port.aborted || port.not_preemptible || !is_preemptible(port.kind))
        return false;
    if (port.area == kNoArea) {
        const bool piece = saves_a_page(port.kind);
        if (!suspended_.area_left(piece)) return false;
        port.area = suspended_.take_area(piece);
        hal_->set_reg(engines_.reg(port, SOC_ENGINE_SAVE), suspended_.offset(port.area));
    }
    port.preempting = static_cast<uint8_t>(how);
    port.grace_ps = how == SOC_PREEMPT_GROUP ? now + policy_.grace_ps : kNever;
    trace::preempt(*hal_, port.number, engines_.number(port), how, for_queue, port.index);
    hal_->set_reg(engines_.reg(port, SOC_ENGINE_PREEMPT), how);
    wake_ports(port.grace_ps);
    return true;
}

// Queues wait for a port of this kind and none is free: preempts a lower class, or a job whose slice is over.
// Returns the time of the next check.
uint64_t Scheduler::request_preemption(uint32_t kind, uint64_t now) {
    kinds_[kind].preempt_check_ps = 0;
    if (policy_.has(ORR_POLICY_F_NO_PREEMPTION) || !is_preemptible(kind)) return kNever;
    const uint32_t classes = waiting_classes(kind);
    if (classes == 0) return kNever;
    const bool realtime = (classes >> ORR_PRIORITY_REALTIME & 1) != 0;
    uint32_t coming = 0;
    bool soon = false;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        Port& port = engines_.row(n);
        if (!port.busy || port.kind != kind || (port.preempting == 0 && !port.aborted)) continue;
        ++coming;
        if (!realtime) continue;
        // REALTIME waits: what was to stop at a group boundary is preempted inside the kernel.
        if (port.level < ORR_PRIORITY_REALTIME) preempt(port, SOC_PREEMPT_NOW, port.number, now);
        soon |= !has_cores(kind) || active_groups(port) == 0;
    }
    // One preemption at a time: its completion brings us here again. But REALTIME does not wait for cores to
    // be saved if another victim holds none.
    if (coming != 0 && (!realtime || soon)) return kNever;

    const StarvationBound::Choice choice =
        starvation_bound(kind).choose(classes, engines_.levels(kind), now, policy_.bound_ps);
    const bool due = choice.due;
    const uint32_t level = due ? choice.level : fair_level(kind, classes, choice.level);
    uint64_t next = starvation_bound(kind).next(classes, policy_.bound_ps);
    if (next <= now) next = now + policy_.bound_ps;
    const Next next_one = next_of(kind, level);
    const Queue* const who = next_one.queue;
    if (who == nullptr) return kNever;
    Port* const victim = find_victim(kind, level, *who, due, now, next);
    if (coming != 0 && (victim == nullptr || level != ORR_PRIORITY_REALTIME || active_groups(*victim) != 0))
        return kNever;
    if (victim == nullptr && level == ORR_PRIORITY_REALTIME && has_cores(kind) &&
        gangs_.give_way(who->number, now))
        return next;
    if (victim == nullptr) {
        kinds_[kind].preempt_check_ps = next;
        kinds_[kind].preempt_check_level = level;
        return next;
    }
    trace::decision(*hal_, who->number,
                    due                     ? ORR_RULE_BOUND
                    : victim->level < level ? ORR_RULE_PREEMPT
                                            : ORR_RULE_SLICE,
                    of_kind<&EngineKind::trace_resource>(kind),
                    run_queue(kind).count() + suspended_.count(kind),
                    next_one.job == nullptr ? who->next : next_one.job->index);
    // A job without groups on cores can be saved at once.
    const bool idle = has_cores(kind) && victim->level < level && active_groups(*victim) == 0;
    preempt(*victim, idle ? SOC_PREEMPT_NOW : SOC_PREEMPT_GROUP, who->number, now);
    return next;
}

// The port to preempt: of the lowest class, and in it of the tenant that has used most.
Port* Scheduler::find_victim(uint32_t kind, uint32_t level, const Queue& who, bool due, uint64_t now,
                             uint64_t& next) {
    const Queue* const fresh =
        run_queue(kind).count_of(level) > 1 ? nullptr : run_queue(kind).front(queues_, level);
    const Suspended* const job = suspended_.front(kind, level);
    const bool many =
        run_queue(kind).count_of(level) > 1 || (job != nullptr && suspended_.next(*job) != nullptr);
    Port* victim = nullptr;
    uint64_t least_active = 0;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        Port& port = engines_.row(n);
        if (!port.busy || port.kind != kind || port.gang || port.not_preemptible || port.preempting != 0 ||
            port.aborted)
            continue;
        const bool above = port.level > level;
        if (above && port.level == ORR_PRIORITY_REALTIME) continue;
        // Between users, HIGH precedes NORMAL only within its user's share.
        if (above && !due &&
            !(port.level == ORR_PRIORITY_HIGH && level == ORR_PRIORITY_NORMAL &&
              exceeds_share(*port.queue, who, kind)))
            continue;
        if (port.level >= level || exceeds_share(who, *port.queue, kind)) {
            if (port.slice_end_ps > now) {
                next = earlier(next, port.slice_end_ps);
                continue;
            }
            // A queue does not preempt itself.
            if (!many && (fresh == nullptr || fresh == port.queue) &&
                (job == nullptr || job->queue == port.queue))
                continue;
            if (!above && !due) {
                charge(port, hal_->reg(engines_.reg(port, SOC_ENGINE_USED_PS)), now);
                if (tenants_.before(*port.queue, who, kind)) {
                    // It is still below its share: another slice.
                    port.slice_end_ps = add_sat(now, slice_ps(*port.queue));
                    next = earlier(next, port.slice_end_ps);
                    continue;
                }
            }
        }
        if (victim != nullptr && port.level > victim->level) continue;
        // For a higher class prefer a victim with fewer cores: it is saved sooner.
        const uint64_t active = has_cores(kind) && port.level < level ? active_groups(port) : 0;
        if (victim == nullptr || port.level < victim->level || active < least_active ||
            (active == least_active && tenants_.before(*victim->queue, *port.queue, kind))) {
            victim = &port;
            least_active = active;
        }
    }
    return victim;
}

// Gives a starved port one slice in the highest class that holds cores (below REALTIME).
void Scheduler::boost_priority(Port& port, uint64_t now, uint64_t slice_ps) {
    // Waiting classes count too: they would take the port back at once.
    const uint32_t others = engines_.levels(port.kind) | waiting_classes(port.kind);
    const uint32_t top = StarvationBound::highest(others & ~(1u << ORR_PRIORITY_REALTIME));
    if (top <= port.level) return;
    // It gets every core that becomes free.
    engines_.set_share(*hal_, port, static_cast<uint8_t>(top), kBoostWeight);
    port.boosted = true;
    port.slice_end_ps = add_sat(now, slice_ps);
    wake_ports(port.slice_end_ps);
    if (!has_cores(port.kind)) return;
    port.core_check_ps = add_sat(now, policy_.grace_ps);
    wake_ports(port.core_check_ps);
}

void Scheduler::check_ports(uint64_t now) {
    alarm_->set(*hal_, Alarm::kPorts, kNever);
    uint64_t next = kNever;
    // Checking a port takes some 0.5 us: REALTIME ports come first.
    for (uint32_t round = 0; round < 2; ++round) {
        for (uint32_t n = 0; n < engines_.end(); ++n) {
            Port& port = engines_.row(n);
            if (port.busy && (port.level == ORR_PRIORITY_REALTIME) == (round == 0))
                next = earlier(next, check_port(port, now));
        }
    }
    for (const EngineKind& row : kEngineKinds) {
        if (waiting(row.kind)) next = earlier(next, request_preemption(row.kind, now));
    }
    wake_ports(next);
}

// Handles what is due on a port. Returns the time of the next check.
uint64_t Scheduler::check_port(Port& port, uint64_t now) {
    // The engine is ending it: a completion will follow.
    if (port.aborted) return kNever;
    uint64_t next = kNever;
    if (port.grace_ps <= now) preempt(port, SOC_PREEMPT_NOW, port.number, now);
    next = earlier(next, port.grace_ps);
    if (port.boosted && port.slice_end_ps <= now && port.preempting == 0) {
        // Its slice by the starvation bound is over: back to its own class.
        port.boosted = false;
        kinds_[port.kind].preempt_check_ps = 0;
        const Queue& queue = *port.queue;
        engines_.set_share(*hal_, port, queue.priority, static_cast<uint16_t>(queue.weight * kPortWeight));
        if (queue.ports > 1) share_cores(*port.queue);
        if (has_cores(port.kind)) port.core_check_ps = add_sat(now, policy_.bound_ps);
    }
    if (port.boosted) next = earlier(next, port.slice_end_ps);
    if (port.core_check_ps <= now) port.core_check_ps = check_cores(port, now);
    next = earlier(next, port.core_check_ps);
    if (port.deadline <= now) port.deadline = check_watchdog(port, now);
    return earlier(next, port.deadline);
}

// Whether the dispatch has the cores that it should; if not, preempts those that hold them. Returns the time
// of the next check.
uint64_t Scheduler::check_cores(Port& port, uint64_t now) {
    if (port.preempting != 0 || port.aborted || policy_.has(ORR_POLICY_F_NO_PREEMPTION)) return kNever;
    // Its user may have used up his share meanwhile.
    if (const uint8_t level = level_on_cores(*port.queue); level < port.level && !port.boosted) {
        engines_.set_share(*hal_, port, level, port.weight);
        share_cores(*port.queue);
    }
    const uint64_t active = active_groups(port);
    const uint64_t used = hal_->reg(engines_.reg(port, SOC_ENGINE_USED_PS));
    const bool below =
        port.level < StarvationBound::highest(engines_.levels(port.kind) & ~(1u << ORR_PRIORITY_REALTIME));
    const uint64_t before = port.charged_ps;
    charge(port, used, now);
    const uint64_t most = port.groups < engines_.vector_cores() ? port.groups : engines_.vector_cores();
    const bool new_here = now - port.started_ps < kSettlePs;
    const uint64_t fair = fair_cores(port);
    const uint64_t wanted = new_here && most != 0 ? most : fair < most || most == 0 ? fair : most;
    // A boosted slice is watched to its end: between two of its groups others may get the core.
    if (active >= wanted && !below)
        return port.boosted ? now + kSettlePs : fair > 1 ? add_sat(now, policy_.slice_ps / 4) : kNever;
    if (below) {
        if (lower_ports(port, now)) return now + policy_.grace_ps;
        if (active != 0 || used != before || port.starved_since_ps == kNever) port.starved_since_ps = now;
        if (now - port.starved_since_ps < policy_.bound_ps) return port.starved_since_ps + policy_.bound_ps;
        boost_priority(port, now, bound_slice_ps(*port.queue));
        return now + policy_.grace_ps;
    }
    port.starved_since_ps = kNever;
    // Preempts as many lower ports as it takes, but only one at a time of its own class.
    for (bool some = false;; some = true) {
        uint64_t coming = active;
        Port* const victim = find_holder(port, active, wanted < fair ? wanted : fair, now, coming);
        if (coming >= wanted) return now + (some ? kLaunchPs : policy_.grace_ps);
        if (victim == nullptr && port.level == ORR_PRIORITY_REALTIME && gangs_.give_way(port.number, now))
            return now + policy_.grace_ps;
        if (victim == nullptr)
            return some ? now + kLaunchPs : add_sat(now, port.boosted ? kSettlePs : slice_ps(*port.queue));
        trace::decision(*hal_, port.number,
                        port.boosted                 ? ORR_RULE_BOUND
                        : victim->level < port.level ? ORR_RULE_PREEMPT
                                                     : ORR_RULE_SLICE,
                        of_kind<&EngineKind::trace_resource>(port.kind), engines_.busy_vector(), port.index);
        // Its grace period has passed since core_check_ps was set.
        if (!preempt(*victim, SOC_PREEMPT_NOW, port.number, now) || victim->level >= port.level)
            return now + kLaunchPs;
    }
}

// The port with most cores among those that `port` may preempt; null: there is none. `coming` grows by the
// cores of those that are being preempted already.
Port* Scheduler::find_holder(const Port& port, uint64_t active, uint64_t fair, uint64_t now,
                             uint64_t& coming) {
    Port* victim = nullptr;
    uint64_t most_active = 0;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        Port& other = engines_.row(n);
        if (!other.busy || other.kind != port.kind || &other == &port || other.gang || other.not_preemptible)
            continue;
        // A boosted slice may preempt any class but REALTIME.
        const bool must = port.boosted && !other.boosted && other.level != ORR_PRIORITY_REALTIME;
        // Groups that do not end free no core for an equal port: the tenant that has had less preempts.
        const bool behind = active < fair && other.level == port.level && !other.boosted &&
                            tenants_.before(*port.queue, *other.queue, port.kind);
        const bool over =
            behind || ((other.slice_end_ps <= now || must) && other.level <= port.level && active == 0);
        if (other.level >= port.level && !over) continue;
        if (!over && exceeds_share(*port.queue, *other.queue, port.kind)) continue;
        const uint64_t holds = active_groups(other);
        if (holds == 0) continue;
        if (other.preempting != 0) {
            if (other.level < port.level) preempt(other, SOC_PREEMPT_NOW, port.number, now);
            coming += holds;
            continue;
        }
        if (victim != nullptr && other.level > victim->level) continue;
        if (victim == nullptr || other.level < victim->level || holds > most_active) {
            victim = &other;
            most_active = holds;
        }
    }
    return victim;
}

// The limit counts core time: a dispatch whose cores others had gets an extension. Returns the new deadline.
uint64_t Scheduler::check_watchdog(Port& port, uint64_t now) {
    if (has_cores(port.kind) && engines_.busy_vector() > 1 &&
        now - port.started_ps < port.limit_ps * kMostExtensions) {
        const uint64_t used = hal_->reg(engines_.reg(port, SOC_ENGINE_USED_PS));
        if (used < port.limit_ps - port.limit_ps / 8) return add_sat(now, port.limit_ps - used);
    }
    port.timed_out = true;
    engines_.abort(*hal_, port);
    return kNever;
}

}  // namespace orrery::fw
