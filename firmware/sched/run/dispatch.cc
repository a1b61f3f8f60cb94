// SPDX-License-Identifier: MIT
// Packets that run on engines: from a free port to the completion.
#include "firmware/sched/queue/packets.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

uint32_t trace_resource(uint32_t kind) {
    return of_kind<&EngineKind::trace_resource>(kind);
}

}  // namespace

// A job starts or resumes: sets its limit and slice, and the alarm for the first check of its port.
[[gnu::always_inline]] inline void Scheduler::set_times(Port& port, uint32_t kind, Queue& queue,
                                                        uint64_t limit_ps, uint64_t now, uint64_t waited_ps) {
    port.started_ps = now;
    port.limit_ps = limit_ps;
    // Limits and slices are far below what could overflow.
    port.deadline = now + limit_ps;
    port.slice_end_ps = now + slice_ps(queue);
    uint64_t look = port.deadline;
    if (waiting(kind)) {
        // The next preemption check: now if this job is a victim of a lower class than before, else at the
        // end of its slice.
        Kind& others = kinds_[kind];
        if (port.level < others.preempt_check_level) others.preempt_check_ps = 0;
        if (port.slice_end_ps < others.preempt_check_ps) others.preempt_check_ps = port.slice_end_ps;
        const uint64_t at = others.preempt_check_ps < now ? now : others.preempt_check_ps;
        if (at < look) look = at;
    }
    if (has_cores(kind)) {
        if (engines_.busy_vector() > queue.ports) {
            if (engines_.only_level(kind, port.level) && queue.ports == 1 && !tenants_.several()) [[likely]] {
                // All the cores are held by its own class.
                port.core_check_ps = port.slice_end_ps;
                if (port.slice_end_ps < look) look = port.slice_end_ps;
            } else {
                watch_cores(port, queue, now, waited_ps);
            }
        }
        if (queue.context->quota_period_us != 0) [[unlikely]]
            quotas_.watch(*queue.context, now);
    }
    wake_ports(look);
}

// Packet `next` has just started on the port: fills in the port's row. `size`: groups or bytes.
[[gnu::always_inline]] inline void Scheduler::job_started(Queue& queue, Port& port, uint32_t kind,
                                                          uint64_t header, uint64_t size, uint64_t now,
                                                          uint64_t waited_ps) {
    const uint32_t opcode = packet_opcode(&header);
    trace::start_job(*hal_, queue.number, engines_.number(port), opcode, queue.next, size);
    port.groups = size < 0xffffffff ? static_cast<uint32_t>(size) : 0xffffffff;
    run_queue(kind).advance(queue);
    set_times(port, kind, queue, queue.limit_ps, now, waited_ps);
    ++queue.in_flight;
    port.opcode = static_cast<uint8_t>(opcode);
    consume_packet(queue, header);
}

// Starts packet `next` of the queue, which has been read, on a free port.
[[gnu::noinline]] void Scheduler::start_job(Queue& queue, Port& port, uint64_t now, uint64_t waited_ps) {
    uint64_t desc[kDescWords];
    build_descriptor(queue.packet, queue.context->number, desc);
    engines_.give_share(*hal_, port, level_on_cores(queue),
                        static_cast<uint16_t>(queue.weight * kPortWeight));
    engines_.start(*hal_, port, desc, queue, queue.next);
    job_started(queue, port, port.kind, queue.packet[0], work_of(queue.packet), now, waited_ps);
    if (!suspended_.idle()) claim_area(port);
}

