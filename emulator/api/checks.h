// What orrery-card can check of kernels (--check); numbers to be or-ed together.
#pragma once

namespace orrery::emu {

inline constexpr unsigned kCheckRace = 1;    // accesses of work-items that nothing orders
inline constexpr unsigned kCheckMemory = 2;  // of memory that is not theirs, or that they never wrote

}  // namespace orrery::emu
