// SPDX-License-Identifier: MIT
#include "firmware/sched/recover/restart.h"

#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// What becomes of a queue; kept in Queue::wait.marks while the tables are looked through, with its packets on
// ports and in save areas in Queue::wait.memory.
constexpr uint8_t kGood = 1;
constexpr uint8_t kGuilty = 2;  // the core worked for it when it crashed
constexpr uint8_t kLost = 3;

constexpr uint16_t kNoPage = 0xffff;

void mix(uint64_t& hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
}

uint32_t fold(uint64_t hash) {
    const auto folded = static_cast<uint32_t>(hash ^ hash >> 32);
    return folded == 0 ? 1 : folded;
}

// Rows may hold anything: a bool that is neither 0 nor 1 must not be read as one.
uint8_t raw(const bool& flag) {
    uint8_t byte = 0;
    __builtin_memcpy(&byte, &flag, 1);
    return byte;
}
void sanitize(bool& flag) {
    flag = raw(flag) != 0;
}

template <typename Row>
bool all_zero(const Row& row) {
    uint8_t bytes[sizeof(uint64_t)];
    const auto* at = reinterpret_cast<const uint8_t*>(&row);
    for (size_t i = 0; i < sizeof(Row); i += sizeof(bytes)) {
        uint64_t word = 0;
        __builtin_memcpy(&word, at + i, sizeof(word));
        if (word != 0) return false;
    }
    return true;
}

void sanitize(char (&name)[ORR_NAME_BYTES]) {
    bool end = false;
    for (size_t i = 0; i < sizeof(name); ++i) {
        end = end || name[i] == 0 || i + 1 == sizeof(name);
        if (end)
            name[i] = 0;
        else if (name[i] < 0x20 || name[i] > 0x7e)
            name[i] = '?';
    }
}

uint32_t bit_of(const Queue& queue, uint64_t index) {
    return 1u << static_cast<uint32_t>(index - queue.retired);
}

uint32_t window_of(const Queue& queue) {
    return (1u << static_cast<uint32_t>(queue.next - queue.retired)) - 1;
}

uint64_t no_later(uint64_t at, uint64_t latest) {
    return at == kNever || at <= latest ? at : latest;
}

}  // namespace

uint32_t seal_of(const Queue& queue) {
    uint64_t hash = 0x5155455545ull;
    mix(hash, queue.ring);
    mix(hash, queue.limit_ps);
    mix(hash, queue.mask | uint64_t{queue.slice_us} << 32);
    mix(hash, queue.number | uint64_t{queue.context_number} << 16 | uint64_t{queue.generation} << 32 |
                  uint64_t{queue.slot} << 48);
    mix(hash, queue.weight | uint64_t{queue.priority} << 16 | uint64_t{queue.rate} << 32);
    mix(hash, raw(queue.exists) | uint64_t{raw(queue.stopping)} << 8 | uint64_t{raw(queue.stopped)} << 16 |
                  uint64_t{raw(queue.destroying)} << 24 | uint64_t{raw(queue.destroyed)} << 32);
    return fold(hash);
}

uint32_t seal_of(const Context& context) {
    uint64_t hash = 0x434f4e54ull;
    mix(hash, context.number | uint64_t{context.page} << 16 | uint64_t{context.quota_permille} << 32);
    mix(hash, context.quota_period_us);
    mix(hash, context.user_id | uint64_t{context.process_id} << 32);
    return fold(hash);
}

uint32_t seal_of(const Suspended& job) {
    uint64_t hash = 0x53415645ull;
    mix(hash, job.number | uint64_t{job.kind} << 16 | uint64_t{job.opcode} << 24);
    mix(hash, job.index);
    mix(hash, reinterpret_cast<uintptr_t>(job.queue));
    return fold(hash);
}

