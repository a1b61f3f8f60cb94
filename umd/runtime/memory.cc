#include "umd/runtime/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

namespace orrery::umd {
namespace {

constexpr std::uint32_t kReadWrite = ORR_BIND_READ | ORR_BIND_WRITE;

// Room for fragmentation and for binding a range again elsewhere; address space costs nothing.
std::uint64_t address_space_of(std::uint64_t vram_bytes) {
    return round_up(std::max<std::uint64_t>(4 * vram_bytes, 16ull << 30), kHugePage);
}

}  // namespace

void Memory::clear() {
    const std::lock_guard lock(mutex_);
    allocations_.clear();
    while (!blocks_.empty())
        free_block_locked(blocks_.begin()->first);
    for (auto& [number, card] : cards_) {
        if (card.reserved != nullptr) ::munmap(card.reserved, card.reserved_size);
    }
    cards_.clear();
}

Status Memory::attach(int device, Device& winsys, std::uint64_t vram_bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t size = address_space_of(vram_bytes) + kHugePage;
    // Nobody else in the process gets these addresses, so a pointer tells what it points to.
    void* reserved = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return fail_errno(errno, fmt::format("reserving {} bytes of address space (ulimit -v?)", size));
    }
    Card& card = cards_[device];
    card.winsys = &winsys;
    card.reserved = reserved;
    card.reserved_size = size;
    const auto start = round_up(reinterpret_cast<std::uintptr_t>(reserved), kHugePage);
    card.addresses = RangeAllocator(start, size - kHugePage);
    for (auto& [pointer, allocation] : allocations_) {
        if (allocation.device != kHost) continue;
        if (auto shared = share_locked(*allocation.block, device, kReadWrite); !shared) return shared;
    }
    return {};
}

Result<Block*> Memory::create_locked(int device, std::uint64_t bytes, BoKind kind, bool bind) {
    Card& card = cards_.at(device);
    auto bo = card.winsys->create_bo(round_up(bytes, kPage), kind);
    if (!bo) return std::unexpected(bo.error());
    auto block = std::make_unique<Block>();
    block->device = device;
    block->kind = kind;
    block->size = (*bo)->size();
    block->bo = std::move(*bo);
    if (kind == BoKind::kSystem) {
        auto mapped = block->bo->map();
        if (!mapped) return std::unexpected(mapped.error());
        block->va = reinterpret_cast<std::uintptr_t>(*mapped);
    } else {
        const auto va = card.addresses.allocate(block->size, block->size >= kHugePage ? kHugePage : kPage);
        if (!va) {
            return fail(orrErrorOutOfMemory, "the address range of device {} is too fragmented for {} bytes",
                        device, bytes);
        }
        block->va = *va;
    }
    if (bind) {
        if (auto bound = card.winsys->bind(*block->bo, 0, block->va, block->size, kReadWrite); !bound) {
            if (kind == BoKind::kVram) card.addresses.free(block->va, block->size);
            return std::unexpected(bound.error());
        }
    }
    Block* raw = block.get();
    blocks_.emplace(raw, std::move(block));
    return raw;
}

void Memory::free_block_locked(Block* block) {
    Card& card = cards_.at(block->device);
    // Failures here mean that the card is gone; there is nothing left to unbind then.
    for (auto& [device, import] : block->imports) {
        (void)cards_.at(device).winsys->unbind(block->va, block->size);
    }
    block->imports.clear();
    (void)card.winsys->unbind(block->va, block->size);
    const std::uint64_t va = block->va, size = block->size;
    const bool vram = block->kind == BoKind::kVram;
    blocks_.erase(block);
    if (vram) card.addresses.free(va, size);
}

Result<Block*> Memory::create_block(int device, std::uint64_t bytes, BoKind kind) {
    const std::lock_guard lock(mutex_);
    return create_locked(device, bytes, kind, true);
}

Result<Block*> Memory::create_unbound_block(int device, std::uint64_t bytes, BoKind kind) {
    const std::lock_guard lock(mutex_);
    return create_locked(device, bytes, kind, false);
}

void Memory::free_block(Block* block) {
    const std::lock_guard lock(mutex_);
    free_block_locked(block);
}

