#include "umd/runtime/launch.h"

#include <orrery/hw/kernel_abi.h>

#include <bit>

#include "umd/runtime/context.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr std::uint64_t kMaxGroups = 1ull << 31;

// The product without overflow, or limit + 1.
std::uint64_t product(orrDim3 d, std::uint64_t limit) {
    const std::uint64_t xy = std::uint64_t{d.x} * d.y;
    if (xy > limit) return limit + 1;
    const std::uint64_t all = xy * d.z;  // limit < 2^32, so it fits
    return all > limit ? limit + 1 : all;
}

}  // namespace

Status check_launch(orrDim3 grid, orrDim3 block, const void* args, std::size_t bytes,
                    std::size_t local_bytes) {
    const std::uint64_t groups = product(grid, kMaxGroups);
    if (groups == 0 || groups > kMaxGroups) {
        return fail(orrErrorInvalidValue, "a grid of {} x {} x {}: each at least 1, the product at most 2^31",
                    grid.x, grid.y, grid.z);
    }
    const std::uint64_t items = product(block, kMaxItems);
    if (items == 0 || items > kMaxItems) {
        return fail(orrErrorInvalidValue, "a block of {} x {} x {}: each at least 1, the product at most {}",
                    block.x, block.y, block.z, kMaxItems);
    }
    if (bytes > Stream::kMaxArgs) {
        return fail(orrErrorInvalidValue, "{} bytes of arguments: at most {}; put the rest into card memory",
                    bytes, Stream::kMaxArgs);
    }
    if (bytes != 0 && args == nullptr) return fail(orrErrorInvalidValue, "args is null");
    if (local_bytes > ORR_LOCAL_BYTES) {
        return fail(orrErrorInvalidValue, "{} bytes of work-group memory: at most {}", local_bytes,
                    ORR_LOCAL_BYTES);
    }
    return {};
}

Status check_resident(const Function& function, orrDim3 grid) {
    const std::uint64_t groups = product(grid, kMaxGroups), cores = function.context->vector_cores();
    if (groups <= cores) return {};
    return fail(
        orrErrorInvalidValue,
        "a cooperative launch of {} work-groups: device {} has {} vector cores, and all groups are on "
        "one each at the same time",
        groups, function.context->device(), cores);
}

Result<orr_packet> make_launch(const Function& function, orrDim3 grid, orrDim3 block, std::size_t local_bytes,
                               std::uint64_t flags) {
    orr_packet packet = make_dispatch(function, grid, block, local_bytes, 0);
    if ((flags & orrLaunchCooperative) != 0) {
        ORR_TRY(fits, check_resident(function, grid));
        packet.header.flags |= ORR_PKT_F_RESIDENT;
    }
    return packet;
}

orr_packet make_dispatch(const Function& function, orrDim3 grid, orrDim3 block, std::size_t local_bytes,
                         std::uint64_t args_va) {
    orr_packet_dispatch packet{};
    packet.header.opcode = ORR_PKT_DISPATCH;
    packet.header.flags = ORR_PKT_F_ORDERED;
    packet.entry = function.entry;
    packet.args = args_va;
    packet.grid_x = grid.x;
    packet.grid_y = grid.y;
    packet.grid_z = grid.z;
    packet.block_x = static_cast<std::uint16_t>(block.x);
    packet.block_y = static_cast<std::uint16_t>(block.y);
    packet.block_z = static_cast<std::uint16_t>(block.z);
    packet.local_bytes = static_cast<std::uint32_t>(local_bytes);
    // The stream that it goes to puts in where they are.
    if (std::uint64_t{block.x} * block.y * block.z > 1) packet.item_stack_pages = function.item_stack_pages;
    return std::bit_cast<orr_packet>(packet);
}

}  // namespace orrery::umd