uint64_t layout_of(const char* build_id) {
    uint64_t hash = sizeof(Tables);
    mix(hash, sizeof(Queue) | sizeof(Context) << 16 | sizeof(Port) << 32 | sizeof(Suspended) << 48);
    for (size_t i = 0; i < 31 && build_id[i] != '\0'; ++i)
        mix(hash, static_cast<uint8_t>(build_id[i]));
    return hash;
}

void Scheduler::cold_start(Tables& tables, bool clear) {
    if (clear) __builtin_memset(static_cast<void*>(&tables), 0, sizeof(tables));
    init_orphan_owner();
    for (uint32_t n = 0; n < engines_.end(); ++n)
        revive_port(engines_.row(n), 0);
    for (uint32_t n = 0; n < SuspendedJobs::kMax; ++n)
        revive_suspended(n);
    engines_.collect();
    count_areas();
}

// The owner of jobs whose queue was lost: it exists until the engines have ended them.
void Scheduler::init_orphan_owner() {
    orphan_owner_ = {};
    orphan_owner_.context = &contexts_[0];
    orphan_owner_.number = ORR_FW_QUEUES;
    orphan_owner_.weight = 1;
    orphan_owner_.ring_slot = kNoSlot;
    orphan_owner_.destroying = true;
    orphan_owner_.in_flight = 1;  // never over
    contexts_[0] = {};
    contexts_[0].page = kNoPage;
}

uint32_t Scheduler::warm_start(Tables& tables) {
    const uint64_t now = hal_->reg(SOC_TIME);
    const uint32_t guilty = tables.header.working;  // plus one
    tables.header.working = 0;
    init_orphan_owner();
    for (uint32_t n = 1; n < ORR_FW_CONTEXTS; ++n)
        revive_context(contexts_[n], n, now);
    for (uint32_t n = 0; n < ORR_FW_QUEUES; ++n)
        revive_queue(queues_[n], n, n + 1 == guilty);
    for (uint32_t n = 0; n < engines_.end(); ++n)
        revive_port(engines_.row(n), now);
    for (uint32_t n = 0; n < SuspendedJobs::kMax; ++n)
        revive_suspended(n);
    engines_.collect();
    count_areas();
    for (uint32_t n = 0; n < ORR_FW_QUEUES; ++n)
        stop_if_inconsistent(queues_[n], tables.header);
    take_completions();
    for (uint32_t n = 0; n < engines_.end(); ++n)
        look_for_completion(engines_.row(n));
    uint32_t resumed = 0;
    for (uint32_t n = 0; n < ORR_FW_QUEUES; ++n) {
        if (queues_[n].exists && resume(queues_[n])) ++resumed;
    }
    if (engines_.busy()) wake_ports(now + policy_.grace_ps);
    for (const EngineKind& row : kEngineKinds)
        grant_free_ports(row.kind, now);
    irq_->raise(ORR_IRQ_QUEUE);
    return resumed;
}

void Scheduler::revive_context(Context& context, uint32_t number, uint64_t now) {
    if (all_zero(context)) return;
    if (context.number != number || context.seal != seal_of(context)) {
        // Its page is not known: it can only be destroyed, and its queues are lost.
        context = {};
        context.number = static_cast<uint16_t>(number);
        context.page = kNoPage;
        context.exists = context.lost = true;
        return;
    }
    context.exists = true;
    sanitize(context.lost);
    sanitize(context.name);
    context.link = context.stale_link = {0, 0};
    context.parked = {};
    context.queues = 0;
    // Accounts begin anew; there was a row for everybody before.
    context.process = tenants_.join(context.user_id, context.process_id);
    context.throttled = context.listed = context.stale = false;
    quotas_.revive(context, now);
}

