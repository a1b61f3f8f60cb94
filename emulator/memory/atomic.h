// Atomics of ORR_ATOMIC_*, on a word that others may write at any time.
#pragma once

#include <cstdint>

#include "emulator/memory/peer.h"

namespace orrery::emu {

// `at` is aligned to atomic.bytes. Gives the old value; of 32 bits the upper half is 0.
std::uint64_t atomic_on(std::uint8_t* at, const LinkAtomic& atomic);

}  // namespace orrery::emu
