// SPDX-License-Identifier: MIT
// Fairness beyond a single run queue: preempted jobs against waiting queues, classes between tenants, and the
// division of the cores among ports.
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// The chip's weight of all that a user has on the cores.
constexpr uint32_t kUserWeight = 32768;

// How many preempted jobs, from the front, are compared for the one whose tenant has had least.
constexpr uint32_t kSuspendedLooks = 8;

}  // namespace

// The preempted job to resume next; within a process first those that a higher class has displaced.
Suspended* Scheduler::next_suspended(uint32_t kind, uint32_t level) {
    Suspended* best = suspended_.front(kind, level);
    if (best == nullptr) return nullptr;
    uint32_t looks = kSuspendedLooks;
    for (Suspended* job = suspended_.next(*best); job != nullptr && --looks != 0;
         job = suspended_.next(*job)) {
        const bool own = job->queue->process == best->queue->process;
        if (own && best->first) continue;
        if (tenants_.before(*job->queue, *best->queue, kind)) best = job;
    }
    return best;
}

Scheduler::Next Scheduler::next_of(uint32_t kind, uint32_t level) {
    Suspended* const job = next_suspended(kind, level);
    Queue* const fresh = run_queue(kind).front(queues_, level);
    if (job == nullptr) return {fresh, nullptr};
    const bool first = fresh == nullptr || (job->first && fresh->process == job->queue->process) ||
                       !tenants_.before(*fresh, *job->queue, kind);
    return first ? Next{job->queue, job} : Next{fresh, nullptr};
}

// HIGH precedes NORMAL while its user is within his share; beyond it, it counts as NORMAL against other
// users. So it needs no privilege and shuts nobody out; REALTIME, which does, needs one.
uint32_t Scheduler::fair_level(uint32_t kind, uint32_t classes, uint32_t level) {
    if (level != ORR_PRIORITY_HIGH || (classes >> ORR_PRIORITY_NORMAL & 1) == 0 || !tenants_.several())
        [[likely]]
        return level;
    const Queue* const high = next_of(kind, ORR_PRIORITY_HIGH).queue;
    const Queue* const normal = next_of(kind, ORR_PRIORITY_NORMAL).queue;
    const bool over = high != nullptr && normal != nullptr && exceeds_share(*high, *normal, kind);
    return over ? ORR_PRIORITY_NORMAL : level;
}

bool Scheduler::exceeds_share(const Queue& a, const Queue& b, uint32_t kind) const {
    return tenants_.ahead(a, b, kind, policy_.slice_ps);
}

// The class in which a dispatch of the queue competes for cores.
uint8_t Scheduler::lowered_level(const Queue& queue) {
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        const Port& port = engines_.row(n);
        if (port.busy && has_cores(port.kind) && port.level == ORR_PRIORITY_NORMAL &&
            exceeds_share(queue, *port.queue, port.kind))
            return ORR_PRIORITY_NORMAL;
    }
    return queue.priority;
}

// `below` has no core: HIGH ports whose users are beyond their share are lowered to its class. False: there
// are none.
bool Scheduler::lower_ports(const Port& below, uint64_t now) {
    bool some = false;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        Port& port = engines_.row(n);
        if (!port.busy || port.kind != below.kind || port.level != ORR_PRIORITY_HIGH ||
            below.level != ORR_PRIORITY_NORMAL || port.boosted)
            continue;
        charge(port, hal_->reg(engines_.reg(port, SOC_ENGINE_USED_PS)), now);
        if (!exceeds_share(*port.queue, *below.queue, port.kind)) continue;
        engines_.set_share(*hal_, port, below.level, port.weight);
        some = true;
    }
    if (some) share_cores(*below.queue);
    return some;
}

// The number of cores due to the port by its weight; one if there is a single tenant.
uint64_t Scheduler::fair_cores(const Port& port) {
    if (!tenants_.several()) return 1;
    uint64_t sum = 0;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        const Port& other = engines_.row(n);
        if (other.busy && other.kind == port.kind && other.level == port.level) sum += other.weight;
    }
    const uint64_t cores = sum == 0 ? 1 : uint64_t{engines_.vector_cores()} * port.weight / sum;
    return cores == 0 ? 1 : cores;
}

// Divides the queue's weight among its ports.
void Scheduler::share_cores(Queue& queue) {
    if (queue.ports == engines_.busy_vector()) return;  // alone on the card
    if (tenants_.several()) {
        if (engines_.shares_cores()) share_among_tenants();
        return;
    }
    uint32_t ports = 0;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        const Port& port = engines_.row(n);
        if (port.busy && has_cores(port.kind) && port.queue == &queue) ++ports;
    }
    if (ports == 0) return;
    const auto weight = static_cast<uint16_t>(uint32_t{queue.weight} * kPortWeight / ports);
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        Port& port = engines_.row(n);
        if (port.busy && has_cores(port.kind) && port.queue == &queue && !port.boosted)
            engines_.set_share(*hal_, port, port.level, weight);
    }
}

// The same for all ports: within a class equal parts for each user, in these for each of his processes, and
// in these by the queues' weights.
void Scheduler::share_among_tenants() {
    struct Part {
        uint32_t weight;   // of its queue, divided by its ports
        uint32_t sum;      // of its process's ports
        uint32_t process;  // 1 / ports of its process
        uint32_t user;     // processes of its user, all in 1 / kOne
    };
    constexpr uint32_t kOne = 1 << 12;
    uint8_t rows[SOC_ENGINES_MAX];
    Part parts[SOC_ENGINES_MAX];
    uint32_t count = 0;
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        const Port& port = engines_.row(n);
        if (port.busy && has_cores(port.kind) && !port.boosted) rows[count++] = static_cast<uint8_t>(n);
    }
    const auto for_peers = [&](uint32_t n, auto each) {
        const Port& own = engines_.row(rows[n]);
        for (uint32_t m = 0; m < count; ++m) {
            const Port& port = engines_.row(rows[m]);
            if (port.level == own.level) each(m, *own.queue, *port.queue);
        }
    };
    for (uint32_t n = 0; n < count; ++n) {
        uint32_t same = 0, process = 0;
        for_peers(n, [&](uint32_t, const Queue& own, const Queue& other) {
            same += &own == &other ? 1 : 0;
            process += own.process == other.process ? 1 : 0;
        });
        parts[n].weight = uint32_t{engines_.row(rows[n]).queue->weight} * kOne / same;
        parts[n].process = kOne / process;
    }
    for (uint32_t n = 0; n < count; ++n) {
        parts[n].sum = parts[n].user = 0;
        for_peers(n, [&](uint32_t m, const Queue& own, const Queue& other) {
            if (own.process == other.process) parts[n].sum += parts[m].weight;
            if (tenants_.user_of(own.process) == tenants_.user_of(other.process))
                parts[n].user += parts[m].process;
        });
        const uint64_t weight = uint64_t{kUserWeight} * parts[n].weight / parts[n].sum * kOne /
                                (parts[n].user != 0 ? parts[n].user : 1);
        Port& port = engines_.row(rows[n]);
        engines_.set_share(*hal_, port, port.level,
                           static_cast<uint16_t>(weight == 0       ? 1
                                                 : weight < 0xfffe ? weight
                                                                   : 0xfffe));
    }
}

}  // namespace orrery::fw
