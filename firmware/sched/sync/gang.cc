// SPDX-License-Identifier: MIT
#include "firmware/sched/sync/gang.h"

#include <orrery/fw/failure.h>

#include "firmware/hal/window.h"
#include "firmware/sched/arbiter.h"
#include "firmware/sched/policy/policy.h"
#include "firmware/sched/policy/tenants.h"
#include "firmware/sched/queue/packets.h"
#include "firmware/sched/show/trace.h"
#include "firmware/sched/sync/gang_steps.h"
#include "firmware/sched/tables.h"

namespace orrery::fw {
namespace {

// Of a step that a peer has no room for; then the gang fails.
constexpr uint32_t kGangTries = 64;

// What is missing is missing on this card.
bool lacks_own_card(const Gang& gang) {
    return (gang.step == GangStep::kWaits && !gang.parked && !gang.polls) || gang.step == GangStep::kHolds;
}

// When the gang fails, or holds its ports no longer. Who waits for the turns of other cards gives them time
// to say themselves why they are late.
uint64_t late_at(const Gang& gang) {
    const bool for_others = gang.deadline == gang.ends && gang.ends != kNever && !lacks_own_card(gang);
    return gang.deadline + (for_others ? gang.limit_ps : 0);
}

uint32_t groups_of(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_dispatch, words);
    const uint64_t groups = uint64_t{packet.grid_x} * packet.grid_y * packet.grid_z;
    return groups < 0xffff ? static_cast<uint32_t>(groups) : 0xffff;
}

}  // namespace

void Gangs::init(Hal& hal, Alarm& alarm, Engines& engines, WaitTable& waits, Tenants& tenants, Tables& tables,
                 Arbiter& arbiter) {
    hal_ = &hal;
    alarm_ = &alarm;
    engines_ = &engines;
    waits_ = &waits;
    tenants_ = &tenants;
    contexts_ = tables.contexts;
    queues_ = tables.queues;
    persist_ = &tables.header;
    arbiter_ = &arbiter;
}

uint16_t Gangs::user_of(const Gang& gang) const {
    return tenants_->user_of(contexts_[gang.context].process);
}

// Deadlines go on by a jump of the model clock, except for kGangLookPs of it: no alarm is further away.
void Gangs::settle() {
    const uint64_t now = hal_->reg(SOC_TIME);
    const uint64_t passed = now > looked_ ? now - looked_ : 0;
    looked_ = now;
    if (passed <= kGangLookPs) return;
    each([&](Gang& gang) {
        uint64_t* const times[] = {&gang.deadline, &gang.ends, &gang.turn_ends, &gang.yields_until,
                                   &gang.slice_ends};
        for (uint64_t* const at : times) {
            if (*at != kNever) *at += passed - kGangLookPs;
        }
    });
}

