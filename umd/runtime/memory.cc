#include "umd/runtime/memory.h"

#include <orrery/prof.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include <orrery/hw/engine.h>

#include "umd/runtime/at_once.h"

namespace orrery::umd {
namespace {

// Room for fragmentation and for binding a range again elsewhere; address space costs nothing.
std::uint64_t address_space_of(std::uint64_t vram_bytes) {
    return round_up(std::max<std::uint64_t>(4 * vram_bytes, 16ull << 30), kHugePage);
}

const char* kind_of(const Allocation& allocation) {
    if (allocation.elsewhere)
        return allocation.block->members.empty() ? "memory of another machine," : "multicast,";
    return allocation.variable == Allocation::Variable::kNone ? "allocation" : "variable of a module,";
}

}  // namespace

void Memory::clear() {
    const std::lock_guard changing(changes_);
    {
        const std::lock_guard lock(mutex_);
        allocations_.clear();
    }
    std::vector<Block*> all;
    for (const auto& [block, owned] : blocks_)
        all.push_back(block);
    destroy(all);
    const std::lock_guard lock(mutex_);
    for (auto& [number, card] : cards_) {
        if (card.reserved != nullptr) ::munmap(card.reserved, card.reserved_size);
    }
    cards_.clear();
}

Status Memory::reserve(int device, Device& winsys, std::uint64_t vram_bytes) {
    const std::lock_guard changing(changes_);
    if (cards_.contains(device)) return {};  // by a first use that then failed
    const std::uint64_t size = address_space_of(vram_bytes) + kHugePage;
    // Nobody else in the process gets these addresses, so a pointer tells what it points to.
    void* reserved = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return fail_errno(errno, fmt::format("reserving {} bytes of address space (ulimit -v?)", size));
    }
    const std::lock_guard lock(mutex_);
    Card& card = cards_[device];
    card.winsys = &winsys;
    card.reserved = reserved;
    card.reserved_size = size;
    const auto start = round_up(reinterpret_cast<std::uintptr_t>(reserved), kHugePage);
    card.addresses = RangeAllocator(start, size - kHugePage);
    return {};
}

void Memory::attach(int device, bool reads_peers) {
    const std::lock_guard changing(changes_);
    cards_.at(device).attached = true;
    cards_.at(device).reads_peers = reads_peers;
    for (const auto& [pointer, allocation] : allocations_) {
        if (allocation.device == kHost) offer(*allocation.block, device, kReadWrite);
    }
}

Result<Block*> Memory::create(int device, std::uint64_t bytes, BoKind kind, bool bind) {
    Card& card = cards_.at(device);
    ORR_TRY(bo, card.winsys->create_bo(round_up(bytes, kPage), kind));
    return place(device, std::move(*bo), kind, bind ? kReadWrite : 0);
}

Result<Block*> Memory::place(int device, std::unique_ptr<Bo> bo, BoKind kind, std::uint32_t bind) {
    Card& card = cards_.at(device);
    auto block = std::make_unique<Block>();
    block->device = device;
    block->kind = kind;
    block->size = bo->size();
    block->bo = std::move(bo);
    if (kind == BoKind::kSystem) {
        ORR_TRY(mapped, block->bo->map());
        block->va = reinterpret_cast<std::uintptr_t>(*mapped);
    } else {
        const auto va = card.addresses.allocate(block->size, block->size >= kHugePage ? kHugePage : kPage);
        if (!va) {
            return fail(orrErrorOutOfMemory, "the address range of device {} is too fragmented for {} bytes",
                        device, block->size);
        }
        block->va = *va;
    }
    if (bind != 0) {
        if (auto bound = card.winsys->bind(*block->bo, 0, block->va, block->size, bind); !bound) {
            if (kind == BoKind::kVram) card.addresses.free(block->va, block->size);
            return std::unexpected(bound.error());
        }
    }
    Block* raw = block.get();
    const std::lock_guard lock(mutex_);
    blocks_.emplace(raw, std::move(block));
    return raw;
}

void Memory::insert(const Allocation& allocation) {
    const std::lock_guard lock(mutex_);
    allocations_[allocation.va] = allocation;
}

