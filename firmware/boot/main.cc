// SPDX-License-Identifier: MIT
// The card's build of the firmware: the one object, and the loop around it.
#include "firmware/boot/firmware.h"
#include "firmware_build_id.h"

namespace {

constinit orrery::fw::Hal hal;
constinit orrery::fw::Firmware firmware{};

}  // namespace

// The trap vector. Interrupts are never taken (hal/card.h), so this is an exception: a bug of this firmware.
// Stops the core with the cause. It needs no stack.
extern "C" [[noreturn, gnu::aligned(4)]] void orr_trap() {
    uint64_t cause = 0;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    hal.set_reg(SOC_HALT, orrery::fw::kHaltTrap | (cause & 0xff));
    for (;;)
        hal.wait_for_interrupt();
}

extern "C" [[noreturn]] void orr_main() {
    if (firmware.start(hal, ORR_FW_BUILD_ID)) {
        hal.enable_wakeups();
        for (;;) {
            if (!firmware.pass()) hal.wait_for_interrupt();
        }
    }
    // Nothing is enabled that could end this.
    for (;;)
        hal.wait_for_interrupt();
}