void Scheduler::revive_queue(Queue& queue, uint32_t number, bool guilty) {
    const uint16_t generation = queue.generation;
    Queue blank = {};
    blank.number = queue.number;
    blank.generation = generation;
    const bool whole = queue.seal != 0 && queue.number == number && queue.seal == seal_of(queue);
    if (!whole) {
        // A row that was never used, or is free again, or was about to be made when the core crashed.
        Queue rest;
        __builtin_memcpy(static_cast<void*>(&rest), static_cast<const void*>(&queue), sizeof(rest));
        rest.number = rest.generation = 0;
        if (all_zero(rest) || (guilty && raw(queue.exists) == 0)) {
            queue = blank;
            return;
        }
    }
    const uint64_t status = status_table_ + number * sizeof(orr_queue_status);
    const uint64_t completed = hal_->load(status + offsetof(orr_queue_status, completed));
    const uint64_t next = queue.next - queue.retired;
    const bool known =
        whole && contexts_[queue.context_number].exists && !contexts_[queue.context_number].lost;
    if (!known) {
        // Nothing in it can be believed. The driver knows the rest.
        queue = blank;
        queue.number = static_cast<uint16_t>(number);
        queue.generation = static_cast<uint16_t>(hal_->load(status + offsetof(orr_queue_status, generation)));
        queue.context = &contexts_[0];
        queue.slot = kNoDoorbell;
        queue.ring_slot = kNoSlot;
        queue.weight = 1;
        queue.producer = queue.next = queue.retired = completed;
        queue.exists = true;
        ++queue.context->queues;
        queue.wait.marks = kLost;
        return;
    }
    queue.link = queue.outbox_link = {0, 0};
    queue.context = &contexts_[queue.context_number];
    queue.process = queue.context->process;
    ++queue.context->queues;
    queue.place = Place::kNone;
    queue.state = ORR_TSTATE_IDLE;
    queue.ring_slot = kNoSlot;
    queue.has_packet = queue.in_outbox = false;
    if (!queue.stopping) queue.packet[0] = 0;
    sanitize(queue.event_due);
    sanitize(queue.armed);
    sanitize(queue.name);
    queue.destroy_silent = true;  // who asked will ask again
    queue.in_flight = queue.suspended = queue.ports = 0;
    queue.ready_since_ps = 0;
    start_at_class_vtime(queue);
    queue.wait = {};
    queue.wait.marks = guilty ? kGuilty : kGood;
    if (!queue.stopping) queue.error_code = ORR_QERR_NONE;
    const bool possible = next <= kWindow && (completed == queue.retired || guilty);
    if (!possible) {
        queue.next = queue.retired = completed;
        queue.done = queue.interrupt = 0;
        if (!guilty) queue.wait.marks = kLost;
    }
    queue.producer = queue.next;  // the ring tells
    if (queue.stopped) sanitize(queue.told);
    // Not again what the core crashed at.
    if ((queue.stopped || (queue.destroying && queue.told)) && guilty) queue.failed_to = ~uint64_t{0};
    if (queue.destroying && !queue.stopping) queue.error = {ORR_QERR_ABORTED, queue.retired, 0, 0};
    if (queue.destroying && !queue.stopping && guilty) queue.ring = 0;
    if (queue.stopping && (queue.error.index < queue.retired || queue.error.index > queue.next))
        queue.error.index = queue.retired;
}

// The queue that a row of a port or a save area names, if it can have this packet there. If it cannot, one of
// the two is wrong: then the queue is lost.
Queue* Scheduler::owner_of(const Queue* claimed, uint64_t index) {
    const uint64_t distance = reinterpret_cast<uintptr_t>(claimed) - reinterpret_cast<uintptr_t>(queues_);
    if (distance % sizeof(Queue) != 0 || distance / sizeof(Queue) >= ORR_FW_QUEUES) return nullptr;
    Queue& queue = queues_[distance / sizeof(Queue)];
    if (!queue.exists || queue.stopped || queue.destroyed || queue.wait.marks == kLost) return nullptr;
    if (index - queue.retired < queue.next - queue.retired &&
        ((queue.done | queue.wait.memory) & bit_of(queue, index)) == 0)
        return &queue;
    if (queue.wait.marks == kGood) queue.wait.marks = kLost;
    return nullptr;
}

