// Copies in all directions: who executes them, what is checked, what goes through staging.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "umd/runtime/runtime.h"

namespace orrery::umd {

struct Transfer {
    std::uint64_t dst = 0;
    std::uint64_t src = 0;
    std::uint64_t bytes = 0;
    std::optional<Allocation> dst_memory;  // nothing: ordinary host memory
    std::optional<Allocation> src_memory;
};

// Finds out what the addresses are, and checks ranges and kind.
Result<Transfer> check_transfer(Runtime& runtime, void* dst, const void* src, std::size_t bytes,
                                orrMemcpyKind kind);
// The device that executes it: the source's card, else the destination's; nothing if no card is involved.
std::optional<int> executing_device(const Transfer& transfer);
// In the stream's order; see orrMemcpyAsync for when it returns.
Status copy_async(Runtime& runtime, const Transfer& transfer, const std::shared_ptr<Stream>& stream);
// The cards other than `device` that a copy or memset by it writes to; an error if it may not.
Result<std::vector<Context*>> peers_written(Runtime& runtime, int device,
                                            const std::optional<Allocation>& dst_memory);

}  // namespace orrery::umd