// Starts packet `next` as it stands in the queue's ring slot; its header has been seen and is launchable().
// False: the chip does not take it, and nothing has happened; reading it will show why.
template <Scheduler::Onto kOnto>
[[gnu::always_inline]] inline bool Scheduler::launch(Queue& queue, Port& port, uint32_t kind, uint64_t now,
                                                     uint64_t waited_ps, uint32_t rule) {
    const uint64_t header = queue.packet[0];
    const uint32_t base = engines_.reg(port, 0);
    slots_.show(*hal_, queue, !has_cores(kind) && packet_opcode(&header) != ORR_PKT_FILL,
                shows_all_words(kind));
    const uint8_t level = level_on_cores(queue);
    if (kOnto == Onto::kFree)
        engines_.give_share(*hal_, port, level, static_cast<uint16_t>(queue.weight * kPortWeight));
    else if (queue.ports == 1)
        engines_.set_share(*hal_, port, level, static_cast<uint16_t>(queue.weight * kPortWeight));
    else
        engines_.set_share(*hal_, port, level, port.weight);
    hal_->set_reg(base + SOC_ENGINE_DESC, descriptor_word(packet_opcode(&header), queue.context_number));
    const uint32_t tag = engines_.next_tag();
    hal_->set_reg(base + SOC_ENGINE_LAUNCH, uint64_t{queue.ring_slot} << 32 | tag);
    const uint64_t size = hal_->reg(SOC_LAUNCH_RESULT);
    if (size == ~uint64_t{0}) [[unlikely]]
        return false;
    const uint64_t index = queue.next;
    if (rule != 0) trace::decision(*hal_, queue.number, rule, trace_resource(kind), 1, index);
    if constexpr (kOnto == Onto::kFree)
        engines_.take(port, kind, queue, index, tag);
    else
        engines_.take_again(port, index, tag);
    job_started(queue, port, kind, header, size, now, waited_ps);
    // A chained launch inherits its predecessor's save area.
    if (kOnto == Onto::kFree && !suspended_.idle()) [[unlikely]]
        claim_area(port);
    return true;
}

// The packet with the header that has been seen can be launched on a port of this kind.
inline bool Scheduler::launchable(const Queue& queue, uint32_t kind) {
    const uint32_t opcode = packet_opcode(queue.packet);
    if (!runs_on(kind, opcode)) return false;
    const uint32_t flags = packet_flags(queue.packet);
    return flags == 0 || flags == ORR_PKT_F_INTERRUPT ||
           ((flags & ~(ORR_PKT_F_ORDERED | ORR_PKT_F_INTERRUPT)) == 0 && queue.in_flight == 0);
}

Scheduler::Step Scheduler::execute_on_engine(Queue& queue, uint32_t kind) {
    if (!engines_.has(kind)) {
        fail(queue, {ORR_QERR_NOT_IMPLEMENTED, queue.next, 0, queue.packet[0]});
        return Step::kFailed;
    }
    const uint64_t now = hal_->reg(SOC_TIME);
    if (has_cores(kind) && queue.context->throttled) {
        place(queue, Place::kQuota);
        quotas_.add_waiter(queue);
        return Step::kParked;
    }
    if (queue.gang != 0) {
        gangs_.join(queue);
        // It may have failed, or started already: then it is ready for its next packet.
        return queue.stopping ? Step::kFailed : Step::kParked;
    }
    if (!may_start(queue, kind)) {
        park_for_area(queue, kind);
        return Step::kParked;
    }
    Port* const port = find_port(kind, queue.priority);
    if (port == nullptr) {
        note_waiter(kind, queue.priority);
        run_queue(kind).enqueue(queues_, queue);
        place_for_engine(queue, Place::kPort, kind);
        begin_wait(queue, now);
        request_preemption_if_due(kind, queue.priority, now);
        return Step::kParked;
    }
    trace::decision(*hal_, queue.number, ORR_RULE_ONLY, trace_resource(kind), 1, queue.next);
    run_queue(kind).limit_lag(queue);
    start_job(queue, *port, now, 0);
    return Step::kStarted;
}

// Starts packet `next` on an engine if its header is enough for that. False: it has to be read.
bool Scheduler::try_launch(Queue& queue) {
    if (queue.ring_slot == kNoSlot) slots_.attach(*hal_, queues_, queue);
    if (queue.packet[0] == 0) queue.packet[0] = slots_.peek(*hal_, queue);
    return for_packet(packet_opcode(queue.packet), [&](auto of) {
        return queue.gang == 0 && !(of.row.cores && queue.context->throttled) && launch_now(queue, of.kind);
    });
}

