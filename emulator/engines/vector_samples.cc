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
    sample_period = period;
    forget_samples();
}

void VectorUnit::Impl::trace(std::uint32_t core, ModelTime from, ModelTime until) {
    if (core == kNoCore && traced == kNoCore) return;
    traced = core < config.cores ? core : kNoCore;
    traced_from = from;
    traced_until = until;
    forget_samples();
}

void VectorUnit::Impl::forget_samples() {
    settle();
    sampled_since = context.events.now();
    for (Core& core : cores) {
        core.sampled = false;
        core.core.sample(0, 0);
    }
}

void VectorUnit::Impl::begin_samples(Core& core, ModelTime now) {
    if (context.jobs == nullptr || debugger->attached()) return;
    if (core.number == traced) {
        core.sampled = now < traced_until;
        if (core.sampled)
            core.core.sample_cycles(std::max(now, traced_from) - now, traced_until - now);
        else
            core.core.sample(0, 0);
    } else if (sample_period != 0) {
        core.sampled = true;
        core.core.sample(next_moment(now, sample_period) - now, sample_period);
    }
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
                          .cause = cause,
                          .of_cycles = core.number == traced});
}

// A wait that is none of a quantum's cycles.
void VectorUnit::Impl::tell_wait(const Core& core, ModelTime from, ModelTime end, std::uint64_t pc,
                                 std::uint32_t cause) {
    if (core.number != traced) {
        const ModelTime first = next_moment(from, sample_period);
        return tell_sample(core, first, moments(first, end, sample_period), pc, cause);
    }
    from = std::max(from, traced_from);
    if (from >= end || from >= traced_until) return;
    __extension__ using Wide = unsigned __int128;
    const Wide cycles = (Wide{end - from} * config.hz + kPsPerSecond - 1) / kPsPerSecond;
    tell_sample(core, from, static_cast<std::uint64_t>(cycles), pc, cause);
}

void VectorUnit::Impl::tell_samples(const Core& core, const Core::Busy& busy, ModelTime now) {
    const PcSampler* const samples = core.core.samples();
    if (samples == nullptr) return;
    for (const PcSampler::Stay& stay : samples->stays()) {
        const ModelTime first = busy.since + stay.first;
        // One that was cut off was not there any more.
        const std::uint64_t most =
            samples->of_cycles() ? (first < now ? stay.count : 0) : moments(first, now, sample_period);
        tell_sample(core, first, std::min(stay.count, most), stay.pc, stay.cause);
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
        tell_wait(core, from, end, asked.pc, ORR_PC_BANDWIDTH);
        from = end;
    }
    // Answers to what a quantum before asked for.
    tell_wait(core, from, now, core.core.pc(), ORR_PC_BANDWIDTH);
}

void VectorUnit::Impl::tell_link_samples(const Core& core, ModelTime since, ModelTime now) {
    if (core.number == traced || sample_period != 0)
        tell_wait(core, std::max(since, sampled_since), now, core.core.pc(), ORR_PC_LINK);
}

}  // namespace orrery::emu