void Memory::destroy(std::span<Block* const> blocks) {
    std::vector<std::unique_ptr<Block>> gone;
    std::set<int> devices;
    {
        const std::lock_guard lock(mutex_);
        for (Block* block : blocks) {
            gone.push_back(std::move(blocks_.extract(block).mapped()));
            devices.insert(block->device);
            for (const auto& [device, import] : block->imports)
                devices.insert(device);
        }
    }
    for (const auto& block : gone) {
        for (const FabricKey& key : block->keys)
            block->bo->revoke_fabric(key);
    }
    // Failures here mean that the card is gone; there is nothing left to unbind then.
    const std::vector<int> by_number(devices.begin(), devices.end());
    const auto leave = [&](std::size_t number) {
        const int device = by_number[number];
        for (const auto& block : gone) {
            const auto import = block->imports.find(device);
            if (block->device != device && import == block->imports.end()) continue;
            (void)cards_.at(device).winsys->unbind(block->va, block->size);
            if (import != block->imports.end()) import->second.reset();
        }
    };
    // For a single one the threads would cost as much.
    if (gone.size() > 1) {
        at_once(by_number.size(), leave);
    } else {
        for (std::size_t number = 0; number < by_number.size(); ++number)
            leave(number);
    }
    for (auto& block : gone) {
        const std::uint64_t va = block->va, size = block->size;
        const bool vram = block->kind == BoKind::kVram;
        Card& card = cards_.at(block->device);
        block.reset();
        if (vram) card.addresses.free(va, size);
    }
}

Result<Block*> Memory::create_block(int device, std::uint64_t bytes, BoKind kind) {
    const std::lock_guard changing(changes_);
    return create(device, bytes, kind, true);
}

Result<Block*> Memory::create_unbound_block(int device, std::uint64_t bytes, BoKind kind) {
    const std::lock_guard changing(changes_);
    return create(device, bytes, kind, false);
}

void Memory::free_block(Block* block) {
    const std::lock_guard changing(changes_);
    {
        const std::lock_guard lock(mutex_);
        allocations_.erase(allocations_.lower_bound(block->va),
                           allocations_.lower_bound(block->va + block->size));
    }
    destroy(block);
}

void Memory::add_variable(Block& block, std::uint64_t va, std::uint64_t bytes, bool constant) {
    using enum Allocation::Variable;
    const std::lock_guard changing(changes_);
    insert({block.device, va, bytes, &block, constant ? kConstant : kWritable});
}

Result<Allocation> Memory::create_pinned(int device, std::uint64_t bytes) {
    const std::lock_guard changing(changes_);
    const std::uint64_t size = round_up(bytes, kPage);
    auto& slabs = cards_.at(device).pinned_slabs;
    for (Slab& slab : slabs) {
        const auto va = size > kOwnPinned ? std::nullopt : slab.free.allocate(size, kPage);
        if (!va) continue;
        std::memset(reinterpret_cast<void*>(*va), 0, size);
        return Allocation{device, *va, size, slab.block};
    }
    const std::uint64_t whole = size > kOwnPinned ? size : kPinnedSlab;
    ORR_TRY(block, create(device, whole, BoKind::kSystem, true));
    if (size > kOwnPinned) return Allocation{device, (*block)->va, size, *block};
    const std::lock_guard lock(mutex_);
    slabs.push_front({*block, RangeAllocator((*block)->va, whole)});
    return Allocation{device, slabs.front().free.allocate(size, kPage).value(), size, *block};
}

void Memory::free_pinned(const Allocation& piece) {
    const std::lock_guard changing(changes_);
    if (Block* const block = release_from(cards_.at(piece.device).pinned_slabs, piece, kPage)) destroy(block);
}

// Rounded, so that what is freed fits what is asked for next.
Result<std::uint64_t> Memory::allocate_from_slab(int device, std::uint64_t bytes) {
    Card& card = cards_.at(device);
    const std::uint64_t size = round_up(bytes, kAlignment);
    for (auto& slab : card.slabs) {
        if (const auto va = slab.free.allocate(size, kAlignment)) {
            insert({device, *va, bytes, slab.block});
            note(device, ORR_TELL_ALLOCATED, *va, bytes);
            return *va;
        }
    }
    ORR_TRY(block, create(device, kSlabSize, BoKind::kVram, true));
    share_with_writers(**block);
    {
        const std::lock_guard lock(mutex_);
        card.slabs.push_front({*block, RangeAllocator((*block)->va, (*block)->size)});
    }
    const std::uint64_t va = card.slabs.front().free.allocate(size, kAlignment).value();
    insert({device, va, bytes, *block});
    note(device, ORR_TELL_HEAP, (*block)->va, (*block)->size);
    note(device, ORR_TELL_ALLOCATED, va, bytes);
    return va;
}

