// What the tests of gangs have in common: packets, and a card that has room for gangs.
#pragma once

#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {

inline constexpr std::uint64_t kBoard = kSharedVa + 0x1000;
inline constexpr std::uint64_t kPeers = kSharedVa + 0x2000;  // table of VAs
inline constexpr std::uint64_t kPeerVa = 0x50000000;         // pages of the other card

inline orr_packet gang(std::uint16_t members, std::uint64_t round = 1, std::uint16_t card = 0,
                       std::uint16_t cards = 1, std::uint64_t board = kBoard) {
    orr_packet_gang p{};
    p.header.opcode = ORR_PKT_GANG;
    p.board = board;
    p.peers = cards > 1 ? kPeers + (board - kBoard) : 0;
    p.round = round;
    p.card = card;
    p.cards = cards;
    p.members = members;
    return as_packet(p);
}

inline orr_packet resident(std::uint32_t groups, std::uint64_t entry = 0x1000) {
    orr_packet_dispatch p = dispatch_of(entry, ORR_PKT_F_RESIDENT);
    p.grid_x = groups;
    p.grid_y = p.grid_z = 1;
    return as_packet(p);
}

inline FakeSoc::Config chip() {
    FakeSoc::Config config;
    config.vector_ports = 4;
    return config;
}

inline void give_areas(Bench& bench, std::uint64_t areas = 8) {
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_areas), areas << 32);
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_base), 0x900000);
}

// What a card says on boards of its step: 1 arrived, 2 locked, 3 held.
constexpr std::uint64_t said(std::uint64_t round, std::uint64_t step, std::uint64_t attempt = 0) {
    return round * ORR_GANG_ROUND + attempt * 8 + step;
}

inline std::size_t running(Bench& bench) {
    return bench.soc.busy_ports().size();
}

}  // namespace orrery::fw::test
