// SPDX-License-Identifier: MIT
// The chip as native builds see it: implemented by the model in tests/unit/firmware.
#pragma once

#include <stdint.h>

namespace orrery::fw {

class Hal {
  public:
    virtual ~Hal() = default;

    // SoC registers (hw/soc.h), by their offset.
    virtual uint64_t reg(uint32_t offset) = 0;
    virtual void set_reg(uint32_t offset, uint64_t value) = 0;

    // `kCount` registers in a row.
    template <uint32_t kCount>
    void regs(uint32_t offset, uint64_t (&words)[kCount]) {
        for (uint32_t i = 0; i < kCount; ++i)
            words[i] = reg(offset + 8 * i);
    }
    template <uint32_t kCount>
    void set_regs(uint32_t offset, const uint64_t (&words)[kCount]) {
        for (uint32_t i = 0; i < kCount; ++i)
            set_reg(offset + 8 * i, words[i]);
    }

    // 64-bit accesses through the context and host windows. An access that cannot be done reads zero or is
    // dropped, and is remembered in SOC_WINDOW_FAULT.
    virtual uint64_t load(uint64_t window) = 0;
    virtual void store(uint64_t window, uint64_t value) = 0;

    // A word of instrumentation (orrery/fw/trace.h).
    virtual void trace(uint64_t word) = 0;

    // The core's time from now on is this activity's, ORR_ACTIVITY_*. A count of accesses leaves it out.
    virtual void activity(uint32_t) {}

    // For tests of the restart. Must not return.
    [[noreturn]] virtual void crash() = 0;

    // Orders the stores before it before those after it, as every other agent sees them.
    virtual void fence() = 0;

    // True while SOC_TIME has reached SOC_TIMER.
    virtual bool timer_pending() = 0;
};

}  // namespace orrery::fw