Result<std::uint64_t> Memory::allocate_device(int device, std::uint64_t bytes, bool own) {
    const std::lock_guard changing(changes_);
    if (bytes < kOwnBlock && !own) return allocate_from_slab(device, bytes);
    ORR_TRY(block, create(device, bytes, BoKind::kVram, true));
    share_with_writers(**block);
    insert({device, (*block)->va, bytes, *block});
    note(device, ORR_TELL_HEAP, (*block)->va, (*block)->size);
    note(device, ORR_TELL_ALLOCATED, (*block)->va, bytes);
    return (*block)->va;
}

Result<std::uint64_t> Memory::allocate_host(int device, std::uint64_t bytes) {
    const std::lock_guard changing(changes_);
    ORR_TRY(block, create(device, bytes, BoKind::kSystem, true));
    if (auto offered = offer_to_all(**block); !offered) {
        destroy(*block);
        return std::unexpected(offered.error());
    }
    insert({kHost, (*block)->va, bytes, *block});
    return (*block)->va;
}

Status Memory::offer_to_all(Block& block) {
    for (auto& [number, card] : cards_) {
        if (number == block.device || !card.attached) continue;
        offer(block, number, kReadWrite);
        // A card that is gone is its own users' trouble; one that lacks something is whose who asks here.
        const auto refused = block.refused.find(number);
        if (refused == block.refused.end() || refused->second.code == orrErrorDeviceLost) continue;
        return std::unexpected(refused->second);
    }
    return {};
}

Block* Memory::release_from(std::list<Slab>& slabs, const Allocation& allocation, std::uint64_t alignment) {
    const auto slab = std::ranges::find(slabs, allocation.block, &Slab::block);
    if (slab == slabs.end()) return allocation.block;  // has one of its own
    slab->free.free(allocation.va, round_up(allocation.bytes, alignment));
    // One empty slab stays, so that making and freeing in a loop makes no system calls.
    if (!slab->free.unused() || slabs.size() == 1) return nullptr;
    const std::lock_guard lock(mutex_);
    slabs.erase(slab);
    return allocation.block;
}

Block* Memory::release(const Allocation& allocation) {
    {
        const std::lock_guard lock(mutex_);
        allocations_.erase(allocation.va);
    }
    if (allocation.device == kHost || allocation.block->imported) return allocation.block;
    note(allocation.device, ORR_TELL_FREED, allocation.va, allocation.bytes);
    Block* const gone = release_from(cards_.at(allocation.device).slabs, allocation, kAlignment);
    if (gone != nullptr) note(allocation.device, ORR_TELL_NO_HEAP, gone->va, gone->size);
    return gone;
}

void Memory::note(int device, std::uint16_t what, std::uint64_t va, std::uint64_t bytes) {
    Card& card = cards_.at(device);
    if (card.keeps_changes) card.changes.push_back({what, va, bytes});
}

void Memory::keep_changes(int device) {
    const std::lock_guard changing(changes_);
    cards_.at(device).keeps_changes = true;
}

std::vector<HeapChange> Memory::take_changes(int device) {
    const std::lock_guard changing(changes_);
    return std::exchange(cards_.at(device).changes, {});
}

void Memory::put_back(int device, std::vector<HeapChange> changes) {
    const std::lock_guard changing(changes_);
    auto& since = cards_.at(device).changes;
    changes.insert(changes.end(), since.begin(), since.end());
    since = std::move(changes);
}

Status Memory::free(std::uint64_t va) {
    const std::lock_guard changing(changes_);
    const auto found = allocations_.find(va);
    if (found == allocations_.end()) {
        return fail(orrErrorInvalidValue,
                    "{:#x} was not given by orrMalloc or orrMallocHost, or was freed before", va);
    }
    const Allocation allocation = found->second;
    if (allocation.variable != Allocation::Variable::kNone)
        return fail(orrErrorInvalidValue, "{:#x} is a variable of a module, which goes with its module", va);
    if (Block* const block = release(allocation)) destroy(block);
    return {};
}

