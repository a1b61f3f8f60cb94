// SPDX-License-Identifier: MIT
// Gangs that have started: when they are preempted, and what becomes of them then.
#include <orrery/fw/failure.h>

#include "firmware/hal/window.h"
#include "firmware/sched/arbiter.h"
#include "firmware/sched/policy/policy.h"
#include "firmware/sched/policy/tenants.h"
#include "firmware/sched/show/trace.h"
#include "firmware/sched/sync/gang_steps.h"

namespace orrery::fw {
// A slice is long against what it costs: twenty times as long as cores have stood idle until the gang ran;
// who does not pause for that, as nobody waited, has no more than a turn. One of several cards, which hear of
// each other over links, has no less. What boards say does not count.
uint64_t Gangs::slice_of(const Gang& gang, uint64_t idle_ps, bool pauses) const {
    uint64_t slice = arbiter_->slice_ps(queues_[gang.queue[0]]);
    if (gang.cards > 1 && slice < kGangTurnPs) slice = kGangTurnPs;
    const uint64_t earned = least(kGangPause * idle_ps, pauses ? kGangCrossHoldPs : kGangTurnPs);
    return slice < earned ? earned : slice;
}

void Gangs::ask_to_leave(const Gang& gang, uint32_t for_queue, uint64_t now) {
    for (uint32_t n = 0; n < engines_->end(); ++n) {
        Port& port = engines_->row(n);
        if (port.busy && port.gang == number_of(gang) && port.preempting == 0)
            arbiter_->preempt(port, for_queue, now);
    }
}

// All that runs of it on this card is saved.
void Gangs::save(Gang& gang, uint32_t for_queue, uint64_t now) {
    gang.step = GangStep::kSaves;
    gang.slice_ends = kNever;
    gang.polls = false;
    ask_to_leave(gang, for_queue, now);
    tell(gang, queues_[gang.queue[0]], ORR_GANG_OFF);
    set_alarm(now);
}

// The same, on all its cards.
void Gangs::push_off(Gang& gang, uint32_t for_queue, uint64_t now) {
    if (gang.cards > 1) {
        if (gang.attempt >= kMostAttempts) {
            fail(gang, ~0u, nullptr, 0, true);
            return;
        }
        ++gang.attempt;
    }
    save(gang, for_queue, now);
    if (gang.cards > 1) static_cast<void>(signal_cards(gang, kArrived));
}

void Gangs::preempt(uint8_t number, uint32_t for_queue, uint64_t now) {
    Gang* const gang = record_of(number);
    if (gang != nullptr && can_leave(*gang)) push_off(*gang, for_queue, now);
}

[[gnu::noinline]] bool Gangs::one_leaves(uint32_t for_queue, uint64_t now) {
    Gang* victim = nullptr;
    bool coming = false;
    each([&](Gang& gang) {
        coming |= gang.step == GangStep::kSaves;
        if (!can_leave(gang)) return;
        const uint8_t level = queues_[gang.queue[0]].priority;
        if (victim == nullptr || level < queues_[victim->queue[0]].priority ||
            (level == queues_[victim->queue[0]].priority && gang.cards < victim->cards))
            victim = &gang;
    });
    if (coming) return true;
    if (victim == nullptr) return false;
    push_off(*victim, for_queue, now);
    return true;
}

// It has ended, or will never resume.
void Gangs::remove_member(Gang& gang, const Queue& queue, uint32_t groups, Left how) {
    if (how == Left::kFailed) {
        gang.broken = true;
        if (queue.ending != 0 && gang.cause == 0) gang.cause = arbiter_->cause_of(queue);
        if (gang.cards > 1) static_cast<void>(signal_cards(gang, kFailed));
    }
    set_due();
    if (gang.members == 1) {
        if (gang.cards > 1 && !gang.broken) static_cast<void>(signal_cards(gang, kDone));
        if (locked_by_ == &gang) {
            charge_lock(gang, hal_->reg(SOC_TIME));
            grants_ = true;
        }
        free(gang);
        return;
    }
    gang.cores -= groups < gang.cores ? groups : gang.cores;
    for (uint32_t n = 0; n < gang.members; ++n) {
        if (gang.queue[n] != queue.number) continue;
        gang.queue[n] = gang.queue[gang.members - 1];
        break;
    }
    --gang.members;
}

[[gnu::noinline]] void Gangs::dropped(uint8_t number, const Queue& queue, uint32_t groups) {
    if (Gang* const gang = record_of(number)) remove_member(*gang, queue, groups, Left::kFailed);
}

[[gnu::noinline]] void Gangs::failed(uint8_t number, const Queue& queue) {
    Gang* const gang = record_of(number);
    if (gang != nullptr && gang->broken && gang->cause == 0) gang->cause = arbiter_->cause_of(queue);
}

// The highest of what peers say, if it is of this round and from `least` to `most`; else 0.
uint64_t Gangs::said_by_peers(const Gang& gang, uint64_t least, uint64_t most) {
    uint64_t highest = 0;
    for (uint32_t card = 0; card < gang.cards; ++card) {
        const uint64_t va = gang.board + sizeof(orr_semaphore) * card;
        if (card == gang.card || va >= kVaEnd) continue;
        const uint64_t value = hal_->load(ORR_CONTEXT_WINDOW(gang.context, va));
        if (!take_window_fault(*hal_) && value >= least && value <= most && value > highest) highest = value;
    }
    return highest;
}

// The cards before this one have locked, in this attempt: what it wants here is not taken for nothing.
bool Gangs::lower_locked(const Gang& gang) {
    for (uint32_t card = 0; card < gang.card; ++card) {
        const uint64_t va = gang.board + sizeof(orr_semaphore) * card;
        const uint64_t value = va < kVaEnd ? hal_->load(ORR_CONTEXT_WINDOW(gang.context, va)) : 0;
        if (take_window_fault(*hal_) || value < entry_of(gang, kLocked)) return false;
    }
    return true;
}

// A peer has begun a further attempt: this card's part leaves too. What cannot be saved is ready to resume,
// as it has not stopped.
void Gangs::follow(Gang& gang, uint64_t now) {
    const uint64_t value = said_by_peers(gang, entry_of(gang, 0) + kAttempt, entry_of(gang, kDone) - 1);
    if (value == 0) return;
    gang.attempt = static_cast<uint32_t>((value - gang.round * kRound) / kAttempt);
    if (can_leave(gang))
        save(gang, ORR_TRACE_NONE, now);
    else
        static_cast<void>(signal_cards(gang, kHeld));
}

// What the peers of one that has started say.
void Gangs::hear(Gang& gang, uint64_t now) {
    if (!gang.started || gang.broken) return;
    if (gang.untold) {
        gang.untold = false;
        if (!signal_cards(gang, kArrived)) return;
    }
    if (gang.step == GangStep::kRuns) {
        if (gang.follows_from <= now) follow(gang, now);
        return;
    }
    // It will not resume: this ends it, with the cause.
    if (gang.step != GangStep::kSaves &&
        said_by_peers(gang, entry_of(gang, kLate), entry_of(gang, kRound) - 1) != 0)
        static_cast<void>(cards_reached(gang, kArrived, gang.cards));
}

[[gnu::noinline]] void Gangs::look_at_started(uint64_t now) {
    each([&](Gang& gang) {
        if (!gang.started || gang.step == GangStep::kRuns) return;
        if (gang.broken) {
            // Nobody resumes without it.
            const uint64_t cause = gang.cause;
            fail(gang, ~0u, nullptr, cause);
            return;
        }
        if (gang.step != GangStep::kSaves) return;
        if (gang.running != 0) {
            ask_to_leave(gang, ORR_TRACE_NONE, now);
            return;
        }
        gang.step = GangStep::kWaits;
        gang.ends = gang.cards > 1 ? now + ORR_GANG_LIMITS * gang.limit_ps : kNever;
        gang.deadline = gang.ends;
        gang.order = order_++;
        gang.waits_since = now;
        gang.told_held = false;
        gang.yields_until = kNever;
        gang.met_ps = gang.yields_class_ps = gang.yields_since = 0;
        reading_ |= cross_ & bit_of(gang);
        left_ |= bit_of(gang);
        arbiter_->grant_vector_ports(now);
    });
}

// Those of the gangs that run that leave for it when their slices are over, or leave already.
uint64_t Gangs::may_leave_for(const Gang& waits) const {
    const Queue& of_waits = queues_[waits.queue[0]];
    uint64_t leave = 0;
    for (uint64_t rows = used_; rows != 0; rows &= rows - 1) {
        const Gang& gang = rows_[lowest_bit(rows)];
        if (gang.step == GangStep::kSaves) leave |= bit_of(gang);
        if (!can_leave(gang)) continue;
        const int first = by_class(waits, gang);
        if (first > 0 || (first == 0 && tenants_->lead(of_waits, queues_[gang.queue[0]], kCoreKind) <=
                                            arbiter_->policy().slice_ps))
            leave |= bit_of(gang);
    }
    return leave;
}

// Whose slice is over leaves if others have a right to what it has: a gang that waits for room, and work that
// would go before it.
[[gnu::noinline]] void Gangs::press(uint64_t now) {
    uint64_t over = 0, early = 0, leaving = 0;
    each([&](Gang& gang) {
        if (gang.step == GangStep::kSaves) leaving |= bit_of(gang);
        if (can_leave(gang)) (gang.slice_ends <= now ? over : early) |= bit_of(gang);
    });
    if ((over | early) == 0) return;
    for (uint32_t n = 0; n < engines_->end(); ++n) {
        Port& port = engines_->row(n);
        if (port.busy && port.gang != 0) arbiter_->charge(port, now);
    }
    each([&](Gang& waits) {
        if (waits.step != GangStep::kWaits || !waits.presses || waits.not_before > now) return;
        const bool cross = waits.cards > 1 && cross_jobs_ != 0;
        uint64_t leave = leaving;
        const auto enough = [&] { return leaves_room(waits, Beside::kAll, leave); };
        // REALTIME waits for nobody's slice.
        const bool at_once = queues_[waits.queue[0]].priority == ORR_PRIORITY_REALTIME;
        const uint64_t may = may_leave_for(waits) & (at_once ? over | early : over);
        for (uint64_t rows = may & ~leaving; rows != 0; rows &= rows - 1) {
            const Gang& gang = rows_[lowest_bit(rows)];
            if ((cross && gang.cards > 1) || !enough()) leave |= bit_of(gang);
        }
        if (!enough() || (cross && (cross_ & leave) == 0)) return;
        for (uint64_t rows = leave & ~leaving; rows != 0; rows &= rows - 1)
            push_off(rows_[lowest_bit(rows)], waits.queue[0], now);
        leaving |= leave;
    });
    each([&](Gang& gang) {
        if ((over & ~leaving & bit_of(gang)) == 0 || !can_leave(gang)) return;
        if (arbiter_->precedence(queues_[gang.queue[0]], now).lacks) push_off(gang, ORR_TRACE_NONE, now);
    });
}

[[gnu::noinline]] void Gangs::poked_board(uint64_t memory) {
    for (uint64_t rows = cross_; rows != 0; rows &= rows - 1) {
        const Gang& gang = rows_[lowest_bit(rows)];
        if (memory - gang.memory >= sizeof(orr_semaphore) * gang.cards) continue;
        unread_ |= bit_of(gang);
        set_due();
    }
}

}  // namespace orrery::fw
