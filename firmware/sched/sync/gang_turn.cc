// SPDX-License-Identifier: MIT
// Whose turn it is: gangs among each other and among other work, and what those pay who keep others waiting.
#include "firmware/sched/arbiter.h"
#include "firmware/sched/policy/policy.h"
#include "firmware/sched/policy/tenants.h"
#include "firmware/sched/sync/gang_steps.h"

namespace orrery::fw {
namespace {

constexpr uint64_t kFreePs = kGangPause * kGangFreeHoldPs;
static_assert(kGangUsers == kUsers);

// It is asked to, by a gang of this class that holds the ports.
bool makes_room(const Port& port, uint8_t level) {
    return port.gang == 0 && (port.level < ORR_PRIORITY_REALTIME || level == ORR_PRIORITY_REALTIME);
}

}  // namespace

// Until when gangs of this kind, of one card or of several, of this gang's user pause, but for kFreePs of it.
uint64_t& Gangs::pause_of(const Gang& gang) {
    return tenants_->user(user_of(gang)).gang_pause_ps[gang.cards > 1 ? 1 : 0];
}

// Core time that what runs on ports with cores has used so far.
uint64_t Gangs::core_time() const {
    uint64_t used = 0;
    for (uint32_t n = 0; n < engines_->end(); ++n) {
        const Port& port = engines_->row(n);
        if (port.busy && has_cores(port.kind)) used += hal_->reg(engines_->reg(port, SOC_ENGINE_USED_PS));
    }
    return used;
}

// For how long all cores, or some of them for longer, have stood idle while ports were held for it.
uint64_t Gangs::idle_of(const Gang& gang, uint64_t now) const {
    if (gang.step < GangStep::kHolds) return 0;
    const uint64_t left = gang.deadline > now ? gang.deadline - now : 0;
    const uint64_t held = most_hold_of(gang) > left ? most_hold_of(gang) - left : 0;  // without jumps
    const uint64_t used = worked_ + core_time();
    // Below zero: what runs was said to have used more than it had in the end.
    const uint64_t worked = used >> 63 != 0 ? 0 : used / engines_->vector_cores();
    return held > worked ? held - worked : 0;
}

// The gang gives back what it has locked. Of ports that stood idle for it its context has had the time, and a
// user who makes others wait for them pauses, so that idle ports are a small part of the time, whether gangs
// start or fail. `in_vain_ps`: it has kept the lock for so long, and does not start. True:
// its user pauses.
bool Gangs::charge_hold(const Gang& gang, uint64_t now, uint64_t in_vain_ps) {
    Queue& leader = queues_[gang.queue[0]];
    uint64_t kept = idle_of(gang, now);
    if (kept != 0) arbiter_->charge_idle(leader, kept, now);
    const bool gangs_wait = others_wait(gang, true, false);
    if (!gangs_wait && !arbiter_->others_wait(leader)) return false;
    if (gangs_wait && kept < in_vain_ps) kept = in_vain_ps;
    uint64_t& pause = pause_of(gang);
    if (kept == 0) return false;
    pause = (pause > now ? pause : now) + kGangPause * kept;
    return true;
}

// It does not start now, and pays for what it has locked and held.
void Gangs::charge_lock(const Gang& gang, uint64_t now) {
    const uint64_t left = gang.turn_ends > now ? gang.turn_ends - now : 0;
    const uint64_t had_lock = gang.turn_ps > left ? gang.turn_ps - left : 0;
    // Not if it is held up by what runs here: others would have been too.
    charge_hold(gang, now, gang.cards > 1 && gang.step != GangStep::kHolds ? had_lock : 0);
}

// A gang of another user wants the lock that this one has. `only_who_could`: and nothing else that runs is in
// its way. `own_too`: or one of this user's that has started, for which others may wait as it is.
bool Gangs::others_wait(const Gang& gang, bool only_who_could, bool own_too) const {
    const uint64_t now = hal_->reg(SOC_TIME);
    for (uint64_t rows = used_; rows != 0; rows &= rows - 1) {
        const Gang& other = rows_[lowest_bit(rows)];
        if (other.step != GangStep::kWaits || other.parked || other.polls || other.not_before > now ||
            (user_of(other) == user_of(gang) && !(own_too && other.started)))
            continue;
        if (!only_who_could || ((other.cards == 1 || cross_jobs_ == 0) && leaves_room(other))) return true;
    }
    return false;
}

void Gangs::begin_turn(Gang& gang, uint64_t now) const {
    gang.turn_ps = turn_of(gang);
    gang.turn_ends = now + gang.turn_ps;
}

// The lock is free, and this gang is the one to have it. What has been let go first now will make room when
// the gang holds the ports, whatever class it is of but REALTIME: so nobody holds them for long.
bool Gangs::its_turn(Gang& gang) {
    const uint64_t now = hal_->reg(SOC_TIME);
    const uint64_t pause = pause_of(gang);
    if (gang.not_before + kFreePs < pause) gang.not_before = pause - kFreePs;
    gang.blocked = gang.crowded = gang.presses = false;
    if (gang.not_before > now) return false;
    if (contexts_[gang.context].throttled || lacks_areas(gang)) {
        gang.blocked = watches_ = true;
        return false;
    }
    gang.crowded = !leaves_room(gang) && leaves_room(gang, Beside::kNone);
    const bool cross = gang.cards > 1 && cross_jobs_ != 0;
    if (gang.crowded || cross) {
        const uint64_t leave = may_leave_for(gang);
        gang.presses =
            leaves_room(gang, Beside::kAll, leave) && (!cross || (cross_ & leave) != 0) && lower_locked(gang);
    }
    if (locked_by_ != nullptr) return false;
    gang.polls = false;
    if (cross) return false;
    gang.blocked = preceded(gang) || !leaves_room(gang) || yields(gang, now);
    watches_ |= gang.blocked;
    return !gang.blocked;
}

// It would not be preempted now, but could be later: it waits for that, as other jobs do for an area. If its
// user owns none, others may be so many that none is ever left for it: not longer than its limit.
bool Gangs::lacks_areas(const Gang& gang) const {
    if (gang.started) return false;
    const GangAreas areas = arbiter_->areas_for_gang(queues_[gang.queue[0]], gang.members);
    return areas == GangAreas::kUserHas ||
           (areas == GangAreas::kOthersHave && hal_->reg(SOC_TIME) - gang.waits_since < gang.limit_ps);
}

// Another one keeps its place before it: it waits for gangs that can be preempted, so it has room soon. And
// who cannot be preempted does not start before another user's that waits for what it would go on with.
bool Gangs::preceded(const Gang& gang) const {
    const bool fixed =
        !gang.started && arbiter_->areas_for_gang(queues_[gang.queue[0]], gang.members) != GangAreas::kNow;
    for (uint64_t rows = used_; rows != 0; rows &= rows - 1) {
        const Gang& other = rows_[lowest_bit(rows)];
        if (&other == &gang || other.step != GangStep::kWaits || other.parked || other.polls) continue;
        if ((other.presses || (other.crowded && fixed && user_of(other) != user_of(gang))) &&
            precedes(other, gang))
            return true;
    }
    return false;
}

GangDebt& Gangs::debt_of(uint16_t user) {
    GangDebt& debt = debts_[user];
    const uint32_t id = tenants_->user(user).id;
    if (debt.user != id) debt = {.ran_ps = 0, .ended_ps = 0, .owes_ps = 0, .user = id};
    return debt;
}

// Whether other work goes before the gang: that of a higher class, but no longer than the policy lets a lower
// class starve, and that of tenants of whom one has had less, for as long as the user's gangs have run since
// one waited for that, but no longer than the gang's limit.
bool Gangs::yields(Gang& gang, uint64_t now) {
    const Policy& policy = arbiter_->policy();
    const Precedence others = arbiter_->precedence(queues_[gang.queue[0]], now);
    if (others.above && gang.yields_class_ps < policy.bound_ps) {
        const uint64_t since = gang.yields_since != 0 ? now - gang.yields_since : 0;
        gang.yields_class_ps += least(since, kGangLookPs);
        gang.yields_since = now;
        return true;
    }
    gang.yields_since = 0;
    GangDebt& debt = debt_of(user_of(gang));
    if (others.lead_ps > policy.slice_ps) {
        debt.owes_ps += debt.ran_ps;
        debt.ran_ps = 0;
    }
    if (others.any) gang.met_ps = now;
    // Between two kernels of theirs there may be none for a moment.
    if (debt.owes_ps == 0 || gang.met_ps == 0 || now - gang.met_ps >= kGangGapPs) return false;
    if (gang.yields_until == kNever) {
        gang.yields_ps = least(debt.owes_ps, gang.limit_ps);
        gang.yields_until = now + gang.yields_ps;
    }
    return now < gang.yields_until;
}

// Above zero: `a` goes before `b` by its class, as long as `b` has not waited until a lower class is due.
// Below: `b` before `a`.
int Gangs::by_class(const Gang& a, const Gang& b) const {
    const Queue& of_a = queues_[a.queue[0]];
    const Queue& of_b = queues_[b.queue[0]];
    if (of_a.priority == of_b.priority) return 0;
    if (of_a.priority < of_b.priority) return -by_class(b, a);
    if (of_a.priority == ORR_PRIORITY_REALTIME) return 1;
    const Policy& policy = arbiter_->policy();
    const bool due = b.step == GangStep::kWaits && hal_->reg(SOC_TIME) - b.waits_since >= policy.bound_ps;
    // HIGH beyond its share is as NORMAL.
    const bool over = of_a.priority == ORR_PRIORITY_HIGH && of_b.priority == ORR_PRIORITY_NORMAL &&
                      tenants_->lead(of_a, of_b, kCoreKind) > policy.slice_ps;
    return due || over ? 0 : 1;
}

// Of two that wait for the lock: that of the higher class, else whose tenant has had less by a slice, else
// first come, first served.
bool Gangs::precedes(const Gang& a, const Gang& b) const {
    if (const int first = by_class(a, b); first != 0) return first > 0;
    const Queue& of_a = queues_[a.queue[0]];
    const Queue& of_b = queues_[b.queue[0]];
    const uint64_t slice_ps = arbiter_->policy().slice_ps;
    if (tenants_->lead(of_b, of_a, kCoreKind) > slice_ps) return true;
    if (tenants_->lead(of_a, of_b, kCoreKind) > slice_ps) return false;
    return static_cast<int32_t>(a.order - b.order) < 0;
}

// Ports and cores suffice beside what does not make room; `without`: nor that of these rows.
bool Gangs::leaves_room(const Gang& gang, Beside beside, uint64_t without) const {
    const uint8_t level = queues_[gang.queue[0]].priority;
    uint32_t ports = 0, active = 0;
    for (uint32_t n = 0; n < engines_->end(); ++n) {
        const Port& port = engines_->row(n);
        if (!port.busy || !has_cores(port.kind) || makes_room(port, level)) continue;
        if (port.gang != 0 && port.gang != kNoGangRow && ((without >> (port.gang - 1) & 1) != 0)) continue;
        if (port.gang != 0 && beside == Beside::kNone) continue;
        ++ports;
        active += static_cast<uint32_t>(hal_->reg(engines_->reg(port, SOC_ENGINE_ACTIVE)));
    }
    return ports + gang.members <= engines_->ports(kCoreKind) &&
           active + gang.cores <= engines_->vector_cores();
}

// Whether ports and cores suffice. What runs is asked to make room, except for REALTIME and other gangs.
bool Gangs::make_room(const Gang& gang) {
    const uint8_t level = queues_[gang.queue[0]].priority;
    uint32_t active = 0;
    for (uint32_t n = 0; n < engines_->end(); ++n) {
        const Port& port = engines_->row(n);
        if (port.busy && has_cores(port.kind))
            active += static_cast<uint32_t>(hal_->reg(engines_->reg(port, SOC_ENGINE_ACTIVE)));
    }
    if (engines_->free_ports(kCoreKind) >= gang.members && active + gang.cores <= engines_->vector_cores())
        return true;
    if (!arbiter_->preempts()) return false;
    const uint64_t now = hal_->reg(SOC_TIME);
    for (uint32_t n = 0; n < engines_->end(); ++n) {
        Port& port = engines_->row(n);
        if (port.busy && has_cores(port.kind) && makes_room(port, level) && port.preempting == 0)
            arbiter_->preempt(port, gang.queue[0], now);
    }
    return false;
}

void Gangs::port_freed(const Port& port, Left how) {
    if (port.cross) --cross_jobs_;
    if (port.gang != 0) {
        GangDebt& debt = debt_of(tenants_->user_of(port.queue->process));
        const uint64_t now = hal_->reg(SOC_TIME);
        const uint64_t from = debt.ended_ps > port.started_ps ? debt.ended_ps : port.started_ps;
        if (now > from) debt.ran_ps += now - from;
        debt.ended_ps = now;
    }
    worked_ += port.charged_ps;
    set_due();
    Gang* const gang = record_of(port.gang);
    if (gang == nullptr) return;
    --gang->running;
    if (how != Left::kSaved) remove_member(*gang, *port.queue, port.groups, how);
}

}  // namespace orrery::fw
