// Descriptors that stand in memory (ORR_DESC_LONG, orrery/hw/engine.h).
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include <orrery/hw/engine.h>
#include <orrery/hw/mmu.h>

#include "emulator/base/tlb_tags.h"
#include "emulator/engines/workers.h"
#include "emulator/memory/mmu.h"
#include "emulator/model/memory_system.h"

namespace orrery::emu {

// One as it has been fetched: nothing of it is read from memory again.
struct LongDescriptor {
    std::uint64_t bytes = 0;  // 0: none
    std::array<std::uint64_t, ORR_DESC_LONG_BYTES / 8> word{};
    std::span<const std::uint64_t> words() const { return std::span(word).first(bytes / 8); }
};

// What a port's words say of it.
struct LongPointer {
    std::uint32_t asid = 0;
    std::uint64_t va = 0;
    std::uint32_t bytes = 0;
};

// Nothing: ORR_DONE_BAD_DESC. Says nothing of the address.
std::optional<LongPointer> long_pointer(const std::array<std::uint64_t, 8>& words);

struct FetchedDescriptor {
    LongDescriptor descriptor;
    Traffic traffic;     // of its lines, and of the tables that were read to find it
    TlbLookups lookups;  // with the entries of those, which are read one after the other
};

// Reads it, each byte once. `workers`: what they were given for this memory is there first; nullptr: there
// are none.
std::expected<FetchedDescriptor, MmuFault> fetch(Mmu& mmu, const LongPointer& pointer, TlbTags& tlb,
                                                 Workers* workers);

}  // namespace orrery::emu