[[gnu::always_inline]] inline bool Scheduler::launch_now(Queue& queue, uint32_t kind) {
    Port* const port = engines_.find_free(kind);
    if (port == nullptr || !launchable(queue, kind) || !may_start(queue, kind)) return false;
    run_queue(kind).limit_lag(queue);
    return launch<Onto::kFree>(queue, *port, kind, hal_->reg(SOC_TIME), 0, ORR_RULE_ONLY);
}

[[gnu::noinline]] void Scheduler::resume_job(Suspended& job, Port& port, uint64_t now) {
    Queue& queue = *job.queue;
    const WorkingFor blame(*persist_, queue.number);
    const auto area = static_cast<uint8_t>(job.number);
    suspended_.remove(job);
    run_queue(port.kind).advance(queue);
    engines_.give_share(*hal_, port, level_on_cores(queue),
                        static_cast<uint16_t>(queue.weight * kPortWeight));
    engines_.resume(*hal_, port, area, suspended_.offset(area), queue, job.index);
    port.opcode = job.opcode;
    set_times(port, port.kind, queue, job.limit_ps, now, 0);
    --queue.suspended;
    trace::resume(*hal_, queue.number, engines_.number(port), job.index);
    update_idle_state(queue);
}

// Other ports hold cores too: when to check that this one gets its share.
[[gnu::noinline]] void Scheduler::watch_cores(Port& port, Queue& queue, uint64_t now, uint64_t waited_ps) {
    // Soon if lower classes hold the cores, within the starvation bound if higher ones do.
    const uint32_t levels = engines_.levels(port.kind);
    port.core_check_ps = port.slice_end_ps;
    if ((levels & ((1u << port.level) - 1)) != 0) {
        // Lower classes have a grace period before they lose a core; the time that this job has waited for
        // its port counts towards it.
        port.core_check_ps =
            now + (policy_.grace_ps > waited_ps + kLaunchPs ? policy_.grace_ps - waited_ps : kLaunchPs);
        watch_lower_classes(port.level, now);
    }
    if (levels >> port.level > 1) {
        port.starved_since_ps = now;
        if (port.core_check_ps > now + policy_.bound_ps) port.core_check_ps = now + policy_.bound_ps;
    }
    // Between tenants the cores are shared out promptly, not only the ports.
    if (tenants_.several() && port.core_check_ps > now + policy_.slice_ps / 4)
        port.core_check_ps = now + policy_.slice_ps / 4;
    wake_ports(port.core_check_ps);
    if (queue.ports > 1 || tenants_.several()) share_cores(queue);
}

// A job of a higher class has started: the starvation clocks of those below begin to run.
void Scheduler::watch_lower_classes(uint32_t level, uint64_t now) {
    for (uint32_t n = 0; n < engines_.end(); ++n) {
        Port& port = engines_.row(n);
        if (!port.busy || !has_cores(port.kind) || port.level >= level || port.starved_since_ps != kNever)
            continue;
        port.starved_since_ps = now;
        if (port.core_check_ps > now + policy_.bound_ps) port.core_check_ps = now + policy_.bound_ps;
        wake_ports(port.core_check_ps);
    }
}

// Grants the free ports of a kind to those that wait, in order.
[[gnu::noinline]] void Scheduler::grant_free_ports(uint32_t kind, uint64_t now) {
    while (waiting(kind)) {
        Port* const port = find_port(kind, StarvationBound::highest(waiting_classes(kind)));
        if (port == nullptr) {
            request_preemption_if_due(kind, StarvationBound::highest(waiting_classes(kind)), now);
            return;
        }
        if (!grant_port(*port, now)) return;
    }
}

