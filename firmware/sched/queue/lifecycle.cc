// SPDX-License-Identifier: MIT
// Creating, changing and destroying contexts and queues; replies to the host.
#include <orrery/hw/doorbell.h>

#include "firmware/sched/recover/restart.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

void mmu_command(Hal& hal, uint32_t asid, uint64_t argument, uint64_t command) {
    hal.set_reg(SOC_MMU_ASID, asid);
    hal.set_reg(SOC_MMU_ARG, argument);
    hal.set_reg(SOC_MMU_CMD, command);
}

// A shorter slice would be used up by what it costs to save a kernel.
constexpr uint32_t kMinSliceUs = 50;
constexpr uint32_t kMaxSliceUs = 1'000'000;

constexpr uint64_t ahead_of(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

// The generation after `last`; 0 is never used, so that a doorbell page of zeros names no queue.
uint16_t next_generation(uint16_t last) {
    const auto next = static_cast<uint16_t>(last + 1);
    return next == 0 ? uint16_t{1} : next;
}

}  // namespace

void Scheduler::init(Hal& hal, HostIrq& irq, Alarm& alarm, Tables& tables, HostTables host, SaveAreas areas) {
    hal_ = &hal;
    irq_ = &irq;
    alarm_ = &alarm;
    contexts_ = tables.contexts;
    queues_ = tables.queues;
    persist_ = &tables.header;
    status_table_ = host.status;
    usage_table_ = host.usage;
    policy_ = Policy::load();
    tenants_.init(tenant_rows_);
    turns_.init(tenants_, run_queue_tables_);
    for (const EngineKind& row : kEngineKinds)
        run_queue(row.kind).init(kMaxLagPs, tenants_, run_queue_tables_, ports_of(row.kind));
    slots_.init(hal);
    engines_.discover(hal, tables.ports);
    uint32_t pages = 0;  // of jobs that need no more of a save area: two for each port
    for (uint32_t n = 0; n < engines_.end(); ++n)
        pages += saves_a_page(Engines::kind_at(hal, n)) ? 2u : 0u;
    suspended_.init(tables.suspended, areas.base, areas.count, hal.reg(SOC_SAVE_BYTES), pages);
    waits_.init(queues_, hal.reg(SOC_UID) ^ hal.reg(SOC_TIME));
    limits_.init(alarm);
    deadlocks_.init(hal, alarm, queues_, waits_, policy_.deadlock_ps);
    arbiter_.init(*this);
    quotas_.init(hal, alarm, engines_, tables, arbiter_);
    failing_.init(hal, alarm, tenants_, tables, arbiter_);
    gangs_.init(hal, alarm, engines_, waits_, tenants_, tables, arbiter_);
}

Context* Scheduler::context(uint32_t number) {
    return number < ORR_FW_CONTEXTS && contexts_[number].exists ? &contexts_[number] : nullptr;
}

Queue* Scheduler::queue(uint32_t number) {
    return number < ORR_FW_QUEUES && queues_[number].exists ? &queues_[number] : nullptr;
}

uint32_t Scheduler::create_context(uint32_t number, uint64_t root, uint16_t page, uint32_t user,
                                   uint32_t process) {
    const uint16_t row = tenants_.join(user, process);
    if (row == 0) return ORR_STATUS_NO_RESOURCE;
    Context& context = contexts_[number];
    context = {};
    context.number = static_cast<uint16_t>(number);
    context.page = page;
    context.user_id = user;
    context.process_id = process;
    context.process = row;
    context.exists = true;
    context.seal = seal_of(context);
    mmu_command(*hal_, number, root, SOC_MMU_SET_ROOT);
    trace::context(*hal_, number, true);
    return ORR_STATUS_OK;
}

// Sets class, weight and slice, and the rate of virtual time that follows from the weight.
void Scheduler::set_share(Queue& queue, uint8_t priority, uint16_t weight, uint32_t slice_us) {
    queue.priority = policy_.has(ORR_POLICY_F_NO_PRIORITIES) ? uint8_t{ORR_PRIORITY_NORMAL} : priority;
    queue.weight = policy_.has(ORR_POLICY_F_NO_WEIGHTS) ? uint16_t{ORR_WEIGHT_DEFAULT} : weight;
    queue.slice_us = slice_us == 0            ? 0
                     : slice_us < kMinSliceUs ? kMinSliceUs
                     : slice_us < kMaxSliceUs ? slice_us
                                              : kMaxSliceUs;
    queue.rate = (ORR_WEIGHT_DEFAULT << 16) / queue.weight;
}