[[gnu::noinline]] bool Gangs::attach(Queue& queue) {
    const auto packet = __builtin_bit_cast(orr_packet_gang, queue.packet);
    if (!engines_->has(kCoreKind) || packet.members > engines_->ports(kCoreKind)) {
        arbiter_->fail(queue, {ORR_QERR_BAD_PACKET, queue.next, 0, 4});
        return false;
    }
    Gang* gang = nullptr;
    uint32_t of_context = 0;
    uint32_t of_user = 0;
    uint32_t left = kGangs;
    each([&](Gang& g) {
        if (g.started) return;
        --left;
        if (user_of(g) == tenants_->user_of(queue.process)) ++of_user;
        if (g.context != queue.context_number) return;
        ++of_context;
        if (g.board == packet.board && g.round == packet.round) gang = &g;
    });
    if (used_ == ~uint64_t{0}) left = 0;
    // Nobody has more places than are left for others.
    if (gang == nullptr && (of_user >= left || of_context >= ORR_GANG_MAX_OF_CONTEXT)) {
        arbiter_->fail(queue, {ORR_QERR_GANG, queue.next, packet.board, ORR_GANG_NO_PLACE});
        return false;
    }
    settle();
    const uint64_t now = hal_->reg(SOC_TIME);
    if (gang == nullptr) {
        if (own_entry(queue.context_number, packet) >= packet.round * kRound + kLate) {
            // A member has stopped before anybody was here.
            arbiter_->fail(queue, {ORR_QERR_GANG, queue.next, packet.board, uint64_t{packet.card} << 32});
            return false;
        }
        gang = &rows_[lowest_bit(~used_)];
        used_ |= bit_of(*gang);
        *gang = {};
        gang->board = packet.board;
        gang->peers = packet.peers;
        gang->round = packet.round;
        gang->limit_ps = least(queue.limit_ps, kGangMostLimitPs);
        gang->deadline = now + gang->limit_ps;
        gang->ends = gang->yields_until = gang->slice_ends = kNever;
        gang->order = order_++;
        gang->context = queue.context_number;
        gang->card = packet.card;
        gang->cards = packet.cards;
        gang->members = packet.members;
        if (gang->cards > 1) cross_ |= bit_of(*gang);
        gang->step = GangStep::kGather;
        hal_->set_reg(SOC_MMU_ASID, gang->context);
        hal_->set_reg(SOC_MMU_ARG, gang->board);
        hal_->set_reg(SOC_MMU_CMD, SOC_MMU_TRANSLATE);
        gang->memory = hal_->reg(SOC_MMU_RESULT);
        set_alarm(now);
    } else if (gang->step != GangStep::kGather || gang->attached == gang->members ||
               gang->peers != packet.peers || gang->card != packet.card || gang->cards != packet.cards ||
               gang->members != packet.members) {
        // Whoever contradicts the first is out; the others go on waiting for the one that is meant.
        arbiter_->fail(queue, {ORR_QERR_GANG, queue.next, packet.board, gang->attached});
        return false;
    }
    gang->queue[gang->attached++] = queue.number;
    queue.gang = static_cast<uint8_t>(gang - rows_ + 1);
    return true;
}

[[gnu::noinline]] void Gangs::join(Queue& queue) {
    settle();
    Gang& gang = rows_[queue.gang - 1];
    gang.cores += groups_of(queue.packet);
    if (gang.cores > engines_->vector_cores()) {
        // Never all at once: nobody can wait for that.
        arbiter_->fail(queue, {ORR_QERR_GANG, queue.next, gang.board, gang.joined});
        return;
    }
    ++gang.joined;
    arbiter_->place(queue, Place::kGang);
    tell(gang, queue, ORR_GANG_JOINED);
    if (gang.joined == gang.members) {
        gang.deadline = kNever;
        gang.step = GangStep::kWaits;
        gang.waits_since = hal_->reg(SOC_TIME);
        if (gang.cards > 1) {
            gang.step = GangStep::kArrived;
            gang.deadline = hal_->reg(SOC_TIME) + gang.limit_ps;
            if (!signal_cards(gang, kArrived)) return;
        }
        advance(gang);
        set_alarm(hal_->reg(SOC_TIME));
    }
}

void Gangs::tell(const Gang& gang, const Queue& queue, uint32_t what) {
    trace::gang(*hal_, queue.number, what, gang.round, gang.memory);
}

// Signals this card's step on the boards of the others. False: that could not be done, and the gang has
// failed. One that leaves its ports says so later to a peer that has no room now.
bool Gangs::signal_cards(Gang& gang, uint64_t step) {
    for (uint16_t card = 0; card < gang.cards; ++card) {
        if (card == gang.card) continue;
        const uint64_t entry = gang.peers + 8ull * card;
        uint64_t board = entry < kVaEnd ? hal_->load(ORR_CONTEXT_WINDOW(gang.context, entry)) : kVaEnd;
        uint64_t fault = take_window_fault(*hal_).code;
        if (fault == ORR_FAULT_NONE && (board >= kVaEnd || board % 16 != 0)) fault = ORR_FAULT_MISALIGNED;
        if (fault == ORR_FAULT_NONE) {
            hal_->set_reg(SOC_SEM_ASID, gang.context);
            hal_->set_reg(SOC_SEM_VA, board + sizeof(orr_semaphore) * gang.card);
            fault = ORR_FAULT_PEER_BUSY;
            for (uint32_t tries = 0; tries < kGangTries && fault == ORR_FAULT_PEER_BUSY; ++tries) {
                hal_->set_reg(SOC_SEM_SIGNAL, entry_of(gang, step));
                fault = hal_->reg(SOC_SEM_STATUS);
            }
        }
        if (fault == ORR_FAULT_NONE || step >= kDone) continue;
        if (fault == ORR_FAULT_PEER_BUSY && step == kArrived && gang.started) {
            gang.untold = true;
            continue;
        }
        fail(gang, card, nullptr);
        return false;
    }
    return true;
}

