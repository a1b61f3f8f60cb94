// Jobs as packets of a queue (orrery/fw/packet.h).
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include <orrery/fw/packet.h>

#include "tools/scenario/scenario.h"

namespace orrery::scenario {

// `card` is the one whose queue gets the packet; `tag` is shown in traces and errors.
orr_packet make_packet(const Scenario& scenario, std::uint32_t card, const Job& job, std::uint32_t tag);

// Boards of gangs, as make_packet() names them: VRAM offsets, the same on all cards.
std::uint64_t board_offset(std::uint32_t gang);
// The table of peers' boards for one gang, as a context of `card` sees them: entries of 8 bytes, in order of
// the cards that take part.
std::uint64_t peers_offset(std::uint32_t gang);
std::vector<std::uint64_t> peers_table(const Scenario& scenario, std::uint32_t gang, std::uint32_t card);

inline constexpr std::uint32_t kMaxGangs = 128;

}  // namespace orrery::scenario
