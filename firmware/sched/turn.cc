// SPDX-License-Identifier: MIT
// A queue's turn: reading packets and carrying them out. The hot path of the firmware.
#include "firmware/sched/packets.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// Packets that start only when all earlier ones have finished.
bool is_ordered(uint32_t opcode, uint32_t flags) {
    return opcode == ORR_PKT_SIGNAL || opcode == ORR_PKT_BARRIER || opcode == ORR_PKT_TIMESTAMP ||
           (flags & ORR_PKT_F_ORDERED) != 0;
}

}  // namespace

bool Scheduler::turn() {
    Queue* const queue = ready_.pop_front(queues_);
    if (queue == nullptr) return false;
    place(*queue, Place::kNone);
    set_state(*queue, ORR_TSTATE_TURN);
    ++stats_.turns;
    run(*queue);
    rest(*queue);
    return true;
}

void Scheduler::run(Queue& queue) {
    if (!queue.has_packet && queue.next == queue.producer && queue.done == 0) {
        const uint64_t producer = hal_->load(queue.ring + offsetof(orr_ring, producer));
        // A fault shows with the fetch; without one to come, look now.
        if (producer == queue.next) {
            if (const WindowFault fault = take_window_fault(*hal_)) {
                fail_window(queue, ORR_QERR_RING_FAULT, queue.next, fault);
            }
            return;
        }
        if (!check_producer(queue, producer)) return;
    }
    for (uint32_t budget = kWindow; budget != 0; --budget) {
        if (!queue.has_packet) {
            if (queue.next == queue.producer) break;
            if (queue.next - queue.retired == kWindow) {
                place(queue, Place::kOwn);
                break;
            }
            if (!fetch(queue)) return;
        }
        const Step step = execute(queue);
        if (step == Step::kFailed) return;
        if (step == Step::kParked) break;
    }
    // What finished is made known once a turn. Then the producer is read again: a doorbell that was rung
    // during the turn saves its own.
    const bool drained = !queue.has_packet && queue.next == queue.producer;
    if (!settle(queue, drained)) return;
    if (queue.place == Place::kOwn && queue.next - queue.retired < kWindow && !queue.has_packet) {
        place(queue, Place::kNone);
    }
    if (queue.place == Place::kNone && (queue.has_packet || queue.next != queue.producer)) make_ready(queue);
}

// Reads packet `next` into the queue, and checks it there.
bool Scheduler::fetch(Queue& queue) {
    const uint64_t slot = queue.ring + sizeof(orr_ring) + (queue.next & queue.mask) * ORR_PACKET_SIZE;
    for (size_t i = 0; i < kPacketWords; ++i)
        queue.packet[i] = hal_->load(slot + 8 * i);
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

Scheduler::Step Scheduler::execute(Queue& queue) {
    const uint32_t opcode = packet_opcode(queue.packet);
    if (queue.in_flight != 0 && is_ordered(opcode, packet_flags(queue.packet))) {
        place(queue, Place::kOwn);
        return Step::kParked;
    }
    switch (opcode) {
        case ORR_PKT_SIGNAL:
            return execute_signal(queue);
        case ORR_PKT_WAIT:
            return execute_wait(queue);
        case ORR_PKT_TIMESTAMP:
            return execute_timestamp(queue);
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
    hal_->store(window(queue, va), hal_->reg(SOC_TIME));
    if (const WindowFault fault = take_window_fault(*hal_)) {
        fail_window(queue, ORR_QERR_FAULT, queue.next, fault);
        return Step::kFailed;
    }
    return finish_packet(queue);
}

// Packet `next` was carried out on the spot.
Scheduler::Step Scheduler::finish_packet(Queue& queue) {
    queue.done |= 1u << static_cast<uint32_t>(queue.next - queue.retired);
    consume_packet(queue);
    return Step::kDone;
}

void Scheduler::consume_packet(Queue& queue) {
    if ((packet_flags(queue.packet) & ORR_PKT_F_INTERRUPT) != 0)
        queue.interrupt |= 1u << static_cast<uint32_t>(queue.next - queue.retired);
    ++queue.next;
    queue.has_packet = false;
    ++progress_;
}

// Takes a producer index as just read from the ring, if it can be true.
bool Scheduler::check_producer(Queue& queue, uint64_t producer) {
    const uint64_t used = producer - queue.retired;
    if (used <= queue.mask + 1 && used >= queue.next - queue.retired) [[likely]] {
        queue.producer = producer;
        return true;
    }
    // Nonsense can be the zero of a load that could not be done.
    if (const WindowFault fault = take_window_fault(*hal_))
        fail_window(queue, ORR_QERR_RING_FAULT, queue.next, fault);
    else
        fail(queue, {ORR_QERR_BAD_INDEX, queue.next, producer, 0});
    return false;
}

}  // namespace orrery::fw