// The virtual time at which a queue that is new in its class begins.
uint64_t Scheduler::class_vtime(const Queue& queue, uint32_t resource) const {
    if (resource == static_cast<uint32_t>(Resource::kTurn)) return turns_.min_vtime(queue);
    return run_queue(resource).min_vtime(queue);
}
void Scheduler::start_at_class_vtime(Queue& queue) {
    for (uint32_t resource = 0; resource < kResources; ++resource)
        begin_vtime(queue, resource, class_vtime(queue, resource));
}
void Scheduler::begin_vtime(Queue& queue, uint32_t resource, uint64_t vtime) {
    queue.vtime[resource] = vtime;
    raise(greatest_vtime_[resource], vtime);
}

void Scheduler::set_queue(Queue& queue, uint8_t priority, uint16_t weight, uint32_t slice_us) {
    const WorkingFor blame(*persist_, queue.number);
    // It moves to the new class's run queue; what runs keeps the class with which it started.
    const Place place = queue.place;
    const bool waits = dequeue(queue, place);
    // Its lead over the old class becomes its lead over the new one: a change forgives nothing.
    uint64_t lead[kResources];
    for (uint32_t resource = 0; resource < kResources; ++resource)
        lead[resource] = ahead_of(queue.vtime[resource], class_vtime(queue, resource));
    const uint8_t before = queue.priority;
    set_share(queue, priority, weight, slice_us);
    for (uint32_t area = 0; area < SuspendedJobs::kMax && queue.suspended != 0; ++area) {
        Suspended& job = suspended_.row(static_cast<uint8_t>(area));
        if (!job.used || job.held || job.queue != &queue) continue;
        suspended_.remove(job);
        job.level = queue.priority;
        suspended_.add(job);
    }
    queue.seal = seal_of(queue);
    for (uint32_t resource = 0; resource < kResources && queue.priority != before; ++resource)
        begin_vtime(queue, resource, class_vtime(queue, resource) + lead[resource]);
    if (waits) enqueue(queue, place);
    for (Kind& kind : kinds_)
        kind.preempt_check_ps = 0;
    trace::queue(*hal_, queue.number, queue.context_number, queue.priority, queue.weight, queue.slice_us);
}

// Into and out of the run queue that belongs to the place. False: there is none.
void Scheduler::enqueue(Queue& queue, Place place) {
    if (place == Place::kReady)
        turns_.enqueue(queues_, queue);
    else
        run_queue(queue.engine_kind).enqueue(queues_, queue);
}
bool Scheduler::dequeue(Queue& queue, Place place) {
    if (place == Place::kReady)
        turns_.dequeue(queues_, queue);
    else if (place == Place::kPort)
        run_queue(queue.engine_kind).dequeue(queues_, queue);
    else
        return false;
    return true;
}

void Scheduler::destroy_context(Context& context) {
    mmu_command(*hal_, context.number, 0, SOC_MMU_CLEAR_ROOT);
    if (context.stale) stale_contexts_.remove(contexts_, context);
    quotas_.forget(context);
    trace::context(*hal_, context.number, false);
    tenants_.leave(context.process);
    context = {};
}

