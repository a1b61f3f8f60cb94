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
constexpr uint64_t kMaxRound = (1ull << 63) / ORR_GANG_ROUND;

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

Verdict validate_long(const uint64_t (&words)[kPacketWords]) {
    const auto packet = __builtin_bit_cast(orr_packet_long, words);
    if (packet.descriptor % sizeof(uint64_t) != 0) return bad_word(1);
    if (packet.bytes == 0 || packet.bytes % sizeof(uint64_t) != 0 || packet.bytes > ORR_DESC_LONG_BYTES ||
        packet.reserved0 != 0)
        return bad_word(2);
    return zero_from(words, 3);
}

uint64_t bytes_of(const uint64_t (&words)[kPacketWords]) {
    return words[3] * (words[4] & 0xffffffff);
}

uint64_t bytes_of_copy(const uint64_t (&words)[kPacketWords]) {
    const uint64_t planes = words[4] >> 32;
    return bytes_of(words) * (planes == 0 ? 1 : planes);
}

uint64_t bytes_of_list(const uint64_t (&words)[kPacketWords]) {
    return words[3];
}

uint64_t groups_of(const uint64_t (&words)[kPacketWords]) {
    return (words[3] & 0xffffffff) * (words[3] >> 32) * (words[4] & 0xffffffff);
}

// A packet that runs on an engine.
struct EnginePacket {
    uint32_t opcode;
    uint32_t flags;  // that it may carry, beside those of kEngineFlags
    Verdict (*validate)(const uint64_t (&words)[kPacketWords]);
    uint64_t (*work)(const uint64_t (&words)[kPacketWords]);
};

constexpr uint32_t kEngineFlags = ORR_PKT_F_ORDERED | ORR_PKT_F_INTERRUPT;

constexpr EnginePacket kEnginePackets[] = {
    {ORR_PKT_COPY, ORR_PKT_F_LONG, validate_copy, bytes_of_copy},
    {ORR_PKT_FILL, 0, validate_fill, bytes_of},
    {ORR_PKT_REDUCE, 0, validate_reduce, bytes_of},
    {ORR_PKT_COPIES, 0, validate_copies, bytes_of_list},
    {ORR_PKT_DISPATCH, ORR_PKT_F_RESIDENT, validate_dispatch, groups_of},
    ORRERY_FW_EXTRA_PACKETS};

// Null: no engine runs such packets.
constexpr const EnginePacket* engine_packet(uint32_t opcode) {
    for (const EnginePacket& row : kEnginePackets) {
        if (row.opcode == opcode) return &row;
    }
    return nullptr;
}

consteval bool each_has_a_row() {
    for (uint32_t opcode = 0; opcode < 32; ++opcode) {
        if ((kind_of(opcode) != 0) != (engine_packet(opcode) != nullptr)) return false;
    }
    return true;
}
static_assert(each_has_a_row(), "kEngineKinds and kEnginePackets name different opcodes");

}  // namespace

Verdict validate_packet(const uint64_t (&packet)[kPacketWords]) {
    const uint32_t opcode = packet_opcode(packet);
    const uint32_t unknown = packet_flags(packet) & ~ORR_PKT_F_INTERRUPT;
    if (opcode == ORR_PKT_NOP)
        return (unknown & ~ORR_PKT_F_ORDERED) != 0 ? bad_word(0) : zero_from(packet, 1);
    if (opcode > ORR_PKT_COPIES) return {ORR_QERR_BAD_OPCODE, packet[0]};
    switch (opcode) {
        case ORR_PKT_BARRIER:
            return unknown != 0 ? bad_word(0) : zero_from(packet, 1);
        case ORR_PKT_WAIT:
        case ORR_PKT_SIGNAL:
            return unknown != 0 ? bad_word(0) : validate_semaphore(packet);
        case ORR_PKT_FAIL:
            return unknown != 0 ? bad_word(0) : validate_fail(packet);
        case ORR_PKT_GANG:
            return unknown != 0 ? bad_word(0) : validate_gang(packet);
        case ORR_PKT_TIMESTAMP:
            if (unknown != 0) return bad_word(0);
            if (packet[1] % sizeof(uint64_t) != 0) return bad_word(1);
            return zero_from(packet, 2);
        default:
            break;
    }
    const EnginePacket* const row = engine_packet(opcode);
    if (row == nullptr) return {ORR_QERR_NOT_IMPLEMENTED, packet[0]};
    if ((packet_flags(packet) & ~(kEngineFlags | row->flags)) != 0) return bad_word(0);
    return is_long(packet) ? validate_long(packet) : row->validate(packet);
}

uint64_t work_of(const uint64_t (&packet)[kPacketWords]) {
    const EnginePacket* const row = engine_packet(packet_opcode(packet));
    return row == nullptr || is_long(packet) ? 0 : row->work(packet);
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
    static_assert(offsetof(orr_packet_long, descriptor) == offsetof(orr_desc_long, descriptor) &&
                  offsetof(orr_packet_long, bytes) == offsetof(orr_desc_long, bytes));
    const bool resident = (packet_flags(packet) & ORR_PKT_F_RESIDENT) != 0;
    desc[0] = (is_long(packet) ? ORR_DESC_LONG | uint64_t{asid} << 32
                               : descriptor_word(packet_opcode(packet), asid)) |
              (resident ? uint64_t{ORR_DESC_F_RESIDENT} << 16 : uint64_t{0});
    for (size_t i = 1; i < kDescWords; ++i)
        desc[i] = packet[i];
}

}  // namespace orrery::fw
