// SPDX-License-Identifier: MIT
// A queue's turn: reading packets and carrying them out. The hot path of the firmware.
#include <orrery/hw/doorbell.h>

#include "firmware/sched/queue/packets.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// Packets that start only when all earlier ones have finished.
bool is_ordered(uint32_t opcode, uint32_t flags) {
    return opcode == ORR_PKT_SIGNAL || opcode == ORR_PKT_BARRIER || opcode == ORR_PKT_TIMESTAMP ||
           opcode == ORR_PKT_GANG || opcode == ORR_PKT_FAIL || (flags & ORR_PKT_F_ORDERED) != 0;
}

}  // namespace

// One turn of a queue that is on no list. `begin` executes packets; true: the queue can continue at once.
template <typename Begin>
[[gnu::always_inline]] inline void Scheduler::run_turn(Queue& queue, uint64_t now, Begin begin) {
    WorkingForEach blame(*persist_);
    blame.now(queue.number);
    turns_.advance(queue);
    turn_bound_.served(queue.priority);
    set_state(queue, ORR_TSTATE_TURN);
    ++stats_.turns;
    const bool again = begin();
    const uint64_t used = hal_->reg(SOC_TIME) - now;
    add_vtime(queue, Resource::kTurn, used < policy_.turn_ps ? policy_.turn_ps : used);
    if (again)
        make_ready(queue);
    else
        update_idle_state(queue);
}

// Packet `next` is a signal. False: it has to be read and looked at; nothing has happened.
[[gnu::always_inline]] inline bool Scheduler::try_signal(Queue& queue) {
    const uint32_t flags = packet_flags(queue.packet);
    if ((flags & ~ORR_PKT_F_INTERRUPT) != 0 || queue.in_flight != 0 || queue.gang != 0) return false;
    const uint32_t packet = SOC_SLOT(queue.ring_slot) + SOC_SLOT_PACKET;
    const uint64_t va = hal_->reg(packet + offsetof(orr_packet_semaphore, semaphore));
    const uint64_t value = hal_->reg(packet + offsetof(orr_packet_semaphore, value));
    if (static_cast<int64_t>(value) < 0) return false;
    hal_->set_reg(SOC_SEM_LAUNCH, uint64_t{queue.ring_slot} << 32 | queue.context_number);
    const uint64_t memory = hal_->reg(SOC_SEM_MEMORY);
    if (memory == ~uint64_t{0} && hal_->reg(SOC_SEM_STATUS) != ORR_FAULT_NONE) [[unlikely]]
        return false;
    if (waits_.count() != 0)
        signalled(queue, memory, value, va);
    else
        trace::signal(*hal_, queue.number, 0, memory, value, va);
    finish_packet(queue);
    return true;
}

// Executes the signals at the head of the ring. True: there was nothing else.
[[gnu::always_inline]] inline bool Scheduler::run_signals(Queue& queue) {
    if (queue.has_packet || queue.ring_slot == kNoSlot) return false;
    for (uint32_t budget = policy_.window; budget != 0; --budget) {
        if (queue.next - queue.retired == kWindow) return false;
        if (queue.packet[0] == 0) queue.packet[0] = slots_.peek(*hal_, queue);
        if (packet_opcode(queue.packet) != ORR_PKT_SIGNAL || !try_signal(queue)) return false;
        if (queue.next == queue.producer) return true;
    }
    return false;
}

// Publishes what has finished. True: the queue can continue at once.
[[gnu::always_inline]] inline bool Scheduler::end_turn(Queue& queue) {
    // Progress is published once a turn.
    if ((queue.done & 1) != 0 && !publish_or_fail(queue)) return false;
    if (queue.place == Place::kOwn && queue.next - queue.retired < kWindow && !queue.has_packet)
        place(queue, Place::kNone);
    return queue.place == Place::kNone && (queue.has_packet || queue.next != queue.producer);
}

