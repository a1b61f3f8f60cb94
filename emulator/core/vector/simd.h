// Which instructions of the host the element kernels use.
#pragma once

#include <cstdint>

namespace orrery::emu {

enum class Simd : std::uint8_t { kPortable, kAvx2, kAvx512 };
inline constexpr unsigned kSimdKinds = 3;

const char* to_string(Simd simd);
// Is it built in, and does this host have it?
bool simd_usable(Simd simd);
// The best that is usable.
Simd best_simd();

}  // namespace orrery::emu
