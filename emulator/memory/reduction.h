// dst = dst op src over elements, the same bits on every host; orrery/hw/engine.h says what comes out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::emu {

// `bytes` is a multiple of the element's size; no alignment is needed.
using ReduceLoop = void (*)(std::byte* dst, const std::byte* src, std::size_t bytes);

// ORR_TYPE_*, ORR_REDUCE_*; null: there is none.
ReduceLoop reduce_loop(std::uint32_t type, std::uint32_t function);
// Of an ORR_TYPE_*: a power of two.
std::uint32_t element_bytes(std::uint32_t type);

}  // namespace orrery::emu