[[gnu::always_inline]] inline bool Scheduler::run(Queue& queue) {
    for (uint32_t budget = policy_.window; budget != 0; --budget) {
        if (!queue.has_packet) {
            if (queue.next == queue.producer) break;
            if (queue.next - queue.retired == kWindow) {
                place(queue, Place::kOwn);
                break;
            }
            bool started = false;
            bool fetched = false;
            ORRERY_FW_INLINE started = try_launch(queue);
            if (started) continue;
            ORRERY_FW_INLINE fetched = fetch(queue);
            if (!fetched) return false;
        }
        const Step step = execute(queue);
        if (step == Step::kFailed) return false;
        if (step == Step::kParked) break;
    }
    return end_turn(queue);
}

[[gnu::noinline]] bool Scheduler::run_rest(Queue& queue) {
    return run(queue);
}

// The queue whose doorbell was popped, with its producer index updated; null: there is nothing new.
[[gnu::always_inline]] inline Queue* Scheduler::decode_doorbell(uint64_t popped) {
    const uint64_t value = hal_->reg(SOC_DB_VALUE);
    const auto tag = static_cast<uint32_t>(popped);
    Queue* const queue = tag < ORR_FW_QUEUES ? &queues_[tag] : nullptr;
    if (queue == nullptr || !queue->exists || queue->ending != 0 || queue->generation != value >> 48)
        [[unlikely]] {
        reject_doorbell(queue, value);
        return nullptr;
    }
    // The doorbell's index saves reading the producer from the ring: the same process writes both, and a
    // wrong one harms only its own queue.
    const uint64_t more = (value - queue->producer) & ORR_DB_INDEX_MASK;
    if (more == 0 || queue->producer - queue->retired + more > uint64_t{queue->mask} + 1) [[unlikely]] {
        reject_index(*queue, more);
        return nullptr;
    }
    queue->producer += more;
    trace::doorbell(*hal_, queue->number, queue->producer);
    return queue;
}

// New packets have been submitted: makes the queue ready if it was idle.
[[gnu::always_inline]] inline void Scheduler::accept_doorbell(Queue& queue) {
    // If its turn is far away, others need the prefetch slots more.
    if (queue.next != queue.producer && (queue.ring_slot != kNoSlot || turns_.count() < SOC_SLOTS))
        slots_.attach_idle(*hal_, queues_, queue);
    if (queue.place == Place::kNone && queue.next != queue.producer) make_ready(queue);
    if (queue.place == Place::kSemaphore) deadlocks_.submitted_behind();
}

bool Scheduler::drain_doorbells() {
    uint64_t popped = hal_->reg(SOC_DB_POP);
    if (popped == ~uint64_t{0}) return false;
    for (uint32_t n = 0;;) {
        if (Queue* const queue = decode_doorbell(popped)) {
            accept_doorbell(*queue);
            // A high class does not wait until the other doorbells have been read.
            if (queue->priority >= ORR_PRIORITY_HIGH && queue->place == Place::kReady) break;
        }
        if ((popped & SOC_DB_MORE) == 0 || ++n == kDoorbellsPerTurn) break;
        popped = hal_->reg(SOC_DB_POP);
    }
    return true;
}

// A queue gets its turn without having been in line.
[[gnu::always_inline]] inline void Scheduler::begin_only_turn(Queue& queue) {
    turns_.limit_lag(queue);
    set_state(queue, ORR_TSTATE_READY);
    trace::decision(*hal_, queue.number, ORR_RULE_ONLY, ORR_RESOURCE_TURN, 1, queue.next);
}

// Fast path for drain_doorbells() and turn() while no queue is ready: the rung queue gets its turn directly,
// unless others were rung too and it has no precedence.
void Scheduler::answer_doorbell() {
    const uint64_t popped = hal_->reg(SOC_DB_POP);
    if (popped == ~uint64_t{0}) return;
    Queue* const queue = decode_doorbell(popped);
    if (queue == nullptr) return;
    const bool choice = (popped & SOC_DB_MORE) != 0 && queue->priority < ORR_PRIORITY_HIGH;
    if (choice || queue->place != Place::kNone || queue->next == queue->producer) {
        accept_doorbell(*queue);
        return;
    }
    const uint64_t now = hal_->reg(SOC_TIME);
    slots_.attach(*hal_, queues_, *queue);
    begin_only_turn(*queue);
    // A recorded event is just a signal: the common case.
    run_turn(*queue, now, [&] { return run_signals(*queue) ? end_turn(*queue) : run_rest(*queue); });
}

