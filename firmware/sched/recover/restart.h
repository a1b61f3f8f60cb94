// SPDX-License-Identifier: MIT
// A restart of the core alone: SRAM outside the image, doorbells, MMU and engines are as the last run left
// them. The tables are then a stranger's word. Each row is checked, and either goes on or is told to be lost;
// nothing that is wrong in one can harm another.
//
// What protects a row: what seldom changes has a checksum, the seal; an index that has finished is what the
// driver's status line says; and each packet between `retired` and `next` is either done, or on a port whose
// tag the chip confirms, or in a save area: exactly one of these. Lists and pointers are not believed but
// made anew.
#pragma once

#include "firmware/sched/tables.h"

namespace orrery::fw {

// Never 0.
uint32_t seal_of(const Queue& queue);
uint32_t seal_of(const Context& context);
uint32_t seal_of(const Suspended& job);

// Of this build: another one may have another idea of a row.
uint64_t layout_of(const char* build_id);

// Whether the tables are what this build left behind.
inline constexpr uint64_t kPersistMagic = 0x53495352'4550524full;
inline bool survived(const PersistHeader& header, uint64_t layout) {
    return header.magic == kPersistMagic && header.layout == layout;
}

}  // namespace orrery::fw