// Whether all cards that matter have come to a step; the gang is woken when the first that has not does. A
// board that cannot be read, or a card that has given up, ends the gang; one that has begun a new attempt is
// followed.
bool Gangs::cards_reached(Gang& gang, uint64_t step, uint32_t cards) {
    Queue& leader = queues_[gang.queue[0]];
    gang.polls = false;
    for (uint32_t card = 0; card < cards; ++card) {
        if (card == gang.card) continue;
        const uint64_t va = gang.board + sizeof(orr_semaphore) * card;
        uint64_t value = 0;
        bool bad = va >= kVaEnd;
        if (!bad) {
            value = hal_->load(ORR_CONTEXT_WINDOW(gang.context, va));
            bad = static_cast<bool>(take_window_fault(*hal_));
        }
        const uint64_t late = entry_of(gang, kLate);
        // It has been there, and is at another round.
        if (!bad && gang.started && value >= entry_of(gang, kRound) && (value & ORR_SEM_FAILED) == 0)
            continue;
        if (bad || value >= late) {
            // One that followed says `failed` too: the one that was late is the cause.
            for (uint32_t other = card + 1; !bad && value != late && other < gang.cards; ++other) {
                const uint64_t at = gang.board + sizeof(orr_semaphore) * other;
                if (other == gang.card || at >= kVaEnd) continue;
                if (hal_->load(ORR_CONTEXT_WINDOW(gang.context, at)) == late) {
                    card = other;
                    value = late;
                }
                if (take_window_fault(*hal_)) break;
            }
            fail(gang, card, nullptr, value, value == late);
            return false;
        }
        if (value >= entry_of(gang, kDone)) continue;
        if (value >= entry_of(gang, 0) + kAttempt) {
            gang.attempt = static_cast<uint32_t>((value - gang.round * kRound) / kAttempt);
            // All had arrived then.
            if (gang.step != GangStep::kArrived) {
                give_back(gang, hal_->reg(SOC_TIME));
                return false;
            }
        }
        if (value >= entry_of(gang, step)) continue;
        if (gang.started) {
            // Its queues go on meanwhile.
            gang.polls = true;
            return false;
        }
        hal_->set_reg(SOC_MMU_ASID, gang.context);
        hal_->set_reg(SOC_MMU_ARG, va);
        hal_->set_reg(SOC_MMU_CMD, SOC_MMU_TRANSLATE);
        const uint64_t memory = hal_->reg(SOC_MMU_RESULT);
        if (memory == ~uint64_t{0}) {
            fail(gang, card, nullptr);
        } else {
            waits_->park(leader, memory, entry_of(gang, step));
            gang.parked = true;
        }
        return false;
    }
    return true;
}

void Gangs::woken(Queue& leader, uint64_t value) {
    settle();
    Gang& gang = rows_[leader.gang - 1];
    gang.parked = false;
    if ((value & ORR_SEM_FAILED) != 0) {
        // A failed board, or one that is closed.
        fail(gang, ~0u, nullptr, value);
        return;
    }
    advance(gang);
    set_alarm(hal_->reg(SOC_TIME));
}

