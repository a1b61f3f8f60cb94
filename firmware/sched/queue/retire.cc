// SPDX-License-Identifier: MIT
// What the outside learns of a queue: how far it came, and why it stopped.
#include "firmware/sched/recover/restart.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {

void Scheduler::interrupt_host(Queue& queue) {
    irq_->raise(ORR_IRQ_QUEUE);
    if (queue.armed && queue.retired >= queue.armed_last) queue.armed = false;
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
    const WorkingFor blame(*persist_, queue.number);
    if (queue.gang != 0) gangs_.leave(queue);
    if (!queue.stopping) {
        queue.error = error;
        queue.abort_sequence = 0;
    } else if (error.index < queue.error.index) {
        queue.error = error;
    }
    queue.stopping = true;
    queue.seal = seal_of(queue);
    queue.error_code = static_cast<uint8_t>(queue.error.code);
    queue.has_packet = false;
    unplace(queue);
    slots_.release(*hal_, queue);
    abort_jobs(queue, queue.error.index);
    if (queue.in_flight == 0) publish_error(queue);
}

void Scheduler::publish_error(Queue& queue) {
    if ((queue.done & 1) != 0) publish_progress(queue);
    const QueueError& error = queue.error;
    queue.stopped = true;
    queue.seal = seal_of(queue);
    queue.error_time_ps = hal_->reg(SOC_SYSTEM_TIME);

    // A row that was lost knows no ring.
    if (queue.ring != 0) {
        hal_->store(queue.ring + offsetof(orr_ring, error_index), error.index);
        hal_->store(queue.ring + offsetof(orr_ring, error_address), error.address);
        hal_->store(queue.ring + offsetof(orr_ring, error_detail), error.detail);
    }
    hal_->store(status_line(queue) + offsetof(orr_queue_status, error_index), error.index);
    hal_->store(status_line(queue) + offsetof(orr_queue_status, error_address), error.address);
    hal_->store(status_line(queue) + offsetof(orr_queue_status, error_detail), error.detail);
    hal_->store(status_line(queue) + offsetof(orr_queue_status, time_ps), queue.error_time_ps);
    hal_->fence();
    if (queue.ring != 0) hal_->store(queue.ring + offsetof(orr_ring, error), error.code);
    hal_->store(status_line(queue) + offsetof(orr_queue_status, error), error.code);
    // A ring that cannot be written is no news now: the status line tells.
    if (const WindowFault fault = take_window_fault(*hal_); fault && fault.host()) fatal_ = kHaltHostMemory;

    trace::error(*hal_, queue.number, static_cast<uint32_t>(error.code), error.index, error.address,
                 error.detail);
    update_idle_state(queue);
    queue.armed = false;
    irq_->raise(ORR_IRQ_QUEUE);
    ++progress_;
    queue.told = false;
    failing_.begin(queue);
}

}  // namespace orrery::fw
