// SPDX-License-Identifier: MIT
#include "firmware/sched/queue/packets.h"

#include <orrery/fw/failure.h>
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

namespace orrery::fw {
namespace {

constexpr uint64_t kMaxCopyBytes = 1ull << 40;
constexpr uint64_t kMaxGroups = 1ull << 31;
constexpr uint64_t kMaxItems = 1024;
constexpr uint64_t kMaxRound = 1ull << 60;

constexpr Verdict kValid{ORR_QERR_NONE, 0};

constexpr Verdict bad_word(uint64_t word) {
    return {ORR_QERR_BAD_PACKET, word};
}

// The first of words [from, 8) that is not zero, as a verdict.
Verdict zero_from(const uint64_t* packet, size_t from) {
    for (size_t i = from; i < kPacketWords; ++i) {
        if (packet[i] != 0) return bad_word(i);
    }
    return kValid;
}

// rows * row_bytes <= 2^40, rows >= 1. A division, as the core has no wider product.
bool size_ok(uint64_t rows, uint64_t row_bytes) {
    return rows != 0 && row_bytes <= kMaxCopyBytes && (row_bytes == 0 || rows <= kMaxCopyBytes / row_bytes);
}

Verdict validate_copy(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_copy, words);
    const uint64_t planes = packet.planes == 0 ? 1 : packet.planes;
    if (packet.rows == 0) return bad_word(4);
    if (!size_ok(packet.rows * planes, packet.row_bytes)) return bad_word(3);
    return planes == 1 ? zero_from(words, 7) : kValid;
}

Verdict validate_fill(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_fill, words);
    const uint64_t unit = packet.pattern_bytes;
    if (unit != 1 && unit != 2 && unit != 4 && unit != 8) return bad_word(4);
    if (packet.rows == 0) return bad_word(4);
    if (packet.dst % unit != 0) return bad_word(2);
    if (packet.row_bytes % unit != 0 || !size_ok(packet.rows, packet.row_bytes)) return bad_word(3);
    return zero_from(words, 6);
}

Verdict validate_reduce(const uint64_t (&words)[kPacketWords]) {
    // By type; its elements are 1 << that many bytes.
    constexpr uint8_t kShift[] = {0, 0, 0, 2, 2, 3, 3, 1, 1, 2, 3};
    static_assert(sizeof(kShift) == ORR_TYPE_F64 + 1 && ORR_TYPE_F16 == 7);
    const auto packet = __builtin_bit_cast(orr_packet_reduce, words);
    if (packet.rows == 0 || packet.type == 0 || packet.type > ORR_TYPE_F64 || packet.function == 0 ||
        packet.function > ORR_REDUCE_PRODUCT)
        return bad_word(4);
    const uint64_t inside = (1u << kShift[packet.type]) - 1;
    if ((packet.src & inside) != 0) return bad_word(1);
    if ((packet.dst & inside) != 0) return bad_word(2);
    if ((packet.row_bytes & inside) != 0 || !size_ok(packet.rows, packet.row_bytes)) return bad_word(3);
    if (packet.rows > 1 && (packet.src_pitch & inside) != 0) return bad_word(5);
    if (packet.rows > 1 && (packet.dst_pitch & inside) != 0) return bad_word(6);
    return zero_from(words, 7);
}

Verdict validate_copies(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_copies, words);
    if (packet.list % sizeof(orr_copy_entry) != 0) return bad_word(1);
    if (packet.reserved0 != 0) return bad_word(2);
    if (packet.bytes > kMaxCopyBytes) return bad_word(3);
    if (packet.entries == 0 || packet.reserved1 != 0) return bad_word(4);
    return zero_from(words, 5);
}

Verdict validate_dispatch(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_dispatch, words);
    if (packet.entry % 2 != 0) return bad_word(1);
    // Two 32-bit factors cannot overflow, and the third is looked at only if their product is small.
    const uint64_t groups_xy = uint64_t{packet.grid_x} * packet.grid_y;
    if (groups_xy == 0 || groups_xy > kMaxGroups) return bad_word(3);
    if (packet.grid_z == 0 || groups_xy * packet.grid_z > kMaxGroups) return bad_word(4);
    const uint64_t items_xy = uint64_t{packet.block_x} * packet.block_y;
    if (items_xy == 0 || items_xy > kMaxItems) return bad_word(4);
    if (packet.block_z == 0 || items_xy * packet.block_z > kMaxItems) return bad_word(5);
    if (packet.item_stack_pages > ORR_ITEM_STACK_MAX_PAGES || packet.local_bytes > ORR_LOCAL_BYTES)
        return bad_word(5);
    if (packet.item_stacks % ORR_PAGE_SIZE != 0 || packet.item_stacks >> (ORR_VA_BITS - 1) != 0 ||
        (packet.item_stacks == 0) != (packet.item_stack_pages == 0))
        return bad_word(6);
    return zero_from(words, 7);
}

Verdict validate_gang(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_gang, words);
    if (packet.board % sizeof(orr_semaphore) != 0) return bad_word(1);
    if (packet.round == 0 || packet.round >= kMaxRound) return bad_word(3);
    if (packet.cards == 0 || packet.cards > ORR_GANG_MAX_CARDS || packet.card >= packet.cards ||
        packet.members == 0 || packet.members > ORR_GANG_MAX_MEMBERS || packet.reserved0 != 0)
        return bad_word(4);
    // A gang of one card has no peers.
    if (packet.cards == 1 ? packet.peers != 0 : packet.peers % sizeof(uint64_t) != 0) return bad_word(2);
    return zero_from(words, 5);
}

