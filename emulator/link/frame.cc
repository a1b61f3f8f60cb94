#include "emulator/link/frame.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "emulator/faults/mix.h"
#include "emulator/link/crc.h"
#include "emulator/link/shared_area.h"

namespace orrery::emu::link {

namespace {

// Whatever the message says.
std::uint64_t bounded_payload(const Message& message) {
    return std::min(payload_of(message), kMaxWriteBytes);
}

}  // namespace

std::uint32_t header_crc(const Message& message) {
    return crc32c(0, &message, kFrameHeader);
}

std::uint32_t frame_crc(const Message& message, const Channel& channel) {
    const std::uint32_t crc = header_crc(message);
    const std::uint64_t bytes = bounded_payload(message), at = message.payload_at % kPayloadBytes;
    if (bytes == 0) return crc;
    const std::uint64_t front = std::min(bytes, kPayloadBytes - at);
    return crc32c(crc32c(crc, channel.payload + at, front), channel.payload, bytes - front);
}

bool damaged_passes(const Message& message, const Channel& channel, unsigned try_number) {
    const std::uint64_t payload = bounded_payload(message);
    std::vector<std::uint8_t> frame(kFrameHeader + payload + sizeof message.crc);
    std::memcpy(frame.data(), &message, kFrameHeader);
    get_payload(channel, message.payload_at % kPayloadBytes, frame.data() + kFrameHeader, payload);
    std::memcpy(frame.data() + kFrameHeader + payload, &message.crc, sizeof message.crc);
    // Different ones: two hits of one bit would be none.
    const std::uint64_t bits = frame.size() * 8;
    std::uint64_t random = mix(message.noise ^ mix(try_number));
    const std::uint64_t first = random % bits, wrong = 1 + (random >> 32) % 3;
    std::uint64_t bit = first;
    for (std::uint64_t n = 0; n < wrong; ++n) {
        frame[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
        random = mix(random);
        bit += 1 + random % (bits / 4);  // less than once round
        bit %= bits;
    }
    std::uint32_t sent = 0;
    std::memcpy(&sent, frame.data() + frame.size() - sizeof sent, sizeof sent);
    return crc32c(0, frame.data(), frame.size() - sizeof sent) == sent;
}

}  // namespace orrery::emu::link
