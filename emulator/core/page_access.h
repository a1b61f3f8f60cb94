// An access through the page cache.
#pragma once

#include <cstdint>

#include "emulator/core/core.h"

namespace orrery::emu {

// The page's address if the access is aligned; else equal to no tag.
template <class T>
inline std::uint64_t tag_of(std::uint64_t va) {
    return va & (~kPageOffset | (sizeof(T) - 1));
}

template <class T>
struct Host;
template <>
struct Host<std::uint8_t> {
    using Type = std::uint8_t;
};
template <>
struct Host<std::uint16_t> {
    using Type = HostU16;
};
template <>
struct Host<std::uint32_t> {
    using Type = HostU32;
};
template <>
struct Host<std::uint64_t> {
    using Type = HostU64;
};

}  // namespace orrery::emu
