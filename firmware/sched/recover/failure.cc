// SPDX-License-Identifier: MIT
// Failure travels with the semaphore (orrery/fw/failure.h): a queue that stops fails what its packets would
// have signalled, and whoever waits for what has failed stops too, with the first cause.
#include <orrery/fw/failure.h>

#include "firmware/hal/bits.h"
#include "firmware/sched/queue/packets.h"
#include "firmware/sched/recover/restart.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// Tries of a signal for which a peer's inbox has no room. A peer that computes needs milliseconds; one that
// stands in a debugger gets none, and those who wait there are not told.
constexpr uint8_t kBusyTries = 255;
// Tries of a close that waits for remote signals to be drained: each try drains hundreds of messages.
constexpr uint32_t kCloseTries = 128;

}  // namespace

// What this queue's semaphores are told. Who was poisoned passes on what it got.
uint64_t Scheduler::cause_of(const Queue& queue) {
    const QueueError& error = queue.error;
    const uint64_t word = error.code == ORR_QERR_POISON
                              ? error.detail
                              : ORR_FAILURE_WORD(error.code, hal_->reg(SOC_UID), queue.number, error.index);
    return ORR_SEM_FAILED | word;
}

// Gives ORR_FAULT_*.
uint64_t Scheduler::fail_semaphore(const Queue& by, uint64_t va, uint64_t value) {
    hal_->set_reg(SOC_SEM_ASID, by.context->number);
    hal_->set_reg(SOC_SEM_VA, va);
    hal_->set_reg(SOC_SEM_SIGNAL, value);
    const uint64_t status = hal_->reg(SOC_SEM_STATUS);
    if (status != ORR_FAULT_NONE) return status;
    const uint64_t memory = hal_->reg(SOC_SEM_MEMORY);
    if (memory == ~uint64_t{0} || waits_.count() == 0) {
        trace::signal(*hal_, by.number, 0, memory, value, va);
        return status;
    }
    // It may have failed before: the first failure is the one to tell.
    const uint64_t stands = hal_->load(memory);
    signalled(by, memory, take_window_fault(*hal_) || (stands & ORR_SEM_FAILED) == 0 ? value : stands, va);
    return status;
}

Scheduler::Step Scheduler::execute_fail(Queue& queue) {
    const uint64_t va = queue.packet[1];
    const uint64_t word = ORR_FAILURE_WORD(queue.packet[2], hal_->reg(SOC_UID), queue.number, queue.next);
    const uint64_t fault = fail_semaphore(queue, va, ORR_SEM_FAILED | word);
    if (fault == ORR_FAULT_PEER_BUSY) return Step::kParked;
    if (fault != ORR_FAULT_NONE) {
        fail(queue, {ORR_QERR_FAULT, queue.next, va, fault});
        return Step::kFailed;
    }
    return finish_packet(queue);
}

// The queue's WAIT, for a semaphore that has failed. `value`: of the semaphore.
void Scheduler::poison(Queue& queue, uint64_t value) {
    fail(queue, {ORR_QERR_POISON, queue.next, queue.packet[1], ORR_SEM_FAILURE(value)});
}

// Whether the queue, which has to wait, would wait for a semaphore that nobody signals any more; it has been
// stopped then. `value` is looked at again: the last signal may have come just before the close.
bool Scheduler::abandoned(Queue& queue, uint64_t memory, uint64_t& value) {
    const uint64_t time = hal_->load(memory + offsetof(orr_semaphore, time_ps));
    const bool closed = (time & ORR_SEM_CLOSED) != 0;
    if (closed) value = hal_->load(memory);
    if (const WindowFault fault = take_window_fault(*hal_)) [[unlikely]] {
        fail(queue, {ORR_QERR_FAULT, queue.next, queue.packet[1], fault.code});
        return true;
    }
    if (!closed || value >= queue.packet[2]) [[likely]]
        return false;
    poison(queue, ORR_FAILURE_WORD(ORR_QERR_ABANDONED, hal_->reg(SOC_UID), ORR_FAILURE_NO_QUEUE, 0));
    return true;
}

