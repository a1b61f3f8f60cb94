// SPDX-License-Identifier: MIT
// What a packet must look like, and the engine descriptor that it asks for. Pure functions on words that have
// already been copied out of user memory.
#pragma once

#include <orrery/fw/packet.h>
#include <orrery/hw/engine.h>

#include "firmware/sched/queue/queue.h"

namespace orrery::fw {

inline constexpr size_t kDescWords = sizeof(orr_desc_copy) / 8;

struct Verdict {
    uint64_t code;  // ORR_QERR_*, ORR_QERR_NONE: the packet may be carried out
    uint64_t detail;
};

inline uint32_t packet_opcode(const uint64_t* packet) {
    return static_cast<uint32_t>(packet[0] & 0xffff);
}
inline uint32_t packet_flags(const uint64_t* packet) {
    return static_cast<uint32_t>(packet[0] >> 16 & 0xffff);
}
// Of an engine's packet: its descriptor is to be fetched.
inline bool is_long(const uint64_t* packet) {
    return (packet_flags(packet) & ORR_PKT_F_LONG) != 0;
}

// Word 0 of the descriptor of an engine's packet without flags.
inline uint64_t descriptor_word(uint32_t opcode, uint32_t asid) {
    static_assert(ORR_DESC_COPY == ORR_PKT_COPY && ORR_DESC_KERNEL == ORR_PKT_DISPATCH &&
                  ORR_DESC_REDUCE == ORR_PKT_REDUCE && ORR_DESC_COPIES == ORR_PKT_COPIES);
    return (opcode == ORR_PKT_FILL ? ORR_DESC_PATTERN : opcode) | uint64_t{asid} << 32;
}

// Checks everything that can be known without touching memory: opcode, flags, reserved fields, sizes.
Verdict validate_packet(const uint64_t (&packet)[kPacketWords]);

// Of a valid packet that runs on an engine: groups or bytes, for traces; 0 where only its engine knows.
uint64_t work_of(const uint64_t (&packet)[kPacketWords]);

// For the same: the descriptor, in the address space of the queue.
void build_descriptor(const uint64_t (&packet)[kPacketWords], uint32_t asid, uint64_t (&desc)[kDescWords]);

}  // namespace orrery::fw
