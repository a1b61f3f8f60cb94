// Amounts of memory as people type them.
#pragma once

#include <charconv>
#include <cstdint>
#include <expected>
#include <limits>
#include <string>
#include <string_view>

namespace orrery::emu {

// "64M", "2G", "65536": bytes, with a binary suffix K, M, G or none.
inline std::expected<std::uint64_t, std::string> parse_size(std::string_view text) {
    constexpr std::string_view kSuffixes = "KMG";
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    // 0: no suffix.
    const std::size_t suffix = rest == end ? 0 : kSuffixes.find(*rest) + 1;
    const bool known = rest == end || (suffix != 0 && rest + 1 == end);
    const unsigned shift = 10 * static_cast<unsigned>(suffix);
    if (error != std::errc{} || !known || value > std::numeric_limits<std::uint64_t>::max() >> shift) {
        return std::unexpected(
            "'" + std::string(text) +
            "' is not a size: write a number with K, M, G or nothing behind it, such as 256M");
    }
    return value << shift;
}

}  // namespace orrery::emu
