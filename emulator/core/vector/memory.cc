// Vector loads and stores.
//
// Elements in a row go by the page, as one copy from or into host memory; elements that straddle pages, and
// pages that are no plain memory, go one by one through slow_load() and slow_store(), which raise what there
// is to raise. So each element is done or not, and vstart names the first that is not. Strided and indexed
// ones also stop there, and go on later, where the hart is to stop.
#include <cstring>

#include "emulator/core/host_fp.h"
#include "emulator/core/page_access.h"
#include "emulator/core/vector/cost.h"
#include "emulator/core/vector/counting.h"
#include "emulator/core/vector/execute.h"
#include "emulator/core/vector/run.h"
#include "emulator/core/vector/span.h"

namespace orrery::emu {
namespace {

using namespace vector_property;

// One access, taken apart.
struct Plan {
    std::uint64_t base = 0;
    std::uint64_t count = 0;  // elements, or segments
    unsigned log2 = 0;        // of the size of an element in bytes
    unsigned fields = 1;
    std::uint64_t field_stride = 0;  // bytes from a field's group to the next one's
    std::uint8_t* data = nullptr;
    const std::uint8_t* mask = nullptr;
    // Of strided and indexed ones.
    std::uint64_t stride = 0;
    const std::uint8_t* index = nullptr;
    unsigned index_log2 = 0;

