// What is told of a switch (switches.h), in the words of a place of ORR_R_SWITCHES.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery::emu::link {

inline constexpr std::size_t kSwitchWords = 100;
using SwitchWords = std::array<std::uint64_t, kSwitchWords>;

}  // namespace orrery::emu::link
