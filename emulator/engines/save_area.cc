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

// Of the vector state the engine looks at the sizes; the hart makes the rest legal.
bool makes_sense(const orr_save_hart& hart, std::uint32_t vlen) {
    const bool none = (hart.vl | hart.vtype | hart.vstart | hart.vcsr | hart.vector_bytes) == 0;
    const bool kept = vlen != 0 && hart.vector_bytes == vector_register_bytes(vlen) && hart.vcsr >> 3 == 0;
    return (none || kept) && makes_sense(hart);
}

bool makes_sense(const orr_save_item& item) {
    return item.pc % 2 == 0 && item.fcsr >> 8 == 0 && item.reserved == 0;
}

// What the record says of its items, of which there are so many.
bool makes_sense(const orr_save_group& group, std::uint32_t items) {
    if (group.in_item > 1 || group.item >= items ||
        (group.waits & ~(ORR_SAVE_WAITING | ORR_SAVE_RELEASED)) != 0)
        return false;
    if (group.waits != 0 && items < 2) return false;
    return (group.waits & ORR_SAVE_WAITING) != 0 ? group.item != 0 : group.barrier == 0;
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

void SavedGroup::keep_vectors(const VectorState& state, std::uint32_t vlen) {
    record.hart.vl = state.vl;
    record.hart.vtype = state.vtype;
    record.hart.vstart = state.vstart;
    record.hart.vcsr = static_cast<std::uint32_t>(state.vxrm << 1 | state.vxsat);
    record.hart.vector_bytes = static_cast<std::uint32_t>(vector_register_bytes(vlen));
    vector.assign(state.v, state.v + record.hart.vector_bytes);
}

VectorState SavedGroup::vectors() const {
    VectorState state;
    if (vector.empty()) return state;
    state.vl = record.hart.vl;
    state.vtype = record.hart.vtype;
    state.vstart = record.hart.vstart;
    state.vxrm = record.hart.vcsr >> 1 & 3;
    state.vxsat = record.hart.vcsr & 1;
    std::ranges::copy(vector, state.v);
    return state;
}

std::optional<SaveArea> SaveArea::at(const Vram& vram, std::uint64_t offset, std::uint32_t cores,
                                     std::uint32_t vlen) {
    if (offset % kSavePage != 0) return std::nullopt;
    std::uint8_t* data = vram.at(offset, save_area_bytes(cores, vlen));
    if (data == nullptr) return std::nullopt;
    return SaveArea(data, cores, vlen);
}

SaveArea::Record SaveArea::record(std::uint32_t index) const {
    std::uint8_t* const group = data_ + kSavePage + index * save_record_bytes(vlen_);
    std::uint8_t* const vector = group + kSavePage;
    std::uint8_t* const items = vector + whole_save_pages(vector_register_bytes(vlen_));
    std::uint8_t* const stack = items + ORR_SAVE_ITEMS_BYTES;
    return {group, vector, items, stack, stack + ORR_STACK_BYTES};
}

void SaveArea::invalidate() {
    magic_of(data_).store(0, std::memory_order_release);
}

std::uint64_t SaveArea::write_group(std::uint32_t index, const SavedGroup& group) {
    const Record to = record(index);
    std::memcpy(to.group, &group.record, sizeof group.record);
    std::ranges::copy(group.vector, to.vector);
    if (!group.items.empty())
        std::memcpy(to.items, group.items.data(), group.items.size() * sizeof(orr_save_item));
    const std::uint8_t* from = group.pages.data();
    const auto put = [&](std::uint8_t* base, std::uint32_t page) {
        std::memcpy(base + page * kSavePage, from, kSavePage);
        from += kSavePage;
    };
    for_pages(group.record.stack_pages, kStackPages, [&](std::uint32_t page) { put(to.stack, page); });
    for_pages(group.record.local_pages, kLocalPages, [&](std::uint32_t page) { put(to.local, page); });
    return group.bytes();
}

void SaveArea::write_header(orr_save_header header) {
    header.version = ORR_SAVE_VERSION;
    header.cores = cores_;
    header.group_bytes = sizeof(orr_save_group);
    header.vlen = vlen_;
    std::memcpy(data_ + sizeof header.magic,
                reinterpret_cast<const std::uint8_t*>(&header) + sizeof header.magic,
                sizeof header - sizeof header.magic);
    magic_of(data_).store(ORR_SAVE_MAGIC, std::memory_order_release);
}

std::optional<orr_save_header> SaveArea::read_header(std::uint32_t kind) const {
    if (magic_of(data_).load(std::memory_order_acquire) != ORR_SAVE_MAGIC) return std::nullopt;
    orr_save_header header;
    std::memcpy(&header, data_, sizeof header);
    if (header.version != ORR_SAVE_VERSION || header.kind != kind || header.cores != cores_ ||
        header.group_bytes != sizeof(orr_save_group) || header.vlen != vlen_ || header.groups > cores_)
        return std::nullopt;
    return header;
}

std::optional<SavedGroup> SaveArea::read_group(std::uint32_t index, std::uint32_t items) const {
    SavedGroup group;
    const Record from = record(index);
    std::memcpy(&group.record, from.group, sizeof group.record);
    const orr_save_group& saved = group.record;
    if (saved.stack_pages >> kStackPages != 0 || saved.local_pages >> kLocalPages != 0 ||
        saved.place >= cores_ || !makes_sense(saved, items) || !makes_sense(saved.hart, vlen_)) {
        return std::nullopt;
    }
    group.vector.assign(from.vector, from.vector + saved.hart.vector_bytes);
    if (saved.waits != 0) {
        group.items.resize(items);
        std::memcpy(group.items.data(), from.items, items * sizeof(orr_save_item));
        if (!std::ranges::all_of(group.items, [](const orr_save_item& item) { return makes_sense(item); }))
            return std::nullopt;
    }
    const auto take = [&](const std::uint8_t* base, std::uint32_t page) {
        const std::uint8_t* const at = base + page * kSavePage;
        group.pages.insert(group.pages.end(), at, at + kSavePage);
    };
    for_pages(saved.stack_pages, kStackPages, [&](std::uint32_t page) { take(from.stack, page); });
    for_pages(saved.local_pages, kLocalPages, [&](std::uint32_t page) { take(from.local, page); });
    return group;
}

}  // namespace orrery::emu
