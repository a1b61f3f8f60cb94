#include "emulator/check/checked_memory.h"

#include <algorithm>
#include <utility>

#include <orrery/hw/engine.h>

namespace orrery::emu {
namespace {

// With an allowance for what the host's library keeps for each.
constexpr std::uint64_t kRangeBytes = 80, kEntryBytes = 64;
// Looked at in one go: the host waits for it.
constexpr std::uint64_t kMostLooks = 1024;

// The range that holds `va`, or end().
template <typename Ranges>
auto range_at(const Ranges& ranges, std::uint64_t va) {
    auto after = ranges.upper_bound(va);
    if (after == ranges.begin()) return ranges.end();
    --after;
    return va - after->first < after->second ? after : ranges.end();
}

}  // namespace

bool CheckedMemory::spend(std::uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= limit_) return true;
    reset();
    gave_up_ = true;
    return false;
}

void CheckedMemory::reset() {
    all_.clear();
    pages_.clear();
    bytes_ = 0;
    gave_up_ = false;
}

CheckedMemory::Space* CheckedMemory::space_of(std::uint32_t asid) {
    const auto found = all_.find(asid);
    if (found == all_.end()) return nullptr;
    if (found->second.owner == spaces_.owner(asid)) return &found->second;
    bytes_ -= (found->second.heaps.size() + found->second.allocations.size()) * kRangeBytes;
    all_.erase(found);
    if (all_.empty()) reset();
    return nullptr;
}

// All that begin in the range.
void CheckedMemory::remove(Ranges& ranges, const Tell& tell, Go& go) {
    for (auto at = ranges.lower_bound(tell.va); at != ranges.end() && at->first - tell.va < tell.bytes;) {
        go.all = go.looked < kMostLooks;
        if (!go.all) return;
        ++go.looked;
        at = ranges.erase(at);
        bytes_ -= kRangeBytes;
    }
}

CheckedMemory::Go CheckedMemory::tell(std::uint32_t asid, const Tell& tell, std::uint64_t& done) {
    Go go;
    if (gave_up_) return go;
    Space* space = space_of(asid);
    if (space == nullptr) {
        space = &all_[asid];
        space->owner = spaces_.owner(asid);
    }
    if (tell.what == ORR_TELL_ALLOCATED) forget_written(asid, tell, done, go);
    // Parts of pages need room, and without it there are no spaces any more.
    if (!go.all || gave_up_) return go;
    remove(space->allocations, tell, go);
    if (go.all && (tell.what == ORR_TELL_HEAP || tell.what == ORR_TELL_NO_HEAP))
        remove(space->heaps, tell, go);
    if (!go.all) return go;
    if (tell.what == ORR_TELL_HEAP || tell.what == ORR_TELL_ALLOCATED) {
        (tell.what == ORR_TELL_HEAP ? space->heaps : space->allocations)[tell.va] = tell.bytes;
        spend(kRangeBytes);
    }
    return go;
}

// Only what the process may write itself, so it cannot hide what others have written.
void CheckedMemory::forget_written(std::uint32_t asid, const Tell& tell, std::uint64_t& done, Go& go) {
    while (done < tell.bytes) {
        go.all = go.looked < kMostLooks;
        if (!go.all) return;
        ++go.looked;
        const std::uint64_t va = tell.va + done, left = tell.bytes - done;
        if (const auto offset = spaces_.vram_at(asid, va, Access::kStore)) {
            const std::uint64_t bytes = std::min(left, kPageBytes - va % kPageBytes);
            forget_written(*offset, bytes);
            done += bytes;
        } else {
            done += std::min(left, spaces_.reach(asid, va));
        }
    }
}

void CheckedMemory::forget_written(std::uint64_t offset, std::uint64_t bytes) {
    const auto found = pages_.find(offset / kPageBytes);
    if (found == pages_.end()) return;
    if (bytes == kPageBytes) {
        bytes_ -= kEntryBytes + (found->second != nullptr ? sizeof(Page) : 0);
        pages_.erase(found);
        return;
    }
    if (found->second == nullptr) {
        found->second = std::make_unique<Page>();
        found->second->set();
        if (!spend(sizeof(Page))) return;
    }
    for (std::uint64_t i = 0; i < bytes; ++i)
        found->second->reset((offset + i) % kPageBytes);
}

void CheckedMemory::wrote(std::uint64_t offset, std::uint64_t bytes) {
    // Nobody asks before somebody has told something.
    if (all_.empty()) return;
    for (std::uint64_t end = offset + bytes; offset < end;) {
        const std::uint64_t at = offset % kPageBytes, part = std::min(kPageBytes - at, end - offset);
        const auto [found, made] = pages_.try_emplace(offset / kPageBytes);
        offset += part;
        if (!made && found->second == nullptr) continue;
        if (made && !spend(kEntryBytes)) return;
        auto& page = found->second;
        if (part != kPageBytes) {
            if (made) {
                if (!spend(sizeof(Page))) return;
                page = std::make_unique<Page>();
            }
            for (std::uint64_t i = at; i < at + part; ++i)
                page->set(i);
            if (!page->all()) continue;
        }
        if (page != nullptr) bytes_ -= sizeof(Page);
        page.reset();
    }
}

bool CheckedMemory::written(std::uint64_t offset) const {
    const auto found = pages_.find(offset / kPageBytes);
    if (found == pages_.end()) return false;
    return found->second == nullptr || found->second->test(offset % kPageBytes);
}

std::optional<CheckedMemory::Problem> CheckedMemory::access(std::uint32_t asid, const DoneAccess& access) {
    Space* const space = all_.empty() ? nullptr : space_of(asid);
    if (space == nullptr) return {};
    const std::uint64_t end = access.va + access.bytes;
    const auto allocation = range_at(space->allocations, access.va);
    std::uint64_t good = access.va;
    if (allocation != space->allocations.end()) good = std::min(end, allocation->first + allocation->second);
    if (good != end) {
        if (range_at(space->heaps, good) != space->heaps.end()) return Problem{true, good, end - good};
        return {};
    }
    const bool stores = access.kind == AccessKind::kStore;
    std::optional<NeverWritten> bad;
    for (std::uint64_t va = access.va; va < end;) {
        // Of one page, and so of one piece of VRAM.
        DoneAccess part = access;
        part.va = va;
        part.bytes = std::min(end - va, kPageBytes - va % kPageBytes);
        va += part.bytes;
        const auto offset = spaces_.vram_at(asid, part.va, stores ? Access::kStore : Access::kLoad);
        if (!offset) continue;
        if (!stores && !bad) {
            const std::uint64_t start = *offset - part.va;
            bad = never_written(part, [&](std::uint64_t at) { return written(start + at); });
        }
        if (stores || access.kind == AccessKind::kAtomic) wrote(*offset, part.bytes);
    }
    if (!bad) return {};
    return Problem{false, bad->va, bad->bytes};
}

}  // namespace orrery::emu
