// A message as it crosses the wire: with its CRC, and with what the wire does to it.
//
// The ring in shared memory damages nothing. So a sender whose fault plan has bit errors says in the message
// how often the wire damages it, and where; the receiver takes each of these tries from the wire as it is
// then, finds it by its CRC, and only takes what is right. The sender has charged the time of all tries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

// Bytes that the CRC covers in front of the payload.
inline constexpr std::size_t kFrameHeader = offsetof(Message, crc);

// Bits of a message on the wire: header, payload and CRC.
constexpr std::uint64_t frame_bits(std::uint64_t payload) {
    return (kFrameHeader + payload + sizeof(Message::crc)) * 8;
}

// Of one without payload.
std::uint32_t header_crc(const Message& message);
// Of the message with the payload that the channel has for it. Never reads beside the channel, whatever the
// message says.
std::uint32_t frame_crc(const Message& message, const Channel& channel);
// Whether the receiver would take it as it comes at that damaged try, from 0 on: 1 to 3 bits are wrong.
bool damaged_passes(const Message& message, const Channel& channel, unsigned try_number);

}  // namespace orrery::emu::link