Verdict validate_semaphore(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_semaphore, words);
    if (packet.semaphore % sizeof(orr_semaphore) != 0) return bad_word(1);
    // What has failed cannot be asked for, nor made with a plain signal.
    if (packet.value >= ORR_SEM_FAILED) return bad_word(2);
    if (packet.limit_ns > (packet.header.opcode == ORR_PKT_WAIT ? ORR_WAIT_LIMIT_MAX_NS : 0))
        return bad_word(3);
    return zero_from(words, 4);
}

Verdict validate_fail(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_fail, words);
    if (packet.semaphore % sizeof(orr_semaphore) != 0) return bad_word(1);
    if (packet.code == ORR_QERR_NONE || packet.code > ORR_FAILURE_MAX_CODE) return bad_word(2);
    return zero_from(words, 3);
}

uint32_t known_flags(uint32_t opcode) {
    switch (opcode) {
        case ORR_PKT_NOP:
        case ORR_PKT_COPY:
        case ORR_PKT_FILL:
        case ORR_PKT_REDUCE:
        case ORR_PKT_COPIES:
            return ORR_PKT_F_ORDERED | ORR_PKT_F_INTERRUPT;
        case ORR_PKT_DISPATCH:
            return ORR_PKT_F_ORDERED | ORR_PKT_F_INTERRUPT | ORR_PKT_F_RESIDENT;
        default:
            return ORR_PKT_F_INTERRUPT;
    }
}

}  // namespace

Verdict validate_packet(const uint64_t (&packet)[kPacketWords]) {
    const uint32_t opcode = packet_opcode(packet);
    if (opcode > ORR_PKT_COPIES) return {ORR_QERR_BAD_OPCODE, packet[0]};
    if (opcode == ORR_PKT_INDIRECT || opcode == ORR_PKT_MATRIX) return {ORR_QERR_NOT_IMPLEMENTED, packet[0]};
    if ((packet_flags(packet) & ~known_flags(opcode)) != 0) return bad_word(0);

    switch (opcode) {
        case ORR_PKT_COPY:
            return validate_copy(packet);
        case ORR_PKT_FILL:
            return validate_fill(packet);
        case ORR_PKT_REDUCE:
            return validate_reduce(packet);
        case ORR_PKT_COPIES:
            return validate_copies(packet);
        case ORR_PKT_DISPATCH:
            return validate_dispatch(packet);
        case ORR_PKT_WAIT:
        case ORR_PKT_SIGNAL:
            return validate_semaphore(packet);
        case ORR_PKT_FAIL:
            return validate_fail(packet);
        case ORR_PKT_GANG:
            return validate_gang(packet);
        case ORR_PKT_TIMESTAMP:
            if (packet[1] % sizeof(uint64_t) != 0) return bad_word(1);
            return zero_from(packet, 2);
        default:  // NOP, BARRIER
            return zero_from(packet, 1);
    }
}

// Packets are laid out as descriptors but for their first word.
void build_descriptor(const uint64_t (&packet)[kPacketWords], uint32_t asid, uint64_t (&desc)[kDescWords]) {
    static_assert(offsetof(orr_packet_copy, src) == offsetof(orr_desc_copy, src) &&
                  offsetof(orr_packet_copy, rows) == offsetof(orr_desc_copy, rows) &&
                  offsetof(orr_packet_copy, planes) == offsetof(orr_desc_copy, planes) &&
                  offsetof(orr_packet_copy, dst_pitch) == offsetof(orr_desc_copy, dst_pitch) &&
                  offsetof(orr_packet_copy, src_height) == offsetof(orr_desc_copy, pattern));
    static_assert(offsetof(orr_packet_reduce, src) == offsetof(orr_desc_reduce, src) &&
                  offsetof(orr_packet_reduce, function) == offsetof(orr_desc_reduce, function) &&
                  offsetof(orr_packet_reduce, dst_pitch) == offsetof(orr_desc_reduce, dst_pitch));
    static_assert(offsetof(orr_packet_copies, list) == offsetof(orr_desc_copies, list) &&
                  offsetof(orr_packet_copies, bytes) == offsetof(orr_desc_copies, bytes) &&
                  offsetof(orr_packet_copies, entries) == offsetof(orr_desc_copies, entries));
    static_assert(offsetof(orr_packet_fill, pattern) == offsetof(orr_desc_pattern, pattern) &&
                  offsetof(orr_packet_fill, pattern_bytes) == offsetof(orr_desc_pattern, pattern_bytes) &&
                  offsetof(orr_packet_fill, dst_pitch) == offsetof(orr_desc_pattern, dst_pitch));
    static_assert(offsetof(orr_packet_dispatch, entry) == offsetof(orr_desc_kernel, entry) &&
                  offsetof(orr_packet_dispatch, block_x) == offsetof(orr_desc_kernel, block_x) &&
                  offsetof(orr_packet_dispatch, item_stack_pages) ==
                      offsetof(orr_desc_kernel, item_stack_pages) &&
                  offsetof(orr_packet_dispatch, local_bytes) == offsetof(orr_desc_kernel, local_bytes) &&
                  offsetof(orr_packet_dispatch, item_stacks) == offsetof(orr_desc_kernel, item_stacks));
    const bool resident = (packet_flags(packet) & ORR_PKT_F_RESIDENT) != 0;
    desc[0] = descriptor_word(packet_opcode(packet), asid) |
              (resident ? uint64_t{ORR_DESC_F_RESIDENT} << 16 : uint64_t{0});
    for (size_t i = 1; i < kDescWords; ++i)
        desc[i] = packet[i];
}

}  // namespace orrery::fw
