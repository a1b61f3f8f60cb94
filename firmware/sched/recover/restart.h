// SPDX-License-Identifier: MIT
// A restart of the core alone: SRAM outside the image, doorbells, MMU and engines are as the last run left
// them. The tables are then untrusted input. Each row is checked, and is either resumed or
// reported as lost; a corrupt row cannot harm another.
// How a row is checked: what seldom changes has a checksum, the seal; the index of finished packets must be
// what the driver's status line says; and each packet between `retired` and `next` is exactly one of done, on
// a port whose tag the chip confirms, or in a save area. Lists and pointers are rebuilt, not trusted.
#pragma once

#include "firmware/sched/tables.h"

namespace orrery::fw {

// Never 0.
uint32_t seal_of(const Queue& queue);
uint32_t seal_of(const Context& context);
uint32_t seal_of(const Suspended& job);

// Differs between builds, whose rows may have different layouts.
uint64_t layout_of(const char* build_id);

// Whether the tables are what this build left behind.
inline constexpr uint64_t kPersistMagic = 0x53495352'4550524full;
inline bool survived(const PersistHeader& header, uint64_t layout) {
    return header.magic == kPersistMagic && header.layout == layout;
}

}  // namespace orrery::fw