Result<std::uint64_t> Memory::allocate_from_slab(int device, std::uint64_t bytes) {
    Card& card = cards_.at(device);
    for (auto& slab : card.slabs) {
        if (const auto va = slab.free.allocate(bytes, kAlignment)) {
            allocations_[*va] = {device, *va, bytes, slab.block};
            return *va;
        }
    }
    auto block = create_locked(device, kSlabSize, BoKind::kVram, true);
    if (!block) return std::unexpected(block.error());
    share_with_writers(**block);
    card.slabs.push_front({*block, RangeAllocator((*block)->va, (*block)->size)});
    const std::uint64_t va = card.slabs.front().free.allocate(bytes, kAlignment).value();
    allocations_[va] = {device, va, bytes, *block};
    return va;
}

Result<std::uint64_t> Memory::allocate_device(int device, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    // Rounded, so that what follows an allocation in its slab is aligned as well.
    if (bytes < kOwnBlock) return allocate_from_slab(device, bytes);
    auto block = create_locked(device, bytes, BoKind::kVram, true);
    if (!block) return std::unexpected(block.error());
    share_with_writers(**block);
    allocations_[(*block)->va] = {device, (*block)->va, bytes, *block};
    return (*block)->va;
}

Result<std::uint64_t> Memory::allocate_host(int device, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    auto block = create_locked(device, bytes, BoKind::kSystem, true);
    if (!block) return std::unexpected(block.error());
    for (auto& [number, card] : cards_) {
        if (number == device) continue;
        if (auto shared = share_locked(**block, number, kReadWrite); !shared) {
            free_block_locked(*block);
            return std::unexpected(shared.error());
        }
    }
    allocations_[(*block)->va] = {kHost, (*block)->va, bytes, *block};
    return (*block)->va;
}

Status Memory::free(std::uint64_t va) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(va);
    if (found == allocations_.end()) {
        return fail(orrErrorInvalidValue,
                    "{:#x} was not given by orrMalloc or orrMallocHost, or was freed before", va);
    }
    const Allocation allocation = found->second;
    allocations_.erase(found);
    if (allocation.device != kHost) {
        auto& slabs = cards_.at(allocation.device).slabs;
        const auto slab = std::ranges::find(slabs, allocation.block, &Slab::block);
        if (slab != slabs.end()) {
            slab->free.free(va, allocation.bytes);
            // One empty slab stays, so that a loop of malloc and free makes no system calls.
            if (!slab->free.unused() || slabs.size() == 1) return {};
            slabs.erase(slab);
        }
    }
    free_block_locked(allocation.block);
    return {};
}

std::optional<Allocation> Memory::find(std::uint64_t va) const {
    const std::shared_lock lock(mutex_);
    auto after = allocations_.upper_bound(va);
    if (after == allocations_.begin()) return std::nullopt;
    const Allocation& allocation = std::prev(after)->second;
    if (va - allocation.va >= allocation.bytes) return std::nullopt;
    return allocation;
}

Result<Allocation> Memory::find_range(std::uint64_t va, std::uint64_t bytes, const char* what) const {
    const auto allocation = find(va);
    if (!allocation) {
        return fail(orrErrorInvalidValue, "{} {:#x} is not memory of orrMalloc or orrMallocHost: it is {}",
                    what, va, describe(va));
    }
    if (bytes > allocation->bytes - (va - allocation->va)) {
        return fail(orrErrorInvalidValue,
                    "{} {:#x} with {} bytes runs past its allocation of {} bytes at {:#x}", what, va, bytes,
                    allocation->bytes, allocation->va);
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
            return fmt::format("{} bytes into the allocation of {} bytes at {:#x} {}", va - a.va, a.bytes,
                               a.va, owner(a));
        }
        const std::uint64_t past = va - (a.va + a.bytes);
        if (past < (1u << 30) && (after == allocations_.end() || after->first - va > past)) {
            return fmt::format("{} bytes past the end of the allocation of {} bytes at {:#x} {}", past,
                               a.bytes, a.va, owner(a));
        }
    }
    if (after != allocations_.end() && after->first - va < (1u << 30)) {
        const Allocation& a = after->second;
        return fmt::format("{} bytes before the allocation of {} bytes at {:#x} {}", a.va - va, a.bytes, a.va,
                           owner(a));
    }
    return "near no allocation";
}

}  // namespace orrery::umd
