// Where cores are at each multiple of a period: their quanta say of the cycles, and what follows those is a
// wait for memory's bandwidth.
#include <algorithm>
#include <limits>

#include "emulator/engines/vector_unit_impl.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

// The first multiple of the period at or behind `time`.
ModelTime next_moment(ModelTime time, ModelTime period) {
    return (time + period - 1) / period * period;
}

std::uint64_t moments(ModelTime first, ModelTime end, ModelTime period) {
    return first >= end ? 0 : (end - first - 1) / period + 1;
}

}  // namespace

void VectorUnit::Impl::sample(ModelTime period) {
    if (period == sample_period) return;
    settle();
    sample_period = period;
    sampled_since = context.events.now();
    for (Core& core : cores) {
        core.sampled = false;
        core.core.sample(0, 0);
    }
}

void VectorUnit::Impl::begin_samples(Core& core, ModelTime now) {
    core.sampled = context.jobs != nullptr && !debugger->attached();
    if (core.sampled) core.core.sample(next_moment(now, sample_period) - now, sample_period);
}

void VectorUnit::Impl::tell_sample(const Core& core, ModelTime first, std::uint64_t count, std::uint64_t pc,
                                   std::uint32_t cause) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (context.jobs == nullptr || count == 0) return;
    context.jobs->was_at({.first_ps = first,
                          .port = core.port->number(),
                          .core = core.number,
                          .asid = core.port->kernel().asid,
                          .count = static_cast<std::uint32_t>(std::min(count, kMost)),
                          .job_start_ps = core.port->start_ps(),
                          .pc = pc,
                          .group = core.core.group(),
                          .cause = cause});
}

void VectorUnit::Impl::tell_samples(const Core& core, const Core::Busy& busy, ModelTime now) {
    const PcSampler* const samples = core.core.samples();
    if (samples == nullptr) return;
    for (const PcSampler::Stay& stay : samples->stays()) {
        const ModelTime first = busy.since + stay.first;
        // One that was cut off was not there any more.
        tell_sample(core, first, std::min(stay.count, moments(first, now, sample_period)), stay.pc,
                    stay.cause);
    }
    if (now <= busy.computed) return;
    // Each instruction has of the wait what it has of what was asked for, by the time that its bytes take of
    // their way, in their order.
    const MemoryConfig& memory = context.memory.config();
    const auto weight = [&](const PcSampler::Asked& asked) {
        return duration_ps(asked.vram, memory.vram_bytes_per_second) +
               duration_ps(asked.host, memory.pcie_bytes_per_second);
    };
    __extension__ using Wide = unsigned __int128;
    Wide all = 0, done = 0;
    for (const PcSampler::Asked& asked : samples->all_asked())
        all += weight(asked);
    ModelTime from = busy.computed;
    for (const PcSampler::Asked& asked : samples->all_asked()) {
        done += weight(asked);
        const ModelTime end =
            all == 0 ? now : busy.computed + static_cast<ModelTime>(Wide{now - busy.computed} * done / all);
        const ModelTime first = next_moment(from, sample_period);
        tell_sample(core, first, moments(first, end, sample_period), asked.pc, ORR_PC_BANDWIDTH);
        from = end;
    }
    // Answers to what a quantum before asked for.
    const ModelTime first = next_moment(from, sample_period);
    tell_sample(core, first, moments(first, now, sample_period), core.core.pc(), ORR_PC_BANDWIDTH);
}

void VectorUnit::Impl::tell_link_samples(const Core& core, ModelTime since, ModelTime now) {
    const ModelTime first = next_moment(std::max(since, sampled_since), sample_period);
    tell_sample(core, first, moments(first, now, sample_period), core.core.pc(), ORR_PC_LINK);
}

}  // namespace orrery::emu
