// The host's floating-point status while a hart with F and D runs.
//
// On x86-64 most FP instructions are done by the host's SSE unit, which agrees with RISC-V in the default
// rounding mode (tininess is detected after rounding, flags are sticky), NaN results apart. Its sticky flags
// are collected into Core::fflags when somebody wants to know. Elsewhere everything is done by soft_fp.h.
#pragma once

#include "emulator/core/core.h"

#if defined(__x86_64__)
#define ORR_HOST_FP 1
#include <immintrin.h>
#else
#define ORR_HOST_FP 0
#endif

namespace orrery::emu {

#if ORR_HOST_FP
// Round to nearest even, no flush to zero, all exceptions masked, no flag set.
inline constexpr std::uint32_t kGuestMxcsr = 0x1f80;

inline std::uint8_t host_fp_flags() {
    const std::uint32_t status = _mm_getcsr();
    return static_cast<std::uint8_t>((status & 1) << 4 | (status & 4) << 1 | (status & 8) >> 1 |
                                     (status & 16) >> 3 | (status & 32) >> 5);
}
#endif

// fflags as the guest sees it.
inline std::uint8_t collect_fflags(Core* core) {
#if ORR_HOST_FP
    if (core->fp_wrapped) core->fflags = static_cast<std::uint8_t>(core->fflags | host_fp_flags());
#endif
    return core->fflags;
}
inline void set_fflags(Core* core, std::uint64_t value) {
    core->fflags = value & 31;
#if ORR_HOST_FP
    if (core->fp_wrapped) _mm_setcsr(kGuestMxcsr);
#endif
}

// From here to unwrap_fp() the host's FP status belongs to the guest. Returns what unwrap_fp() puts back.
inline std::uint32_t wrap_fp([[maybe_unused]] Core* core) {
    std::uint32_t saved = 0;
#if ORR_HOST_FP
    if (!core->config.fp) return 0;
    saved = _mm_getcsr();
    _mm_setcsr(kGuestMxcsr);
    core->fp_wrapped = true;
#endif
    return saved;
}
inline void unwrap_fp([[maybe_unused]] Core* core, [[maybe_unused]] std::uint32_t saved) {
#if ORR_HOST_FP
    if (!core->fp_wrapped) return;
    collect_fflags(core);
    core->fp_wrapped = false;
    _mm_setcsr(saved);
#endif
}

// The same while one lives, unless it is so already.
class HostFpScope {
  public:
    explicit HostFpScope(Core* core)
        : core_(core->fp_wrapped ? nullptr : core), saved_(core_ != nullptr ? wrap_fp(core) : 0) {}
    ~HostFpScope() {
        if (core_ != nullptr) unwrap_fp(core_, saved_);
    }
    HostFpScope(const HostFpScope&) = delete;
    HostFpScope& operator=(const HostFpScope&) = delete;

  private:
    Core* core_;
    std::uint32_t saved_;
};

// Around calls of the bus, whose own arithmetic must not leave flags.
class HostFpPause {
  public:
    explicit HostFpPause(Core* core) : core_(core) {
        if (core->fp_wrapped) collect_fflags(core);
    }
    ~HostFpPause() {
#if ORR_HOST_FP
        if (core_->fp_wrapped) _mm_setcsr(kGuestMxcsr);
#endif
    }
    HostFpPause(const HostFpPause&) = delete;
    HostFpPause& operator=(const HostFpPause&) = delete;

  private:
    [[maybe_unused]] Core* core_;
};

}  // namespace orrery::emu
