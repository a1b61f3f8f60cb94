// Copying more than the host's caches hold. Ordinary stores fetch each line before they overwrite it; these
// do not.
#pragma once

#include <cstddef>

namespace orrery::emu {

// From so many bytes on a copy is worth it: what was written first would have left the caches by its end.
inline constexpr std::size_t kPastCaches = 8 << 20;

// As memmove. Other threads and processes may see the bytes only after fence_past_caches() on this thread,
// whatever else it stores meanwhile; this thread sees them at once.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes);
void fence_past_caches();

}  // namespace orrery::emu