// As far as it goes.
void Gangs::advance(Gang& gang) {
    if (gang.parked) return;
    if (gang.step == GangStep::kArrived) {
        if (!cards_reached(gang, kArrived, gang.cards)) return;
        gang.step = GangStep::kWaits;
        gang.waits_since = hal_->reg(SOC_TIME);
        gang.deadline = gang.ends = gang.waits_since + ORR_GANG_LIMITS * gang.limit_ps;
    }
    if (gang.step == GangStep::kWaits) {
        if (!its_turn(gang)) return;
        if (gang.cards > 1 && !cards_reached(gang, kLocked, gang.card)) return;
        locked_by_ = &gang;
        watches_ = true;
        gang.step = GangStep::kLocked;
        begin_turn(gang, hal_->reg(SOC_TIME));
        if (gang.cards > 1 && !signal_cards(gang, kLocked)) return;
    }
    if (gang.step == GangStep::kLocked) {
        if (!cards_reached(gang, kLocked, gang.cards)) return;
        gang.step = GangStep::kHolds;
        gang.deadline = hal_->reg(SOC_TIME) + most_hold_of(gang);
        engines_->hold(engines_->ports(kCoreKind));
        worked_ = 0 - core_time();
    }
    if (gang.step == GangStep::kHolds) {
        if (!gang.told_held && (!leaves_room(gang) || lacks_areas(gang))) {
            // REALTIME has come since, or others have started jobs.
            try_again(gang, hal_->reg(SOC_TIME));
            return;
        }
        if (!make_room(gang)) return;
        gang.step = GangStep::kHeld;
        gang.told_held = true;
        tell(gang, queues_[gang.queue[0]], ORR_GANG_HELD);
        if (gang.cards > 1 && !signal_cards(gang, kHeld)) return;
    }
    if (gang.step != GangStep::kHeld || !cards_reached(gang, kHeld, gang.cards)) return;
    // REALTIME may have taken a port meanwhile.
    if (engines_->free_ports(kCoreKind) < gang.members)
        gang.step = GangStep::kHolds;
    else
        start(gang);
}

void Gangs::start(Gang& gang) {
    const uint64_t now = hal_->reg(SOC_TIME);
    const uint64_t idle = idle_of(gang, now);
    const bool pauses = charge_hold(gang, now, 0);
    // If its limit was shorter, the user's next gang waits for the rest.
    GangDebt& debt = debt_of(user_of(gang));
    if (gang.yields_until != kNever) debt.owes_ps -= least(gang.yields_ps, debt.owes_ps);
    debt.ran_ps = 0;
    // Those behind it wait for what it takes, whatever they have waited for before.
    each([&](Gang& other) {
        if (user_of(other) == user_of(gang)) other.yields_until = kNever;
    });
    engines_->hold(0);
    locked_by_ = nullptr;
    set_due();
    // One that is not preempted has a record only if others may ask it to leave.
    if (!gang.started)
        gang.fixed = arbiter_->areas_for_gang(queues_[gang.queue[0]], gang.members) != GangAreas::kNow;
    const uint8_t number = gang.fixed && gang.cards == 1 ? kNoGangRow : number_of(gang);
    gang.running = 0;
    for (uint32_t n = 0; n < gang.members; ++n) {
        Port* const port = engines_->find_free(kCoreKind);
        if (port == nullptr) break;  // make_room() has seen to it
        Queue* queue = &queues_[gang.queue[n]];
        if (gang.started) {
            queue = arbiter_->resume_member(number, *port, now);
            if (queue == nullptr) break;
        } else {
            const WorkingFor blame(*persist_, queue->number);
            queue->gang = 0;
            arbiter_->start_member(*queue, *port, gang.members, now);
        }
        port->gang = number;
        port->not_preemptible |= gang.fixed;
        port->cross = gang.cards > 1;
        if (port->cross) ++cross_jobs_;
        ++gang.running;
        const WorkingFor blame(*persist_, queue->number);
        tell(gang, *queue, ORR_GANG_GO);
        if (!gang.started) arbiter_->make_ready(*queue);
    }
    if (number == kNoGangRow) {
        free(gang);
    } else {
        gang.started = true;
        gang.step = GangStep::kRuns;
        gang.base = gang.attempt;
        gang.deadline = gang.ends = kNever;
        gang.slice_ends = now + slice_of(gang, idle, pauses);
        gang.follows_from = now + kGangFollowPs;
        gang.polls = gang.blocked = gang.crowded = gang.presses = false;
        set_alarm(now);
    }
    arbiter_->grant_vector_ports(now);
}

