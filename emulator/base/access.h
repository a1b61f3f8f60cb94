// Kinds of access to memory, and what a page allows of them.
#pragma once

#include <cstdint>

namespace orrery::emu {

// kPull: a load by who can ask another card and wait for its answer. kSignal: of a semaphore.
enum class Access : std::uint8_t { kLoad, kStore, kFetch, kPull, kSignal };

constexpr bool writes(Access access) {
    return access == Access::kStore || access == Access::kSignal;
}

inline constexpr std::uint64_t kPageBytes = 4096;

// Rights of a page, to be or-ed together.
inline constexpr std::uint8_t kPageRead = 1;
inline constexpr std::uint8_t kPageWrite = 2;
inline constexpr std::uint8_t kPageExec = 4;
// Naturally aligned loads and stores only: a misaligned one raises an address-misaligned exception, and every
// atomic a store access fault (LR: load access fault).
inline constexpr std::uint8_t kPageStrict = 8;
// Atomics are refused: a store access fault (LR: load access fault), of which Bus::atomic_refused() is told.
inline constexpr std::uint8_t kPageNoAtomics = 16;

}  // namespace orrery::emu
