// CRC-32C (Castagnoli), which finds up to three wrong bits in a frame of up to 2^31 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::emu::link {

// Of bytes behind others, whose own is `crc`; 0: there are none.
std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes);
// The same without the processor's help.
std::uint32_t crc32c_by_table(std::uint32_t crc, const void* data, std::size_t bytes);

}  // namespace orrery::emu::link