void Gangs::unpark(Gang& gang) {
    if (gang.parked) waits_->remove(queues_[gang.queue[0]]);
    gang.parked = false;
}

// The record is free, and so is what it held.
void Gangs::free(Gang& gang) {
    unpark(gang);
    gang.blocked = gang.started = false;
    gang.step = GangStep::kFree;
    used_ &= ~bit_of(gang);
    cross_ &= ~bit_of(gang);
    unread_ &= ~bit_of(gang);
    reading_ &= ~bit_of(gang);
    left_ &= ~bit_of(gang);
    if (locked_by_ == &gang) {
        locked_by_ = nullptr;
        engines_->hold(0);
        set_due();
    }
    set_alarm(hal_->reg(SOC_TIME));
}

// It waits for its turn again; what it has locked here is free.
void Gangs::give_back(Gang& gang, uint64_t now) {
    unpark(gang);
    if (locked_by_ == &gang) {
        charge_lock(gang, now);
        engines_->hold(0);
        locked_by_ = nullptr;
        arbiter_->grant_vector_ports(now);
    }
    gang.step = GangStep::kWaits;
    gang.deadline = gang.ends;
    gang.told_held = gang.polls = false;
    gang.order = order_++;
    set_due();
}

// The other cards give back what they have locked too. Only before this card has said that it holds: who has
// seen all hold has started.
void Gangs::try_again(Gang& gang, uint64_t now) {
    if (gang.cards > 1 && gang.attempt >= kMostAttempts) {
        fail(gang, ~0u, nullptr, 0, true);
        return;
    }
    give_back(gang, now);
    if (gang.cards == 1) return;
    ++gang.attempt;
    static_cast<void>(signal_cards(gang, kArrived));
}

// All members that are there stop, but for one that has already. `lacking`: the card, or all-ones: a member
// here. `value`: of the board that failed, if one did: then that is the cause. `late`: the card that lacks
// was kept by what goes first.
void Gangs::fail(Gang& gang, uint32_t lacking, const Queue* except, uint64_t value, bool late) {
    Gang failed = gang;
    const bool locked = locked_by_ == &gang;
    if (locked) charge_lock(gang, hal_->reg(SOC_TIME));
    const uint8_t number = number_of(gang);
    free(gang);
    if (failed.started) failed.attached = 0;
    for (uint32_t n = 0; n < failed.attached; ++n) {
        Queue& queue = queues_[failed.queue[n]];
        queue.gang = 0;
        if (queue.place == Place::kGang) arbiter_->place(queue, Place::kNone);
    }
    const uint64_t detail =
        (lacking < failed.cards ? uint64_t{lacking} << 32 : uint64_t{failed.card} << 32 | failed.joined) |
        (late ? ORR_GANG_PRECEDED : 0) | (failed.started ? ORR_GANG_STARTED : 0);
    const auto stop = [&](Queue& queue, uint64_t index) {
        tell(failed, queue, ORR_GANG_FAILED);
        if ((value & ORR_SEM_FAILED) != 0)
            arbiter_->fail(queue, {ORR_QERR_POISON, index, failed.board, ORR_SEM_FAILURE(value)});
        else
            arbiter_->fail(queue, {ORR_QERR_GANG, index, failed.board, detail});
    };
    for (uint32_t n = 0; n < failed.attached; ++n) {
        Queue& queue = queues_[failed.queue[n]];
        if (except == nullptr || queue.number != except->number) stop(queue, queue.next);
    }
    while (failed.started) {
        const Arbiter::Member member = arbiter_->take_member(number);
        if (member.queue == nullptr) break;
        stop(*member.queue, member.index);
    }
    const bool own = lacking >= failed.cards;
    if (failed.cards > 1) static_cast<void>(signal_cards(failed, late && own ? kLate : kFailed));
    if (locked) arbiter_->grant_vector_ports(hal_->reg(SOC_TIME));
}