uint32_t Scheduler::close_semaphore(uint64_t memory, uint64_t word) {
    // Earlier signals are delivered first, and peers' need room in the remote signal FIFO.
    uint64_t status = ORR_FAULT_PEER_BUSY;
    for (uint32_t tries = 0; tries < kCloseTries && status == ORR_FAULT_PEER_BUSY; ++tries) {
        if (tries != 0) static_cast<void>(drain_remote_signals());
        hal_->set_reg(SOC_SEM_CLOSE, memory);
        status = hal_->reg(SOC_SEM_STATUS);
    }
    if (status != ORR_FAULT_NONE)
        return status == ORR_FAULT_PEER_BUSY ? ORR_STATUS_NO_RESOURCE : ORR_STATUS_FAULT;
    const uint64_t value = hal_->load(memory);
    if (take_window_fault(*hal_)) return ORR_STATUS_FAULT;
    // Those first who have what they wait for, and have not been told yet.
    while (Queue* const queue = waits_.take(memory, value))
        release(*queue, value, ORR_WAKE_LOCAL);
    Queue* due[kWakesPerPass];
    const uint64_t failed = ORR_SEM_FAILED | word;
    const uint32_t count = take_due(memory, failed, ORR_WAKE_CLOSED, due);
    release_all(due, count, failed, ORR_WAKE_CLOSED);
    return ORR_STATUS_OK;
}

void Scheduler::all_failed(Queue& queue) {
    if (!queue.told) {
        queue.told = true;
        queue.event_due = true;
        notify(queue);
    }
    if (queue.abort_sequence != 0) notify(queue);
    if (!queue.destroying || queue.destroyed) return;
    queue.destroyed = true;
    queue.seal = seal_of(queue);
    ++progress_;
    notify(queue);
}

// Fails what packet `failed_to` would have signalled. False: there is no room for that now.
bool Scheduler::fail_packet(Queue& queue) {
    const uint64_t slot = queue.ring + sizeof(orr_ring) + (queue.failed_to & queue.mask) * ORR_PACKET_SIZE;
    ++queue.failed_to;
    ++progress_;
    const uint64_t header = hal_->load(slot);
    const uint32_t opcode = packet_opcode(&header);
    if (opcode == ORR_PKT_GANG) {
        uint64_t words[kPacketWords];
        load_words(*hal_, slot, words, kPacketWords);
        if (!take_window_fault(*hal_)) gangs_.fail_unread(queue, words);
        return true;
    }
    const bool signal = opcode == ORR_PKT_SIGNAL || opcode == ORR_PKT_FAIL;
    const uint64_t va = signal ? hal_->load(slot + offsetof(orr_packet_semaphore, semaphore)) : 0;
    if (take_window_fault(*hal_)) {
        queue.failed_to = queue.producer;  // the rest of the ring is no better
        return true;
    }
    if (!signal || va >= kVaEnd) return true;
    // Of one that is not there or may not be written nobody can wait for this queue.
    const bool room = fail_semaphore(queue, va, cause_of(queue)) != ORR_FAULT_PEER_BUSY;
    if (room) {
        queue.fail_tries = 0;
    } else if (queue.fail_tries != kBusyTries) {
        ++queue.fail_tries;
        --queue.failed_to;
        return false;
    }
    return true;
}

bool Scheduler::abort_queue(Queue& queue, uint32_t sequence) {
    if (queue.stopping && queue.abort_sequence != 0) return false;
    const WorkingFor blame(*persist_, queue.number);
    if (!queue.stopped) fail(queue, {ORR_QERR_ABORTED, queue.retired, 0, 0});
    queue.abort_sequence = sequence;
    if (queue.stopped && sequence != 0) notify(queue);
    failing_.expedite(queue);
    return true;
}

}  // namespace orrery::fw
