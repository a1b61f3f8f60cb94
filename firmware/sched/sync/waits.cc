// SPDX-License-Identifier: MIT
// Queues that wait for a semaphore, and what wakes them: a signal of this firmware or of a peer, each for one
// memory, and a change of the mappings through which they named it. Nothing is polled, and no other queue is
// looked at.
#include <orrery/hw/link.h>

#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

bool failed(uint64_t value) {
    return static_cast<int64_t>(value) < 0;
}
static_assert(ORR_SEM_FAILED == uint64_t{1} << 63 && ORR_SEM_CLOSED == ORR_SEM_FAILED);

}  // namespace

// Which memory a VA of the queue's context leads to. False: to none; the queue has been stopped.
bool Scheduler::translate_va(Queue& queue, uint64_t va, uint64_t& memory) {
    hal_->set_reg(SOC_MMU_ASID, queue.context->number);
    hal_->set_reg(SOC_MMU_ARG, va);
    hal_->set_reg(SOC_MMU_CMD, SOC_MMU_TRANSLATE);
    memory = hal_->reg(SOC_MMU_RESULT);
    if (memory != ~uint64_t{0}) [[likely]]
        return true;
    const uint64_t fault = hal_->reg(SOC_MMU_FAULT);
    fail(queue, {ORR_QERR_FAULT, queue.next, va, fault == ORR_FAULT_NONE ? ORR_FAULT_PEER_READ : fault});
    return false;
}

Scheduler::Step Scheduler::execute_wait(Queue& queue) {
    const uint64_t va = queue.packet[1];
    if (va >= kVaEnd) {
        fail(queue, {ORR_QERR_FAULT, queue.next, va, ORR_FAULT_NON_CANONICAL});
        return Step::kFailed;
    }
    uint64_t value = hal_->load(window(queue, va));
    if (const WindowFault fault = take_window_fault(*hal_)) {
        fail_window(queue, ORR_QERR_FAULT, queue.next, fault);
        return Step::kFailed;
    }
    if (value < queue.packet[2]) {
        // No signal is lost here: this card's come from this firmware, and a peer's leave a remote signal to
        // drain.
        uint64_t memory = 0;
        if (!translate_va(queue, va, memory) || abandoned(queue, memory, value)) return Step::kFailed;
        if (value < queue.packet[2]) {
            queue.wait_end = queue.packet[3] == 0 ? 0 : limits_.end_of(*hal_, queue.packet[3] * kPsPerNs);
            park_on_semaphore(queue, memory);
            return Step::kParked;
        }
    }
    if (!failed(value)) [[likely]]
        return finish_packet(queue);
    poison(queue, value);
    return Step::kFailed;
}

void Scheduler::park_on_semaphore(Queue& queue, uint64_t memory) {
    waits_.park(queue, memory, queue.packet[2]);
    queue.context->parked.push_back(queues_, queue);
    place(queue, Place::kSemaphore);
    if (queue.wait_end != 0) limits_.enter(*hal_, queue.wait_end);
    trace::wait(*hal_, queue.number, memory, queue.packet[2], queue.packet[1], queue.next);
}

// The queue has been taken out of the table.
void Scheduler::leave_semaphore(Queue& queue) {
    queue.context->parked.remove(queues_, queue);
    if (queue.wait_end != 0) limits_.leave(*hal_);
    place(queue, Place::kNone);
}

// Stops those whose limit has come.
void Scheduler::check_wait_limits(uint64_t now) {
    if (!limits_.due(*hal_, now)) return;
    uint64_t next = kNever;
    for (uint32_t n = 0; n < ORR_FW_QUEUES; ++n) {
        Queue& queue = queues_[n];
        if (queue.place != Place::kSemaphore || queue.wait_end == 0) continue;
        if (!limits_.over(queue.wait_end)) {
            if (queue.wait_end < next) next = queue.wait_end;
            continue;
        }
        const uint64_t va = queue.packet[1];
        const uint64_t value = hal_->load(window(queue, va));
        if (!take_window_fault(*hal_) && value >= queue.packet[2]) {
            // Its remote signal has not been drained yet.
            waits_.remove(queue);
            release(queue, value, ORR_WAKE_PEER);
            continue;
        }
        fail(queue, {ORR_QERR_WAIT_LIMIT, queue.next, va, value});
    }
    limits_.next(*hal_, next);
}

Scheduler::Step Scheduler::execute_signal(Queue& queue) {
    const uint64_t va = queue.packet[1];
    const uint64_t value = queue.packet[2];
    hal_->set_reg(SOC_SEM_ASID, queue.context->number);
    hal_->set_reg(SOC_SEM_VA, va);
    hal_->set_reg(SOC_SEM_SIGNAL, value);
    const uint64_t status = hal_->reg(SOC_SEM_STATUS);
    if (status != ORR_FAULT_NONE) [[unlikely]] {
        // It is tried again in the queue's next turn.
        if (status == ORR_FAULT_PEER_BUSY) return Step::kParked;
        fail(queue, {ORR_QERR_FAULT, queue.next, va, status});
        return Step::kFailed;
    }
    const uint64_t memory = hal_->reg(SOC_SEM_MEMORY);
    if (waits_.count() != 0)
        signalled(queue, memory, value, va);
    else
        trace::signal(*hal_, queue.number, 0, memory, value, va);
    return finish_packet(queue);
}

