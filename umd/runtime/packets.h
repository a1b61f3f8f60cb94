// Packets as the runtime makes them; their meaning is in orrery/fw/packet.h.
#pragma once

#include <orrery/fw/packet.h>
#include <orrery/hw/engine.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
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

// What profilers are told that a copy is.
inline const char* copy_name(std::uint32_t opcode) {
    return opcode == ORR_PKT_REDUCE ? "reduction" : "copy";
}

// Rows and planes of both sides; the default is a copy of nothing.
struct CopyShape {
    std::uint64_t row_bytes = 0;
    std::uint32_t rows = 1, planes = 1;
    std::uint64_t src_pitch = 0, dst_pitch = 0;
    std::uint32_t src_height = 0, dst_height = 0;  // rows from plane to plane

    bool linear() const { return rows == 1 && planes == 1; }
};

inline orr_packet make_copy(std::uint64_t dst, std::uint64_t src, const CopyShape& shape, bool ordered) {
    auto packet = std::bit_cast<orr_packet_copy>(make_copy(dst, src, shape.row_bytes, ordered));
    if (shape.linear()) return std::bit_cast<orr_packet>(packet);
    packet.rows = shape.rows;
    packet.src_pitch = shape.src_pitch;
    packet.dst_pitch = shape.dst_pitch;
    if (shape.planes > 1) {
        packet.planes = shape.planes;
        packet.src_height = shape.src_height;
        packet.dst_height = shape.dst_height;
    }
    return std::bit_cast<orr_packet>(packet);
}

// The same in a descriptor's words.
inline orr_desc_box make_box(std::uint64_t dst, std::uint64_t src, const CopyShape& shape) {
    orr_desc_box box{};
    box.op = ORR_DESC_BOX;
    box.dimensions = shape.planes > 1 ? 2 : 1;
    box.src = src;
    box.dst = dst;
    box.row_bytes = shape.row_bytes;
    box.count[0] = shape.rows;
    box.src_stride[0] = shape.src_pitch;
    box.dst_stride[0] = shape.dst_pitch;
    if (shape.planes > 1) {
        box.count[1] = shape.planes;
        box.src_stride[1] = shape.src_height * shape.src_pitch;
        box.dst_stride[1] = shape.dst_height * shape.dst_pitch;
    }
    return box;
}

// Each row from its start on.
struct Filling {
    std::uint64_t dst = 0;
    std::uint64_t pattern = 0;
    std::uint32_t pattern_bytes = 1;
    std::uint64_t row_bytes = 0;
    std::uint32_t rows = 1;
    std::uint64_t pitch = 0;
};

inline orr_packet make_fill(const Filling& filling) {
    orr_packet_fill packet{};
    packet.header.opcode = ORR_PKT_FILL;
    packet.header.flags = ORR_PKT_F_ORDERED;
    packet.pattern = filling.pattern;
    packet.pattern_bytes = filling.pattern_bytes;
    // By words, where all begins and ends at one.
    if ((filling.dst | filling.row_bytes | filling.pitch) % sizeof(std::uint64_t) == 0) {
        for (; packet.pattern_bytes < sizeof(std::uint64_t); packet.pattern_bytes *= 2) {
            const unsigned bits = 8 * packet.pattern_bytes;
            packet.pattern &= (std::uint64_t{1} << bits) - 1;
            packet.pattern |= packet.pattern << bits;
        }
    }
    packet.dst = filling.dst;
    packet.row_bytes = filling.row_bytes;
    packet.rows = filling.rows;
    packet.dst_pitch = filling.pitch;
    return std::bit_cast<orr_packet>(packet);
}

inline orr_packet make_fill(std::uint64_t dst, std::uint8_t value, std::uint64_t bytes) {
    return make_fill({.dst = dst, .pattern = value, .row_bytes = bytes});
}

// type and function: as orrDataType and orrReduceOp number them, which is as the card does.
inline orr_packet make_reduce(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes, std::uint16_t type,
                              std::uint16_t function) {
    orr_packet_reduce packet{};
    packet.header.opcode = ORR_PKT_REDUCE;
    packet.header.flags = ORR_PKT_F_ORDERED;
    packet.src = src;
    packet.dst = dst;
    packet.row_bytes = bytes;
    packet.rows = 1;
    packet.type = type;
    packet.function = function;
    return std::bit_cast<orr_packet>(packet);
}

// Its list is put in when it is submitted, and a BatchCopy for each entry behind that: see
// Stream::submit_with().
inline orr_packet make_copies(std::uint64_t bytes, std::uint32_t entries) {
    orr_packet_copies packet{};
    packet.header.opcode = ORR_PKT_COPIES;
    packet.header.flags = ORR_PKT_F_ORDERED;
    packet.bytes = bytes;
    packet.entries = entries;
    return std::bit_cast<orr_packet>(packet);
}

// Which copy of its caller's batch an entry is. For error texts: the card does not read it.
struct BatchCopy {
    std::uint64_t number, count;
};

// A copy whose struct orr_desc_box is put in when it is submitted, as the list of make_copies().
constexpr unsigned kBoxCopyWord = 0;
inline orr_packet make_box_copy(bool ordered = true) {
    orr_packet_long packet{};
    packet.header.opcode = ORR_PKT_COPY;
    packet.header.flags = (ordered ? ORR_PKT_F_ORDERED : 0) | ORR_PKT_F_LONG;
    packet.bytes = sizeof(orr_desc_box);
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

// Other threads read packets of a ring: see Stream::signals().
constexpr std::size_t kPacketWords = sizeof(orr_packet) / sizeof(std::uint64_t);
using PacketWords = std::array<std::uint64_t, kPacketWords>;

inline void store_packet(orr_packet& to, const orr_packet& from, std::uint32_t tag) {
    auto words = std::bit_cast<PacketWords>(from);
    orr_packet_header header = from.header;
    header.tag = tag;
    words[0] = std::bit_cast<std::uint64_t>(header);
    auto* raw = reinterpret_cast<std::uint64_t*>(&to);
    std::atomic_ref(raw[0]).store(words[0], std::memory_order_relaxed);
    for (std::size_t i = 1; i < kPacketWords; ++i)
        std::atomic_ref(raw[i]).store(words[i], std::memory_order_release);
}

// The tag is stored first and loaded last: a packet that is being overwritten has another one.
inline orr_packet load_packet(const orr_packet& from) {
    PacketWords words{};
    auto* raw = reinterpret_cast<std::uint64_t*>(const_cast<orr_packet*>(&from));
    for (std::size_t i = 1; i < kPacketWords; ++i)
        words[i] = std::atomic_ref(raw[i]).load(std::memory_order_acquire);
    words[0] = std::atomic_ref(raw[0]).load(std::memory_order_relaxed);
    return std::bit_cast<orr_packet>(words);
}

}  // namespace orrery::umd
