// Structures in the bytes of a file, which nobody has looked at yet.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace orrery::vm {

// Nothing if the bytes end before it does.
template <typename T>
std::optional<T> value_at(std::string_view bytes, std::uint64_t at) {
    if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

}  // namespace orrery::vm