void Memory::free(std::span<const std::uint64_t> all) {
    const std::lock_guard changing(changes_);
    std::vector<Block*> blocks;
    for (const std::uint64_t va : all) {
        const auto found = allocations_.find(va);
        if (found == allocations_.end() || found->second.variable != Allocation::Variable::kNone) continue;
        const Allocation allocation = found->second;
        if (Block* const block = release(allocation)) blocks.push_back(block);
    }
    destroy(blocks);
}

bool Memory::on_cards(std::uint64_t va, std::uint64_t bytes) const {
    const std::shared_lock lock(mutex_);
    return std::ranges::any_of(cards_, [&](const auto& entry) {
        const Card& card = entry.second;
        const auto start = reinterpret_cast<std::uintptr_t>(card.reserved);
        return va < start + card.reserved_size && start < va + bytes;
    });
}

std::optional<Allocation> Memory::find(std::uint64_t va) const {
    const std::shared_lock lock(mutex_);
    const Allocation* const found = find_locked(va);
    return found == nullptr ? std::nullopt : std::optional(*found);
}

const Allocation* Memory::find_locked(std::uint64_t va) const {
    const auto after = allocations_.upper_bound(va);
    if (after == allocations_.begin()) return nullptr;
    const Allocation& allocation = std::prev(after)->second;
    return va - allocation.va < allocation.bytes ? &allocation : nullptr;
}

int Memory::place_of(std::uint64_t va) const {
    const std::shared_lock lock(mutex_);
    return place_of_locked(va);
}

std::pair<int, int> Memory::places_of(std::uint64_t first, std::uint64_t second) const {
    const std::shared_lock lock(mutex_);
    return {place_of_locked(first), place_of_locked(second)};
}

int Memory::place_of_locked(std::uint64_t va) const {
    if (const Allocation* const allocation = find_locked(va)) {
        if (allocation->elsewhere) return orrProfPlaceElsewhere;
        return allocation->device == kHost ? orrProfPlaceHost : allocation->device;
    }
    for (const auto& [device, card] : cards_) {
        if (va - reinterpret_cast<std::uintptr_t>(card.reserved) < card.reserved_size) return device;
    }
    return orrProfPlaceHost;
}

Result<Allocation> Memory::find_range(std::uint64_t va, std::uint64_t bytes, const char* what) const {
    const auto allocation = find(va);
    if (!allocation) {
        return fail(orrErrorInvalidValue, "{} {:#x} is not memory of orrMalloc or orrMallocHost: it is {}",
                    what, va, describe(va));
    }
    if (bytes > allocation->bytes - (va - allocation->va)) {
        return fail(orrErrorInvalidValue, "{} {:#x} with {} bytes runs past its {} of {} bytes at {:#x}",
                    what, va, bytes, kind_of(*allocation), allocation->bytes, allocation->va);
    }
    return *allocation;
}

std::string Memory::describe(std::uint64_t va) const {
    const std::shared_lock lock(mutex_);
    const auto owner = [](const Allocation& a) {
        return a.device == kHost ? std::string("in pinned host memory")
                                 : fmt::format("on device {}", a.device);
    };
    auto after = allocations_.upper_bound(va);
    if (after != allocations_.begin()) {
        const Allocation& a = std::prev(after)->second;
        if (va - a.va < a.bytes) {
            return fmt::format("{} bytes into the {} of {} bytes at {:#x} {}", va - a.va, kind_of(a), a.bytes,
                               a.va, owner(a));
        }
        const std::uint64_t past = va - (a.va + a.bytes);
        if (past < (1u << 30) && (after == allocations_.end() || after->first - va > past)) {
            return fmt::format("{} bytes past the end of the {} of {} bytes at {:#x} {}", past, kind_of(a),
                               a.bytes, a.va, owner(a));
        }
    }
    if (after != allocations_.end() && after->first - va < (1u << 30)) {
        const Allocation& a = after->second;
        return fmt::format("{} bytes before the {} of {} bytes at {:#x} {}", a.va - va, kind_of(a), a.bytes,
                           a.va, owner(a));
    }
    return "near no allocation";
}

}  // namespace orrery::umd
