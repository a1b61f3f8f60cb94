// Memory of one card as another card sees it.
#include <mutex>

#include "umd/runtime/memory.h"

namespace orrery::umd {

Status Memory::share(Block& block, int device, std::uint32_t flags) {
    if (block.device == device || block.imports.contains(device)) return {};
    Device& importer = *cards_.at(device).winsys;
    ORR_TRY(import, importer.import_bo(*block.bo));
    ORR_TRY(bound, importer.bind(**import, 0, block.va, block.size, flags));
    const std::lock_guard lock(mutex_);
    block.imports.emplace(device, std::move(*import));
    return {};
}

void Memory::offer(Block& block, int device, std::uint32_t flags) {
    auto shared = share(block, device, flags);
    const std::lock_guard lock(mutex_);
    if (shared) {
        block.refused.erase(device);
        return;
    }
    block.refused[device] = shared.error();
    if (shared.error().code == orrErrorPeerAccess) awaits_ways_.store(true, std::memory_order_release);
}

// An import that fails (a card has 256 grants, or no way leads there) does not fail the allocation: its owner
// can use the memory all the same. Who copies to it over the link learns the reason, or has it offered again.
void Memory::share_with_writers(Block& block) {
    for (const auto& [number, card] : cards_) {
        if (card.may_write.contains(block.device)) offer(block, number, peer_rights(number, block.device));
    }
}

void Memory::offer_again(const std::function<bool(int device, int peer)>& reaches) {
    const std::lock_guard changing(changes_);
    // What is refused from here on raises it again.
    awaits_ways_.store(false, std::memory_order_release);
    for (const auto& [block, owned] : blocks_) {
        std::vector<int> devices;
        for (const auto& [device, error] : block->refused)
            if (error.code == orrErrorPeerAccess) devices.push_back(device);
        for (const int device : devices) {
            if (cards_.at(device).may_write.contains(block->device) && reaches(device, block->device))
                offer(*block, device, peer_rights(device, block->device));
            else
                awaits_ways_.store(true, std::memory_order_release);
        }
    }
}

Status Memory::enable_peer(int device, int peer) {
    const std::lock_guard changing(changes_);
    Card& card = cards_.at(device);
    if (card.may_write.contains(peer)) return {};
    // All memory of the user, and only that: rings, arguments and code stay private.
    std::set<Block*> blocks;
    for (const auto& [va, allocation] : allocations_) {
        if (allocation.device == peer && allocation.variable == Allocation::Variable::kNone &&
            !allocation.elsewhere)
            blocks.insert(allocation.block);
    }
    for (const auto& slab : cards_.at(peer).slabs)
        blocks.insert(slab.block);
    for (Block* block : blocks) {
        offer(*block, device, peer_rights(device, peer));
        const auto refused = block->refused.find(device);
        if (refused != block->refused.end() && refused->second.code == orrErrorPeerAccess)
            return std::unexpected(refused->second);
    }
    const std::lock_guard lock(mutex_);
    card.may_write.insert(peer);
    return {};
}

bool Memory::reads_peer(int device, int peer) const {
    return cards_.at(device).reads_peers && cards_.at(peer).reads_peers;
}

std::uint32_t Memory::peer_rights(int device, int peer) const {
    return ORR_BIND_WRITE | (reads_peer(device, peer) ? ORR_BIND_READ : 0);
}

bool Memory::peer_enabled(int device, int peer) const {
    const std::shared_lock lock(mutex_);
    const auto card = cards_.find(device);
    return card != cards_.end() && card->second.may_write.contains(peer);
}

std::optional<Error> Memory::peer_refusal(int device, const Allocation& allocation) const {
    const std::shared_lock lock(mutex_);
    const Block& block = *allocation.block;
    if (block.device == device || block.imports.contains(device)) return std::nullopt;
    if (allocation.elsewhere) {
        return Error{orrErrorPeerAccess,
                     fmt::format("{:#x} is {}, which only device {} reaches here, that "
                                 "{}: copy in a stream of that device",
                                 allocation.va, allocation.where(), block.device,
                                 block.members.empty() ? "imported it" : "was current then")};
    }
    if (allocation.variable != Allocation::Variable::kNone) {
        return Error{
            orrErrorPeerAccess,
            fmt::format("{:#x} is a variable of a module on device {}, which no other card uses: "
                        "copy to memory of orrMalloc there, and on from it in a stream of that device",
                        allocation.va, block.device)};
    }
    const auto refused = block.refused.find(device);
    if (refused != block.refused.end()) {
        return Error{orrErrorPeerAccess,
                     fmt::format("device {} may use memory of device {}, but not the allocation at {:#x}: {}",
                                 device, block.device, allocation.va, refused->second.text)};
    }
    return Error{orrErrorPeerAccess,
                 fmt::format("device {} may not use memory of device {}: call orrSetDevice({}) and "
                             "orrDeviceEnablePeerAccess({}, 0) first",
                             device, block.device, device, block.device)};
}

std::optional<Error> Memory::peer_read_refusal(int device, const Allocation& allocation) const {
    if (allocation.device == device) return std::nullopt;
    {
        const std::shared_lock lock(mutex_);
        if (!reads_peer(device, allocation.device)) {
            return Error{
                orrErrorPeerAccess,
                fmt::format("the source is on device {}, the stream on device {}: a link of these cards "
                            "carries only writes, so use a stream of the source's device",
                            allocation.device, device)};
        }
    }
    return peer_refusal(device, allocation);
}

std::optional<Error> Memory::host_refusal(int device, const Allocation& allocation) const {
    const std::shared_lock lock(mutex_);
    const auto refused = allocation.block->refused.find(device);
    if (refused == allocation.block->refused.end()) return std::nullopt;
    return Error{refused->second.code, fmt::format("device {} does not see the pinned memory at {:#x}: {}",
                                                   device, allocation.va, refused->second.text)};
}

Status Memory::share_block(Block& block, int device) {
    const std::lock_guard changing(changes_);
    return share(block, device, ORR_BIND_WRITE);
}

Status Memory::share_pinned(const Allocation& piece, int device) {
    const std::lock_guard changing(changes_);
    return share(*piece.block, device, kReadWrite);
}

}  // namespace orrery::umd
