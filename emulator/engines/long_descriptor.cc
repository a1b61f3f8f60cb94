#include "emulator/engines/long_descriptor.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace orrery::emu {

std::optional<LongPointer> long_pointer(const std::array<std::uint64_t, 8>& words) {
    const auto desc = std::bit_cast<orr_desc_long>(words);
    const bool rest = desc.reserved0 != 0 || desc.reserved1 != 0 ||
                      std::ranges::any_of(desc.reserved2, [](std::uint64_t word) { return word != 0; });
    if (desc.op != ORR_DESC_LONG || rest || desc.descriptor % sizeof(std::uint64_t) != 0 || desc.bytes == 0 ||
        desc.bytes % sizeof(std::uint64_t) != 0 || desc.bytes > ORR_DESC_LONG_BYTES)
        return {};
    return LongPointer{desc.asid, desc.descriptor, desc.bytes};
}

std::expected<FetchedDescriptor, MmuFault> fetch(Mmu& mmu, const LongPointer& pointer, TlbTags& tlb,
                                                 Workers* workers) {
    FetchedDescriptor fetched;
    fetched.descriptor.bytes = pointer.bytes;
    auto* const to = reinterpret_cast<std::byte*>(fetched.descriptor.word.data());
    for (std::uint64_t at = 0; at < pointer.bytes;) {
        const std::uint64_t va = pointer.va + at;
        // An address space ends long before 2^64: one that wraps is not canonical before it does.
        const auto found = mmu.translate(pointer.asid, va, pointer.bytes - at, Access::kLoad);
        if (!found) return std::unexpected(found.error());
        const std::uint64_t bytes = std::min(found->bytes, pointer.bytes - at);
        // It may lie in two pages, and is shorter than one.
        const std::uint64_t page = found->huge ? ORR_HUGE_PAGE_SIZE : ORR_PAGE_SIZE;
        for (const std::uint64_t end : {va, va + bytes - 1}) {
            if (!tlb.on() || (end != va && end / page == va / page)) continue;
            const unsigned walked = tlb.use(pointer.asid, end, found->huge);
            fetched.lookups.add(walked);
            fetched.traffic.vram += walked * kMemoryLine;
        }
        const auto* const from = reinterpret_cast<const std::byte*>(found->host);
        if (workers != nullptr) workers->settle(from, bytes);
        std::memcpy(to + at, from, bytes);
        (found->target == ORR_TARGET_HOST ? fetched.traffic.from_host : fetched.traffic.vram) +=
            lines_of(va, bytes) * kMemoryLine;
        at += bytes;
    }
    return fetched;
}

}  // namespace orrery::emu