uint32_t Scheduler::create_queue(const QueueConfig& config) {
    Context& context = contexts_[config.context];
    uint32_t existing = 0;
    for (uint32_t n = 0; n < ORR_FW_QUEUES; ++n) {
        const Queue& other = queues_[n];
        if (!other.exists) continue;
        ++existing;
        if (other.context->page == context.page && other.slot == config.slot && !other.destroying)
            return ORR_STATUS_EXISTS;
    }
    if (existing >= ORR_DB_BINDINGS) return ORR_STATUS_NO_RESOURCE;

    Queue& queue = queues_[config.queue];
    const WorkingFor blame(*persist_, config.queue);
    const uint64_t status = status_table_ + config.queue * sizeof(orr_queue_status);
    // The status line outlives a reset of the card: going on from its generation makes old doorbells stale.
    uint16_t last = queue.generation;
    if (last == 0) last = static_cast<uint16_t>(hal_->load(status + offsetof(orr_queue_status, generation)));
    queue = {};
    queue.context = &context;
    queue.context_number = context.number;
    queue.process = context.process;
    queue.ring_slot = kNoSlot;
    queue.ring = ORR_CONTEXT_WINDOW(context.number, config.ring_va);
    queue.mask = static_cast<uint32_t>(config.entries - 1);
    queue.limit_ps = config.limit_ps;
    queue.number = static_cast<uint16_t>(config.queue);
    queue.generation = next_generation(last);
    queue.slot = config.slot;
    set_share(queue, config.priority, config.weight, config.slice_us);
    if (queue.limit_ps == 0) queue.limit_ps = policy_.limit_ps;
    start_at_class_vtime(queue);

    // The lines that are ours start from zero; that they can be written, and the last packet read, shows that
    // the ring is all there.
    for (uint64_t offset = offsetof(orr_ring, consumer); offset < offsetof(orr_ring, pad1); offset += 8)
        hal_->store(queue.ring + offset, 0);
    for (uint64_t offset = offsetof(orr_ring, error); offset < offsetof(orr_ring, pad2); offset += 8)
        hal_->store(queue.ring + offset, 0);
    static_cast<void>(hal_->load(queue.ring + offsetof(orr_ring, producer)));
    static_cast<void>(hal_->load(queue.ring + sizeof(orr_ring) + config.entries * ORR_PACKET_SIZE - 8));
    if (const WindowFault fault = take_window_fault(*hal_)) {
        if (fault.host()) fatal_ = kHaltHostMemory;
        free_row(queue);
        return ORR_STATUS_FAULT;
    }
    const orr_queue_status line{.completed = 0,
                                .time_ps = hal_->reg(SOC_SYSTEM_TIME),
                                .error = ORR_QERR_NONE,
                                .error_index = 0,
                                .error_address = 0,
                                .error_detail = 0,
                                .generation = queue.generation,
                                .reserved = 0};
    uint64_t words[sizeof(line) / 8];
    __builtin_memcpy(words, &line, sizeof(line));
    store_words(*hal_, status, words, sizeof(line) / 8);
    for (const EngineKind& row : kEngineKinds)
        publish_usage(queue, row.usage, 0);
    if (take_window_fault(*hal_)) fatal_ = kHaltHostMemory;

    queue.exists = true;
    queue.seal = seal_of(queue);
    ++context.queues;
    doorbell_command(queue, SOC_DB_BIND);
    trace::queue(*hal_, queue.number, context.number, queue.priority, queue.weight, queue.slice_us);
    return ORR_STATUS_OK;
}

// All zeros but for its number and generation.
void Scheduler::free_row(Queue& queue) {
    Queue blank = {};
    blank.number = queue.number;
    blank.generation = queue.generation;
    queue = blank;
}

void Scheduler::doorbell_command(const Queue& queue, uint64_t command) {
    if (queue.slot == kNoDoorbell) return;
    hal_->set_reg(SOC_DB_PAGE, queue.context->page);
    hal_->set_reg(SOC_DB_SLOT, queue.slot);
    hal_->set_reg(SOC_DB_TAG, queue.number);
    hal_->set_reg(SOC_DB_CMD, command);
}

void Scheduler::destroy_queue(Queue& queue, uint32_t sequence, bool silent) {
    const WorkingFor blame(*persist_, queue.number);
    if (!queue.stopping) {
        queue.error = {ORR_QERR_ABORTED, queue.retired, 0, 0};
        queue.abort_sequence = 0;
    }
    if (!queue.stopped) queue.told = false;
    queue.destroying = true;
    queue.seal = seal_of(queue);
    queue.destroy_sequence = sequence;
    queue.destroy_silent = silent;
    queue.has_packet = false;
    gangs_.leave(queue);
    unplace(queue);
    doorbell_command(queue, SOC_DB_UNBIND);
    slots_.release(*hal_, queue);
    abort_jobs(queue, 0);
    if (queue.in_flight == 0) finish_destroy(queue);
    failing_.expedite(queue);
}

bool Scheduler::tell_end(Queue& queue, uint32_t sequence) {
    if (!queue.destroy_silent) return false;
    queue.destroy_silent = false;
    queue.destroy_sequence = sequence;
    return true;
}

