// SPDX-License-Identifier: MIT
// The card's build of the firmware: the one object, and the loop around it.
#include "firmware/main/firmware.h"
#include "firmware_build_id.h"

namespace {

constinit orrery::fw::Hal hal;
constinit orrery::fw::Firmware firmware{};

// Left alone by crt0.S and by the ROM: what it held before a restart of the core is still there.
[[gnu::section(".persist")]] orrery::fw::Tables tables;

}  // namespace

extern "C" {
extern uint64_t orr_last_trap[4];  // crt0.S: mcause, mepc, mtval of what ended the last run
}

extern "C" [[noreturn]] void orr_main() {
    tables.header.trap_cause = orr_last_trap[0];
    tables.header.trap_pc = orr_last_trap[1];
    orr_last_trap[0] = orr_last_trap[1] = 0;
    if (firmware.start(hal, tables, ORR_FW_BUILD_ID)) {
        hal.enable_wakeups();
        for (;;) {
            if (!firmware.pass()) hal.wait_for_interrupt();
        }
    }
    // Nothing is enabled that could end this.
    for (;;)
        hal.wait_for_interrupt();
}
