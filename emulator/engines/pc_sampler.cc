#include "emulator/engines/pc_sampler.h"

#include "emulator/time/rate.h"

namespace orrery::emu {

void PcSampler::begin(ModelTime first, ModelTime period, std::uint64_t hz) {
    next_ = first;
    period_ = period;
    hz_ = hz;
    due_ = cycle_of(first);
    vram_ = host_ = 0;
    stays_.clear();
    asked_.clear();
}

void PcSampler::begin_cycles(ModelTime first, ModelTime last, std::uint64_t hz) {
    begin(first, 0, hz);
    last_ = last;
    if (duration_ps(due_, hz) < first) ++due_;
}

// Cycle n is from duration_ps(n) on, which is rounded up, until n + 1 begins.
std::uint64_t PcSampler::cycle_of(ModelTime time) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{time} * hz_ / kPsPerSecond);
}

void PcSampler::stay(std::uint64_t to, std::uint64_t pc, std::uint32_t cause) {
    if (of_cycles()) {
        if (due_ >= to) return;
        const ModelTime first = duration_ps(due_, hz_);
        if (first < last_) stays_.push_back({.first = first, .count = to - due_, .pc = pc, .cause = cause});
        due_ = to;
        return;
    }
    for (; due_ < to; next_ += period_, due_ = cycle_of(next_)) {
        if (stays_.empty() || stays_.back().pc != pc || stays_.back().cause != cause)
            stays_.push_back({.first = next_, .count = 0, .pc = pc, .cause = cause});
        ++stays_.back().count;
    }
}

void PcSampler::asked(const AccessCounts& all, std::uint64_t pc) {
    const std::uint64_t vram = all.vram.read + all.vram.written, host = all.host.read + all.host.written;
    if (vram == vram_ && host == host_) return;
    asked_.push_back({.pc = pc, .vram = vram - vram_, .host = host - host_});
    vram_ = vram;
    host_ = host;
}

}  // namespace orrery::emu
