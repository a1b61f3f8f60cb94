// SPDX-License-Identifier: MIT
// Save areas: every job that has started and not ended owns one, whether it runs or has been preempted, so
// that what runs can always be taken off for others. Who would own too many starts nothing new until one of
// his own has ended; the port goes to a job that has begun.
//
// A user may own as many of one class as are free: alone half of them, two a third each, and so on. So one is
// left for who comes, whoever was there before, and however long his kernels are. Who owns none in its class
// may have one, the last quarter only for a user. REALTIME starts without one if there is none, and so do
// copies on a card with a single area; then they are not preempted.
#include "firmware/sched/scheduler.h"

namespace orrery::fw {

namespace {

uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

}  // namespace

// Copies have a part of their own, so that nobody's kernels keep his copies waiting.
void Scheduler::count_areas() {
    const uint32_t all = suspended_.areas();
    // Of very few one: kernels run longer. Of a single one none: then copies start without.
    const uint32_t copies = least(2 * engines_.ports(ORR_ENGINE_COPY), all > 1 && all < 4 ? 1 : all / 4);
    areas_[ORR_ENGINE_COPY] = copies;
    areas_[ORR_ENGINE_VECTOR] = all - copies;
    const bool few = 2 * engines_.ports(ORR_ENGINE_COPY) > areas_[ORR_ENGINE_COPY] ||
                     2 * engines_.ports(ORR_ENGINE_VECTOR) > areas_[ORR_ENGINE_VECTOR];
    // Without any area nothing is preempted, and there is nothing to share out.
    suspended_.look_always(all != 0 && few);
}

// Jobs of the kind that have started and not ended.
uint32_t Scheduler::claimed(uint32_t kind) {
    return engines_.ports(kind) - engines_.free_ports(kind) + suspended_.all_of(kind);
}

bool Scheduler::area_for(const Queue& queue, uint32_t kind) {
    if (queue.priority == ORR_PRIORITY_REALTIME || areas_[kind] == 0) return true;
    const uint32_t all = claimed(kind);
    if (all >= areas_[kind]) return false;
    const uint32_t left = areas_[kind] - all;
    if (all < left) return true;
    uint32_t of_user = 0, of_process = 0;
    const uint16_t user = tenants_.user_of(queue.process);
    const auto add = [&](const Queue& owner) {
        if (owner.priority != queue.priority || tenants_.user_of(owner.process) != user) return;
        ++of_user;
        if (owner.process == queue.process) ++of_process;
    };
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        const Port& port = engines_.row(n);
        if (port.busy && port.kind == kind) add(*port.queue);
    }
    for (uint64_t areas = suspended_.taken(); areas != 0; areas &= areas - 1) {
        const Suspended& job = suspended_.row(static_cast<uint8_t>(lowest_bit(areas)));
        if (job.used && job.kind == kind) add(*job.queue);
    }
    if (of_user == 0) return true;
    if (left * 4 <= areas_[kind]) return false;
    return of_process == 0 || of_user < left;
}

// A job has just started on the port: of REALTIME, perhaps one too many; or of a kind that has no areas.
void Scheduler::claim_area(Port& port) {
    port.not_preemptible = (port.level == ORR_PRIORITY_REALTIME || areas_[port.kind] == 0) &&
                           claimed(port.kind) > areas_[port.kind];
}

// The queue's next packet wants an engine, and its tenant owns too much of the kind.
void Scheduler::park_for_area(Queue& queue, uint32_t kind) {
    queue.area_kind = static_cast<uint8_t>(kind);
    area_waiters_.push_back(queues_, queue);
    ++area_waiting_;
    place(queue, Place::kArea);
    begin_wait(queue, hal_->reg(SOC_TIME));
}

// Some of those who wait look again, in turn, until all have since the last end of a job.
void Scheduler::retry_areas() {
    for (uint32_t tries = 0; tries < kAreaTries && area_looks_ != 0; ++tries) {
        --area_looks_;
        Queue& queue = *area_waiters_.front(queues_);
        area_waiters_.remove(queues_, queue);
        if (may_start(queue, queue.area_kind)) {
            --area_waiting_;
            make_ready(queue);
        } else {
            area_waiters_.push_back(queues_, queue);
        }
    }
}

}  // namespace orrery::fw