// Gives the free port to the next candidate. False: there is none.
bool Scheduler::grant_port(Port& port, uint64_t now) {
    RunQueue& waiters = run_queue(port.kind);
    const uint32_t classes = waiting_classes(port.kind);
    if (classes == 0) return false;
    const StarvationBound::Choice choice =
        starvation_bound(port.kind).choose(classes, 0, now, policy_.bound_ps);
    const uint32_t level = choice.due ? choice.level : fair_level(port.kind, classes, choice.level);
    const auto [queue, job] = next_of(port.kind, level);
    if (queue == nullptr) return false;
    if (queue->context->throttled && has_cores(port.kind)) {
        if (job != nullptr) {
            suspended_.remove(*job);
            suspended_.hold(*job);
            return true;
        }
        end_wait(*queue, now);
        unplace(*queue);
        quotas_.add_waiter(*queue);
        place(*queue, Place::kQuota);
        return true;
    }
    if (job == nullptr && !may_start(*queue, port.kind)) {
        end_wait(*queue, now);
        unplace(*queue);
        park_for_area(*queue, port.kind);
        return true;
    }
    const uint32_t candidates = waiters.count() + suspended_.count(port.kind);
    const uint32_t in_class =
        waiters.count_of(level) + (suspended_.front(port.kind, level) != nullptr ? 1 : 0);
    trace::decision(*hal_, queue->number,
                    choice.due                               ? ORR_RULE_BOUND
                    : job != nullptr && job->first           ? ORR_RULE_RESUME
                    : candidates == 1                        ? ORR_RULE_ONLY
                    : in_class == 1 && level == choice.level ? ORR_RULE_PRIORITY
                                                             : ORR_RULE_SHARE,
                    trace_resource(port.kind), candidates, job != nullptr ? job->index : queue->next);
    starvation_bound(port.kind).served(level);
    uint64_t slice = bound_slice_ps(*queue);
    if (job != nullptr) {
        if (job->slice_left_us != 0) slice = job->slice_left_us * kPsPerUs;
        resume_job(*job, port, now);
    } else {
        start_waiter(*queue, port, now);
    }
    if (choice.due && port.busy) boost_priority(port, now, slice);
    if (level < choice.level && port.busy && has_cores(port.kind)) lower_ports(port, now);
    return true;
}

// Starts a waiting queue's next packet on the port.
[[gnu::noinline]] void Scheduler::start_waiter(Queue& queue, Port& port, uint64_t now) {
    const WorkingFor blame(*persist_, queue.number);
    const uint64_t waited = queue.ready_since_ps == 0 ? 0 : now - queue.ready_since_ps;
    starvation_bound(port.kind).served(queue.priority);
    end_wait(queue, now);
    if (start_for_waiter(queue, port, now, waited) && next_uses_engine(queue, port.kind)) {
        add_vtime(queue, Resource::kTurn, policy_.turn_ps);
        queue.ready_since_ps = now;
        run_queue(port.kind).requeue(queues_, queue);
        return;
    }
    if (queue.place != Place::kNone) {
        run_queue(port.kind).dequeue(queues_, queue);
        place(queue, Place::kNone);
        make_ready(queue);
    }
}

bool Scheduler::start_for_waiter(Queue& queue, Port& port, uint64_t now, uint64_t waited_ps) {
    if (!queue.has_packet) {
        if (queue.ring_slot == kNoSlot) slots_.attach(*hal_, queues_, queue);
        if (queue.packet[0] == 0) queue.packet[0] = slots_.peek(*hal_, queue);
        if (launchable(queue, port.kind) && launch<Onto::kFree>(queue, port, port.kind, now, waited_ps, 0))
            return true;
        if (!fetch_for(queue, port.kind)) return false;
    }
    start_job(queue, port, now, waited_ps);
    return true;
}

// Whether the next packet uses this kind of engine too: then the queue stays enqueued for it and needs no
// turn. A header that cannot be read is zero; the fault is reported when it is fetched.
[[gnu::always_inline]] inline bool Scheduler::next_uses_engine(Queue& queue, uint32_t kind) {
    if (queue.next == queue.producer || queue.next - queue.retired == kWindow || queue.ring_slot == kNoSlot)
        return false;
    queue.packet[0] = slots_.peek(*hal_, queue);
    if (queue.packet[0] == 0) hal_->set_reg(SOC_WINDOW_FAULT, 0);
    if ((packet_flags(queue.packet) & ORR_PKT_F_ORDERED) != 0) return false;
    return runs_on(kind, packet_opcode(queue.packet));
}