void Scheduler::crash(uint32_t number) {
    persist_->working = static_cast<uint16_t>(number < ORR_FW_QUEUES ? number + 1 : 0);
    hal_->crash();
}

// Nothing of the queue runs any more.
void Scheduler::finish_destroy(Queue& queue) {
    // One that is told has begun before a restart.
    if (queue.stopped || queue.told) {
        failing_.look(queue);
        return;
    }
    queue.told = true;
    failing_.begin(queue);
}

void Scheduler::arm(Queue& queue, uint64_t index) {
    // Behind an error nothing will ever complete: tell at once rather than never.
    if (queue.retired >= index || queue.stopped) {
        irq_->raise(ORR_IRQ_QUEUE);
        return;
    }
    if (!queue.armed) {
        queue.armed_first = index;
        queue.armed_last = index;
    }
    queue.armed = true;
    if (index < queue.armed_first) queue.armed_first = index;
    if (index > queue.armed_last) queue.armed_last = index;
}

uint32_t Scheduler::state(const Queue& queue) const {
    if (queue.stopped) return ORR_QUEUE_STOPPED;
    if (queue.place == Place::kSemaphore) return ORR_QUEUE_WAITING;
    if (queue.place != Place::kNone || queue.in_flight != 0) return ORR_QUEUE_RUNNING;
    return ORR_QUEUE_IDLE;
}

// Takes the queue off whatever list it is on.
[[gnu::noinline]] void Scheduler::unplace(Queue& queue) {
    switch (queue.place) {
        case Place::kReady:
        case Place::kPort:
            dequeue(queue, queue.place);
            break;
        case Place::kSemaphore:
            waits_.remove(queue);
            queue.context->parked.remove(queues_, queue);
            if (queue.wait_end != 0) limits_.leave(*hal_);
            break;
        case Place::kQuota:
            quotas_.remove_waiter(queue);
            break;
        case Place::kArea:
            area_waiters_.remove(queues_, queue);
            if (area_looks_ > --area_waiting_) area_looks_ = area_waiting_;
            break;
        case Place::kGang:
        case Place::kNone:
        case Place::kOwn:
            break;
    }
    place(queue, Place::kNone);
}

void Scheduler::notify(Queue& queue) {
    if (queue.in_outbox) return;
    queue.in_outbox = true;
    outbox_.push_back(queues_, queue);
}

bool Scheduler::abort_due(const Queue& queue) const {
    return (queue.stopped || queue.destroyed) && queue.abort_sequence != 0 && !failing_.has(queue);
}

bool Scheduler::take_message(orr_mbox_message& message) {
    while (Queue* const queue = outbox_.front(queues_)) {
        message = {};
        bool taken = false;
        if (queue->event_due) {
            queue->event_due = false;
            message.opcode = ORR_EVENT_QUEUE_ERROR;
            message.arg[0] = queue->number;
            message.arg[1] = queue->error.code;
            message.arg[2] = queue->error.index;
            message.arg[3] = queue->error.address;
            message.arg[4] = queue->error_time_ps;
            taken = true;
        } else if (abort_due(*queue)) {
            message.sequence = queue->abort_sequence;
            message.opcode = ORR_MBOX_QUEUE_ABORT;
            message.status = ORR_STATUS_OK;
            queue->abort_sequence = 0;
            taken = true;
        } else if (queue->destroyed && !queue->destroy_silent) {
            queue->destroy_silent = true;
            message.sequence = queue->destroy_sequence;
            message.opcode = ORR_MBOX_QUEUE_DESTROY;
            message.status = ORR_STATUS_OK;
            taken = true;
        }
        const bool more =
            queue->event_due || abort_due(*queue) || (queue->destroyed && !queue->destroy_silent);
        if (!more) {
            outbox_.remove(queues_, *queue);
            queue->in_outbox = false;
            if (queue->destroyed) {
                const WorkingFor blame(*persist_, queue->number);
                trace::queue_destroyed(*hal_, queue->number);
                --queue->context->queues;
                free_row(*queue);
            }
        }
        if (taken) return true;
    }
    return deadlocks_.telling() && deadlocks_.take_message(message);
}

}  // namespace orrery::fw
