// SPDX-License-Identifier: MIT
#include "firmware/sched/run/engines.h"

namespace orrery::fw {

void Engines::discover(Hal& hal, Port* rows) {
    ports_ = rows;
    vector_cores_ = static_cast<uint32_t>(hal.reg(SOC_KIND(kCoreKind) + SOC_KIND_UNITS));
    // Hardware 1.2 has no such block.
    if (vector_cores_ == 0) vector_cores_ = static_cast<uint32_t>(hal.reg(SOC_CONFIG) >> 48);
    if (vector_cores_ == 0) vector_cores_ = 1;
    for (uint32_t n = 0; n < SOC_ENGINES_MAX; ++n) {
        if (kind_at(hal, n) != 0) end_ = n + 1;
    }
}

uint32_t Engines::kind_at(Hal& hal, uint32_t port) {
    const uint64_t kind = hal.reg(SOC_ENGINE(port) + SOC_ENGINE_KIND);
    return kind < kKinds && is_known_kind(static_cast<uint32_t>(kind)) ? static_cast<uint32_t>(kind) : 0;
}

void Engines::collect() {
    for (Pool& p : pools_)
        p = {};
    for (uint32_t n = 0; n < end_; ++n) {
        Port& port = ports_[n];
        name(port);
        if (port.kind == 0) continue;
        Pool& p = pool(port.kind);
        ++p.ports;
        if (port.busy) {
            ++port.queue->ports;
            p.at_level += at(port.level);
            if (port.tag >= next_tag_) next_tag_ = port.tag + 1;
        } else {
            ++p.free_count;
            p.free |= uint64_t{1} << n;
        }
    }
}

void Engines::start(Hal& hal, Port& port, const uint64_t (&desc)[kDescWords], Queue& queue, uint64_t index) {
    take(port, port.kind, queue, index, next_tag());
    const uint32_t base = reg(port, 0);
    hal.set_regs(base + SOC_ENGINE_DESC, desc);
    hal.set_reg(base + SOC_ENGINE_START, port.tag);
}

void Engines::resume(Hal& hal, Port& port, uint8_t area, uint64_t save, Queue& queue, uint64_t index) {
    take(port, port.kind, queue, index, next_tag());
    port.area = area;
    hal.set_reg(reg(port, SOC_ENGINE_SAVE), save);
    hal.set_reg(reg(port, SOC_ENGINE_RESUME), port.tag);
}

[[gnu::noinline]] void Engines::change_share(Hal& hal, Port& port, uint8_t level, uint16_t weight) {
    if (port.level != level) {
        if (port.busy) {
            pool(port.kind).at_level += at(level) - at(port.level);
        }
        port.level = level;
        if (has_cores(port.kind)) hal.set_reg(reg(port, SOC_ENGINE_PRIORITY), level);
    }
    if (port.weight != weight) {
        port.weight = weight;
        if (has_cores(port.kind)) hal.set_reg(reg(port, SOC_ENGINE_WEIGHT), weight);
    }
}

void Engines::abort(Hal& hal, const Queue& queue, uint64_t first) {
    for (uint32_t n = 0; n < end_; ++n) {
        Port& port = ports_[n];
        if (port.busy && port.queue == &queue && port.index >= first) abort(hal, port);
    }
}

}  // namespace orrery::fw
