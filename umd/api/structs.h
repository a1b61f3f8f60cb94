// Structs that grow, at the border of the C API: orrery/base.h has the rules.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "umd/winsys/error.h"

namespace orrery::umd {

// No version has a larger one: what is above is no size.
constexpr std::size_t kLargestStruct = 4096;

inline Status check_struct_size(std::size_t size, std::size_t ours, const char* type) {
    // All sizes are whole words, so a size of another program's making is likely to be found.
    if (size >= sizeof(std::size_t) && size <= kLargestStruct && size % sizeof(std::size_t) == 0) return {};
    return fail(orrErrorInvalidValue, "the size in an {} is {}: set it with ORR_INIT({}), which gives {}",
                type, size, type, ours);
}

// What the caller gave, with defaults for what his header did not have. type: its name.
template <typename Struct>
Result<Struct> read_struct(const Struct* from, const char* type) {
    static_assert(offsetof(Struct, size) == 0);
    if (from == nullptr) return fail(orrErrorInvalidValue, "the {} is null", type);
    const std::size_t size = from->size;
    if (auto good = check_struct_size(size, sizeof(Struct), type); !good)
        return std::unexpected(good.error());
    if (size > sizeof(Struct)) {
        const std::span newer(reinterpret_cast<const std::byte*>(from) + sizeof(Struct),
                              size - sizeof(Struct));
        if (std::ranges::any_of(newer, [](std::byte byte) { return byte != std::byte{0}; })) {
            return fail(orrErrorNotSupported,
                        "an {} of {} bytes asks for something that this version of the library, which knows "
                        "{} of them, does not have: leave what is behind them at zero, or take a newer "
                        "library",
                        type, size, sizeof(Struct));
        }
    }
    Struct value{};
    std::memcpy(&value, from, std::min(size, sizeof(Struct)));
    value.size = sizeof(Struct);
    return value;
}

// null: all defaults.
template <typename Struct>
Result<Struct> read_optional(const Struct* from, const char* type) {
    if (from != nullptr) return read_struct(from, type);
    Struct value{};
    value.size = sizeof(Struct);
    return value;
}

// Before anything is asked for that costs something.
template <typename Struct>
Status check_result_struct(const Struct* to, const char* type) {
    if (to == nullptr) return fail(orrErrorInvalidValue, "the {} is null", type);
    return check_struct_size(to->size, sizeof(Struct), type);
}

// As much as the caller's header had; what only his has is zero.
template <typename Struct>
Status write_struct(Struct* to, Struct value, const char* type) {
    static_assert(offsetof(Struct, size) == 0);
    ORR_TRY(good, check_result_struct(to, type));
    const std::size_t size = to->size;
    value.size = size;
    std::memcpy(to, &value, std::min(size, sizeof(Struct)));
    if (size > sizeof(Struct))
        std::memset(reinterpret_cast<std::byte*>(to) + sizeof(Struct), 0, size - sizeof(Struct));
    return {};
}

// flags: has no bit outside of `known`.
inline Status check_flags(std::uint64_t flags, std::uint64_t known, const char* call) {
    if ((flags & ~known) == 0) return {};
    return fail(orrErrorInvalidValue, "{} does not know the flags {:#x}: {}", call, flags & ~known,
                known == 0 ? "give 0" : fmt::format("it knows {:#x}", known));
}

}  // namespace orrery::umd
