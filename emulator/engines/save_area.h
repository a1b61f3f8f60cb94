// What a preempted descriptor leaves in VRAM: the layout of a save area (SOC_ENGINE_SAVE).
//
// Software may move a save area about but not look into it; its layout may change with the hardware version.
// The guest can write it, so nothing in it is believed: docs/engines.md says what is checked.
#pragma once

#include <cstdint>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>

#include "emulator/core/hart.h"

namespace orrery::emu {

inline constexpr std::uint64_t kSaveMagic = 0x3145'5641'5352'524f;  // "ORRSAVE1" as bytes in memory
inline constexpr std::uint64_t kSavePage = 4096;

// First page of an area.
struct SaveHeader {
    std::uint64_t magic = 0;   // written last, cleared by the resume that takes the area
    std::uint32_t kind = 0;    // ORR_ENGINE_*
    std::uint32_t groups = 0;  // vector: records that follow, of work-groups that were on cores
    std::uint64_t descriptor[8] = {};
    std::uint64_t next_group = 0;  // vector: first that has not been on a core yet
    std::uint64_t row = 0;         // copy: what is to be moved next
    std::uint64_t column = 0;
};
static_assert(sizeof(SaveHeader) == 104);

// A work-group inside the kernel: this in a page, then its stack, then its work-group memory.
struct SaveRecord {
    std::uint64_t group = 0;  // linear number
    std::uint32_t item = 0;
    std::uint32_t in_item = 0;      // 1: `hart` and the stack are those of the item; 0: it is to start
    std::uint32_t stack_pages = 0;  // bit n: page n from the bottom was saved; the others are zero
    std::uint32_t local_pages = 0;
    HartState hart;
};
static_assert(sizeof(SaveRecord) <= kSavePage);
static_assert(ORR_STACK_BYTES / kSavePage <= 32 && ORR_LOCAL_BYTES / kSavePage <= 32);

inline constexpr std::uint64_t kSaveRecordBytes = kSavePage + ORR_STACK_BYTES + ORR_LOCAL_BYTES;

// Bytes of an area for a card with so many vector cores: one size for all engines.
constexpr std::uint64_t save_area_bytes(std::uint32_t cores) {
    return kSavePage + cores * kSaveRecordBytes;
}

}  // namespace orrery::emu
