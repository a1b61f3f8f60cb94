// What a recording and its replay must do alike, to the bit: the time of the core, and what is predicted.
#pragma once

#include <cstdint>

#include <orrery/hw/soc.h>

namespace orrery::emu {

// Model time of a hart: a step takes a cycle, and sometimes time passes on top of that (stalls of accesses,
// sleep). mcycle follows it: it counts whole cycles since the start.
class CoreClock {
  public:
    explicit CoreClock(std::uint64_t cycle_ps) : cycle_ps_(cycle_ps) {}

    // The hart starts at `time`, with its step 0.
    void start(std::uint64_t time) {
        base_ = time;
        rest_ = 0;
    }
    // It goes on at `time`, before step `steps`, with `rest` of a cycle that passed and is not in mcycle.
    void resume(std::uint64_t time, std::uint64_t steps, std::uint64_t rest) {
        base_ = time - steps * cycle_ps_;
        rest_ = rest;
    }
    std::uint64_t rest() const { return rest_; }
    // Model time before step `steps` of this start; inside an access: at its begin.
    std::uint64_t time(std::uint64_t steps) const { return base_ + steps * cycle_ps_; }
    // Time passes on top of the steps. Returns the cycles by which mcycle moves on.
    std::uint64_t pass(std::uint64_t ps) {
        base_ += ps;
        rest_ += ps;
        if (rest_ < cycle_ps_) return 0;
        const std::uint64_t cycles = rest_ / cycle_ps_;
        rest_ -= cycles * cycle_ps_;
        return cycles;
    }
    // The entry of an exception counts as a step and takes no time.
    void step_without_time() { base_ -= cycle_ps_; }

    bool operator==(const CoreClock&) const = default;

  private:
    std::uint64_t cycle_ps_;
    std::uint64_t base_ = 0;  // modulo 2^64
    std::uint64_t rest_ = 0;  // passed, but not a whole cycle yet
};

// Words for the trace port: they take no time and are not recorded.
inline bool is_trace_port(std::uint64_t address) {
    return address - (ORR_SOC_BASE + SOC_TRACE) < SOC_TRACE_BYTES || address == ORR_SOC_BASE + SOC_TRACE_1_1;
}

// Nor are words that say what the core does.
inline bool is_activity(std::uint64_t address) {
    return address - (ORR_SOC_BASE + SOC_ACTIVITY(0)) < SOC_ACTIVITY(ORR_ACTIVITIES) - SOC_ACTIVITY(0) &&
           address % 8 == 0;
}

// See ORR_OTRACE_STORE.
inline constexpr unsigned kAccessClasses = 8;
inline unsigned access_class(std::uint64_t address, bool store) {
    const std::uint64_t top = address >> 62;
    const unsigned window = top == 0 ? (address >= ORR_VRAM_WINDOW ? 1 : 0) : top == 1 ? 2 : 3;
    return window << 1 | (store ? 1 : 0);
}
inline constexpr unsigned kValueSlots = 256;
inline unsigned value_slot(std::uint64_t address) {
    return (address >> 3 ^ address >> 11) & (kValueSlots - 1);
}

}  // namespace orrery::emu
