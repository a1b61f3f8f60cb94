// SPDX-License-Identifier: MIT
// The chip as the card's own core sees it.
#pragma once

#include <orrery/hw/soc.h>

#include <stdint.h>

namespace orrery::fw {

class Hal {
  public:
    uint64_t reg(uint32_t offset) { return whole(*at(ORR_SOC_BASE + offset)); }
    void set_reg(uint32_t offset, uint64_t value) { *at(ORR_SOC_BASE + offset) = value; }

    // `kCount` registers in a row.
    template <uint32_t kCount>
    void regs(uint32_t offset, uint64_t (&words)[kCount]) {
        volatile uint64_t* const from = at(ORR_SOC_BASE + offset);
        for (uint32_t i = 0; i < kCount; ++i)
            words[i] = from[i];
    }
    template <uint32_t kCount>
    void set_regs(uint32_t offset, const uint64_t (&words)[kCount]) {
        volatile uint64_t* const to = at(ORR_SOC_BASE + offset);
        for (uint32_t i = 0; i < kCount; ++i)
            to[i] = words[i];
    }

    uint64_t load(uint64_t window) { return whole(*at(window)); }
    void store(uint64_t window, uint64_t value) { *at(window) = value; }

    // A word of instrumentation (orrery/fw/trace.h).
    void trace(uint64_t word) { *at(ORR_SOC_BASE + SOC_TRACE) = word; }

    // The core's time from now on is this activity's, ORR_ACTIVITY_*.
    void activity(uint32_t what) { *at(ORR_SOC_BASE + SOC_ACTIVITY(what)) = 0; }

    // For tests of the restart.
    [[noreturn]] void crash() { __builtin_trap(); }

    void fence() { __asm__ volatile("fence rw, rw" ::: "memory"); }

    bool timer_pending() {
        uint64_t pending = 0;
        __asm__ volatile("csrr %0, mip" : "=r"(pending));
        return (pending & kTimerInterrupt) != 0;
    }

    // Lets `wfi` return for external and timer interrupts. They are never taken: mstatus.MIE stays 0, the
    // main loop looks at the levels itself, so there is no moment at which one can be missed.
    void enable_wakeups() { __asm__ volatile("csrs mie, %0" ::"r"(kTimerInterrupt | kExternalInterrupt)); }
    void wait_for_interrupt() { __asm__ volatile("wfi" ::: "memory"); }

  private:
    static constexpr uint64_t kTimerInterrupt = 1u << 7;
    static constexpr uint64_t kExternalInterrupt = 1u << 11;

    // Clang narrows a load of which only the lower half is used, volatile or not; the chip takes 8 bytes
    // only.
    static uint64_t whole(uint64_t value) {
        __asm__("" : "+r"(value));
        return value;
    }

    static volatile uint64_t* at(uint64_t address) { return reinterpret_cast<volatile uint64_t*>(address); }
};

}  // namespace orrery::fw
