// Packets as the runtime makes them; their meaning is in orrery/fw/packet.h.
#pragma once

#include <orrery/fw/packet.h>

#include <bit>
#include <cstdint>

namespace orrery::umd {

inline orr_packet make_copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes, bool ordered) {
    orr_packet_copy packet{};
    packet.header.opcode = ORR_PKT_COPY;
    packet.header.flags = ordered ? ORR_PKT_F_ORDERED : 0;
    packet.src = src;
    packet.dst = dst;
    packet.row_bytes = bytes;
    packet.rows = 1;
    return std::bit_cast<orr_packet>(packet);
}

inline orr_packet make_fill(std::uint64_t dst, std::uint8_t value, std::uint64_t bytes) {
    orr_packet_fill packet{};
    packet.header.opcode = ORR_PKT_FILL;
    packet.header.flags = ORR_PKT_F_ORDERED;
    const bool words = dst % 8 == 0 && bytes % 8 == 0;
    packet.pattern = words ? value * 0x0101010101010101ull : value;
    packet.pattern_bytes = words ? 8 : 1;
    packet.dst = dst;
    packet.row_bytes = bytes;
    packet.rows = 1;
    return std::bit_cast<orr_packet>(packet);
}

inline orr_packet make_semaphore(std::uint16_t opcode, std::uint64_t semaphore, std::uint64_t value) {
    orr_packet_semaphore packet{};
    packet.header.opcode = opcode;
    packet.semaphore = semaphore;
    packet.value = value;
    return std::bit_cast<orr_packet>(packet);
}

inline orr_packet make_timestamp(std::uint64_t va) {
    orr_packet_timestamp packet{};
    packet.header.opcode = ORR_PKT_TIMESTAMP;
    packet.dst = va;
    return std::bit_cast<orr_packet>(packet);
}

// limit_ns: it stops its queue after so much model time; 0: never.
inline orr_packet make_wait(std::uint64_t semaphore, std::uint64_t value, std::uint64_t limit_ns) {
    orr_packet_semaphore packet{};
    packet.header.opcode = ORR_PKT_WAIT;
    packet.semaphore = semaphore;
    packet.value = value;
    packet.limit_ns = limit_ns;
    return std::bit_cast<orr_packet>(packet);
}

inline orr_packet make_fail(std::uint64_t semaphore, std::uint64_t code) {
    orr_packet_fail packet{};
    packet.header.opcode = ORR_PKT_FAIL;
    packet.semaphore = semaphore;
    packet.code = code;
    return std::bit_cast<orr_packet>(packet);
}

}  // namespace orrery::umd