    bool active(std::uint64_t i) const { return mask == nullptr || (mask[i / 8] >> (i % 8) & 1) != 0; }
    std::uint64_t offset(std::uint64_t i) const {
        switch (index_log2) {
            case 0:
                return index[i];
            case 1:
                return reinterpret_cast<const HostU16*>(index)[i];
            case 2:
                return reinterpret_cast<const HostU32*>(index)[i];
            default:
                return reinterpret_cast<const HostU64*>(index)[i];
        }
    }
};

// An element in a register; false: raised.
template <class T, bool kStore>
bool move_element(Core* core, std::uint64_t va, typename Host<T>::Type* element) {
    const PageEntry& entry = core->page_entry(va);
    if constexpr (kStore) {
        if (entry.store_tag != tag_of<T>(va)) [[unlikely]]
            return slow_store(core, va, sizeof(T), *element);
        __atomic_store_n(reinterpret_cast<typename Host<T>::Type*>(entry.host(va)), *element,
                         __ATOMIC_RELAXED);
    } else {
        if (entry.load_tag != tag_of<T>(va)) [[unlikely]] {
            std::uint64_t value = 0;
            if (!slow_load(core, va, sizeof(T), value)) return false;
            *element = static_cast<T>(value);
            return true;
        }
        *element = __atomic_load_n(reinterpret_cast<const typename Host<T>::Type*>(entry.host(va)),
                                   __ATOMIC_RELAXED);
    }
    return true;
}

template <class T, bool kStore>
bool move_segment(Core* core, const Plan& plan, std::uint64_t i, std::uint64_t va) {
    for (unsigned field = 0; field < plan.fields; ++field) {
        auto* const group = reinterpret_cast<typename Host<T>::Type*>(plan.data + field * plan.field_stride);
        if (!move_element<T, kStore>(core, va + field * sizeof(T), group + i)) return false;
    }
    return true;
}

// Segments [i, i + count) at `host`, whose bytes need not be aligned.
template <class T, bool kStore>
void move_span(const VectorFile& file, const Plan& plan, std::uint64_t i, std::uint64_t count,
               std::uint8_t* host) {
    const std::uint64_t at = i * sizeof(T);
    if (plan.fields == 1) {
        std::uint8_t* const group = plan.data + at;
        std::uint8_t* const to = kStore ? host : group;
        const std::uint8_t* const from = kStore ? group : host;
        if (plan.mask == nullptr) {
            std::memcpy(to, from, count * sizeof(T));
        } else {
            file.kernels->blend(to - at, from - at, plan.mask, i, i + count, plan.log2);
        }
        return;
    }
    for (unsigned field = 0; field < plan.fields; ++field) {
        std::uint8_t* const group = plan.data + field * plan.field_stride + at;
        std::uint8_t* place = host + field * sizeof(T);
        for (std::uint64_t k = 0; k < count; ++k, place += plan.fields * sizeof(T)) {
            if (!plan.active(i + k)) continue;
            std::memcpy(kStore ? place : group + k * sizeof(T), kStore ? group + k * sizeof(T) : place,
                        sizeof(T));
        }
    }
}

// Bytes that segments [i, i + count) ask of memory: of those under a mask, the lines in which there is an
// active one.
std::uint64_t traffic(const Plan& plan, std::uint64_t i, std::uint64_t count, std::uint64_t segment) {
    if (plan.mask == nullptr) return count * segment;
    std::uint64_t lines = 0, next = 0;  // the line behind the last that was counted
    for (std::uint64_t k = i; k < i + count; ++k) {
        if (!plan.active(k)) continue;
        const std::uint64_t va = plan.base + k * segment;
        const std::uint64_t first = std::max(va / Meter::kLine, next),
                            last = (va + segment - 1) / Meter::kLine;
        if (first > last) continue;
        lines += last - first + 1;
        next = last + 1;
    }
    return std::min(lines * Meter::kLine, count * segment);
}

// Those of [i, i + count), at `va`, that were moved.
[[gnu::noinline]] void tell_row(Core* core, const Plan& plan, std::uint64_t i, std::uint64_t count,
                                std::uint64_t va, bool store) {
    const std::uint64_t segment = std::uint64_t{plan.fields} << plan.log2;
    DoneAccess access{.va = va,
                      .bytes = count * segment,
                      .kind = store ? AccessKind::kStore : AccessKind::kLoad,
                      .element = 1u << plan.log2};
    if (plan.mask == nullptr) return tell_access(core, access);
    access.bytes = segment;
    for (std::uint64_t k = 0; k < count; ++k, access.va += segment)
        if (plan.active(i + k)) tell_access(core, access);
}

// The index of the first segment that was not moved; plan.count: all were.
template <class T, bool kStore>
std::uint64_t move_row(Core* core, const Plan& plan, std::uint64_t i) {
    const std::uint64_t segment = plan.fields * sizeof(T);
    while (i < plan.count) {
        if (!plan.active(i)) {
            ++i;
            continue;
        }
        const std::uint64_t va = plan.base + i * segment;
        std::uint64_t bytes = 0;
        std::uint8_t* const host =
            span_of(core, va, sizeof(T), kStore ? Access::kStore : Access::kLoad, bytes);
        const std::uint64_t whole = std::min(bytes / segment, plan.count - i);
        if (host != nullptr && whole != 0) {
            if (core->overlay != nullptr) {
                const auto how = plan.mask == nullptr ? Overlay::Store::kRow : Overlay::Store::kSome;
                core->held = kStore ? !core->overlay->stores(va, whole * segment, how)
                                    : !core->overlay->loads(va, whole * segment);
                if (core->held) return i;
            }
            move_span<T, kStore>(*core->vector, plan, i, whole, host);
            count_stream(core, va, traffic(plan, i, whole, segment), kStore);
            if (core->config.tells_accesses) [[unlikely]]
                tell_row(core, plan, i, whole, va, kStore);
            if (kStore && !core->page_entry(va).stores(va & ~kPageOffset))
                stored(core, host, whole * segment);
            i += whole;
            continue;
        }
        if (!move_segment<T, kStore>(core, plan, i, va)) return i;
        ++i;
    }
    return i;
}

// Elements from i on, a stride apart, as far as they are in one page that the page cache knows and whose
// accesses nobody counts: how many there were.
template <class T, bool kStore>
std::uint64_t move_in_page(Core* core, const Plan& plan, std::uint64_t i) {
    const std::uint64_t va = plan.base + i * plan.stride, inside = va & kPageOffset;
    const PageEntry& entry = core->page_entry(va);
    if ((kStore ? entry.store_tag : entry.load_tag) != tag_of<T>(va) || plan.stride % sizeof(T) != 0)
        return 0;
    const bool down = static_cast<std::int64_t>(plan.stride) < 0;
    const std::uint64_t step = down ? -plan.stride : plan.stride,
                        room = down ? inside : kPageBytes - sizeof(T) - inside,
                        count = std::min(step == 0 ? plan.count : room / step + 1, plan.count - i);
    auto* const group = reinterpret_cast<typename Host<T>::Type*>(plan.data) + i;
    for (std::uint64_t k = 0; k < count; ++k) {
        auto* const place = reinterpret_cast<typename Host<T>::Type*>(entry.host(va + k * plan.stride));
        if constexpr (kStore)
            __atomic_store_n(place, group[k], __ATOMIC_RELAXED);
        else
            group[k] = __atomic_load_n(place, __ATOMIC_RELAXED);
    }
    return count;
}

template <class T, bool kStore>
std::uint64_t move_places(Core* core, const Plan& plan, std::uint64_t i) {
    const bool simple = plan.index == nullptr && plan.mask == nullptr && plan.fields == 1;
    for (bool some = false; i < plan.count; ++i) {
        if (!plan.active(i)) continue;
        if (some && core->stop_requested) return i;
        some = true;
        if (simple) {
            const std::uint64_t moved = move_in_page<T, kStore>(core, plan, i);
            if (moved != 0) {
                i += moved - 1;
                continue;
            }
        }
        const std::uint64_t va = plan.base + (plan.index != nullptr ? plan.offset(i) : i * plan.stride);
        if (!move_segment<T, kStore>(core, plan, i, va)) return i;
    }
    return i;
}

template <class T>
std::uint64_t move_all(Core* core, const Plan& plan, std::uint64_t from, bool store, bool in_a_row) {
    if (in_a_row) return store ? move_row<T, true>(core, plan, from) : move_row<T, false>(core, plan, from);
    return store ? move_places<T, true>(core, plan, from) : move_places<T, false>(core, plan, from);
}

std::uint64_t move_all(Core* core, const Plan& plan, std::uint64_t from, const VectorRow& what) {
    const bool store = what.has(kStore);
    const bool in_a_row = !what.has(kStrided | kIndexed);
    switch (plan.log2) {
        case 0:
            return move_all<std::uint8_t>(core, plan, from, store, in_a_row);
        case 1:
            return move_all<std::uint16_t>(core, plan, from, store, in_a_row);
        case 2:
            return move_all<std::uint32_t>(core, plan, from, store, in_a_row);
        default:
            return move_all<std::uint64_t>(core, plan, from, store, in_a_row);
    }
}

GroupShape data_shape(const VectorFile& file, const VectorRow& what) {
    if (what.has(kMaskBits)) return {3, 0};
    if (what.has(kWhole)) return {what.eew == 8 ? 3 : what.eew == 16 ? 4 : what.eew == 32 ? 5 : 6, 0};
    return shape_of(file, what.vd, what.eew);
}

bool registers_fit(const VectorFile& file, const Op* op, const VectorRow& what) {
    const unsigned fields = fields_of(op);
    if (what.has(kWhole)) return op->rd % fields == 0;
    if (file.vtype == kVill) return false;
    const GroupShape data = data_shape(file, what);
    const int all = data.registers() * static_cast<int>(fields);
    if (!fits(data, op->rd) || all > 8 || op->rd + all > static_cast<int>(kVectorRegisters)) return false;
    if (what.has(kLoad) && !unmasked(op) && op->rd == 0) return false;
    if (!what.has(kIndexed)) return true;
    const GroupShape index = shape_of(file, what.vs2, what.eew);
    if (!fits(index, op->rs2)) return false;
    if (what.has(kStore)) return true;
    return fields == 1 ? may_overlap(op->rd, data, op->rs2, index)
                       : !overlap(op->rd, all, op->rs2, index.registers());
}

bool memory_legal(const VectorFile& file, Op* op, const VectorRow& what) {
    const std::uint32_t now = static_cast<std::uint32_t>(file.vtype & 0xff) << 16 | kChecked;
    const auto imm = static_cast<std::uint32_t>(op->imm);
    // vtype does not matter to whole registers, and to all others an illegal one does.
    const bool checked = (imm & (kCheckedVtype | kChecked)) == now;
    if (checked && (file.vtype != kVill || what.has(kWhole))) return true;
    if (!registers_fit(file, op, what)) return false;
    const bool plain = unmasked(op) && fields_of(op) == 1 &&
                       !what.has(kStrided | kIndexed | kWhole | kMaskBits | kFaultFirst) &&
                       data_shape(file, what).eew_log2 == file.sew_log2;
    op->imm = static_cast<std::int32_t>((imm & 0xffff) | now | (plain ? kPlain : 0) |
                                        (plain && what.has(kStore) ? kPlainStore : 0));
    return true;
}

Plan plan_of(const Core* core, const Op* op, const VectorRow& what) {
    VectorFile& file = *core->vector;
    const GroupShape data = data_shape(file, what);
    Plan plan;
    plan.base = core->x[op->rs1];
    plan.log2 = static_cast<unsigned>(data.eew_log2 - 3);
    plan.data = file.reg(op->rd);
    plan.mask = unmasked(op) ? nullptr : file.v;
    if (what.has(kWhole)) {
        plan.count = std::uint64_t{fields_of(op)} * file.vlen_bytes >> plan.log2;
        return plan;
    }
    plan.fields = fields_of(op);
    plan.field_stride = static_cast<std::uint64_t>(data.registers()) * file.vlen_bytes;
    plan.count = what.has(kMaskBits) ? (file.vl + 7) / 8 : file.vl;
    if (what.has(kStrided)) plan.stride = core->x[op->rs2];
    if (what.has(kIndexed)) {
        plan.index = file.reg(op->rs2);
        plan.index_log2 = static_cast<unsigned>(shape_of(file, what.vs2, what.eew).eew_log2 - 3);
    }
    return plan;
}

// An access at `va` went to a page that the page cache has.
[[gnu::noinline]] void remember_span(Core* core, VectorFile::Row& row, std::uint64_t va, bool store) {
    const PageEntry& entry = core->page_entry(va);
    const std::uint64_t page = va & ~kPageOffset, first = va & ~(kSpan - 1);
    row.span = VectorFile::Row::kNoSpan;
    if ((entry.rights & kWholePage) == 0 || !(store ? entry.stores(page) : entry.loads(page)) ||
        core->overlay != nullptr || core->config.tells_accesses || !core->meter.on() ||
        (store && holds_code(core, entry.host(first), kSpan)))
        return;
    row.span = first | (store ? 1 : 0);
    row.addend = entry.addend;
}

void copy_row(Core* core, const Op* op, std::uint8_t* host, std::uint64_t bytes, bool store) {
    if (store) {
        compute_products(core);
        std::memcpy(host, core->vector->reg(op->rd), bytes);
    } else {
        std::memcpy(place_of_row(core, op->rd, bytes), host, bytes);
    }
}

// As move_plain(), of a hart that computes ahead.
[[gnu::noinline]] bool move_ahead(Core* core, const Op* op, bool store) {
    const VectorFile& file = *core->vector;
    const auto log2 = static_cast<unsigned>(file.sew_log2 - 3);
    const std::uint64_t va = core->x[op->rs1], bytes = file.vl << log2;
    if ((va & kPageOffset) + bytes > kPageBytes || (va & ((1u << log2) - 1)) != 0 || bytes == 0) return false;
    const Overlay::Row row = core->overlay->row(va, bytes, store);
    if (row.host == nullptr) return false;
    copy_row(core, op, row.host, bytes, store);
    expect_next(row_at(*core->vector, op), va, row.host, bytes);
    core->meter.stream(va, bytes, row.place, store, row.huge);
    if (core->meter.stops()) core->stop_soon();
    return true;
}

// One that is kPlain, inside one page that is known. False: nothing is done.
bool move_plain(Core* core, const Op* op, bool store) {
    if (ORR_UNLIKELY(core->overlay != nullptr)) return move_ahead(core, op, store);
    VectorFile& file = *core->vector;
    const auto log2 = static_cast<unsigned>(file.sew_log2 - 3);
    const std::uint64_t va = core->x[op->rs1], bytes = file.vl << log2;
    VectorFile::Row& row = row_at(file, op);
    if (row.span == ((va & ~(kSpan - 1)) | (store ? 1 : 0)) && (va & (kSpan - 1)) + bytes <= kSpan &&
        (va & ((1u << log2) - 1)) == 0) {
        auto* const host =
            reinterpret_cast<std::uint8_t*>(row.addend + va);  // NOLINT(performance-no-int-to-ptr)
        copy_row(core, op, host, bytes, store);
        expect_next(row, va, host, bytes);
        core->meter.stream(va, bytes, PagePlace::kVram, store, true);
        if (core->meter.stops()) core->stop_soon();
        return true;
    }
    const std::uint64_t aligned_page = va & (~kPageOffset | ((1u << log2) - 1));
    const PageEntry& entry = core->page_entry(va);
    if (((store ? entry.store_tag : entry.load_tag) & ~kCountedPage) != aligned_page ||
        (va & kPageOffset) + bytes > kPageBytes)
        return false;
    std::uint8_t* const host = entry.host(va);
    copy_row(core, op, host, bytes, store);
    expect_next(row, va, host, bytes);
    count_stream(core, va, bytes, store);
    if ((entry.rights & kWholePage) != 0) remember_span(core, row, va, store);
    return true;
}

// What a load that stops before element `i` will want when it goes on.
[[gnu::noinline]] void foretell(Core* core, const Plan& plan, std::uint64_t i, bool in_a_row) {
    const HostFpPause pause(core);
    const std::uint64_t segment = std::uint64_t{plan.fields} << plan.log2;
    if (in_a_row && plan.mask == nullptr) {
        core->bus->foresee(plan.base + i * segment, (plan.count - i) * segment, true);
        return;
    }
    for (; i < plan.count; ++i) {
        if (!plan.active(i)) continue;
        const std::uint64_t at = in_a_row                ? i * segment
                                 : plan.index != nullptr ? plan.offset(i)
                                                         : i * plan.stride;
        if (!core->bus->foresee(plan.base + at, segment, false)) return;
    }
}

Next op_vector_memory_other(Core* core, Op* op, Left left) {
    compute_products(core);
    core->publish(op, left);
    const VectorRow& what = row(vector_op(op));
    if (!vector_on(core) || !memory_legal(*core->vector, op, what)) {
        raise_illegal(core, op);
        ORR_STOP();
    }
    VectorFile& file = *core->vector;
    const Plan plan = plan_of(core, op, what);
    vector_written(core);
    if (file.vstart < plan.count) {
        core->gathers = true;
        const std::uint64_t stopped = move_all(core, plan, file.vstart, what);
        core->gathers = false;
        if (stopped != plan.count) {
            // One that goes on takes its cycles when it is complete.
            if (stopped == 0 || !what.has(kFaultFirst) || !core->has_trap || core->held) {
                file.vstart = stopped;
                if (core->held && core->overlay == nullptr && what.has(kLoad))
                    foretell(core, plan, stopped, !what.has(kStrided | kIndexed));
                ORR_STOP();
            }
            core->has_trap = false;
            file.vl = stopped;
        }
    }
    file.vstart = 0;
    if (is_plain(file, op)) remember_span(core, row_at(file, op), plan.base, what.has(kStore));
    const std::uint64_t elements = plan.count * plan.fields;
    const std::uint64_t done = what.has(kFaultFirst) ? file.vl : plan.count;
    const std::uint64_t active = plan.mask == nullptr ? done : ones_in(plan.mask, 0, done);
    count_vector(file.work, kVectorTraits[static_cast<std::size_t>(vector_op(op))],
                 static_cast<unsigned>(file.sew_log2), active * plan.fields,
                 what.has(kWhole | kMaskBits) ? elements : file.vlmax * plan.fields);
    charge_vector(core, left, file.memory_until,
                  what.has(kStrided | kIndexed) ? cycles_of_places(file, elements)
                                                : cycles_of_bits(file, elements * 8 << plan.log2),
                  what.has(kFaultFirst));
    op += 2;
    ORR_NEXT_SLOW(core, op, left);
}

}  // namespace

bool is_plain_load(const VectorFile& file, const Op* op) {
    return is_plain(file, op) && (static_cast<std::uint32_t>(op->imm) & kPlainStore) == 0;
}

bool load_row(Core* core, const Op* op) {
    VectorFile& file = *core->vector;
    if (!is_plain_load(file, op)) return false;
    const auto log2 = static_cast<unsigned>(file.sew_log2 - 3);
    const std::uint64_t va = core->x[op->rs1], bytes = file.vl << log2;
    VectorFile::Row& row = row_at(file, op);
    const std::uint8_t* const host = row_in_place(core, row, va, bytes, log2);
    if (host == nullptr || bytes > VectorFile::Pending::kMostBytes) return move_plain(core, op, false);
    take_row(core, host);
    expect_next(row, va, host, bytes);
    core->meter.stream(va, bytes, PagePlace::kVram, false, true);
    if (core->meter.stops()) core->stop_soon();
    return true;
}

Next op_vector_memory(Core* core, Op* op, Left left) {
    VectorFile& file = *core->vector;
    if (ORR_UNLIKELY(!is_plain(file, op) || (core->mstatus & kMstatusVs) != kMstatusVs ||
                     !move_plain(core, op, (static_cast<std::uint32_t>(op->imm) & kPlainStore) != 0)))
        ORR_CALL(op_vector_memory_other, core, op, left);
    file.touched = true;
    const std::uint64_t cycles = common(file).cycles[0];
    count_plain(file, static_cast<std::uint32_t>(op->imm));
    charge_vector(core, left, file.memory_until, cycles, false);
    op += 2;
    ORR_NEXT_SLOW(core, op, left);
}

}  // namespace orrery::emu
