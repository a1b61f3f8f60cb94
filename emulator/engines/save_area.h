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

static_assert(ORR_SAVE_ITEMS * sizeof(orr_save_item) <= ORR_SAVE_ITEMS_BYTES);

constexpr std::uint64_t whole_save_pages(std::uint64_t bytes) {
    return (bytes + kSavePage - 1) / kSavePage * kSavePage;
}
// Of v0 .. v31 of a hart with vector registers of so many bits.
constexpr std::uint64_t vector_register_bytes(std::uint32_t vlen) {
    return std::uint64_t{vlen} / 8 * 32;
}
constexpr std::uint64_t save_record_bytes(std::uint32_t vlen) {
    return kSavePage + whole_save_pages(vector_register_bytes(vlen)) + ORR_SAVE_ITEMS_BYTES +
           ORR_STACK_BYTES + ORR_LOCAL_BYTES;
}

// Bytes of an area for a card with so many vector cores: one size for all engines. `vlen`: bits of a vector
// register, 0: the cores have none.
constexpr std::uint64_t save_area_bytes(std::uint32_t cores, std::uint32_t vlen = 0) {
    return kSavePage + cores * save_record_bytes(vlen);
}

// A work-group off its core.
struct SavedGroup {
    orr_save_group record{};
    std::vector<std::uint8_t> vector;  // record.hart.vector_bytes
    std::vector<orr_save_item> items;  // one for each item of the group if record.waits is not 0
    std::vector<std::uint8_t> pages;   // of the stack, then of work-group memory: those with a bit, in order
    // Into `record.hart` and `vector`, and back; what was not kept is as after a restart.
    void keep_vectors(const VectorState& state, std::uint32_t vlen);
    VectorState vectors() const;
    // In the save area.
    std::uint64_t bytes() const {
        return kSavePage + whole_save_pages(vector.size()) +
               whole_save_pages(items.size() * sizeof(orr_save_item)) + pages.size();
    }
};

// An area in VRAM; the pointer is good as long as the VRAM.
class SaveArea {
  public:
    // Nothing: it is not 4 KiB aligned, or does not lie in VRAM as a whole.
    static std::optional<SaveArea> at(const Vram& vram, std::uint64_t offset, std::uint32_t cores,
                                      std::uint32_t vlen = 0);

    // Until write_header() nobody can resume from here.
    void invalidate();
    // `index` < cores. Returns the bytes written.
    std::uint64_t write_group(std::uint32_t index, const SavedGroup& group);
    // Magic, version and sizes are filled in.
    void write_header(orr_save_header header);
    // A copy of what stands there; nothing: it was not written for an engine of that kind of this card. What
    // only some kinds use is for them to check.
    std::optional<orr_save_header> read_header(std::uint32_t kind) const;
    // Nothing: no group of so many items that an engine wrote.
    std::optional<SavedGroup> read_group(std::uint32_t index, std::uint32_t items) const;

  private:
    // Where the parts of a record begin.
    struct Record {
        std::uint8_t *group, *vector, *items, *stack, *local;
    };

    SaveArea(std::uint8_t* data, std::uint32_t cores, std::uint32_t vlen)
        : data_(data), cores_(cores), vlen_(vlen) {}
    Record record(std::uint32_t index) const;

    std::uint8_t* data_;
    std::uint32_t cores_;
    std::uint32_t vlen_;
};

}  // namespace orrery::emu
