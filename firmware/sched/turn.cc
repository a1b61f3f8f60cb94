// SPDX-License-Identifier: MIT
// A queue's turn: reading packets and carrying them out. The hot path of the firmware.
#include <orrery/hw/doorbell.h>

#include "firmware/sched/packets.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// Packets that start only when all earlier ones have finished.
bool is_ordered(uint32_t opcode, uint32_t flags) {
    return opcode == ORR_PKT_SIGNAL || opcode == ORR_PKT_BARRIER || opcode == ORR_PKT_TIMESTAMP ||
           opcode == ORR_PKT_GANG || opcode == ORR_PKT_FAIL || (flags & ORR_PKT_F_ORDERED) != 0;
}

}  // namespace

bool Scheduler::drain_doorbells() {
    for (uint32_t n = 0; n < kDoorbellsPerTurn; ++n) {
        const uint64_t tag = hal_->reg(SOC_DB_POP);
        if (tag == ~uint64_t{0}) return n != 0;
        const uint64_t value = hal_->reg(SOC_DB_VALUE);
        Queue* const queue = tag < ORR_FW_QUEUES ? &queues_[tag] : nullptr;
        if (queue == nullptr || !queue->exists || queue->ending != 0 || queue->generation != value >> 48)
            [[unlikely]] {
            odd_doorbell(queue, value);
            continue;
        }
        ring(*queue, value & ORR_DB_INDEX_MASK);
        // It does not wait for what else was rung.
        if (queue->priority >= ORR_PRIORITY_HIGH && queue->place == Place::kReady) break;
    }
    return true;
}

// Of a queue that is not there any more, or has stopped: then what is submitted fails, when its user's turn
// comes.
[[gnu::noinline]] void Scheduler::odd_doorbell(Queue* queue, uint64_t value) {
    if (queue == nullptr || !queue->exists || queue->destroying || queue->generation != value >> 48) {
        ++stats_.stale_doorbells;
        return;
    }
    if (!queue->stopped) return;
    add_vtime(*queue, Resource::kTurn, kDoorbellPs);
    if (!failing(*queue)) enter_failing(*queue);
}

// The index of a doorbell saves reading the producer from the ring: its one writer is the same, and if it
// lies about it, it has the packets that it deserves. One that is nothing new is dropped and costs its queue,
// so that a storm of it has fewer turns and takes none from others; one that cannot be true stops the queue.
void Scheduler::ring(Queue& queue, uint64_t index) {
    const uint64_t more = (index - queue.producer) & ORR_DB_INDEX_MASK;
    if (more == 0 || queue.producer - queue.retired + more > uint64_t{queue.mask} + 1) [[unlikely]] {
        ++stats_.idle_doorbells;
        add_vtime(queue, Resource::kTurn, kDoorbellPs);
        if (more - 1 < ORR_DB_INDEX_MASK / 2)
            fail(queue, {ORR_QERR_BAD_INDEX, queue.next, queue.producer + more, 0});
        return;
    }
    queue.producer += more;
    trace::doorbell(*hal_, queue.number, queue.producer);
    // With so many before it that its turn is far away, others need the slots more.
    if (queue.next != queue.producer && (queue.ring_slot != kNoSlot || turns_.count() < SOC_SLOTS))
        slots_.attach_idle(*hal_, queues_, queue);
    if (queue.place == Place::kNone && queue.next != queue.producer) make_ready(queue);
    if (queue.place == Place::kSemaphore) deadlocks_.submitted_behind();
}

bool Scheduler::turn() {
    if (turns_.empty()) return false;
    const uint64_t now = hal_->reg(SOC_TIME);
    const uint32_t candidates = turns_.count();
    Bound::Choice choice{turns_.level(), false};
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
    WorkingForEach blame(*persist_);
    blame.now(queue.number);
    trace::decision(*hal_, queue.number, rule, ORR_RESOURCE_TURN, candidates, queue.next);
    turns_.serve(queue);
    turn_bound_.served(choice.level);
    queue.place = Place::kNone;
    set_state(queue, ORR_TSTATE_TURN);
    end_wait(queue, now);
    // The packets of the next are read while this one has its turn.
    if (next != nullptr && next->ring_slot == kNoSlot && next->next != next->producer)
        slots_.attach(*hal_, queues_, *next);
    ++stats_.turns;

    const bool again = run(queue);
    const uint64_t used = hal_->reg(SOC_TIME) - now;
    add_vtime(queue, Resource::kTurn, used < policy_.turn_ps ? policy_.turn_ps : used);
    if (again)
        make_ready(queue);
    else
        rest(queue);
    return true;
}

bool Scheduler::run(Queue& queue) {
    for (uint32_t budget = policy_.window; budget != 0; --budget) {
        if (!queue.has_packet) {
            if (queue.next == queue.producer) break;
            if (queue.next - queue.retired == kWindow) {
                place(queue, Place::kOwn);
                break;
            }
            if (try_launch(queue)) continue;
            if (!fetch(queue)) return false;
        }
        const Step step = execute(queue);
        if (step == Step::kFailed) return false;
        if (step == Step::kParked) break;
    }
    // What finished is made known once a turn.
    if ((queue.done & 1) != 0 && !settle(queue)) return false;
    if (queue.place == Place::kOwn && queue.next - queue.retired < kWindow && !queue.has_packet)
        place(queue, Place::kNone);
    return queue.place == Place::kNone && (queue.has_packet || queue.next != queue.producer);
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
    switch (opcode) {
        case ORR_PKT_GANG:
            return execute_gang(queue);
        case ORR_PKT_SIGNAL:
            return execute_signal(queue);
        case ORR_PKT_WAIT:
            return execute_wait(queue);
        case ORR_PKT_TIMESTAMP:
            return execute_timestamp(queue);
        case ORR_PKT_FAIL:
            return execute_fail(queue);
        case ORR_PKT_COPY:
        case ORR_PKT_FILL:
        case ORR_PKT_DISPATCH:
            return execute_on_engine(queue, opcode);
        default:  // NOP, BARRIER: validate_packet() lets nothing else pass
            return finish_packet(queue);
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

// Packet `next` was carried out on the spot.
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
