// Memory that several processes, or machines, have.
#include <algorithm>
#include <mutex>

#include "umd/runtime/memory.h"

namespace orrery::umd {

Result<Block*> Memory::block_to_export(std::uint64_t va) {
    const auto found = allocations_.find(va);
    if (found == allocations_.end()) {
        return fail(orrErrorInvalidValue,
                    "{:#x} is no start of memory of orrIpcMalloc, orrMalloc or orrMallocHost: it is {}", va,
                    describe(va));
    }
    const Allocation& allocation = found->second;
    if (allocation.variable != Allocation::Variable::kNone)
        return fail(orrErrorInvalidValue, "{:#x} is a variable of a module, which stays with its process",
                    va);
    if (allocation.elsewhere)
        return fail(orrErrorInvalidValue, "{:#x} is {}: only its owner gives it on", va, allocation.where());
    // Who got the buffer would have all that is in it.
    Block& block = *allocation.block;
    if (allocation.device != kHost && !block.imported) {
        for (const Slab& slab : cards_.at(allocation.device).slabs) {
            if (slab.block != &block) continue;
            return fail(orrErrorInvalidValue,
                        "the {} bytes at {:#x} share their pages with other allocations of this process: "
                        "what other processes are to have comes from orrIpcMalloc",
                        allocation.bytes, va);
        }
    }
    return &block;
}

Result<UniqueFd> Memory::export_fd(std::uint64_t va) {
    const std::lock_guard changing(changes_);
    ORR_TRY(block, block_to_export(va));
    return (*block)->bo->export_fd();
}

Result<FabricKey> Memory::export_fabric(std::uint64_t va) {
    const std::lock_guard changing(changes_);
    ORR_TRY(block, block_to_export(va));
    if ((*block)->kind != BoKind::kVram) {
        return fail(orrErrorInvalidValue,
                    "{:#x} is memory of the host: other machines reach a card's memory only, of "
                    "orrIpcMalloc",
                    va);
    }
    ORR_TRY(key, (*block)->bo->export_fabric(false));
    (*block)->keys.push_back(*key);
    return key;
}

Result<FabricKey> Memory::export_fabric(Block& block) {
    const std::lock_guard changing(changes_);
    ORR_TRY(key, block.bo->export_fabric(true));
    block.keys.push_back(*key);
    return key;
}

bool Memory::revoke_fabric(const FabricKey& key) {
    const std::lock_guard changing(changes_);
    for (const auto& [block, owned] : blocks_) {
        if (std::erase(block->keys, key) == 0) continue;
        block->bo->revoke_fabric(key);
        return true;
    }
    return false;
}

Result<Block*> Memory::place_elsewhere(int device, std::unique_ptr<Bo> bo, std::uint32_t flags) {
    ORR_TRY(block, place(device, std::move(bo), BoKind::kVram, flags));
    (*block)->imported = (*block)->elsewhere = true;
    return block;
}

Result<Block*> Memory::place_abroad(int device, std::unique_ptr<Bo> bo, std::uint32_t node) {
    ORR_TRY(block, place_elsewhere(device, std::move(bo)));
    Device& card = *cards_.at(device).winsys;
    Abroad abroad{.node = node, .device = device};
    if (const auto way = card.way_to_node(node); way && way->links != 0) {
        if (const auto link = card.link(way->port)) {
            abroad.port = way->port;
            abroad.losses = link->losses;
            abroad.known = true;
        }
    }
    const std::lock_guard lock(mutex_);
    (*block)->abroad = abroad;
    return *block;
}

Abroad Memory::abroad(std::uint64_t va) const {
    const std::shared_lock lock(mutex_);
    for (const auto& [block, owned] : blocks_)
        if (va - block->va < block->size) return block->abroad;
    return {};
}

Result<Allocation> Memory::import_elsewhere(int device, std::unique_ptr<Bo> bo, std::uint32_t node) {
    const std::lock_guard changing(changes_);
    ORR_TRY(block, place_abroad(device, std::move(bo), node));
    Allocation allocation{device, (*block)->va, (*block)->size, *block};
    allocation.elsewhere = true;
    insert(allocation);
    return allocation;
}

Result<Allocation> Memory::make_multicast(int device, std::span<const std::uint64_t> members,
                                          std::uint64_t bytes, bool combines,
                                          const std::map<int, std::uint64_t>& ways) {
    const std::lock_guard changing(changes_);
    const std::uint64_t size = round_up(bytes, kPage);
    std::vector<MulticastMember> parts;
    std::vector<MulticastWay> devices;
    for (const std::uint64_t va : members) {
        ORR_TRY(block, block_to_export(va));
        const Allocation& allocation = allocations_.find(va)->second;
        if (allocation.device == kHost || allocation.device == device ||
            std::ranges::find(devices, allocation.device, &MulticastWay::device) != devices.end()) {
            return fail(
                orrErrorInvalidValue,
                "{:#x} cannot be a member: it is {}, and members are memory of other devices than {}, "
                "one of each",
                va, describe(va), device);
        }
        if (bytes > allocation.bytes)
            return fail(orrErrorInvalidValue, "a member has less than {} bytes: {:#x} is {}", bytes, va,
                        describe(va));
        ORR_TRY(fd, (*block)->bo->export_fd());
        parts.push_back({std::move(*fd), va - (*block)->va});
        const auto way = ways.find(allocation.device);
        devices.push_back({allocation.device, way == ways.end() ? 0 : way->second});
    }
    ORR_TRY(bo, cards_.at(device).winsys->make_multicast(parts, size, combines));
    ORR_TRY(block, place_elsewhere(device, std::move(*bo), combines ? kReadWrite : ORR_BIND_WRITE));
    (*block)->members = std::move(devices);
    (*block)->combines = combines;
    Allocation allocation{device, (*block)->va, bytes, *block};
    allocation.elsewhere = true;
    insert(allocation);
    return allocation;
}

Result<Block*> Memory::import_elsewhere_block(int device, std::unique_ptr<Bo> bo, std::uint32_t node) {
    const std::lock_guard changing(changes_);
    return place_abroad(device, std::move(bo), node);
}

Result<std::optional<ForeignBo>> Memory::probe(Device& card, int fd) {
    const std::lock_guard changing(changes_);
    return card.import_fd(fd);
}

Result<Block*> Memory::import_block(int device, std::unique_ptr<Bo> bo, std::uint32_t bind) {
    const std::lock_guard changing(changes_);
    ORR_TRY(block, place(device, std::move(bo), BoKind::kVram, bind));
    (*block)->imported = true;
    return block;
}

Result<Allocation> Memory::import(int device, ForeignBo foreign) {
    const std::lock_guard changing(changes_);
    ORR_TRY(placed, place(device, std::move(foreign.bo), foreign.kind, kReadWrite));
    Block& block = **placed;
    block.imported = true;
    if (foreign.kind == BoKind::kVram) {
        share_with_writers(block);
    } else if (auto offered = offer_to_all(block); !offered) {
        destroy(&block);
        return std::unexpected(offered.error());
    }
    const Allocation allocation{foreign.kind == BoKind::kVram ? device : kHost, block.va, block.size, &block};
    insert(allocation);
    return allocation;
}

}  // namespace orrery::umd
