// A save area in VRAM: orrery/hw/save.h has its layout. The guest can write it at any time, so nothing in it
// is believed: each word is read once, and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/save.h>

#include "emulator/core/hart.h"
#include "emulator/memory/vram.h"

namespace orrery::emu {

inline constexpr std::uint64_t kSavePage = ORR_SAVE_PAGE;
static_assert(sizeof(orr_save_group) <= kSavePage);
static_assert(ORR_STACK_BYTES / kSavePage < 32 && ORR_LOCAL_BYTES / kSavePage < 32);

// Registers of an item as they are saved, and back. The second gives a state that set_state() makes legal;
// what an item does not own (steps, interrupt lines) is 0 in it.
orr_save_hart saved_hart(const HartState& state);
HartState hart_of(const orr_save_hart& saved);

inline constexpr std::uint64_t kSaveRecordBytes = kSavePage + ORR_STACK_BYTES + ORR_LOCAL_BYTES;

// Bytes of an area for a card with so many vector cores: one size for all engines.
constexpr std::uint64_t save_area_bytes(std::uint32_t cores) {
    return kSavePage + cores * kSaveRecordBytes;
}

// A work-group off its core.
struct SavedGroup {
    orr_save_group record{};
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
    // Magic, version and sizes are filled in.
    void write_header(orr_save_header header);
    // A copy of what stands there; nothing: it was not written for an engine of that kind of this card.
    std::optional<orr_save_header> read_header(std::uint32_t kind) const;
    // Nothing: no group that an engine wrote.
    std::optional<SavedGroup> read_group(std::uint32_t index) const;

  private:
    SaveArea(std::uint8_t* data, std::uint32_t cores) : data_(data), cores_(cores) {}
    std::uint8_t* record(std::uint32_t index) const { return data_ + kSavePage + index * kSaveRecordBytes; }

    std::uint8_t* data_;
    std::uint32_t cores_;
};

}  // namespace orrery::emu
