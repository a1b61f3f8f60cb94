// What a preempted descriptor leaves in VRAM: the layout of a save area (SOC_ENGINE_SAVE).
//
// Software may move a save area about but not look into it: its layout may change with the hardware version.
// The guest can write it at any time, so nothing in it is believed: each word is read once, and checked.
// docs/engines.md has the layout for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>

#include "emulator/core/hart.h"
#include "emulator/memory/vram.h"

namespace orrery::emu {

inline constexpr std::uint64_t kSaveMagic = 0x3145'5641'5352'524f;  // "ORRSAVE1" as bytes in memory
inline constexpr std::uint64_t kSavePage = 4096;

// First page of an area.
struct SaveHeader {
    std::uint64_t magic = 0;   // written last, cleared by the resume that takes the area
    std::uint32_t kind = 0;    // ORR_ENGINE_*
    std::uint32_t groups = 0;  // vector: records that follow, of work-groups inside the kernel
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
    std::uint32_t stack_pages = 0;  // bit n: page n from the bottom is here; the others are zero
    std::uint32_t local_pages = 0;
    HartState hart;
};
static_assert(sizeof(SaveRecord) <= kSavePage);
static_assert(ORR_STACK_BYTES / kSavePage < 32 && ORR_LOCAL_BYTES / kSavePage < 32);

inline constexpr std::uint64_t kSaveRecordBytes = kSavePage + ORR_STACK_BYTES + ORR_LOCAL_BYTES;

// Bytes of an area for a card with so many vector cores: one size for all engines.
constexpr std::uint64_t save_area_bytes(std::uint32_t cores) {
    return kSavePage + cores * kSaveRecordBytes;
}

// A work-group off its core.
struct SavedGroup {
    SaveRecord record;
    std::vector<std::uint8_t> pages;  // of the stack, then of work-group memory: those with a bit, in order
    // In the save area.
    std::uint64_t bytes() const { return kSavePage + pages.size(); }
};

// An area in VRAM; the pointer is good as long as the VRAM.
class SaveArea {
  public:
    // Nothing: it is not 4 KiB aligned, or does not lie in VRAM as a whole.
    static std::optional<SaveArea> at(const Vram& vram, std::uint64_t offset, std::uint32_t cores);

    // Until write_header() nobody can resume from here.
    void invalidate();
    // `index` < cores. Returns the bytes written.
    std::uint64_t write_group(std::uint32_t index, const SavedGroup& group);
    void write_header(const SaveHeader& header);
    // A copy of what stands there, the magic checked and nothing else.
    std::optional<SaveHeader> read_header() const;
    // Bits for pages that do not exist are dropped.
    SavedGroup read_group(std::uint32_t index) const;

  private:
    explicit SaveArea(std::uint8_t* data) : data_(data) {}
    std::uint8_t* record(std::uint32_t index) const { return data_ + kSavePage + index * kSaveRecordBytes; }

    std::uint8_t* data_;
};

}  // namespace orrery::emu