uint32_t Scheduler::number_of(const Queue* claimed) const {
    const uint64_t distance = reinterpret_cast<uintptr_t>(claimed) - reinterpret_cast<uintptr_t>(queues_);
    return distance < ORR_FW_QUEUES * sizeof(Queue) ? static_cast<uint32_t>(distance / sizeof(Queue)) : ~0u;
}

// A port that is to save what it runs does so where the chip was told to. One that is not needs no area.
bool Scheduler::right_area(Port& port) {
    if (port.preempting == 0 || port.preempting > SOC_PREEMPT_NOW) {
        port.preempting = 0;
        port.area = kNoArea;
        return true;
    }
    return suspended_.right_size(port.area, saves_a_page(port.kind)) && suspended_.claim(port.area) &&
           hal_->reg(engines_.reg(port, SOC_ENGINE_SAVE)) == suspended_.offset(port.area);
}

void Scheduler::revive_port(Port& port, uint64_t now) {
    engines_.name(port);
    const uint32_t kind = Engines::kind_at(*hal_, engines_.number(port));
    const bool runs = kind != 0 && hal_->reg(engines_.reg(port, SOC_ENGINE_BUSY)) != 0;
    const auto tag = static_cast<uint32_t>(hal_->reg(engines_.reg(port, SOC_ENGINE_TAG)));
    Queue* queue = nullptr;
    if (raw(port.busy) == 1 && port.tag == tag && port.kind == kind && port.number == number_of(port.queue))
        queue = owner_of(port.queue, port.index);
    if (queue != nullptr && !right_area(port)) queue = nullptr;
    if (queue == nullptr) {
        port = {};
        engines_.name(port);
        port.kind = kind;
        port.level = 0xff;
        port.special = kPlain;
        if (!runs) return;
        port.queue = &orphan_owner_;
        port.number = orphan_owner_.number;
        port.tag = tag;
        engines_.set_share(*hal_, port, 0, 1);
        port.busy = true;
        port.deadline = port.slice_end_ps = port.grace_ps = port.core_check_ps = kNever;
        ++orphan_owner_.in_flight;
        engines_.abort(*hal_, port);
        return;
    }
    queue->wait.memory |= bit_of(*queue, port.index);
    ++queue->in_flight;
    port.timed_out = port.aborted = port.boosted = port.cross = port.not_preemptible = false;
    port.gang = 0;
    port.busy = false;
    port.level = 0xff;  // so that both are written
    port.weight = 0;
    engines_.set_share(*hal_, port, queue->priority, static_cast<uint16_t>(queue->weight * kPortWeight));
    port.busy = true;
    // It is asked again, once more urgently: the core may have crashed before it could.
    if (port.preempting != 0) port.preempting = SOC_PREEMPT_GROUP;
    if (port.started_ps > now) port.started_ps = now;
    if (port.limit_ps == 0 || port.limit_ps > queue->limit_ps) port.limit_ps = queue->limit_ps;
    const uint64_t latest = now + port.limit_ps > now ? now + port.limit_ps : kNever - 1;
    if (port.deadline > latest) port.deadline = latest;
    port.slice_end_ps = no_later(port.slice_end_ps, now + slice_ps(*queue));
    port.grace_ps = port.preempting != 0 ? now : kNever;
    port.core_check_ps = no_later(port.core_check_ps, now + policy_.bound_ps);
}