// The same for a queue that has waited for its own jobs alone, with its next packet read, as they have ended:
// what it has finished is published with what comes of the turn. False: it does not go on at once, as others
// want the core.
[[gnu::noinline]] bool Scheduler::go_on(Queue& queue) {
    if (queue.in_flight != 0 || queue.ending != 0 || has_ready() || unsettled() || hal_->timer_pending() ||
        hal_->reg(SOC_IRQ_PENDING) != 0)
        return false;
    place(queue, Place::kNone);
    begin_only_turn(queue);
    run_turn(queue, hal_->reg(SOC_TIME), [&] {
        if (packet_opcode(queue.packet) != ORR_PKT_SIGNAL || queue.gang != 0) return run_rest(queue);
        const Step step = execute_signal(queue);
        if (step == Step::kFailed) return false;
        const bool stops = step == Step::kParked || queue.next == queue.producer;
        return stops || run_signals(queue) ? end_turn(queue) : run_rest(queue);
    });
    return true;
}

// The doorbell of a queue that is gone is counted; if it has stopped, what was submitted will be failed.
[[gnu::noinline]] void Scheduler::reject_doorbell(Queue* queue, uint64_t value) {
    if (queue == nullptr || !queue->exists || queue->destroying || queue->generation != value >> 48) {
        ++stats_.stale_doorbells;
        return;
    }
    if (!queue->stopped) return;
    add_vtime(*queue, Resource::kTurn, kDoorbellPs);
    if (!failing_.has(*queue)) failing_.add(*queue);
}

// A doorbell without news is dropped and charged to its queue, so that a storm costs the sender turns and
// nobody else; an impossible index stops the queue.
[[gnu::noinline]] void Scheduler::reject_index(Queue& queue, uint64_t more) {
    ++stats_.idle_doorbells;
    add_vtime(queue, Resource::kTurn, kDoorbellPs);
    if (more - 1 < ORR_DB_INDEX_MASK / 2)
        fail(queue, {ORR_QERR_BAD_INDEX, queue.next, queue.producer + more, 0});
}

bool Scheduler::turn() {
    if (turns_.empty()) return false;
    hal_->activity(ORR_ACTIVITY_SCHEDULING);
    const uint64_t now = hal_->reg(SOC_TIME);
    const uint32_t candidates = turns_.count();
    StarvationBound::Choice choice{turns_.level(), false};
    uint32_t rule = candidates == 1 ? ORR_RULE_ONLY : ORR_RULE_SHARE;
    if (!turns_.of_one_class()) [[unlikely]] {
        choice = turn_bound_.choose(turns_.classes(), 0, now, policy_.bound_ps);
        if (choice.level == ORR_PRIORITY_HIGH && turns_.count_of(ORR_PRIORITY_NORMAL) != 0 &&
            tenants_.several() &&
            tenants_.ahead(*turns_.front(queues_, ORR_PRIORITY_HIGH),
                           *turns_.front(queues_, ORR_PRIORITY_NORMAL),
                           static_cast<uint32_t>(Resource::kTurn), kTurnLeadPs))
            choice.level = ORR_PRIORITY_NORMAL;
        rule = choice.due                           ? ORR_RULE_BOUND
               : candidates == 1                    ? ORR_RULE_ONLY
               : turns_.count_of(choice.level) == 1 ? ORR_RULE_PRIORITY
                                                    : ORR_RULE_SHARE;
    }
    Queue* next = nullptr;
    Queue& queue = turns_.take(queues_, choice.level, next);
    trace::decision(*hal_, queue.number, rule, ORR_RESOURCE_TURN, candidates, queue.next);
    queue.place = Place::kNone;
    end_wait(queue, now);
    // The packets of the next are read while this one has its turn.
    if (next != nullptr && next->ring_slot == kNoSlot && next->next != next->producer)
        slots_.attach(*hal_, queues_, *next);
    hal_->activity(ORR_ACTIVITY_PACKETS);
    run_turn(queue, now, [&] { return run(queue); });
    return true;
}

