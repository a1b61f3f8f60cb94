// SPDX-License-Identifier: MIT
// Helpers for burst accesses through the windows, and for the sticky fault that they leave.
#pragma once

#include <orrery/hw/mmu.h>
#include <orrery/hw/soc.h>

#include <stddef.h>

#include "firmware/hal/hal.h"

namespace orrery::fw {

// The first address beyond what a context window can name.
inline constexpr uint64_t kVaEnd = 1ull << ORR_VA_BITS;

// Reads `count` 64-bit words.
inline void load_words(Hal& hal, uint64_t window, uint64_t* words, size_t count) {
    for (size_t i = 0; i < count; ++i)
        words[i] = hal.load(window + 8 * i);
}

inline void store_words(Hal& hal, uint64_t window, const uint64_t* words, size_t count) {
    for (size_t i = 0; i < count; ++i)
        hal.store(window + 8 * i, words[i]);
}

struct WindowFault {
    uint64_t code;     // ORR_FAULT_*; ORR_FAULT_NONE: the burst was done
    uint64_t address;  // window address; valid with a code only
    explicit operator bool() const { return code != ORR_FAULT_NONE; }
    // Host windows have bit 63 set: then the driver's memory is gone, not a process's.
    bool host() const { return address >> 63 != 0; }
};

// Reads the sticky fault, and clears it if there is one. Call it after each burst, so that a fault is blamed
// on the queue whose addresses were used.
inline WindowFault take_window_fault(Hal& hal) {
    const uint64_t code = hal.reg(SOC_WINDOW_FAULT);
    if (code == ORR_FAULT_NONE) [[likely]]
        return {ORR_FAULT_NONE, 0};
    const uint64_t address = hal.reg(SOC_WINDOW_FAULT_VA);
    hal.set_reg(SOC_WINDOW_FAULT, 0);
    return {code, address};
}

}  // namespace orrery::fw
