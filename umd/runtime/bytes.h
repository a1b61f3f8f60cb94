// Reading numbers and texts out of bytes that come from somewhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orrery::umd {

// Reads a T at `offset`, if all of it is inside.
template <typename T>
std::optional<T> read_at(std::span<const std::byte> bytes, std::uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

// The part that a file says is there; empty if any of it is not.
inline std::span<const std::byte> part_of(std::span<const std::byte> bytes, std::uint64_t offset,
                                          std::uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return bytes.subspan(offset, size);
}

// At most 200 characters for error texts and terminals.
inline std::string printable(std::string_view text) {
    std::string shown(text.substr(0, 200));
    for (char& c : shown) {
        if (c < 0x20 || c > 0x7e) c = '?';
    }
    return shown;
}

// Goes through bytes from the front. Past the end everything is 0, and good() is false from then on.
class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    bool good() const { return good_; }
    bool more() const { return good_ && at_ < bytes_.size(); }
    std::uint64_t at() const { return at_; }

    template <typename T>
    T take() {
        const auto value = read_at<T>(bytes_, at_);
        if (!value) return fail<T>();
        at_ += sizeof(T);
        return *value;
    }

    std::uint64_t uleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; good_; shift += 7) {
            const auto byte = take<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0) break;
        }
        return value;
    }

    std::int64_t sleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; good_;) {
            const auto byte = take<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            shift += 7;
            if ((byte & 0x80) != 0) continue;
            if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
            break;
        }
        return static_cast<std::int64_t>(value);
    }

    // Up to its zero.
    std::string_view text() {
        if (at_ >= bytes_.size()) good_ = false;
        if (!good_) return {};
        const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
        const auto* end = static_cast<const char*>(std::memchr(begin, 0, bytes_.size() - at_));
        if (end == nullptr) {
            good_ = false;
            return {};
        }
        at_ += static_cast<std::uint64_t>(end - begin) + 1;
        return {begin, end};
    }

    // The next `size` bytes by themselves.
    std::span<const std::byte> part(std::uint64_t size) {
        if (!good_ || size > bytes_.size() - at_) {
            good_ = false;
            return {};
        }
        const auto found = bytes_.subspan(at_, size);
        at_ += size;
        return found;
    }

    std::span<const std::byte> rest() { return part(bytes_.size() - at_); }

  private:
    template <typename T>
    T fail() {
        good_ = false;
        return T{};
    }

    std::span<const std::byte> bytes_;
    std::uint64_t at_ = 0;
    bool good_ = true;
};

}  // namespace orrery::umd
