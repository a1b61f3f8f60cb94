#include "emulator/gdb/packets.h"

namespace orrery::emu::gdb {

namespace {

constexpr char kDigits[] = "0123456789abcdef";

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

PacketReader::Event PacketReader::put(std::uint8_t byte) {
    const char c = static_cast<char>(byte);
    if (state_ == State::kIdle) {
        if (byte == 0x03) return Event::kInterrupt;
        if (c == '-') return Event::kNack;
        if (c == '$') {
            state_ = State::kData;
            data_.clear();
            too_long_ = false;
            sum_ = 0;
        }
        return Event::kNothing;
    }
    if (state_ == State::kData || state_ == State::kEscape) {
        if (c == '#') {
            state_ = State::kSum1;
            return Event::kNothing;
        }
        if (c == '$') {  // a new packet: the end of the old one was lost
            data_.clear();
            too_long_ = false;
            sum_ = 0;
            state_ = State::kData;
            return Event::kNothing;
        }
        sum_ = static_cast<std::uint8_t>(sum_ + byte);
        if (state_ == State::kData && c == '}') {
            state_ = State::kEscape;
            return Event::kNothing;
        }
        if (data_.size() == kMaxPacket) {
            too_long_ = true;
        } else {
            data_.push_back(state_ == State::kEscape ? static_cast<char>(byte ^ 0x20) : c);
        }
        state_ = State::kData;
        return Event::kNothing;
    }
    if (state_ == State::kSum1) {
        sent_sum_ = digit(c);
        state_ = State::kSum2;
        return Event::kNothing;
    }
    state_ = State::kIdle;
    const int low = digit(c);
    if (too_long_ || sent_sum_ < 0 || low < 0 || (sent_sum_ << 4 | low) != sum_) return Event::kBad;
    return Event::kPacket;
}

std::string frame(std::string_view data) {
    std::string out = "$";
    std::uint8_t sum = 0;
    const auto add = [&](char c) {
        out.push_back(c);
        sum = static_cast<std::uint8_t>(sum + static_cast<std::uint8_t>(c));
    };
    for (const char c : data) {
        if (c == '$' || c == '#' || c == '}' || c == '*') {
            add('}');
            add(static_cast<char>(c ^ 0x20));
        } else {
            add(c);
        }
    }
    out.push_back('#');
    out.push_back(kDigits[sum >> 4]);
    out.push_back(kDigits[sum & 15]);
    return out;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
    std::string out;
    out.reserve(2 * bytes.size());
    for (const std::uint8_t byte : bytes) {
        out.push_back(kDigits[byte >> 4]);
        out.push_back(kDigits[byte & 15]);
    }
    return out;
}

std::optional<std::string> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const int high = digit(text[i]);
        const int low = digit(text[i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        out.push_back(static_cast<char>(high << 4 | low));
    }
    return out;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t value = 0;
    std::size_t digits = 0;
    while (digits < text.size() && digit(text[digits]) >= 0) {
        if (digits == 16) return std::nullopt;
        value = value << 4 | static_cast<std::uint64_t>(digit(text[digits]));
        ++digits;
    }
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
    return value;
}

bool take(std::string_view& text, char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
}

}  // namespace orrery::emu::gdb