void Scheduler::revive_suspended(uint32_t area) {
    Suspended& job = suspended_.row(static_cast<uint8_t>(area));
    const bool right = raw(job.used) == 1 && job.number == area && job.seal == seal_of(job) &&
                       suspended_.right_size(static_cast<uint8_t>(area), saves_a_page(job.kind));
    Queue* const queue = right ? owner_of(job.queue, job.index) : nullptr;
    if (queue == nullptr || !suspended_.claim(static_cast<uint8_t>(area))) {
        job = {};
        job.number = static_cast<uint16_t>(area);
        return;
    }
    job.number = static_cast<uint16_t>(area);
    job.link = {0, 0};
    job.level = queue->priority;
    sanitize(job.first);
    job.gang = 0;  // each resumes by itself
    job.slice_left_us = 0;
    if (job.limit_ps == 0 || job.limit_ps > queue->limit_ps) job.limit_ps = queue->limit_ps;
    suspended_.add(job);
    queue->wait.memory |= bit_of(*queue, job.index);
    ++queue->in_flight;
    ++queue->suspended;
}

// Stops the queue that the core worked for when it crashed, and any whose row is inconsistent.
void Scheduler::stop_if_inconsistent(Queue& queue, const PersistHeader& header) {
    if (!queue.exists || queue.stopped || queue.destroying) return;
    const auto outside = static_cast<uint32_t>(queue.wait.memory);
    const uint32_t window = window_of(queue);
    uint32_t holes = window & ~(queue.done | outside);
    // What came behind an error has been ended.
    if (queue.stopping) holes &= bit_of(queue, queue.error.index) - 1;
    if ((queue.done & ~window) != 0) holes |= 1;
    queue.done &= window;
    queue.interrupt &= window;
    const bool whole = queue.wait.marks == kGood && holes == 0;
    const bool in_gang = queue.gang != 0;
    queue.gang = 0;
    if (whole && !in_gang) return;
    if (whole) {
        // Who else was there is forgotten; it must not start alone.
        fail(queue, {ORR_QERR_GANG, queue.next, 0, 0});
        return;
    }
    uint64_t index = queue.retired;
    while (index != queue.next && (holes & bit_of(queue, index)) == 0)
        ++index;
    if (queue.wait.marks == kGuilty)
        fail(queue, {ORR_QERR_FIRMWARE, index, header.trap_pc, header.trap_cause});
    else
        fail(queue, {ORR_QERR_LOST, index, 0, 0});
}

// A port that has ended, but whose completion was taken by the run that crashed.
void Scheduler::look_for_completion(Port& port) {
    if (!port.busy || hal_->reg(engines_.reg(port, SOC_ENGINE_BUSY)) != 0) return;
    // It may have ended just now, and the port be another's already.
    const uint32_t tag = port.tag;
    take_completions();
    if (!port.busy || port.tag != tag) return;
    Queue& queue = *port.queue;
    const uint64_t index = port.index;
    engines_.release(port);
    if (port.area != kNoArea) suspended_.free_area(port.area);
    --queue.in_flight;
    if (queue.destroying || queue.stopped) return;
    if (queue.stopping && queue.error.index <= index) {
        if (queue.in_flight == 0) publish_error(queue);
        return;
    }
    QueueError error{ORR_QERR_LOST, index, 0, 0};
    if (queue.stopping && queue.error.code == ORR_QERR_FIRMWARE) {
        // It is the one that the core worked for.
        error = queue.error;
        error.index = index;
    }
    fail(queue, error);
}

// True: the queue is as it was.
bool Scheduler::resume(Queue& queue) {
    queue.wait = {};
    if (queue.stopping) queue.abort_sequence = 0;  // who asked will ask again
    if (queue.event_due || queue.destroyed) notify(queue);
    if (queue.destroyed) return false;
    if (queue.destroying) {
        abort_jobs(queue, 0);
        if (queue.in_flight == 0) finish_destroy(queue);
        return false;
    }
    if (queue.stopped) {
        failing_.look(queue);
        return false;
    }
    if (queue.stopping) {
        abort_jobs(queue, queue.error.index);
        if (queue.in_flight == 0) publish_error(queue);
    }
    if (queue.stopping || !read_producer(queue)) return false;
    make_ready(queue);
    return true;
}

}  // namespace orrery::fw
