// What a descriptor (orrery/hw/engine.h) must look like, and how much work it asks for. Pure functions on its
// words.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

#include <orrery/hw/engine.h>
#include <orrery/hw/kernel_abi.h>

namespace orrery::emu {

// Words of SOC_ENGINE_DESC.
using DescriptorWords = std::array<std::uint64_t, 8>;

// A fill in either layout, as orr_desc_copy. Reserved fields of orr_desc_pattern must have been checked.
inline orr_desc_copy as_copy(const DescriptorWords& words) {
    if ((words[0] & 0xffff) != ORR_DESC_PATTERN) return std::bit_cast<orr_desc_copy>(words);
    const auto fill = std::bit_cast<orr_desc_pattern>(words);
    return {.op = ORR_DESC_FILL,
            .pattern_bytes = static_cast<std::uint16_t>(fill.pattern_bytes),
            .asid = fill.asid,
            .src = 0,
            .dst = fill.dst,
            .row_bytes = fill.row_bytes,
            .rows = fill.rows,
            .reserved0 = 0,
            .src_pitch = 0,
            .dst_pitch = fill.dst_pitch,
            .pattern = fill.pattern};
}

namespace detail {
__extension__ using Wide = unsigned __int128;
}

// Bytes; nothing: ORR_DONE_BAD_DESC.
inline std::optional<std::uint64_t> work_of(const orr_desc_copy& desc) {
    constexpr std::uint64_t kMaxTotal = std::uint64_t{1} << 40;
    constexpr std::uint64_t kMaxPattern = 8;
    if (desc.reserved0 != 0 || desc.rows == 0) return {};
    const detail::Wide bytes = detail::Wide{desc.row_bytes} * desc.rows;
    if (bytes > kMaxTotal) return {};
    if (desc.op == ORR_DESC_COPY) {
        if (desc.pattern_bytes != 0 || desc.pattern != 0) return {};
    } else if (desc.op != ORR_DESC_FILL || desc.src != 0 || desc.src_pitch != 0 ||
               desc.pattern_bytes > kMaxPattern || !std::has_single_bit(desc.pattern_bytes) ||
               desc.row_bytes % desc.pattern_bytes != 0 || desc.dst % desc.pattern_bytes != 0) {
        return {};
    }
    return static_cast<std::uint64_t>(bytes);
}

// Groups; nothing: ORR_DONE_BAD_DESC. `cores`: of the card.
inline std::optional<std::uint64_t> work_of(const orr_desc_kernel& desc, std::uint32_t cores) {
    constexpr std::uint64_t kMaxGroups = std::uint64_t{1} << 31;
    constexpr std::uint32_t kMaxItems = 1024;
    if (desc.op != ORR_DESC_KERNEL || (desc.flags & ~ORR_DESC_F_RESIDENT) != 0 || desc.reserved1 != 0)
        return {};
    if (desc.reserved2[0] != 0 || desc.reserved2[1] != 0 || desc.entry % 2 != 0) return {};
    const detail::Wide groups = detail::Wide{desc.grid_x} * desc.grid_y * desc.grid_z;
    if (groups - 1 >= kMaxGroups) return {};
    if ((desc.flags & ORR_DESC_F_RESIDENT) != 0 && groups > cores) return {};
    if (std::uint64_t{desc.block_x} * desc.block_y * desc.block_z - 1 >= kMaxItems) return {};
    if (desc.local_bytes > ORR_LOCAL_BYTES) return {};
    return static_cast<std::uint64_t>(groups);
}

// For an engine of that kind (ORR_ENGINE_*).
inline std::optional<std::uint64_t> work_of(const DescriptorWords& words, std::uint32_t kind,
                                            std::uint32_t cores) {
    if (kind == ORR_ENGINE_VECTOR) return work_of(std::bit_cast<orr_desc_kernel>(words), cores);
    if ((words[0] & 0xffff) == ORR_DESC_PATTERN) {
        const auto fill = std::bit_cast<orr_desc_pattern>(words);
        constexpr std::uint32_t kMaxPattern = 8;
        if (fill.reserved0 != 0 || fill.reserved1[0] != 0 || fill.reserved1[1] != 0 ||
            fill.pattern_bytes > kMaxPattern)
            return {};
    }
    return work_of(as_copy(words));
}

}  // namespace orrery::emu
