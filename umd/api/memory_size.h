// What calls that allocate have in common.
#pragma once

#include <cstddef>
#include <cstdint>

#include "umd/runtime/runtime.h"

namespace orrery::umd {

constexpr std::size_t kMaxAllocation = std::size_t{1} << 46;

inline Status check_size(std::size_t bytes) {
    if (bytes == 0) return fail(orrErrorInvalidValue, "0 bytes were asked for");
    if (bytes > kMaxAllocation)
        return fail(orrErrorOutOfMemory, "{} bytes are more than any card has", bytes);
    return {};
}

// Of the current device; a card that checks kernels' use of memory knows it. own: as
// Memory::allocate_device().
inline Result<std::uint64_t> allocate_memory(Runtime& runtime, std::size_t bytes, bool own) {
    ORR_TRY(context, runtime.current_context());
    ORR_TRY(va, runtime.memory().allocate_device((*context)->device(), bytes, own));
    if (auto told = (*context)->tell_heap(); !told) {
        (void)runtime.memory().free(*va);
        return std::unexpected(told.error());
    }
    return *va;
}

}  // namespace orrery::umd
