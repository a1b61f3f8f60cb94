// SPDX-License-Identifier: MIT
// Save areas: every job that has started and not ended owns one, whether it runs or has been preempted, so
// that a running job can always be preempted. A tenant that owns its share starts nothing new until one of
// its jobs has ended; the port then goes to a job that has started already. A user may own as many in one
// class as are still free: a single user half of them, two a third each, and so on. So a newcomer always
// finds one, however long the kernels of the others are. The last quarter is kept for users who own none in
// their class; above it, a process that owns none may have one. REALTIME starts without an area if none is
// left, and so do copies on a card with a single area; these are not preempted. Copies have pieces of the
// first area, two for each of their ports: so a user alone keeps all copy engines at work.
#include "firmware/sched/scheduler.h"

namespace orrery::fw {

namespace {

uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

}  // namespace

// Each kind has areas of its own, so that long kernels do not delay copies: these need but a page, and have
// as many as their ports can use.
void Scheduler::count_areas() {
    uint32_t pieces = suspended_.pieces(), left = suspended_.areas();
    uint32_t ports = 0;  // of the kinds that divide the whole ones
    for (const EngineKind& row : kEngineKinds) {
        areas_[row.kind] = 0;
        if (row.preemption == Preemption::kNone) continue;
        if (row.areas == Areas::kMost) {
            ports += engines_.ports(row.kind);
            continue;
        }
        areas_[row.kind] = least(2 * engines_.ports(row.kind), pieces);
        pieces -= areas_[row.kind];
    }
    const bool any = left != 0;
    bool few = false;
    for (const EngineKind& row : kEngineKinds) {
        if (row.preemption == Preemption::kNone) continue;
        const uint32_t own = engines_.ports(row.kind);
        if (row.areas == Areas::kMost && own != 0) {
            areas_[row.kind] = left * own / ports;
            left -= areas_[row.kind];
            ports -= own;
        }
        few |= 2 * own > areas_[row.kind];
    }
    // Without any area nothing is preempted, and there is nothing to share out.
    suspended_.look_always(any && few);
}

// Jobs of the kind that have started and not ended.
uint32_t Scheduler::claimed(uint32_t kind) {
    return engines_.ports(kind) - engines_.free_ports(kind) + suspended_.all_of(kind);
}

// What the queue's user owns in its class.
[[gnu::always_inline]] inline Scheduler::Owned Scheduler::owned_by(const Queue& queue, uint32_t kind) {
    Owned owned = {0, 0};
    const uint16_t user = tenants_.user_of(queue.process);
    const auto add = [&](const Queue& owner) {
        if (owner.priority != queue.priority || tenants_.user_of(owner.process) != user) return;
        ++owned.of_user;
        if (owner.process == queue.process) ++owned.of_process;
    };
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        const Port& port = engines_.row(n);
        if (port.busy && port.kind == kind) add(*port.queue);
    }
    for (uint64_t areas = suspended_.taken(); areas != 0; areas &= areas - 1) {
        const Suspended& job = suspended_.row(static_cast<uint8_t>(lowest_bit(areas)));
        if (job.used && job.kind == kind) add(*job.queue);
    }
    return owned;
}

[[gnu::noinline]] bool Scheduler::area_for(const Queue& queue, uint32_t kind) {
    if (queue.priority == ORR_PRIORITY_REALTIME || areas_[kind] == 0) return true;
    const uint32_t all = claimed(kind);
    if (all >= areas_[kind]) return false;
    const uint32_t left = areas_[kind] - all;
    if (all < left) return true;
    const Owned owned = owned_by(queue, kind);
    if (owned.of_user == 0) return true;
    if (left * 4 <= areas_[kind]) return false;
    return owned.of_process == 0 || owned.of_user < left;
}

// Whether a gang's dispatches may own so many areas, and then be preempted. Never the last quarter, so that
// others find theirs however many gangs are saved; nor more than a user may have in his class, unless he owns
// none.
GangAreas Scheduler::areas_for_gang(const Queue& leader, uint32_t jobs) {
    const uint32_t most = areas_[kCoreKind], all = claimed(kCoreKind);
    if (leader.priority == ORR_PRIORITY_REALTIME || policy_.has(ORR_POLICY_F_NO_PREEMPTION) || jobs > most ||
        (most - jobs) * 4 < most)
        return GangAreas::kNoneEver;
    const Owned owned = owned_by(leader, kCoreKind);
    const bool left = all + jobs <= most && (most - all - jobs) * 4 >= most;
    if (left && (owned.of_user == 0 || owned.of_user + jobs <= most - all)) return GangAreas::kNow;
    return owned.of_user == 0 ? GangAreas::kOthersHave : GangAreas::kUserHas;
}

// A job has just started on the port: of REALTIME, perhaps one too many; or of a kind that has no areas.
void Scheduler::claim_area(Port& port) {
    port.not_preemptible = (port.level == ORR_PRIORITY_REALTIME || areas_[port.kind] == 0) &&
                           claimed(port.kind) > areas_[port.kind];
}

// The queue's next packet needs an engine, and its tenant owns its share of the save areas.
void Scheduler::park_for_area(Queue& queue, uint32_t kind) {
    area_waiters_.push_back(queues_, queue);
    ++area_waiting_;
    place_for_engine(queue, Place::kArea, kind);
    begin_wait(queue, hal_->reg(SOC_TIME));
}

// After a job has ended, the queues that wait for an area check again, a few at a time.
void Scheduler::retry_areas() {
    for (uint32_t tries = 0; tries < kAreaTries && area_looks_ != 0; ++tries) {
        --area_looks_;
        Queue& queue = *area_waiters_.front(queues_);
        area_waiters_.remove(queues_, queue);
        if (may_start(queue, queue.engine_kind)) {
            --area_waiting_;
            make_ready(queue);
        } else {
            area_waiters_.push_back(queues_, queue);
        }
    }
}

}  // namespace orrery::fw
