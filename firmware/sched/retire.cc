// SPDX-License-Identifier: MIT
// What the outside learns of a queue: how far it came, and why it stopped.
#include "firmware/sched/scheduler.h"

namespace orrery::fw {

// Makes known all that has finished in order: the ring first, because a process may be polling it, then the
// status line; in each the time before the index.
void Scheduler::publish_progress(Queue& queue) {
    uint32_t count = 0;
    for (uint32_t done = queue.done; (done & 1) != 0; done >>= 1)
        ++count;
    if (count == 0) return;
    const bool wanted = (queue.interrupt & ((1u << count) - 1)) != 0;
    queue.done >>= count;
    queue.interrupt >>= count;
    queue.retired += count;
    progress_ += count;

    const uint64_t now = hal_->reg(SOC_TIME);
    hal_->store(queue.ring + offsetof(orr_ring, consumer_time_ps), now);
    hal_->store(queue.status + offsetof(orr_queue_status, time_ps), now);
    hal_->fence();
    hal_->store(queue.ring + offsetof(orr_ring, consumer), queue.retired);
    hal_->store(queue.status + offsetof(orr_queue_status, completed), queue.retired);
    if (wanted || (queue.armed && queue.retired >= queue.armed_first)) interrupt_host(queue);
}

void Scheduler::interrupt_host(Queue& queue) {
    irq_->raise(ORR_IRQ_QUEUE);
    if (queue.armed && queue.retired >= queue.armed_last) queue.armed = false;
}

// Publishes progress and, if asked, reads the producer again. False: the ring is not usable, or the index in
// it not possible; the queue has been stopped.
bool Scheduler::settle(Queue& queue, bool reread) {
    publish_progress(queue);
    const uint64_t producer = reread ? hal_->load(queue.ring + offsetof(orr_ring, producer)) : queue.producer;
    if (const WindowFault fault = take_window_fault(*hal_)) [[unlikely]] {
        fail_window(queue, ORR_QERR_RING_FAULT, queue.retired, fault);
        return false;
    }
    return producer == queue.producer || check_producer(queue, producer);
}

// A window access on behalf of a queue could not be done.
void Scheduler::fail_window(Queue& queue, uint64_t code, uint64_t index, const WindowFault& fault) {
    if (fault.host()) {
        fatal_ = kHaltHostMemory;
        return;
    }
    fail(queue, {code, index, fault.address & (kVaEnd - 1), fault.code});
}

// Stops a queue. Of several errors the one with the lowest index counts. What was started after the failed
// packet is ended, what was started before it runs on: when the error is published, all packets below its
// index have finished and nothing of the queue runs.
void Scheduler::fail(Queue& queue, const QueueError& error) {
    if (queue.stopped || queue.destroying) return;
    if (!queue.stopping || error.index < queue.error.index) queue.error = error;
    queue.stopping = true;
    queue.has_packet = false;
    unplace(queue);
    if (queue.in_flight != 0)
        engines_.abort(*hal_, queue, queue.error.index);
    else
        publish_error(queue);
}

void Scheduler::publish_error(Queue& queue) {
    publish_progress(queue);
    const QueueError& error = queue.error;
    queue.stopped = true;
    queue.error_time_ps = hal_->reg(SOC_TIME);

    hal_->store(queue.ring + offsetof(orr_ring, error_index), error.index);
    hal_->store(queue.ring + offsetof(orr_ring, error_address), error.address);
    hal_->store(queue.ring + offsetof(orr_ring, error_detail), error.detail);
    hal_->store(queue.status + offsetof(orr_queue_status, error_index), error.index);
    hal_->store(queue.status + offsetof(orr_queue_status, error_address), error.address);
    hal_->store(queue.status + offsetof(orr_queue_status, error_detail), error.detail);
    hal_->store(queue.status + offsetof(orr_queue_status, time_ps), queue.error_time_ps);
    hal_->fence();
    hal_->store(queue.ring + offsetof(orr_ring, error), error.code);
    hal_->store(queue.status + offsetof(orr_queue_status, error), error.code);
    // A ring that cannot be written is no news now: the status line tells.
    if (const WindowFault fault = take_window_fault(*hal_); fault && fault.host()) fatal_ = kHaltHostMemory;

    queue.event_due = true;
    queue.armed = false;
    irq_->raise(ORR_IRQ_QUEUE);
    ++progress_;
    notify(queue);
}

bool Scheduler::drain_completions() {
    for (uint32_t n = 0; n < kEventsPerPass; ++n) {
        const uint64_t popped = hal_->reg(SOC_DONE_POP);
        if (popped == ~uint64_t{0}) return n != 0;
        const Port* const port = engines_.complete(popped);
        if (port == nullptr) {
            ++stats_.wild_completions;
            continue;
        }
        // By value: the port may be started again before all is done with what it ran.
        const Port done = *port;
        complete(*done.queue, done);
        serve_port_waiters(done.kind);
    }
    return true;
}

void Scheduler::complete(Queue& queue, const Port& port) {
    --queue.in_flight;
    ++progress_;
    if (engines_.timed() == 0 && port.deadline != kNever) alarm_->set(*hal_, Alarm::kWatchdog, kNever);

    const uint64_t status = hal_->reg(SOC_DONE_STATUS);
    if (queue.destroying) {
        if (queue.in_flight == 0) finish_destroy(queue);
        return;
    }
    if (queue.stopping && port.index >= queue.error.index) {
        // Ended because of the error; it counts as not done even if it got to its end.
    } else if (status == ORR_DONE_OK) [[likely]] {
        queue.done |= 1u << static_cast<uint32_t>(port.index - queue.retired);
    } else {
        const uint64_t fault = hal_->reg(SOC_DONE_FAULT);
        const uint64_t detail = hal_->reg(SOC_DONE_DETAIL);
        QueueError error{ORR_QERR_BAD_DESC, port.index, 0, status};
        if (status == ORR_DONE_FAULT) error = {ORR_QERR_FAULT, port.index, detail, fault};
        if (status == ORR_DONE_TRAP) error = {ORR_QERR_KERNEL_TRAP, port.index, detail, fault};
        if (status == ORR_DONE_ABORTED) error = {ORR_QERR_TIMEOUT, port.index, 0, 0};
        fail(queue, error);
        return;
    }
    if (queue.stopping) {
        if (queue.in_flight == 0) publish_error(queue);
        return;
    }
    if (!settle(queue, false)) return;
    if (queue.place != Place::kOwn) return;
    const bool go_on = queue.has_packet ? queue.in_flight == 0 : queue.next - queue.retired < kWindow;
    if (go_on) make_ready(queue);
}

void Scheduler::on_timer(uint64_t now) {
    if (alarm_->at(Alarm::kWatchdog) > now) return;
    alarm_->set(*hal_, Alarm::kWatchdog, engines_.expire(*hal_, now));
}

}  // namespace orrery::fw
