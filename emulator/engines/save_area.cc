#include "emulator/engines/save_area.h"

#include <atomic>
#include <cstring>

namespace orrery::emu {

namespace {

constexpr std::uint32_t kStackPages = ORR_STACK_BYTES / kSavePage;
constexpr std::uint32_t kLocalPages = ORR_LOCAL_BYTES / kSavePage;

std::atomic_ref<std::uint64_t> magic_of(std::uint8_t* area) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(area + offsetof(SaveHeader, magic)));
}

// Calls take(page) for each bit.
template <class Take>
void for_pages(std::uint32_t bits, std::uint32_t pages, Take take) {
    for (std::uint32_t page = 0; page < pages; ++page) {
        if ((bits >> page & 1) != 0) take(page);
    }
}

}  // namespace

std::optional<SaveArea> SaveArea::at(const Vram& vram, std::uint64_t offset, std::uint32_t cores) {
    if (offset % kSavePage != 0) return std::nullopt;
    std::uint8_t* data = vram.at(offset, save_area_bytes(cores));
    if (data == nullptr) return std::nullopt;
    return SaveArea(data);
}

void SaveArea::invalidate() {
    magic_of(data_).store(0, std::memory_order_release);
}

std::uint64_t SaveArea::write_group(std::uint32_t index, const SavedGroup& group) {
    std::uint8_t* const to = record(index);
    std::memcpy(to, &group.record, sizeof group.record);
    const std::uint8_t* from = group.pages.data();
    const auto put = [&](std::uint8_t* base, std::uint32_t page) {
        std::memcpy(base + page * kSavePage, from, kSavePage);
        from += kSavePage;
    };
    std::uint8_t* const stack = to + kSavePage;
    std::uint8_t* const local = stack + ORR_STACK_BYTES;
    for_pages(group.record.stack_pages, kStackPages, [&](std::uint32_t page) { put(stack, page); });
    for_pages(group.record.local_pages, kLocalPages, [&](std::uint32_t page) { put(local, page); });
    return group.bytes();
}

void SaveArea::write_header(const SaveHeader& header) {
    std::memcpy(data_ + sizeof header.magic,
                reinterpret_cast<const std::uint8_t*>(&header) + sizeof header.magic,
                sizeof header - sizeof header.magic);
    magic_of(data_).store(kSaveMagic, std::memory_order_release);
}

std::optional<SaveHeader> SaveArea::read_header() const {
    if (magic_of(data_).load(std::memory_order_acquire) != kSaveMagic) return std::nullopt;
    SaveHeader header;
    std::memcpy(&header, data_, sizeof header);
    return header;
}

SavedGroup SaveArea::read_group(std::uint32_t index) const {
    SavedGroup group;
    const std::uint8_t* const from = record(index);
    std::memcpy(&group.record, from, sizeof group.record);
    group.record.stack_pages &= (1u << kStackPages) - 1;
    group.record.local_pages &= (1u << kLocalPages) - 1;
    const auto take = [&](const std::uint8_t* base, std::uint32_t page) {
        const std::uint8_t* const at = base + page * kSavePage;
        group.pages.insert(group.pages.end(), at, at + kSavePage);
    };
    const std::uint8_t* const stack = from + kSavePage;
    const std::uint8_t* const local = stack + ORR_STACK_BYTES;
    for_pages(group.record.stack_pages, kStackPages, [&](std::uint32_t page) { take(stack, page); });
    for_pages(group.record.local_pages, kLocalPages, [&](std::uint32_t page) { take(local, page); });
    return group;
}

}  // namespace orrery::emu