// What this card's own entry on the board says; 0: it cannot be read.
uint64_t Gangs::own_entry(uint16_t context, const orr_packet_gang& packet) {
    const uint64_t va = packet.board + sizeof(orr_semaphore) * packet.card;
    if (va >= kVaEnd) return 0;
    const uint64_t value = hal_->load(ORR_CONTEXT_WINDOW(context, va));
    return take_window_fault(*hal_) ? 0 : value;
}

[[gnu::noinline]] void Gangs::fail_unread(Queue& queue, const uint64_t (&words)[kPacketWords]) {
    // Those who know of a gang have heard of it; of one without a place nobody has.
    const bool own_fault = queue.error.index + 1 == queue.failed_to && queue.error.code == ORR_QERR_GANG &&
                           queue.error.detail != ORR_GANG_NO_PLACE;
    if (own_fault || validate_packet(words).code != ORR_QERR_NONE) return;
    const auto packet = __builtin_bit_cast(orr_packet_gang, words);
    for (uint64_t rows = used_; rows != 0; rows &= rows - 1) {
        Gang& gang = rows_[lowest_bit(rows)];
        if (gang.context != queue.context_number || gang.board != packet.board || gang.round != packet.round)
            continue;
        // One that is complete does without this queue, and so does one that it contradicts.
        if (gang.step != GangStep::kGather || gang.attached == gang.members || gang.peers != packet.peers ||
            gang.card != packet.card || gang.cards != packet.cards || gang.members != packet.members)
            return;
        fail(gang, ~0u, nullptr, arbiter_->cause_of(queue));
        break;
    }
    const uint64_t own = packet.board + sizeof(orr_semaphore) * packet.card;
    if (own < kVaEnd)
        static_cast<void>(arbiter_->fail_semaphore(queue, own, packet.round * kRound + kFailed));
    if (packet.cards == 1) return;
    Gang absent = {};
    absent.board = packet.board;
    absent.peers = packet.peers;
    absent.round = packet.round;
    absent.context = queue.context_number;
    absent.card = packet.card;
    absent.cards = packet.cards;
    static_cast<void>(signal_cards(absent, kFailed));
}

void Gangs::leave(Queue& queue) {
    if (queue.gang == 0) return;
    Gang& gang = rows_[queue.gang - 1];
    queue.gang = 0;
    fail(gang, ~0u, &queue);
}

void Gangs::serve(bool more) {
    const uint8_t due = due_;
    due_ = more ? kForAreas : uint8_t{0};
    if ((due & ~kForAreas) == 0) return;
    settle();
    const uint64_t now = hal_->reg(SOC_TIME);
    wanted_ |= (due & kWanted) != 0;
    if (locked_by_ != nullptr && (locked_by_->step == GangStep::kHolds || locked_by_->polls))
        advance(*locked_by_);
    if (looking_ || (wanted_ && look_after_ <= now)) look_at(now);
    set_alarm(hal_->reg(SOC_TIME));
}

// At all that wait, a few at a time: whose turn it is, and who has to leave for them.
[[gnu::noinline]] void Gangs::look_at(uint64_t now) {
    uint32_t looks = kGangLooks;
    if (!looking_) {
        looking_ = true;
        wanted_ = false;
        look_ps_ = 0;
        left_ = used_;
        reading_ = unread_;
        unread_ = 0;
        each([](Gang& gang) { gang.presses = gang.crowded = false; });
    }
    look_at_started(now);
    if (grants_) {
        grants_ = false;
        arbiter_->grant_vector_ports(now);
    }
    for (; reading_ != 0 && looks != 0; --looks) {
        Gang& gang = rows_[lowest_bit(reading_)];
        reading_ &= reading_ - 1;
        hear(gang, now);
    }
    // Also while one has the lock: what runs may have to leave for the others.
    for (; left_ != 0 && looks != 0; --looks) {
        Gang* next = nullptr;
        for (uint64_t rows = left_ & used_; rows != 0; rows &= rows - 1) {
            Gang& gang = rows_[lowest_bit(rows)];
            if (gang.step != GangStep::kWaits || gang.parked)
                left_ &= ~bit_of(gang);
            else if (next == nullptr || precedes(gang, *next))
                next = &gang;
        }
        if (next == nullptr) {
            left_ = 0;
            break;
        }
        left_ &= ~bit_of(*next);
        advance(*next);
        // Those behind it wait for it.
        if (next->presses) left_ = 0;
    }
    looking_ = reading_ != 0 || left_ != 0;
    // Who holds the ports starts in a moment.
    if (!looking_ && (locked_by_ == nullptr || locked_by_->step == GangStep::kLocked))
        press(hal_->reg(SOC_TIME));
    if (looking_) due_ |= kGoesOn;
    const uint64_t end = hal_->reg(SOC_TIME);
    look_ps_ += least(end - now, kGangFollowPs);
    look_after_ = look_ps_ > kGangFreeLookPs ? end + kGangLookGap * (look_ps_ - kGangFreeLookPs) : end;
}

