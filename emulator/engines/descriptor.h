// What a descriptor (orrery/hw/engine.h) must look like, and how much work it asks for. Pure functions on its
// words.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/save.h>

#include "emulator/engines/copy_job.h"
#include "emulator/engines/long_descriptor.h"

namespace orrery::emu {

namespace detail {
__extension__ using Wide = unsigned __int128;
}

// Groups; nothing: ORR_DONE_BAD_DESC. `cores`: of the card.
inline std::optional<std::uint64_t> work_of(const orr_desc_kernel& desc, std::uint32_t cores) {
    constexpr std::uint64_t kMaxGroups = std::uint64_t{1} << 31;
    constexpr std::uint32_t kMaxItems = ORR_SAVE_ITEMS;
    if (desc.op != ORR_DESC_KERNEL || (desc.flags & ~ORR_DESC_F_RESIDENT) != 0 || desc.reserved != 0 ||
        desc.entry % 2 != 0)
        return {};
    if (desc.item_stack_pages > ORR_ITEM_STACK_MAX_PAGES || desc.item_stacks % ORR_PAGE_SIZE != 0 ||
        desc.item_stacks >> (ORR_VA_BITS - 1) != 0 || (desc.item_stacks == 0) != (desc.item_stack_pages == 0))
        return {};
    const detail::Wide groups = detail::Wide{desc.grid_x} * desc.grid_y * desc.grid_z;
    if (groups - 1 >= kMaxGroups) return {};
    if ((desc.flags & ORR_DESC_F_RESIDENT) != 0 && groups > cores) return {};
    if (std::uint64_t{desc.block_x} * desc.block_y * desc.block_z - 1 >= kMaxItems) return {};
    if (desc.local_bytes > ORR_LOCAL_BYTES) return {};
    // The stacks end below 2^47 as well.
    const std::uint64_t places = std::min<std::uint64_t>(cores, static_cast<std::uint64_t>(groups));
    const std::uint64_t items = std::uint64_t{desc.block_x} * desc.block_y * desc.block_z;
    const std::uint64_t stacks = places * items * desc.item_stack_pages * ORR_PAGE_SIZE;
    if (desc.item_stacks + stacks > std::uint64_t{1} << (ORR_VA_BITS - 1)) return {};
    return static_cast<std::uint64_t>(groups);
}

// For an engine of that kind (ORR_ENGINE_*). 0 of one that stands in memory: nobody has fetched it yet.
inline std::optional<std::uint64_t> work_of(const DescriptorWords& words, std::uint32_t kind,
                                            std::uint32_t cores) {
    if (kind == ORR_ENGINE_VECTOR) return work_of(std::bit_cast<orr_desc_kernel>(words), cores);
    if (long_pointer(words)) return 0;
    const auto job = copy_job(words);
    if (!job) return {};
    return job->total;
}

}  // namespace orrery::emu
