// The frames of gdb's remote serial protocol: $data#checksum, acknowledgements, and Ctrl-C between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orrery::emu::gdb {

// Longest packet in either direction; a longer one of the debugger's is dropped and refused.
inline constexpr std::size_t kMaxPacket = 0x1000;

// From the debugger, byte by byte. Never holds more than kMaxPacket bytes.
class PacketReader {
  public:
    enum class Event : std::uint8_t {
        kNothing,
        kPacket,     // packet() holds it
        kBad,        // wrong checksum, or too long
        kInterrupt,  // Ctrl-C
        kNack,       // the debugger wants the last reply again
    };
    Event put(std::uint8_t byte);
    const std::string& packet() const { return data_; }

  private:
    enum class State : std::uint8_t { kIdle, kData, kEscape, kSum1, kSum2 };
    State state_ = State::kIdle;
    std::string data_;
    bool too_long_ = false;
    std::uint8_t sum_ = 0;
    int sent_sum_ = 0;
};

// `data` framed; what needs an escape gets one.
std::string frame(std::string_view data);

std::string to_hex(std::span<const std::uint8_t> bytes);
// Nothing if there is anything else than pairs of digits.
std::optional<std::string> from_hex(std::string_view text);
// A hexadecimal number at the front of `text`, which is taken off; nothing if there is none or it is too
// long.
std::optional<std::uint64_t> take_number(std::string_view& text);
// The same for one character.
bool take(std::string_view& text, char c);

}  // namespace orrery::emu::gdb