// Reads packet `next` into the queue, and checks it there.
bool Scheduler::fetch(Queue& queue) {
    if (queue.ring_slot == kNoSlot) slots_.attach(*hal_, queues_, queue);
    slots_.read(*hal_, queue);
    if (const WindowFault fault = take_window_fault(*hal_)) [[unlikely]] {
        fail_window(queue, ORR_QERR_RING_FAULT, queue.next, fault);
        return false;
    }
    const Verdict verdict = validate_packet(queue.packet);
    if (verdict.code != ORR_QERR_NONE) [[unlikely]] {
        fail(queue, {verdict.code, queue.next, 0, verdict.detail});
        return false;
    }
    queue.has_packet = true;
    return true;
}

[[gnu::noinline]] Scheduler::Step Scheduler::execute(Queue& queue) {
    const uint32_t opcode = packet_opcode(queue.packet);
    if (queue.in_flight != 0 && is_ordered(opcode, packet_flags(queue.packet))) {
        place(queue, Place::kOwn);
        return Step::kParked;
    }
    if (queue.gang != 0 &&
        (opcode != ORR_PKT_DISPATCH || (packet_flags(queue.packet) & ORR_PKT_F_RESIDENT) == 0)) [[unlikely]] {
        fail(queue, {ORR_QERR_BAD_PACKET, queue.next, 0, 0});
        return Step::kFailed;
    }
    if (opcode == ORR_PKT_NOP) return finish_packet(queue);
    switch (opcode) {
        case ORR_PKT_GANG:
            return gangs_.attach(queue) ? finish_packet(queue) : Step::kFailed;
        case ORR_PKT_SIGNAL:
            return execute_signal(queue);
        case ORR_PKT_WAIT:
            return execute_wait(queue);
        case ORR_PKT_TIMESTAMP:
            return execute_timestamp(queue);
        case ORR_PKT_FAIL:
            return execute_fail(queue);
        case ORR_PKT_BARRIER:
            return finish_packet(queue);
        default:  // validate_packet() lets nothing else pass
            return execute_on_engine(queue, kind_of(opcode));
    }
}

Scheduler::Step Scheduler::execute_timestamp(Queue& queue) {
    const uint64_t va = queue.packet[1];
    if (va >= kVaEnd) {
        fail(queue, {ORR_QERR_FAULT, queue.next, va, ORR_FAULT_NON_CANONICAL});
        return Step::kFailed;
    }
    hal_->store(window(queue, va), hal_->reg(SOC_SYSTEM_TIME));
    if (const WindowFault fault = take_window_fault(*hal_)) {
        fail_window(queue, ORR_QERR_FAULT, queue.next, fault);
        return Step::kFailed;
    }
    return finish_packet(queue);
}

// Packet `next` was executed synchronously.
Scheduler::Step Scheduler::finish_packet(Queue& queue) {
    queue.done |= 1u << static_cast<uint32_t>(queue.next - queue.retired);
    consume_packet(queue, queue.packet[0]);
    return Step::kDone;
}

// Reads the producer index from the ring. False: it cannot be read, or cannot be true; the queue has been
// stopped.
bool Scheduler::read_producer(Queue& queue) {
    const uint64_t producer = hal_->load(queue.ring + offsetof(orr_ring, producer));
    if (const WindowFault fault = take_window_fault(*hal_)) {
        fail_window(queue, ORR_QERR_RING_FAULT, queue.next, fault);
        return false;
    }
    const uint64_t used = producer - queue.retired;
    if (used > uint64_t{queue.mask} + 1 || used < queue.next - queue.retired) {
        fail(queue, {ORR_QERR_BAD_INDEX, queue.next, producer, 0});
        return false;
    }
    if (producer > queue.producer) queue.producer = producer;
    return true;
}

}  // namespace orrery::fw