// Fetches the next packet of a queue that waits for a port. False: it needs another resource, or the queue
// has been stopped.
bool Scheduler::fetch_for(Queue& queue, uint32_t kind) {
    if (!fetch(queue)) return false;
    if ((packet_flags(queue.packet) & ORR_PKT_F_ORDERED) != 0 && queue.in_flight != 0) return false;
    return runs_on(kind, packet_opcode(queue.packet));
}

bool Scheduler::drain_completions() {
    // Progress is published once per queue, not once per job.
    Queue* finished = nullptr;
    WorkingForEach blame(*persist_);
    uint32_t n = 0;
    for (; n < kEventsPerPass; ++n) {
        const uint64_t popped = hal_->reg(SOC_DONE_POP);
        if (popped == ~uint64_t{0}) break;
        Port* const port = engines_.find_done(popped);
        if (port == nullptr) [[unlikely]] {
            ++stats_.wild_completions;
            continue;
        }
        Queue& queue = *port->queue;
        if (finished != &queue && finished != nullptr) continue_after_completion(*finished);
        finished = nullptr;
        blame.now(queue.number);  // NOLINT(clang-analyzer-core.NullDereference): a busy port has a queue
        const Done done = account(queue, *port);
        const uint32_t kind = port->kind;
        if (done.status == ORR_DONE_OK && port->special == kPlain && queue.ending == 0 &&
            (!gangs_.watches() || !has_cores(kind))) [[likely]] {
            --queue.in_flight;
            ++queue.stats.finished;
            queue.done |= 1u << static_cast<uint32_t>(port->index - queue.retired);
            finished = &queue;
            if (chain_launch(queue, *port)) continue;
            release_port(queue, *port);
        } else {
            release_port(queue, *port);
            if (complete(queue, *port, done)) finished = &queue;
        }
        if (!waiting(kind)) continue;
        hal_->activity(ORR_ACTIVITY_SCHEDULING);
        const uint64_t now = hal_->reg(SOC_TIME);
        Queue* const only = run_queue(kind).solo();
        if (only != nullptr && suspended_.classes(kind) == 0 && !only->context->throttled &&
            engines_.held() == 0 && may_start(*only, kind)) {
            // A single waiter: it gets the port without a choice.
            trace::decision(*hal_, only->number, ORR_RULE_ONLY, trace_resource(kind), 1, only->next);
            start_waiter(*only, *port, now);
        } else {
            grant_free_ports(kind, now);
        }
        hal_->activity(ORR_ACTIVITY_COMPLETIONS);
    }
    if (finished != nullptr && !(finished->place == Place::kOwn && finished->has_packet && go_on(*finished)))
        continue_after_completion(*finished);
    areas_freed();
    if (!engines_.busy() && !any_waiting()) rest_engines();
    return n != 0;
}

// Nothing runs on the engines, and nobody waits for a port: who had more of them than others is forgotten.
[[gnu::noinline]] void Scheduler::rest_engines() {
    if (alarm_->at(Alarm::kPorts) != kNever) alarm_->set(*hal_, Alarm::kPorts, kNever);
    if (area_waiting_ != 0 || suspended_.taken() != 0) return;
    for (const EngineKind& row : kEngineKinds)
        run_queue(row.kind).rest(greatest_vtime_[static_cast<uint32_t>(ports_of(row.kind))]);
}

// After a restart: completions of the time between. No queue waits for a port yet.
void Scheduler::take_completions() {
    for (uint64_t popped; (popped = hal_->reg(SOC_DONE_POP)) != ~uint64_t{0};) {
        Port* const port = engines_.find_done(popped);
        if (port == nullptr) {
            ++stats_.wild_completions;
            continue;
        }
        Queue& queue = *port->queue;
        const WorkingFor blame(*persist_, queue.number);
        const Done done = account(queue, *port);
        release_port(queue, *port);
        if (complete(queue, *port, done)) continue_after_completion(queue);
    }
}

