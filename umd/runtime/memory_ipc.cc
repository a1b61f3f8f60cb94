// Memory that several processes have.
#include <mutex>

#include "umd/runtime/memory.h"

namespace orrery::umd {

Result<UniqueFd> Memory::export_fd(std::uint64_t va) {
    const std::lock_guard changing(changes_);
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
    return block.bo->export_fd();
}

Result<std::optional<ForeignBo>> Memory::probe(Device& card, int fd) {
    const std::lock_guard changing(changes_);
    return card.import_fd(fd);
}

Result<Block*> Memory::import_block(int device, std::unique_ptr<Bo> bo) {
    const std::lock_guard changing(changes_);
    ORR_TRY(block, place(device, std::move(bo), BoKind::kVram, true));
    (*block)->imported = true;
    return block;
}

Result<Allocation> Memory::import(int device, ForeignBo foreign) {
    const std::lock_guard changing(changes_);
    ORR_TRY(placed, place(device, std::move(foreign.bo), foreign.kind, true));
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
