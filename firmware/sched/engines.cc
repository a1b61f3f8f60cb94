// SPDX-License-Identifier: MIT
#include "firmware/sched/engines.h"

namespace orrery::fw {
namespace {

constexpr uint32_t port_reg(uint32_t port, uint32_t offset) {
    return SOC_ENGINE(port) + offset;
}

}  // namespace

void Engines::discover(Hal& hal) {
    // From the last to the first, so that the first port is taken first.
    for (uint32_t n = SOC_ENGINES_MAX; n-- > 0;) {
        const uint64_t kind = hal.reg(port_reg(n, SOC_ENGINE_KIND));
        if (kind != ORR_ENGINE_COPY && kind != ORR_ENGINE_VECTOR) continue;
        ports_[n].kind = static_cast<uint32_t>(kind);
        Pool& p = pool(ports_[n].kind);
        p.free[p.free_count++] = static_cast<uint8_t>(n);
        ++p.ports;
    }
}

void Engines::start(Hal& hal, Port& port, const uint64_t (&desc)[kDescWords], Queue& queue, uint64_t index,
                    uint64_t deadline) {
    --pool(port.kind).free_count;
    port.queue = &queue;
    port.number = queue.number;
    port.level = queue.priority;
    port.preempting = 0;
    port.index = index;
    port.deadline = deadline;
    port.tag = next_tag_++;
    port.busy = true;
    port.timed_out = false;
    if (deadline != kNever) ++timed_;

    const uint32_t n = number(port);
    for (uint32_t i = 0; i < kDescWords; ++i)
        hal.set_reg(port_reg(n, SOC_ENGINE_DESC + 8 * i), desc[i]);
    hal.set_reg(port_reg(n, SOC_ENGINE_START), port.tag);
}

Port* Engines::complete(uint64_t popped) {
    const uint64_t n = popped >> 32;
    if (n >= SOC_ENGINES_MAX) return nullptr;
    Port& port = ports_[n];
    if (!port.busy || port.tag != static_cast<uint32_t>(popped)) return nullptr;
    port.busy = false;
    if (port.deadline != kNever) --timed_;
    Pool& p = pool(port.kind);
    p.free[p.free_count++] = static_cast<uint8_t>(n);
    return &port;
}

void Engines::abort(Hal& hal, const Queue& queue, uint64_t first) {
    for (uint32_t n = 0; n < SOC_ENGINES_MAX; ++n) {
        const Port& port = ports_[n];
        if (port.busy && port.queue == &queue && port.index >= first)
            hal.set_reg(port_reg(n, SOC_ENGINE_ABORT), 1);
    }
}

uint64_t Engines::expire(Hal& hal, uint64_t now) {
    uint64_t earliest = kNever;
    for (uint32_t n = 0; n < SOC_ENGINES_MAX; ++n) {
        Port& port = ports_[n];
        if (!port.busy || port.timed_out) continue;
        if (port.deadline <= now) {
            port.timed_out = true;
            hal.set_reg(port_reg(n, SOC_ENGINE_ABORT), 1);
        } else if (port.deadline < earliest) {
            earliest = port.deadline;
        }
    }
    return earliest;
}

}  // namespace orrery::fw
