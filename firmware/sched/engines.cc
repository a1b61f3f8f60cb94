// SPDX-License-Identifier: MIT
#include "firmware/sched/engines.h"

namespace orrery::fw {

void Engines::discover(Hal& hal, Port* rows) {
    ports_ = rows;
    vector_cores_ = static_cast<uint32_t>(hal.reg(SOC_CONFIG) >> 48);
    if (vector_cores_ == 0) vector_cores_ = 1;
    for (uint32_t n = 0; n < SOC_ENGINES_MAX; ++n) {
        const uint64_t kind = hal.reg(SOC_ENGINE(n) + SOC_ENGINE_KIND);
        if (kind == ORR_ENGINE_COPY || kind == ORR_ENGINE_VECTOR) end_ = n + 1;
    }
}

void Engines::collect() {
    pools_[0] = pools_[1] = {};
    busy_ = 0;
    // From the last to the first, so that the first port is taken first.
    for (uint32_t n = end_; n-- > 0;) {
        Port& port = ports_[n];
        name(port);
        if (port.kind == 0) continue;
        Pool& p = pool(port.kind);
        ++p.ports;
        if (port.busy) {
            ++busy_;
            ++port.queue->ports;
            ++p.at_level[port.level];
            if (port.tag >= next_tag_) next_tag_ = port.tag + 1;
        } else {
            p.free[p.free_count++] = static_cast<uint8_t>(n);
        }
    }
}

void Engines::take(Port& port, Queue& queue, uint64_t index) {
    Pool& p = pool(port.kind);
    --p.free_count;
    ++p.at_level[port.level];
    ++busy_;
    ++queue.ports;
    port.queue = &queue;
    port.number = queue.number;
    port.index = index;
    port.tag = next_tag_++;
    port.slice_end_ps = port.grace_ps = port.starved_ps = port.below_ps = kNever;
    port.charged_ps = 0;
    port.preempting = 0;
    port.groups = 0;
    port.area = kNoArea;
    port.busy = true;
    port.timed_out = port.aborted = port.boosted = port.gang = port.cross = false;
}

void Engines::start(Hal& hal, Port& port, const uint64_t (&desc)[kDescWords], Queue& queue, uint64_t index) {
    take(port, queue, index);
    const uint32_t base = reg(port, 0);
    hal.set_regs(base + SOC_ENGINE_DESC, desc);
    hal.set_reg(base + SOC_ENGINE_START, port.tag);
}

void Engines::resume(Hal& hal, Port& port, uint8_t area, uint64_t save, Queue& queue, uint64_t index) {
    take(port, queue, index);
    port.area = area;
    hal.set_reg(reg(port, SOC_ENGINE_SAVE), save);
    hal.set_reg(reg(port, SOC_ENGINE_RESUME), port.tag);
}

void Engines::set_share(Hal& hal, Port& port, uint8_t level, uint16_t weight) {
    if (port.level != level) {
        if (port.busy) {
            --pool(port.kind).at_level[port.level];
            ++pool(port.kind).at_level[level];
        }
        port.level = level;
        if (port.kind == ORR_ENGINE_VECTOR) hal.set_reg(reg(port, SOC_ENGINE_PRIORITY), level);
    }
    if (port.weight != weight) {
        port.weight = weight;
        if (port.kind == ORR_ENGINE_VECTOR) hal.set_reg(reg(port, SOC_ENGINE_WEIGHT), weight);
    }
}

Port* Engines::complete(uint64_t popped) {
    const uint64_t n = popped >> 32;
    if (n >= SOC_ENGINES_MAX) return nullptr;
    Port& port = ports_[n];
    if (!port.busy || port.tag != static_cast<uint32_t>(popped)) return nullptr;
    port.busy = false;
    --busy_;
    --port.queue->ports;
    Pool& p = pool(port.kind);
    --p.at_level[port.level];
    p.free[p.free_count++] = static_cast<uint8_t>(n);
    return &port;
}

void Engines::abort(Hal& hal, const Queue& queue, uint64_t first) {
    for (uint32_t n = 0; n < end_; ++n) {
        Port& port = ports_[n];
        if (port.busy && port.queue == &queue && port.index >= first) abort(hal, port);
    }
}

}  // namespace orrery::fw
