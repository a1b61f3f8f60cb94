#include "emulator/engines/save_area.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace orrery::emu {

namespace {

constexpr std::uint32_t kStackPages = ORR_STACK_BYTES / kSavePage;
constexpr std::uint32_t kLocalPages = ORR_LOCAL_BYTES / kSavePage;

std::atomic_ref<std::uint64_t> magic_of(std::uint8_t* area) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(area + offsetof(orr_save_header, magic)));
}

bool makes_sense(const orr_save_hart& hart) {
    const bool reserves = hart.reservation_size == 4 || hart.reservation_size == 8;
    return hart.x[0] == 0 && hart.pc % 2 == 0 && hart.fcsr >> 8 == 0 &&
           (reserves || hart.reservation_size == 0);
}

// Calls take(page) for each bit.
template <class Take>
void for_pages(std::uint32_t bits, std::uint32_t pages, Take take) {
    for (std::uint32_t page = 0; page < pages; ++page) {
        if ((bits >> page & 1) != 0) take(page);
    }
}

}  // namespace

orr_save_hart saved_hart(const HartState& state) {
    orr_save_hart saved{};
    std::copy_n(state.x, 32, saved.x);
    std::copy_n(state.f, 32, saved.f);
    saved.pc = state.pc;
    saved.minstret = state.minstret;
    saved.mcycle = state.mcycle;
    saved.mstatus = state.mstatus;
    saved.mie = state.mie;
    saved.mtvec = state.mtvec;
    saved.mscratch = state.mscratch;
    saved.mepc = state.mepc;
    saved.mcause = state.mcause;
    saved.mtval = state.mtval;
    saved.reservation_address = state.reservation_address;
    saved.reservation_value = state.reservation_value;
    saved.reservation_size = state.reservation_size;
    saved.fcsr = state.fcsr;
    return saved;
}

HartState hart_of(const orr_save_hart& saved) {
    HartState state;
    std::copy_n(saved.x, 32, state.x);
    std::copy_n(saved.f, 32, state.f);
    state.pc = saved.pc;
    state.minstret = saved.minstret;
    state.mcycle = saved.mcycle;
    state.mstatus = saved.mstatus;
    state.mie = saved.mie;
    state.mtvec = saved.mtvec;
    state.mscratch = saved.mscratch;
    state.mepc = saved.mepc;
    state.mcause = saved.mcause;
    state.mtval = saved.mtval;
    state.reservation_address = saved.reservation_address;
    state.reservation_value = saved.reservation_value;
    state.reservation_size = static_cast<std::uint8_t>(saved.reservation_size);
    state.fcsr = saved.fcsr;
    return state;
}

std::optional<SaveArea> SaveArea::at(const Vram& vram, std::uint64_t offset, std::uint32_t cores) {
    if (offset % kSavePage != 0) return std::nullopt;
    std::uint8_t* data = vram.at(offset, save_area_bytes(cores));
    if (data == nullptr) return std::nullopt;
    return SaveArea(data, cores);
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

void SaveArea::write_header(orr_save_header header) {
    header.version = ORR_SAVE_VERSION;
    header.cores = cores_;
    header.group_bytes = sizeof(orr_save_group);
    header.reserved = 0;
    std::memcpy(data_ + sizeof header.magic,
                reinterpret_cast<const std::uint8_t*>(&header) + sizeof header.magic,
                sizeof header - sizeof header.magic);
    magic_of(data_).store(ORR_SAVE_MAGIC, std::memory_order_release);
}

std::optional<orr_save_header> SaveArea::read_header(std::uint32_t kind) const {
    if (magic_of(data_).load(std::memory_order_acquire) != ORR_SAVE_MAGIC) return std::nullopt;
    orr_save_header header;
    std::memcpy(&header, data_, sizeof header);
    const bool vector = kind == ORR_ENGINE_VECTOR;
    if (header.version != ORR_SAVE_VERSION || header.kind != kind || header.cores != cores_ ||
        header.group_bytes != sizeof(orr_save_group) || header.reserved != 0 || header.groups > cores_)
        return std::nullopt;
    if (vector ? header.row != 0 || header.column != 0 : header.groups != 0 || header.next_group != 0)
        return std::nullopt;
    return header;
}

std::optional<SavedGroup> SaveArea::read_group(std::uint32_t index) const {
    SavedGroup group;
    const std::uint8_t* const from = record(index);
    std::memcpy(&group.record, from, sizeof group.record);
    if (group.record.stack_pages >> kStackPages != 0 || group.record.local_pages >> kLocalPages != 0 ||
        group.record.in_item > 1 || !makes_sense(group.record.hart)) {
        return std::nullopt;
    }
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
