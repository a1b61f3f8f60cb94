// SPDX-License-Identifier: MIT
// Records of orrery/fw/trace.h: one inline function a type. A word costs a store and nothing else, whether
// anybody listens or not, so they are always on.
#pragma once

#include <orrery/fw/boot_block.h>
#include <orrery/fw/trace.h>

#include "firmware/hal/hal.h"

namespace orrery::fw::trace {

// Header with its type's words, in order.
template <typename... Words>
inline void write(Hal& hal, uint32_t type, uint32_t a, uint64_t b, Words... words) {
    hal.trace(ORR_TRACE_HEADER(type, sizeof...(words), a, b));
    (hal.trace(words), ...);
}

inline void start(Hal& hal, uint64_t inspect, uint32_t kind, uint32_t guilty) {
    write(hal, ORR_TRACE_START, 0, ORR_FW_ABI, inspect, kind | uint64_t{guilty} << 32);
}
inline void mail(Hal& hal, uint32_t opcode, uint32_t sequence, uint64_t status) {
    write(hal, ORR_TRACE_MAIL, opcode, sequence, status);
}
inline void context(Hal& hal, uint32_t number, bool created) {
    write(hal, ORR_TRACE_CONTEXT, number, created ? 1u : 0u);
}
inline void queue(Hal& hal, uint32_t number, uint32_t context, uint32_t priority, uint32_t weight,
                  uint32_t slice_us) {
    write(hal, ORR_TRACE_QUEUE, number, context,
          priority | uint64_t{weight & 0xffffu} << 16 | uint64_t{slice_us} << 32);
}
inline void queue_destroyed(Hal& hal, uint32_t number) {
    write(hal, ORR_TRACE_QUEUE, number, 0xffffffffu, uint64_t{0});
}
inline void doorbell(Hal& hal, uint32_t queue, uint64_t producer) {
    write(hal, ORR_TRACE_DOORBELL, queue, 0u, producer);
}
inline void state(Hal& hal, uint32_t queue, uint32_t state) {
    write(hal, ORR_TRACE_STATE, queue, state);
}
inline void decision(Hal& hal, uint32_t queue, uint32_t rule, uint32_t resource, uint32_t candidates,
                     uint64_t index) {
    write(hal, ORR_TRACE_DECISION, queue, rule | resource << 8 | candidates << 16, index);
}
inline void start_job(Hal& hal, uint32_t queue, uint32_t port, uint32_t opcode, uint64_t index,
                      uint64_t size) {
    write(hal, ORR_TRACE_START_JOB, queue, port | opcode << 16, index, size);
}
inline void end_job(Hal& hal, uint32_t queue, uint32_t port, uint32_t status, uint64_t index,
                    uint64_t start_ps, uint64_t end_ps, uint64_t used_ps) {
    write(hal, ORR_TRACE_END_JOB, queue, port | status << 16, index, start_ps, end_ps, used_ps);
}
inline void preempt(Hal& hal, uint32_t victim, uint32_t port, uint32_t how, uint32_t queue, uint64_t index) {
    write(hal, ORR_TRACE_PREEMPT, victim, port | how << 8 | queue << 16, index);
}
inline void resume(Hal& hal, uint32_t queue, uint32_t port, uint64_t index) {
    write(hal, ORR_TRACE_RESUME, queue, port, index);
}
inline void wait(Hal& hal, uint32_t queue, uint64_t memory, uint64_t value, uint64_t va, uint64_t index) {
    write(hal, ORR_TRACE_WAIT, queue, 0u, memory, value, va, index);
}
inline void wake(Hal& hal, uint32_t queue, uint32_t how, uint64_t memory, uint64_t value) {
    write(hal, ORR_TRACE_WAKE, queue, how, memory, value);
}
inline void signal(Hal& hal, uint32_t queue, uint32_t woken, uint64_t memory, uint64_t value, uint64_t va) {
    write(hal, ORR_TRACE_SIGNAL, queue, woken, memory, value, va);
}
inline void remote_signal(Hal& hal, uint32_t woken, uint64_t memory) {
    write(hal, ORR_TRACE_POKE, 0, woken, memory);
}
inline void retire(Hal& hal, uint32_t queue, uint64_t finished) {
    write(hal, ORR_TRACE_RETIRE, queue, 0u, finished);
}
inline void error(Hal& hal, uint32_t queue, uint32_t code, uint64_t index, uint64_t address,
                  uint64_t detail) {
    write(hal, ORR_TRACE_ERROR, queue, code, index, address, detail);
}
inline void deadlock(Hal& hal, uint32_t waits, uint32_t holds, uint32_t edge, uint32_t edges, uint64_t memory,
                     uint64_t value, uint64_t now) {
    write(hal, ORR_TRACE_DEADLOCK, waits, holds | edge << 16 | edges << 24, memory, value, now);
}
inline void quota(Hal& hal, uint32_t context, bool over, uint64_t used_ps) {
    write(hal, ORR_TRACE_QUOTA, context, over ? 1u : 0u, used_ps);
}
inline void gang(Hal& hal, uint32_t queue, uint32_t what, uint64_t round, uint64_t board) {
    write(hal, ORR_TRACE_GANG, queue, what, round, board);
}
inline void slot(Hal& hal, uint32_t queue, uint32_t slot, uint32_t loser) {
    write(hal, ORR_TRACE_SLOT, queue, slot | loser << 16);
}
inline void name(Hal& hal, uint32_t number, uint32_t kind, const char (&text)[24]) {
    uint64_t words[3];
    __builtin_memcpy(words, text, sizeof(words));
    write(hal, ORR_TRACE_NAME, number, kind, words[0], words[1], words[2]);
}

}  // namespace orrery::fw::trace