// Launches the queue's next packet on the port of its job that has just ended, if nobody else waits: no port
// is freed and taken again. False: not possible, or the packet has to be read first; the port is unchanged.
[[gnu::always_inline]] inline bool Scheduler::chain_launch(Queue& queue, Port& port) {
    RunQueue& waiters = run_queue(port.kind);
    if (waiters.solo() != &queue || queue.has_packet || suspended_.classes(port.kind) != 0 ||
        queue.ring_slot == kNoSlot || !launchable(queue, port.kind) || queue.context->throttled ||
        engines_.held() != 0)
        return false;
    const uint64_t now = hal_->reg(SOC_TIME);
    const uint64_t waited = queue.ready_since_ps == 0 ? 0 : now - queue.ready_since_ps;
    if (!launch<Onto::kSame>(queue, port, port.kind, now, waited, ORR_RULE_ONLY)) return false;
    end_wait(queue, now);
    // The window is full: publishing now makes room, and the queue keeps its place.
    if (queue.next - queue.retired == kWindow && (queue.done & 1) != 0 && !publish_or_fail(queue))
        return true;
    if (next_uses_engine(queue, port.kind)) {
        add_vtime(queue, Resource::kTurn, policy_.turn_ps);
        queue.ready_since_ps = now;
        waiters.limit_lag(queue);
        return true;
    }
    waiters.dequeue(queues_, queue);
    place(queue, Place::kNone);
    make_ready(queue);
    return true;
}

[[gnu::always_inline]] inline void Scheduler::release_port(Queue& queue, Port& port) {
    engines_.release(port);
    if (has_cores(port.kind) && (queue.ports != 0 || tenants_.several())) share_cores(queue);
}

// Some of the queue's jobs have finished: publishes its progress, and makes it ready if its next packet
// waited for them. The caller has set WorkingFor to this queue.
void Scheduler::continue_after_completion(Queue& queue) {
    if (queue.ending != 0) return;
    if ((queue.done & 1) != 0) {
        bool good = false;
        ORRERY_FW_INLINE good = publish_or_fail(queue);
        if (!good) return;
    }
    if (queue.place == Place::kNone) update_idle_state(queue);
    if (queue.place != Place::kOwn) return;
    if (queue.has_packet ? queue.in_flight == 0 : queue.next - queue.retired < kWindow) make_ready(queue);
}

// Charges the engine time used by the port's job to its queue, process, user and quota. `used_ps` counts from
// its start or resumption.
[[gnu::always_inline]] inline void Scheduler::add_used(Queue& queue, Port& port, uint64_t used_ps,
                                                       uint64_t now) {
    const uint64_t more = used_ps > port.charged_ps ? used_ps - port.charged_ps : 0;
    port.charged_ps = used_ps;
    for_kind(port.kind, [&](auto of) {
        uint64_t& used = queue.stats.used_ps[of.kind - 1];
        used += more;
        publish_usage(queue, of.row.usage, used);
        add_vtime(queue, ports_of(of.kind), of.row.cores ? more / engines_.vector_cores() : more);
        if (of.row.cores && queue.context->quota_period_us != 0) [[unlikely]]
            quotas_.charge(*queue.context, more, now);
    });
}

void Scheduler::charge(Port& port, uint64_t used_ps, uint64_t now) {
    add_used(*port.queue, port, used_ps, now);
}

// Traces the completion that was popped last, and charges its time.
[[gnu::always_inline]] inline Scheduler::Done Scheduler::account(Queue& queue, Port& port) {
    const Done done{hal_->reg(SOC_DONE_STATUS), hal_->reg(SOC_DONE_START_PS), hal_->reg(SOC_DONE_END_PS)};
    const uint64_t used = hal_->reg(SOC_DONE_USED_PS);
    trace::end_job(*hal_, queue.number, engines_.number(port), static_cast<uint32_t>(done.status), port.index,
                   done.start, done.end, used);
    add_used(queue, port, used, done.end);
    return done;
}

