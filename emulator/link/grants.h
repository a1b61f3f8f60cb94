// Which ranges of this card's VRAM a peer may write to. The owner's copy judges; a second one in shared
// memory tells the peer, so that it can refuse an access before it sends it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

// True if the grants together cover [offset, offset + bytes); `bytes` > 0.
inline bool covered(std::span<const Grant, ORR_LINK_GRANT_SLOTS> grants, std::uint64_t offset,
                    std::uint64_t bytes) {
    // Each round either uses up a slot for good or gives up, so there are at most as many as slots.
    for (unsigned round = 0; round < ORR_LINK_GRANT_SLOTS; ++round) {
        const std::uint64_t before = bytes;
        for (const Grant& grant : grants) {
            const std::uint64_t inside = offset - grant.base;  // wraps if below
            if (inside >= grant.size) continue;
            const std::uint64_t reach = grant.size - inside;
            if (reach >= bytes) return true;
            offset += reach;
            bytes -= reach;
        }
        if (bytes == before) return false;
    }
    return false;
}

// One word of memory that another process may write at any time.
inline std::uint64_t load_acquire(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
}
inline std::uint64_t load_relaxed(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_relaxed);
}
inline void store_release(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
}

// The sender's look at the owner's published grants. May be torn by a change in progress: the owner judges
// again.
inline std::array<Grant, ORR_LINK_GRANT_SLOTS> read_grants(Inbox& inbox) {
    std::array<Grant, ORR_LINK_GRANT_SLOTS> copy{};
    for (unsigned i = 0; i < ORR_LINK_GRANT_SLOTS; ++i) {
        copy[i].base = load_relaxed(inbox.grants[i].base);
        copy[i].size = load_relaxed(inbox.grants[i].size);
    }
    return copy;
}

inline void publish_grant(Inbox& inbox, unsigned slot, const Grant& grant) {
    store_release(inbox.grants[slot].size, 0);
    store_release(inbox.grants[slot].base, grant.base);
    store_release(inbox.grants[slot].size, grant.size);
}

}  // namespace orrery::emu::link
