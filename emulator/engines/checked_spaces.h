// What CheckedMemory asks, answered by a card's MMU.
#pragma once

#include "emulator/check/checked_memory.h"
#include "emulator/memory/mmu.h"

namespace orrery::emu {

// `mmu` outlives the answer.
inline CheckedMemory::Spaces checked_spaces(Mmu& mmu) {
    return {.vram_at = [&mmu](std::uint32_t asid, std::uint64_t va,
                              Access access) -> std::optional<std::uint64_t> {
                const auto page = mmu.peek_page(asid, va, access);
                if (!page || page->target != ORR_TARGET_VRAM) return {};
                return page->address + va % ORR_PAGE_SIZE;
            },
            .reach = [&mmu](std::uint32_t asid, std::uint64_t va) { return mmu.reach(asid, va); },
            .owner = [&mmu](std::uint32_t asid) { return mmu.root_changes(asid); }};
}

}  // namespace orrery::emu