// Of a kernel that failed: which of its items did; of a list, at which entry. Only the ring has room for it.
void Scheduler::tell_item(Queue& queue, uint64_t index) {
    if (queue.ring == 0 || (queue.stopping && index >= queue.error.index)) return;
    hal_->store(queue.ring + offsetof(orr_ring, error_item), hal_->reg(SOC_DONE_ITEM));
    hal_->store(queue.ring + offsetof(orr_ring, error_other), hal_->reg(SOC_DONE_OTHER));
    if (const WindowFault fault = take_window_fault(*hal_); fault && fault.host()) fatal_ = kHaltHostMemory;
}

// A completion that is not plain success: preempted, failed, or of a gang or a stopping queue. The port is
// free again, and nothing has been started on it. True: continue_after_completion() is due.
[[gnu::noinline]] bool Scheduler::complete(Queue& queue, Port& port, Done popped) {
    ++progress_;
    const uint64_t status = popped.status;
    const bool wanted = !queue.destroying && !(queue.stopping && port.index >= queue.error.index);
    const bool saved = status == ORR_DONE_PREEMPTED && wanted && !port.timed_out && port.area != kNoArea;
    if (port.gang != 0 || (gangs_.watches() && has_cores(port.kind))) [[unlikely]]
        gangs_.port_freed(port, saved                             ? Gangs::Left::kSaved
                                : wanted && status == ORR_DONE_OK ? Gangs::Left::kDone
                                                                  : Gangs::Left::kFailed);
    if (saved) {
        suspend(queue, port, popped.end - popped.start);
        return false;
    }
    if (port.area != kNoArea) suspended_.free_area(port.area);
    --queue.in_flight;
    ++queue.stats.finished;
    if (queue.destroying) {
        if (queue.in_flight == 0) finish_destroy(queue);
        return false;
    }
    if (!wanted) {
        // It came after the failed packet: not done, even if it ran to its end.
    } else if (status == ORR_DONE_OK) [[likely]] {
        queue.done |= 1u << static_cast<uint32_t>(port.index - queue.retired);
    } else {
        const uint64_t fault = hal_->reg(SOC_DONE_FAULT);
        const uint64_t detail = hal_->reg(SOC_DONE_DETAIL);
        QueueError error{ORR_QERR_BAD_DESC, port.index, 0, status};
        if (status == ORR_DONE_FAULT) error = {ORR_QERR_FAULT, port.index, detail, fault};
        if (status == ORR_DONE_TRAP) error = {ORR_QERR_KERNEL_TRAP, port.index, detail, fault};
        if (status == ORR_DONE_ABORTED || status == ORR_DONE_PREEMPTED)
            error = {ORR_QERR_TIMEOUT, port.index, 0, 0};
        if (status == ORR_DONE_FAULT || status == ORR_DONE_TRAP || status == ORR_DONE_BAD_DESC)
            tell_item(queue, port.index);
        fail(queue, error);
        if (port.gang != 0) gangs_.failed(port.gang, queue);
        return false;
    }
    if (!queue.stopping) [[likely]]
        return true;
    if (queue.in_flight == 0) publish_error(queue);
    return false;
}

void Scheduler::abort_jobs(Queue& queue, uint64_t first) {
    if (queue.suspended != 0) drop_suspended(queue, first);
    if (queue.in_flight != 0) engines_.abort(*hal_, queue, first);
}

void Scheduler::on_timer(uint64_t now) {
    deadlocks_.on_timer(now);
    if (alarm_->at(Alarm::kPorts) <= now) check_ports(now);
    if (alarm_->at(Alarm::kQuota) <= now) quotas_.check(now);
    if (alarm_->at(Alarm::kGang) <= now) gangs_.check(now);
    failing_.serve(now);
    check_wait_limits(now);
}

}  // namespace orrery::fw