// A signal while queues wait: wakes those that it satisfies.
[[gnu::noinline]] void Scheduler::signalled(const Queue& by, uint64_t memory, uint64_t value, uint64_t va) {
    Queue* due[kWakesPerPass];
    const uint32_t count = take_due(memory, value, ORR_WAKE_LOCAL, due);
    trace::signal(*hal_, by.number, count, memory, value, va);
    release_all(due, count, value, ORR_WAKE_LOCAL);
}

// Takes the queues that `value` satisfies out of the table, as many as fit; the rest goes onto the backlog.
uint32_t Scheduler::take_due(uint64_t memory, uint64_t value, uint32_t how, Queue* (&due)[kWakesPerPass]) {
    uint32_t count = 0;
    while (Queue* const queue = waits_.take(memory, value)) {
        due[count++] = queue;
        if (count < kWakesPerPass) continue;
        const Queue* const more = waits_.first(memory);
        if (more == nullptr || more->wait.value > value) break;
        // If the backlog is full, all are woken at once rather than lost.
        if (backlog_count_ < kBacklog) {
            backlog_[backlog_count_++] = {memory, value, how};
            break;
        }
        release_all(due, count, value, how);
        count = 0;
    }
    return count;
}

void Scheduler::release_all(Queue* const* due, uint32_t count, uint64_t value, uint32_t how) {
    for (uint32_t n = 0; n < count; ++n)
        release(*due[n], value, how);
}

// The queue, which is no longer in the table, has got what it waited for.
void Scheduler::release(Queue& queue, uint64_t value, uint32_t how) {
    const WorkingFor blame(*persist_, queue.number);
    if (queue.place == Place::kGang) {
        gangs_.woken(queue, value);
        return;
    }
    const Context& context = *queue.context;
    if (context.stale && WaitTable::parked_before(queue, context.flushed_at)) [[unlikely]] {
        recheck_wait(queue, how == ORR_WAKE_CLOSED ? value : 0);
        return;
    }
    leave_semaphore(queue);
    trace::wake(*hal_, queue.number, how, queue.wait.memory, value);
    if (failed(value)) [[unlikely]] {
        poison(queue, value);
        return;
    }
    finish_packet(queue);
    make_ready(queue);  // also to make this known
}

bool Scheduler::drain_remote_signals() {
    for (uint32_t n = 0; n < kRemoteSignalsPerTurn; ++n) {
        const uint64_t offset = hal_->reg(SOC_POKE_POP);
        if (offset == ~uint64_t{0}) return n != 0;
        const uint64_t memory = ORR_VRAM_WINDOW + offset;
        gangs_.poked(memory);
        if (waits_.first(memory) == nullptr) {
            trace::remote_signal(*hal_, 0, memory);
            continue;
        }
        const uint64_t value = hal_->load(memory);
        Queue* due[kWakesPerPass];
        const uint32_t count = take_due(memory, value, ORR_WAKE_PEER, due);
        trace::remote_signal(*hal_, count, memory);
        release_all(due, count, value, ORR_WAKE_PEER);
    }
    return true;
}

void Scheduler::remapped(Context& context) {
    if (context.parked.empty()) return;
    context.flushed_at = waits_.sequence();
    if (context.stale) return;
    context.stale = true;
    stale_contexts_.push_back(contexts_, context);
}

// The mappings of the queue's context have changed. It is no longer in the table. `cause`: why what it has
// waited for so far was closed just now, or 0.
void Scheduler::recheck_wait(Queue& queue, uint64_t cause) {
    const WorkingFor blame(*persist_, queue.number);
    leave_semaphore(queue);
    const uint64_t va = queue.packet[1];
    uint64_t value = hal_->load(window(queue, va));
    if (const WindowFault fault = take_window_fault(*hal_)) {
        fail_window(queue, ORR_QERR_FAULT, queue.next, fault);
        return;
    }
    uint64_t memory = 0;
    if (!translate_va(queue, va, memory)) return;
    if (cause != 0 && memory == queue.wait.memory && value < queue.packet[2]) value = cause;
    if (value < queue.packet[2] && abandoned(queue, memory, value)) return;
    if (value < queue.packet[2]) {
        park_on_semaphore(queue, memory);
        return;
    }
    trace::wake(*hal_, queue.number, ORR_WAKE_MAP, memory, value);
    if (failed(value)) {
        poison(queue, value);
        return;
    }
    finish_packet(queue);
    make_ready(queue);
}

[[gnu::noinline]] bool Scheduler::settle_waits() {
    if (backlog_count_ != 0) {
        const Backlog next = backlog_[0];
        --backlog_count_;
        for (uint32_t n = 0; n < backlog_count_; ++n)
            backlog_[n] = backlog_[n + 1];
        Queue* due[kWakesPerPass];
        const uint32_t count = take_due(next.memory, next.value, next.how, due);
        release_all(due, count, next.value, next.how);
        return true;
    }
    Context* const context = stale_contexts_.front(contexts_);
    if (context == nullptr) return false;
    for (uint32_t n = 0; n < kRemapsPerPass; ++n) {
        // Who has been looked at has parked again, at the end.
        Queue* const queue = context->parked.front(queues_);
        if (queue == nullptr || !WaitTable::parked_before(*queue, context->flushed_at)) {
            context->stale = false;
            stale_contexts_.remove(contexts_, *context);
            break;
        }
        waits_.remove(*queue);
        recheck_wait(*queue);
    }
    return true;
}

bool Scheduler::look_for_deadlocks() {
    return deadlocks_.work(!engines_.busy() && !has_ready());
}

}  // namespace orrery::fw
