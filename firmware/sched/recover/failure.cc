// SPDX-License-Identifier: MIT
// Failure travels with the semaphore (orrery/fw/failure.h): a queue that stops fails what its packets would
// have signalled, and whoever waits for what has failed stops too, with the first cause.
//
// A process can have many packets in a ring, and many rings. They are looked at in chunks of kFailChunkPs,
// one user after the other, and of a user one queue after the other, those first for whose end somebody
// waits: back to back while the card has nothing else to do, else with pauses of kFailPause times as long.
#include <orrery/fw/failure.h>

#include "firmware/hal/bits.h"
#include "firmware/sched/queue/packets.h"
#include "firmware/sched/recover/restart.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

constexpr uint64_t kFailChunkPs = 2 * kPsPerUs;
constexpr uint64_t kFailPause = 19;
// Of a queue that is just being destroyed or aborted: a usual ring has failed before the command is over.
constexpr uint64_t kFailFirstPs = 8 * kPsPerUs;
// Tries of a signal for which a peer's inbox has no room, and the time between two. A peer that computes
// needs milliseconds; one that stands in a debugger gets none, and those who wait there are not told.
constexpr uint8_t kBusyTries = 255;
constexpr uint64_t kBusyPausePs = 100 * kPsPerUs;
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

bool Scheduler::failing(const Queue& queue) const {
    return (failing_[queue.number / 64] >> queue.number % 64 & 1) != 0;
}

// Nothing of the queue runs any more, and nothing will: `error` says why.
void Scheduler::begin_failing(Queue& queue) {
    queue.failed_to = queue.next;
    queue.fail_tries = 0;
    fail_rest(queue);
}

// The packets up to the producer index are to be failed, if there are any left.
void Scheduler::fail_rest(Queue& queue) {
    if (failing(queue)) return;  // it looks again at the end
    const uint64_t entries = uint64_t{queue.mask} + 1;
    const uint64_t from = queue.failed_to - queue.retired;
    if (queue.ring == 0 || from > entries) {
        // Nobody knows where its packets are; or it is not to be tried again.
        queue.failed_to = queue.producer;
    } else {
        const uint64_t producer = hal_->load(queue.ring + offsetof(orr_ring, producer));
        const uint64_t used = producer - queue.retired;
        if (!take_window_fault(*hal_) && used <= entries && used >= from) queue.producer = producer;
        if (queue.producer - queue.retired < from) queue.producer = queue.failed_to;
    }
    if (queue.failed_to == queue.producer) {
        all_failed(queue);
        return;
    }
    enter_failing(queue);
}

void Scheduler::enter_failing(Queue& queue) {
    failing_[queue.number / 64] |= uint64_t{1} << queue.number % 64;
    const uint16_t row = tenants_.user_of(queue.process);
    Failing& user = failing_of_[row];
    user.number = row;
    if (user.queues.empty()) failing_users_.push_back(failing_of_, user);
    if (queue.destroying || queue.abort_sequence != 0)
        user.queues.push_front(queues_, queue);
    else
        user.queues.push_back(queues_, queue);
    // The alarm is due at once, so that the main loop need not look.
    if (failing_count_++ == 0) alarm_->set(*hal_, Alarm::kFailing, 0);
}

// Somebody waits for the end of this queue: it goes before the others of its user, and begins now.
void Scheduler::expedite_failing(Queue& queue) {
    if (!failing(queue)) return;
    QueueList& own = failing_of_[tenants_.user_of(queue.process)].queues;
    own.remove(queues_, queue);
    own.push_front(queues_, queue);
    // On top of what all have together, so it puts nobody else off.
    static_cast<void>(fail_chunk(queue, hal_->reg(SOC_TIME), kFailFirstPs));
    if (failing_count_ == 0) alarm_->set(*hal_, Alarm::kFailing, kNever);
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

// Gives the time at its end.
uint64_t Scheduler::fail_chunk(Queue& queue, uint64_t now, uint64_t chunk_ps) {
    const WorkingFor blame(*persist_, queue.number);
    Failing& user = failing_of_[tenants_.user_of(queue.process)];
    failing_users_.remove(failing_of_, user);
    uint64_t time = now;
    bool room = true;
    while (room && queue.failed_to != queue.producer && time - now < chunk_ps) {
        room = fail_packet(queue);
        time = hal_->reg(SOC_TIME);
    }
    fail_busy_ = !room;
    const bool done = queue.failed_to == queue.producer;
    if (done) {
        user.queues.remove(queues_, queue);
        failing_[queue.number / 64] &= ~(uint64_t{1} << queue.number % 64);
        --failing_count_;
    }
    if (!user.queues.empty()) failing_users_.push_back(failing_of_, user);
    if (!done) return time;
    fail_rest(queue);
    return hal_->reg(SOC_TIME);
}

// A chunk, if it is time for one.
void Scheduler::fail_semaphores(uint64_t now) {
    if (failing_count_ == 0 || alarm_->at(Alarm::kFailing) > now) return;
    Queue& queue = *failing_users_.front(failing_of_)->queues.front(queues_);
    const uint64_t time = fail_chunk(queue, now, kFailChunkPs);
    const bool others = engines_.busy() || has_ready();
    uint64_t pause = others ? kFailPause * (time - now) : 0;
    if (fail_busy_ && pause < kBusyPausePs) pause = kBusyPausePs;
    alarm_->set(*hal_, Alarm::kFailing, failing_count_ == 0 ? kNever : time + pause);
}

bool Scheduler::abort_queue(Queue& queue, uint32_t sequence) {
    if (queue.stopping && queue.abort_sequence != 0) return false;
    const WorkingFor blame(*persist_, queue.number);
    if (!queue.stopped) fail(queue, {ORR_QERR_ABORTED, queue.retired, 0, 0});
    queue.abort_sequence = sequence;
    if (queue.stopped && sequence != 0) notify(queue);
    expedite_failing(queue);
    return true;
}

}  // namespace orrery::fw
