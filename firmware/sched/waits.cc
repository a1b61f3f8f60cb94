// SPDX-License-Identifier: MIT
// Queues that wait for a semaphore. They are looked at when something has happened that can have changed
// it: a signal of this firmware, a signal of a peer card, a doorbell of a process of that context.
#include "firmware/sched/scheduler.h"

namespace orrery::fw {

void Scheduler::park_on_semaphore(Queue& queue) {
    semaphore_waiters_.push_back(queues_, queue);
    place(queue, Place::kSemaphore);
}

void Scheduler::recheck(const Context* context) {
    if (context == nullptr) waits_due_ = false;
    Queue* next = nullptr;
    for (Queue* queue = semaphore_waiters_.front(queues_); queue != nullptr; queue = next) {
        next = QueueList::next(queues_, *queue);
        if (context != nullptr && queue->context != context) continue;
        const uint64_t value = hal_->load(window(*queue, queue->packet[1]));
        if (const WindowFault fault = take_window_fault(*hal_)) {
            fail_window(*queue, ORR_QERR_FAULT, queue->next, fault);
            if (fatal_ != kHaltNone) return;
        } else if (value >= queue->packet[2]) {
            unplace(*queue);
            finish_packet(*queue);
            make_ready(*queue);  // also to make this known
        }
    }
}

bool Scheduler::drain_pokes() {
    for (uint32_t n = 0; n < kEventsPerPass; ++n) {
        // Which semaphore it was does not help: contexts know it by virtual addresses.
        if (hal_->reg(SOC_POKE_POP) == ~uint64_t{0}) {
            if (n == 0) return false;
            break;
        }
    }
    recheck(nullptr);
    return true;
}

bool Scheduler::drain_doorbells() {
    for (uint32_t n = 0; n < kEventsPerPass; ++n) {
        const uint64_t tag = hal_->reg(SOC_DB_POP);
        if (tag == ~uint64_t{0}) return n != 0;
        // Only the generation is taken from a doorbell; how many packets there are stands in the ring.
        const uint64_t generation = hal_->reg(SOC_DB_VALUE) >> 48;
        Queue* const queue = tag < ORR_FW_QUEUES ? &queues_[tag] : nullptr;
        if (queue == nullptr || !queue->exists || queue->destroying || queue->generation != generation) {
            ++stats_.stale_doorbells;
            continue;
        }
        if (!semaphore_waiters_.empty()) recheck(queue->context);
        if (queue->place == Place::kNone && !queue->stopping) make_ready(*queue);
    }
    return true;
}

}  // namespace orrery::fw
