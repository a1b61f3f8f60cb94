#include "tools/scenario/packets.h"

#include <algorithm>
#include <cstring>

#include <orrery/hw/link.h>

#include "tools/scenario/layout.h"
#include "tools/scenario/spin.h"

namespace orrery::scenario {

namespace {

constexpr std::uint64_t kBoardBytes = 2 * ORR_GANG_MAX_CARDS * sizeof(orr_semaphore);
constexpr std::uint64_t kPeersBytes = ORR_GANG_MAX_CARDS * 8;
static_assert(kMaxGangs * (kBoardBytes + kPeersBytes) <= kSmallBytes);

template <class Packet>
orr_packet as_packet(const Packet& typed) {
    orr_packet packet;
    static_assert(sizeof packet == sizeof typed);
    std::memcpy(&packet, &typed, sizeof packet);
    return packet;
}

std::uint64_t data_va(const Place& place, bool destination) {
    const std::uint64_t half = destination ? kDataBytes : 0;
    switch (place.kind) {
        case Place::Kind::kVram:
            return kVramDataVa + half;
        case Place::Kind::kHost:
            return kHostDataVa + half;
        case Place::Kind::kPeer:
            return peer_va(place.card) + kPeerData;
    }
    return 0;
}

// A long copy goes round the data area: rows without pitch.
template <class Packet>
void set_size(Packet& packet, std::uint64_t bytes) {
    std::uint64_t rows = 1;
    while (bytes / rows > kDataBytes || bytes % rows != 0)
        ++rows;
    packet.rows = static_cast<std::uint32_t>(rows);
    packet.row_bytes = bytes / rows;
}

std::uint32_t part_of(const Gang& gang, std::uint32_t card) {
    std::uint32_t number = 0;
    for (std::uint32_t n = 0; n < card && n < gang.members.size(); ++n)
        number += gang.members[n] != 0 ? 1 : 0;
    return number;
}

}  // namespace

std::uint64_t board_offset(std::uint32_t gang) {
    return kBoardOffset + gang * kBoardBytes;
}

std::uint64_t peers_offset(std::uint32_t gang) {
    return kBoardOffset + kMaxGangs * kBoardBytes + gang * kPeersBytes;
}

std::vector<std::uint64_t> peers_table(const Scenario& scenario, std::uint32_t gang, std::uint32_t card) {
    std::vector<std::uint64_t> table;
    const auto& members = scenario.gangs[gang].members;
    for (std::uint32_t n = 0; n < members.size(); ++n) {
        if (members[n] == 0) continue;
        table.push_back(n == card ? 0 : peer_va(n) + kPeerBoards + board_offset(gang) - kBoardOffset);
    }
    return table;
}

orr_packet make_packet(const Scenario& scenario, std::uint32_t card, const Job& job, std::uint32_t tag) {
    std::uint16_t flags = 0;
    if (job.ordered) flags |= ORR_PKT_F_ORDERED;
    if (job.interrupt) flags |= ORR_PKT_F_INTERRUPT;
    const auto header = [&](std::uint32_t opcode, std::uint16_t kept) {
        return orr_packet_header{static_cast<std::uint16_t>(opcode), static_cast<std::uint16_t>(flags & kept),
                                 tag};
    };
    constexpr std::uint16_t kBoth = ORR_PKT_F_ORDERED | ORR_PKT_F_INTERRUPT;
    switch (job.op) {
        case Op::kNop: {
            orr_packet packet{};
            packet.header = header(ORR_PKT_NOP, kBoth);
            return packet;
        }
        case Op::kKernel: {
            orr_packet_dispatch packet{};
            packet.header = header(ORR_PKT_DISPATCH, kBoth);
            if (job.resident) packet.header.flags |= ORR_PKT_F_RESIDENT;
            packet.entry = kCodeVa + (job.traps ? kTrapEntry : 0);
            packet.args = spin_rounds(job.cycles, scenario.cards[card].sku);
            packet.grid_x = job.groups;
            packet.grid_y = packet.grid_z = 1;
            packet.block_x = packet.block_y = packet.block_z = 1;
            return as_packet(packet);
        }
        case Op::kCopy: {
            orr_packet_copy packet{};
            packet.header = header(ORR_PKT_COPY, kBoth);
            packet.src = data_va(job.from, false);
            packet.dst = data_va(job.to, true);
            set_size(packet, job.bytes);
            return as_packet(packet);
        }
        case Op::kFill: {
            orr_packet_fill packet{};
            packet.header = header(ORR_PKT_FILL, kBoth);
            packet.pattern = 0x5a;
            packet.pattern_bytes = 1;
            packet.dst = data_va(job.to, true);
            set_size(packet, job.bytes);
            return as_packet(packet);
        }
        case Op::kWait:
        case Op::kSignal: {
            orr_packet_semaphore packet{};
            packet.header = header(job.op == Op::kWait ? ORR_PKT_WAIT : ORR_PKT_SIGNAL, ORR_PKT_F_INTERRUPT);
            const std::uint32_t owner = scenario.semaphores[job.semaphore].card;
            const std::uint64_t base = owner == card ? kSemaphoreVa : peer_va(owner);
            packet.semaphore = base + job.semaphore * sizeof(orr_semaphore);
            packet.value = job.value;
            return as_packet(packet);
        }
        case Op::kBarrier: {
            orr_packet packet{};
            packet.header = header(ORR_PKT_BARRIER, ORR_PKT_F_INTERRUPT);
            return packet;
        }
        case Op::kTimestamp: {
            orr_packet_timestamp packet{};
            packet.header = header(ORR_PKT_TIMESTAMP, ORR_PKT_F_INTERRUPT);
            packet.dst = kStampVa + tag % (kSmallBytes / 8) * 8;
            return as_packet(packet);
        }
        case Op::kGang: {
            const Gang& gang = scenario.gangs[job.gang];
            orr_packet_gang packet{};
            packet.header = header(ORR_PKT_GANG, ORR_PKT_F_INTERRUPT);
            packet.board = kBoardVa + board_offset(job.gang) - kBoardOffset;
            packet.round = job.round;
            packet.card = static_cast<std::uint16_t>(part_of(gang, card));
            packet.cards = static_cast<std::uint16_t>(
                gang.members.size() - static_cast<std::size_t>(std::ranges::count(gang.members, 0u)));
            packet.members = static_cast<std::uint16_t>(card < gang.members.size() ? gang.members[card] : 0);
            packet.peers = packet.cards > 1 ? kBoardVa + peers_offset(job.gang) - kBoardOffset : 0;
            return as_packet(packet);
        }
        case Op::kMalformed: {
            orr_packet packet{};
            packet.header = {0xdead, 0, tag};
            return packet;
        }
    }
    return {};
}

}  // namespace orrery::scenario