void Gangs::check(uint64_t now) {
    settle();
    alarm_->set(*hal_, Alarm::kGang, kNever);
    if (look_ <= now) {
        look_ = 0;
        unread_ |= cross_;
    }
    for (uint64_t rows = used_; rows != 0; rows &= rows - 1) {
        Gang& gang = rows_[lowest_bit(rows)];
        if (gang.step == GangStep::kFree) continue;
        if (gang.step == GangStep::kLocked && gang.turn_ends <= now) {
            // Others have their turn; but nobody knows whether its own would have come soon.
            if (others_wait(gang, true, true)) {
                try_again(gang, now);
                continue;
            }
            // Who cannot have the lock now may soon.
            if (others_wait(gang, false, true))
                gang.turn_ends = now + kGangLookPs;
            else
                begin_turn(gang, now);
        }
        if (late_at(gang) > now) continue;
        if (gang.step != GangStep::kHolds || gang.cards > 1) {
            const bool own = lacks_own_card(gang);
            uint32_t lacking = ~0u;
            for (uint16_t card = 0; card < gang.cards && gang.step != GangStep::kGather && !own; ++card) {
                const uint64_t va = gang.board + sizeof(orr_semaphore) * card;
                const uint64_t wanted = gang.step == GangStep::kArrived  ? kArrived
                                        : gang.step <= GangStep::kLocked ? kLocked
                                                                         : kHeld;
                if (card == gang.card || va >= kVaEnd) continue;
                if (hal_->load(ORR_CONTEXT_WINDOW(gang.context, va)) < entry_of(gang, wanted) &&
                    lacking == ~0u)
                    lacking = card;
            }
            static_cast<void>(take_window_fault(*hal_));
            fail(gang, lacking, nullptr, 0, own && gang.step == GangStep::kWaits && gang.not_before <= now);
            continue;
        }
        // What runs does not make room: others get the ports for a while.
        give_back(gang, now);
        gang.not_before = now + kGangPause * kGangHoldPs;
    }
    set_due();
    set_alarm(now);
}

void Gangs::set_alarm(uint64_t now) {
    uint64_t next = wanted_ ? look_after_ : kNever;
    bool blocked = false;
    bool started = false;
    for (uint64_t rows = used_; rows != 0; rows &= rows - 1) {
        const Gang& gang = rows_[lowest_bit(rows)];
        blocked |= gang.blocked;
        started |= gang.started;
        if (gang.slice_ends > now && gang.slice_ends < next) next = gang.slice_ends;
        if (gang.blocked && gang.yields_until > now && gang.yields_until < next) next = gang.yields_until;
        if (late_at(gang) < next) next = late_at(gang);
        if (gang.step == GangStep::kLocked && gang.turn_ends < next) next = gang.turn_ends;
        if (gang.not_before > now && gang.not_before < next) next = gang.not_before;
    }
    watches_ = blocked || locked_by_ != nullptr;
    const bool looks = blocked || started;
    if (!looks)
        look_ = 0;
    else if (look_ == 0)
        look_ = now + kGangLookPs;
    if (looks && look_ < next) next = look_;
    if (next != kNever && next > now + kGangLookPs) next = now + kGangLookPs;
    if (next != alarm_->at(Alarm::kGang)) alarm_->set(*hal_, Alarm::kGang, next);
}

}  // namespace orrery::fw
