// SPDX-License-Identifier: MIT
// Packets that run on engines: from a free port to the completion.
#include "firmware/sched/packets.h"
#include "firmware/sched/scheduler.h"

namespace orrery::fw {
namespace {

// For traces: bytes of a copy or fill, groups of a dispatch.
uint64_t job_size(const uint64_t (&words)[kPacketWords]) {
    const uint32_t opcode = packet_opcode(words);
    if (opcode == ORR_PKT_COPY) return words[3] * (words[4] & 0xffffffff);
    if (opcode == ORR_PKT_FILL) return words[3] * (words[4] & 0xffffffff);
    return (words[3] & 0xffffffff) * (words[3] >> 32) * (words[4] & 0xffffffff);
}

}  // namespace

Scheduler::Step Scheduler::execute_on_engine(Queue& queue, uint32_t opcode) {
    const uint32_t kind = opcode == ORR_PKT_DISPATCH ? ORR_ENGINE_VECTOR : ORR_ENGINE_COPY;
    if (!engines_.has(kind)) {
        fail(queue, {ORR_QERR_NOT_IMPLEMENTED, queue.next, 0, queue.packet[0]});
        return Step::kFailed;
    }
    Port* const port = engines_.find_free(kind);
    if (port == nullptr) {
        place(queue, kind == ORR_ENGINE_COPY ? Place::kCopyPort : Place::kVectorPort);
        port_waiters(kind).push_back(queues_, queue);
        return Step::kParked;
    }
    return engine_step(queue, *port);
}

Scheduler::Step Scheduler::engine_step(Queue& queue, Port& port) {
    uint64_t desc[kDescWords];
    build_descriptor(queue.packet, queue.context->number, desc);
    uint64_t deadline = kNever;
    if (port.kind == ORR_ENGINE_VECTOR) {
        const uint64_t now = hal_->reg(SOC_TIME);
        deadline = now < kNever - queue.limit_ps ? now + queue.limit_ps : kNever - 1;
    }
    engines_.start(*hal_, port, desc, queue, queue.next, deadline);
    if (deadline < alarm_->at(Alarm::kWatchdog)) alarm_->set(*hal_, Alarm::kWatchdog, deadline);
    ++queue.in_flight;
    trace::start_job(*hal_, queue.number, engines_.number(port), packet_opcode(queue.packet), queue.next,
                     job_size(queue.packet));
    consume_packet(queue);
    return Step::kStarted;
}

// A port has become free: the queue that has waited longest for one gets it.
void Scheduler::serve_port_waiters(uint32_t kind) {
    QueueList& waiters = port_waiters(kind);
    while (!waiters.empty()) {
        Port* const port = engines_.find_free(kind);
        if (port == nullptr) return;
        Queue& queue = *waiters.pop_front(queues_);
        place(queue, Place::kNone);
        engine_step(queue, *port);
        make_ready(queue);
    }
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
        complete(*done.queue, done, static_cast<uint32_t>(popped >> 32));
        serve_port_waiters(done.kind);
    }
    return true;
}

void Scheduler::complete(Queue& queue, const Port& port, uint32_t number) {
    --queue.in_flight;
    ++progress_;
    if (engines_.timed() == 0 && port.deadline != kNever) alarm_->set(*hal_, Alarm::kWatchdog, kNever);

    const uint64_t status = hal_->reg(SOC_DONE_STATUS);
    trace::end_job(*hal_, queue.number, number, static_cast<uint32_t>(status), port.index,
                   hal_->reg(SOC_DONE_START_PS), hal_->reg(SOC_DONE_END_PS), 0);
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
    if (queue.place == Place::kNone) rest(queue);
    if (queue.place != Place::kOwn) return;
    const bool go_on = queue.has_packet ? queue.in_flight == 0 : queue.next - queue.retired < kWindow;
    if (go_on) make_ready(queue);
}

void Scheduler::on_timer(uint64_t now) {
    deadlocks_.on_timer(now);
    if (alarm_->at(Alarm::kWatchdog) > now) return;
    alarm_->set(*hal_, Alarm::kWatchdog, engines_.expire(*hal_, now));
}

}  // namespace orrery::fw
