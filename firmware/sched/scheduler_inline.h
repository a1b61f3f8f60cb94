// SPDX-License-Identifier: MIT
// The small steps that every packet takes: inline wherever they are taken. Part of scheduler.h.
#pragma once

#include "firmware/hal/bits.h"
#include "firmware/sched/queue/packets.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {

inline void Scheduler::make_ready(Queue& queue) {
    turns_.enqueue(queues_, queue);
    place(queue, Place::kReady);
    begin_wait(queue, hal_->reg(SOC_TIME));
}

// Statistics: the queue could run, but does not.
inline void Scheduler::begin_wait(Queue& queue, uint64_t now) {
    if (queue.ready_since_ps == 0) queue.ready_since_ps = now;
}

inline void Scheduler::end_wait(Queue& queue, uint64_t now) {
    if (queue.ready_since_ps == 0) return;
    const uint64_t waited = now - queue.ready_since_ps;
    queue.ready_since_ps = 0;
    queue.stats.ready_ps += waited;
    raise(queue.stats.longest_ready_ps, waited);
}

inline void Scheduler::place(Queue& queue, Place place) {
    static constexpr uint8_t kState[] = {ORR_TSTATE_IDLE,      ORR_TSTATE_READY, ORR_TSTATE_IDLE,
                                         ORR_TSTATE_SEMAPHORE, ORR_TSTATE_OWN,   ORR_TSTATE_QUOTA,
                                         ORR_TSTATE_GANG,      ORR_TSTATE_IDLE};
    queue.place = place;
    if (place != Place::kNone) set_state(queue, kState[static_cast<uint8_t>(place)]);
}

// Place::kPort or Place::kArea.
inline void Scheduler::place_for_engine(Queue& queue, Place place, uint32_t kind) {
    queue.place = place;
    queue.engine_kind = static_cast<uint8_t>(kind);
    set_state(queue, of_kind<&EngineKind::waiting>(kind));
}

inline void Scheduler::set_state(Queue& queue, uint32_t state) {
    if (queue.state == state) return;
    queue.state = static_cast<uint8_t>(state);
    trace::state(*hal_, queue.number, state);
}

// Traces the state of a queue that is on no list: its own packets run, or it has none.
inline void Scheduler::update_idle_state(Queue& queue) {
    if (queue.place != Place::kNone) return;
    set_state(queue, queue.stopped                        ? ORR_TSTATE_STOPPED
                     : queue.in_flight == 0               ? ORR_TSTATE_IDLE
                     : queue.in_flight == queue.suspended ? ORR_TSTATE_SUSPENDED
                                                          : ORR_TSTATE_OWN);
}

// `header`: the packet's first word.
inline void Scheduler::consume_packet(Queue& queue, uint64_t header) {
    if ((packet_flags(&header) & ORR_PKT_F_INTERRUPT) != 0) [[unlikely]]
        queue.interrupt |= 1u << static_cast<uint32_t>(queue.next - queue.retired);
    ++queue.next;
    queue.has_packet = false;
    queue.packet[0] = 0;
    ++progress_;
}

// Time used, scaled by the weight. A second at a time is enough: more would overflow for the lowest weight.
inline void Scheduler::add_vtime(Queue& queue, Resource resource, uint64_t used_ps) {
    constexpr uint32_t kMostBits = 40;
    if (used_ps >> kMostBits != 0) [[unlikely]]
        used_ps = (uint64_t{1} << kMostBits) - 1;
    uint64_t& vtime = queue.vtime[static_cast<uint32_t>(resource)];
    vtime += used_ps * queue.rate >> 16;
    raise(greatest_vtime_[static_cast<uint32_t>(resource)], vtime);
    if (tenants_.several()) [[unlikely]]
        tenants_.charge(queue, resource, used_ps);
}

// Publishes all that has finished in order: the ring first, because a process may be polling it, then the
// status line; in each the time before the index. The packet `retired` must have finished.
inline void Scheduler::publish_progress(Queue& queue) {
    uint32_t count = 1;
    for (uint32_t done = queue.done >> 1; (done & 1) != 0; done >>= 1)
        ++count;
    const bool wanted = queue.interrupt != 0 && (queue.interrupt & ((1u << count) - 1)) != 0;
    queue.done >>= count;
    queue.interrupt >>= count;
    queue.retired += count;
    progress_ += count;
    trace::retire(*hal_, queue.number, queue.retired);

    const uint64_t now = hal_->reg(SOC_SYSTEM_TIME);
    const uint64_t status = status_line(queue);
    hal_->store(queue.ring + offsetof(orr_ring, consumer_time_ps), now);
    hal_->store(status + offsetof(orr_queue_status, time_ps), now);
    hal_->fence();
    hal_->store(queue.ring + offsetof(orr_ring, consumer), queue.retired);
    hal_->store(status + offsetof(orr_queue_status, completed), queue.retired);
    if (wanted || (queue.armed && queue.retired >= queue.armed_first)) interrupt_host(queue);
}

// Publishes progress, of which there must be some. False: the ring is not usable; the queue has been stopped.
inline bool Scheduler::publish_or_fail(Queue& queue) {
    publish_progress(queue);
    if (const WindowFault fault = take_window_fault(*hal_)) [[unlikely]] {
        fail_window(queue, ORR_QERR_RING_FAULT, queue.retired, fault);
        return false;
    }
    return true;
}

}  // namespace orrery::fw
