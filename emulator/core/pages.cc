// Loads and stores that miss the page cache: filling it, MMIO, misaligned accesses, faults.
#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/core/amo.h"
#include "emulator/core/core.h"
#include "emulator/core/host_fp.h"

namespace orrery::emu {
namespace {

bool misaligned(std::uint64_t va, unsigned size) {
    return (va & (size - 1)) != 0;
}

std::size_t place_of(std::uintptr_t host_page) {
    constexpr std::uint64_t kFibonacci = 0x9e37'79b9'7f4a'7c15;
    return host_page * kFibonacci >> (64 - std::countr_zero(kPageEntries));
}

// The line appears in core->stored_pages, or does so no more.
void count_stores(Core* core, const PageEntry& entry, int change) {
    if (entry.store_tag == kNoPage) return;
    const std::uintptr_t page =
        reinterpret_cast<std::uintptr_t>(entry.host(entry.store_tag & ~kPageMarks)) / kPageBytes;
    auto& count = core->stored_pages[place_of(page)];
    count = static_cast<std::uint16_t>(count + change);
}

// What one page is for one access, after asking the bus if need be.
struct Target {
    PageKind kind = PageKind::kFault;
    std::uint64_t rights = 0;
    std::uint8_t* host = nullptr;  // of the byte at va, for kMemory
};

// A line of the page cache may also say that these accesses to the page at `addend` go to the bus.
constexpr std::uint64_t kMmioLoads = 1 << 8, kMmioStores = 1 << 9;
// And whose memory it is, a PagePlace.
constexpr unsigned kPlaceShift = 10;
constexpr std::uint64_t kHugePage = 1 << 12;

// For the meter.
struct Home {
    PagePlace place = PagePlace::kOwn;
    bool huge = false;
};

// For drop_pages(): the line is about to be used. With an overlay pages are dropped often.
void use(Core* core, const PageEntry& entry) {
    if (core->overlay == nullptr || entry.addend != 0 || core->used > core->used_pages.size()) return;
    if (core->used < core->used_pages.size())
        core->used_pages[core->used] = static_cast<std::uint16_t>(&entry - core->pages.data());
    ++core->used;
}

void remember_mmio(Core* core, PageEntry& entry, std::uint64_t page, std::uint64_t which) {
    // Of a page that is memory for the other access that is worth more.
    if (entry.loads(page) || entry.stores(page)) return;
    if ((entry.rights & (kMmioLoads | kMmioStores)) != 0 && entry.addend == page) {
        entry.rights |= which;
        return;
    }
    use(core, entry);
    count_stores(core, entry, -1);
    entry = PageEntry{};
    entry.addend = page;
    entry.rights = which;
}

Target look_up(Core* core, std::uint64_t va, Access access) {
    const std::uint64_t page = va & ~kPageOffset;
    PageEntry& entry = core->page_entry(va);
    const bool is_load = access == Access::kLoad;
    if (!(is_load ? entry.loads(page) : entry.stores(page))) {
        const std::uint64_t mmio = is_load ? kMmioLoads : kMmioStores;
        if ((entry.rights & mmio) != 0 && entry.addend == page)
            return {PageKind::kMmio, kPageStrict, nullptr};
        const HostFpPause pause(core);
        const PageRef ref = core->bus->translate(va, access);
        const std::uint8_t needed = is_load ? kPageRead : kPageWrite;
        if (ref.kind == PageKind::kMmio) {
            remember_mmio(core, entry, page, mmio);
            return {PageKind::kMmio, kPageStrict, nullptr};
        }
        if (ref.kind != PageKind::kMemory || ref.host == nullptr || (ref.rights & needed) == 0) {
            core->held = core->overlay != nullptr;
            return {};
        }
        const bool code = holds_code(core, ref.host, kPageBytes);
        Overlay::Page now{.host = ref.host, .stores = true};
        if (core->overlay != nullptr) {
            if (!code || is_load) now = core->overlay->page(page, ref, !is_load);
            core->held = now.host == nullptr || (code && !is_load);
            if (core->held) return {};
        }
        const std::uintptr_t addend = reinterpret_cast<std::uintptr_t>(now.host) - page;
        use(core, entry);
        count_stores(core, entry, -1);
        // Of an entry for the same page the other tag may stay, if the bus says the same of it.
        if ((!entry.loads(page) && !entry.stores(page)) || entry.addend != addend) entry = PageEntry{};
        entry.addend = addend;
        entry.rights = ref.rights | std::uint64_t{std::to_underlying(ref.place)} << kPlaceShift |
                       (ref.huge ? kHugePage : 0) |
                       (ref.whole && ref.huge && ref.place == PagePlace::kVram ? kWholePage : 0);
        const bool counted = core->meter.on() && ref.place != PagePlace::kOwn;
        const std::uint64_t tag =
            page | (counted ? kCountedPage : 0) | (core->config.tells_accesses ? kToldPage : 0);
        entry.load_tag = (ref.rights & kPageRead) != 0 && now.loads ? tag : kNoPage;
        // Stores to pages that hold decoded code are never cached, so that slow_store() sees each.
        entry.store_tag = (ref.rights & kPageWrite) != 0 && now.stores && !code ? tag : kNoPage;
        count_stores(core, entry, 1);
        return {PageKind::kMemory, ref.rights, now.host + (va & kPageOffset)};
    }
    return {PageKind::kMemory, entry.rights, entry.host(va)};
}

// Where the page of an access that has just been done is.
Home home_of(Core* core, std::uint64_t va) {
    const PageEntry& entry = core->page_entry(va);
    const std::uint64_t page = va & ~kPageOffset;
    const bool huge = (entry.rights & kHugePage) != 0;
    if (core->overlay != nullptr) return {core->overlay->place(va), huge};
    if (!entry.loads(page) && !entry.stores(page)) return {};
    return {static_cast<PagePlace>(entry.rights >> kPlaceShift & 3), huge};
}

void count_line(Core* core, std::uint64_t va, unsigned size, bool store) {
    const auto [place, huge] = home_of(core, va);
    if (store)
        core->meter.store(va, size, place, huge);
    else if (core->gathers)
        core->meter.gather(va, size, place, huge);
    else
        core->memory_wait += core->meter.load(va, size, place, huge);
}

void count(Core* core, std::uint64_t va, unsigned size, bool store) {
    if (!core->meter.on()) return;
    const auto first = static_cast<unsigned>(std::min<std::uint64_t>(size, Meter::kLine - va % Meter::kLine));
    count_line(core, va, first, store);
    if (first != size) count_line(core, va + first, size - first, store);
    if (!core->meter.stops()) return;
    core->stopped_pc = core->pc;
    core->stop_soon();
}

// An aligned access is one host access whatever the optimiser does.
std::uint64_t load_host(const std::uint8_t* host, unsigned size) {
    switch (size) {
        case 1:
            return __atomic_load_n(host, __ATOMIC_RELAXED);
        case 2:
            return __atomic_load_n(reinterpret_cast<const HostU16*>(host), __ATOMIC_RELAXED);
        case 4:
            return __atomic_load_n(reinterpret_cast<const HostU32*>(host), __ATOMIC_RELAXED);
        default:
            return __atomic_load_n(reinterpret_cast<const HostU64*>(host), __ATOMIC_RELAXED);
    }
}
void store_host(std::uint8_t* host, unsigned size, std::uint64_t value) {
    switch (size) {
        case 1:
            __atomic_store_n(host, static_cast<std::uint8_t>(value), __ATOMIC_RELAXED);
            break;
        case 2:
            __atomic_store_n(reinterpret_cast<HostU16*>(host), static_cast<HostU16>(value), __ATOMIC_RELAXED);
            break;
        case 4:
            __atomic_store_n(reinterpret_cast<HostU32*>(host), static_cast<HostU32>(value), __ATOMIC_RELAXED);
            break;
        default:
            __atomic_store_n(reinterpret_cast<HostU64*>(host), value, __ATOMIC_RELAXED);
            break;
    }
}

// Part of a misaligned access: host memory at part_va, or nullptr and an exception for the access at va.
std::uint8_t* part(Core* core, std::uint64_t va, std::uint64_t part_va, Access access) {
    const bool is_load = access == Access::kLoad;
    const Target target = look_up(core, part_va, access);
    if (target.kind == PageKind::kFault) {
        core->raise(is_load ? Cause::kLoadAccess : Cause::kStoreAccess, part_va);
        return nullptr;
    }
    if ((target.rights & kPageStrict) != 0) {
        core->raise(is_load ? Cause::kLoadMisaligned : Cause::kStoreMisaligned, va);
        return nullptr;
    }
    return target.host;
}

// False: it stops before this access.
bool may_load(Core* core, std::uint64_t va, unsigned size) {
    core->held = core->overlay != nullptr && !core->overlay->loads(va, size);
    return !core->held;
}
bool may_store(Core* core, std::uint64_t va, unsigned size, Overlay::Store how) {
    core->held = core->overlay != nullptr && !core->overlay->stores(va, size, how);
    return !core->held;
}

unsigned size_in_page(std::uint64_t va, unsigned size) {
    const std::uint64_t to_end = kPageBytes - (va & kPageOffset);
    return to_end < size ? static_cast<unsigned>(to_end) : size;
}

void tell(Core* core, std::uint64_t va, unsigned size, AccessKind kind) {
    if (!core->config.tells_accesses) [[likely]]
        return;
    tell_access(core, {.va = va, .bytes = size, .kind = kind, .element = size});
}

}  // namespace

void tell_access(Core* core, const DoneAccess& access) {
    if (!core->config.tells_accesses) [[likely]]
        return;
    const HostFpPause pause(core);
    core->bus->accessed(access);
}

void stored(Core* core, const std::uint8_t* host, std::size_t size) {
    if (holds_code(core, host, size)) forget_code(core, host, size);
}

std::uint8_t* span_of(Core* core, std::uint64_t va, unsigned size, Access access, std::uint64_t& bytes) {
    bytes = kPageBytes - (va & kPageOffset);
    if (bytes < size) return nullptr;
    const Target target = look_up(core, va, access);
    if (target.kind != PageKind::kMemory) return nullptr;
    if ((target.rights & kPageStrict) != 0 && misaligned(va, size)) return nullptr;
    return target.host;
}

bool slow_load(Core* core, std::uint64_t va, unsigned size, std::uint64_t& value) {
    if (misaligned(va, size)) {
        // Each pointer is used before the bus is called again, which may revoke it.
        const unsigned first = size_in_page(va, size);
        std::uint8_t bytes[8] = {};
        if (first != size && (part(core, va, va, Access::kLoad) == nullptr ||
                              part(core, va, va + first, Access::kLoad) == nullptr))
            return false;
        const std::uint8_t* host = part(core, va, va, Access::kLoad);
        if (host == nullptr || !may_load(core, va, size)) return false;
        std::memcpy(bytes, host, first);
        if (first != size) {
            host = part(core, va, va + first, Access::kLoad);
            if (host == nullptr) return false;
            std::memcpy(bytes + first, host, size - first);
        }
        std::memcpy(&value, bytes, sizeof value);
        count(core, va, size, false);
        tell(core, va, size, AccessKind::kLoad);
        return true;
    }
    const Target target = look_up(core, va, Access::kLoad);
    if (target.kind == PageKind::kMemory) {
        if (!may_load(core, va, size)) return false;
        value = load_host(target.host, size);
        count(core, va, size, false);
        tell(core, va, size, AccessKind::kLoad);
        return true;
    }
    if (target.kind == PageKind::kMmio) {
        const HostFpPause pause(core);
        value = 0;
        if (core->bus->load(va, size, value)) {
            if (size < 8) value &= (1ull << (8 * size)) - 1;
            return true;
        }
    }
    core->raise(Cause::kLoadAccess, va);
    return false;
}

bool slow_store(Core* core, std::uint64_t va, unsigned size, std::uint64_t value) {
    if (misaligned(va, size)) {
        const unsigned first = size_in_page(va, size);
        std::uint8_t bytes[8];
        std::memcpy(bytes, &value, sizeof value);
        // Nothing is written unless all may be; of parts that may not the first is named.
        if (first != size && (part(core, va, va, Access::kStore) == nullptr ||
                              part(core, va, va + first, Access::kStore) == nullptr))
            return false;
        std::uint8_t* host = part(core, va, va, Access::kStore);
        if (host == nullptr || !may_store(core, va, first, Overlay::Store::kSome) ||
            (first != size && !may_store(core, va + first, size - first, Overlay::Store::kSome)))
            return false;
        std::memcpy(host, bytes, first);
        stored(core, host, first);
        if (first != size) {
            host = part(core, va, va + first, Access::kStore);
            if (host == nullptr) return false;
            std::memcpy(host, bytes + first, size - first);
            stored(core, host, size - first);
        }
        count(core, va, size, true);
        tell(core, va, size, AccessKind::kStore);
        return true;
    }
    const Target target = look_up(core, va, Access::kStore);
    if (target.kind == PageKind::kMemory) {
        if (!may_store(core, va, size, Overlay::Store::kOne)) return false;
        store_host(target.host, size, value);
        stored(core, target.host, size);
        count(core, va, size, true);
        tell(core, va, size, AccessKind::kStore);
        return true;
    }
    if (target.kind == PageKind::kMmio) {
        const HostFpPause pause(core);
        if (size < 8) value &= (1ull << (8 * size)) - 1;
        if (core->bus->store(va, size, value)) return true;
    }
    core->raise(Cause::kStoreAccess, va);
    return false;
}

std::uint8_t* atomic_host(Core* core, std::uint64_t va, unsigned size, bool is_lr, bool& mmio) {
    mmio = false;
    if (misaligned(va, size)) {
        core->raise(is_lr ? Cause::kLoadMisaligned : Cause::kStoreMisaligned, va);
        return nullptr;
    }
    // An AMO is a store: a page that may only be read refuses it with a store fault.
    const Target target = look_up(core, va, is_lr ? Access::kLoad : Access::kStore);
    if (target.kind == PageKind::kMmio) {
        mmio = true;
        return nullptr;
    }
    // A page that takes stores for the bus: whether an SC without a reservation fails or traps must not
    // depend on who takes them.
    if (target.kind == PageKind::kMemory && (target.rights & (kPageRead | kPageStrict)) == kPageStrict) {
        mmio = true;
        return nullptr;
    }
    if (core->overlay != nullptr && home_of(core, va).place != PagePlace::kOwn) {
        core->held = true;
        return nullptr;
    }
    const bool refused = target.kind == PageKind::kMemory && (target.rights & kPageNoAtomics) != 0;
    if (refused) core->bus->atomic_refused(va);
    if (!refused && target.kind == PageKind::kMemory &&
        (target.rights & (kPageRead | kPageStrict)) == kPageRead) {
        if (core->meter.on()) {
            const auto [place, huge] = home_of(core, va);
            core->memory_wait += core->meter.atomic(va, place, huge);
        }
        return target.host;
    }
    core->raise(is_lr ? Cause::kLoadAccess : Cause::kStoreAccess, va);
    return nullptr;
}

bool posted_ahead(Core* core, std::uint64_t va, unsigned size, AmoFunction function, std::uint64_t operand) {
    if (!commutes(function) || misaligned(va, size)) return false;
    const Target target = look_up(core, va, Access::kStore);
    if (target.kind != PageKind::kMemory ||
        (target.rights & (kPageRead | kPageStrict | kPageNoAtomics)) != kPageRead)
        return false;
    const auto [place, huge] = home_of(core, va);
    if (place == PagePlace::kOwn || !core->overlay->posts(va, size, function, operand)) return false;
    core->memory_wait += core->meter.atomic(va, place, huge);
    return true;
}

void count_stream(Core* core, std::uint64_t va, std::uint64_t bytes, bool store) {
    if (!core->meter.on()) return;
    const auto [place, huge] = home_of(core, va);
    core->meter.stream(va, bytes, place, store, huge);
    if (core->meter.stops()) core->stop_soon();
}

void drop_pages(Core* core) {
    if (core->pages_of == nullptr || core->used > core->used_pages.size()) {
        core->pages.fill(PageEntry{});
        core->stored_pages.fill(0);
    } else {
        for (std::size_t i = 0; i < core->used; ++i) {
            PageEntry& entry = core->pages[core->used_pages[i]];
            count_stores(core, entry, -1);
            entry = PageEntry{};
        }
    }
    core->used = 0;
    if (core->vector != nullptr) core->vector->forget_spans();
    core->pages_of = core->overlay;
}

void drop_page(Core* core, std::uint64_t va) {
    PageEntry& entry = core->page_entry(va);
    count_stores(core, entry, -1);
    const std::uintptr_t listed = entry.addend;
    entry = PageEntry{};
    entry.addend = listed;  // it is among the used ones
}

void refuse_stores(Core* core, const std::uint8_t* host) {
    if (core->vector != nullptr) core->vector->forget_spans();
    // Pages of the host need not begin where the code's does.
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(host) / kPageBytes;
    bool some = false;
    for (std::uintptr_t near = page - 1; near <= page + 1; ++near)
        some |= core->stored_pages[place_of(near)] != 0;
    if (!some) return;
    for (PageEntry& entry : core->pages) {
        if (entry.store_tag == kNoPage) continue;
        const auto stored = reinterpret_cast<std::uintptr_t>(entry.host(entry.store_tag & ~kPageMarks));
        const auto code = reinterpret_cast<std::uintptr_t>(host);
        if (stored >= code + kPageBytes || code >= stored + kPageBytes) continue;
        count_stores(core, entry, -1);
        entry.store_tag = kNoPage;
    }
}

}  // namespace orrery::emu
