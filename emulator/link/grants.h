// Which ranges of this card's VRAM which nodes may write to by a port. The owner's copy judges; a second one
// in shared memory tells the peer, so that it can refuse an access before it sends it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

// True if the grants for `node` together cover [offset, offset + bytes); `bytes` > 0.
inline bool covered(std::span<const Grant> grants, std::uint32_t node, std::uint64_t offset,
                    std::uint64_t bytes) {
    // Each round either uses up a slot for good or gives up, so there are at most as many as slots.
    for (std::size_t round = 0; round < grants.size(); ++round) {
        const std::uint64_t before = bytes;
        for (const Grant& grant : grants) {
            const std::uint64_t inside = offset - grant.base;  // wraps if below
            if (inside >= grant.size || grant.node != node) continue;
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
inline bool published(Inbox& inbox, std::uint32_t node, std::uint64_t offset, std::uint64_t bytes) {
    std::array<Grant, ORR_LINK_GRANT_SLOTS> copy;
    const auto end = std::min<std::uint64_t>(load_relaxed(inbox.grants_end), copy.size());
    for (std::uint64_t i = 0; i < end; ++i) {
        copy[i].base = load_relaxed(inbox.grants[i].base);
        copy[i].size = load_relaxed(inbox.grants[i].size);
        copy[i].node = load_relaxed(inbox.grants[i].node);
    }
    return covered(std::span(copy).first(end), node, offset, bytes);
}

inline void publish_grant(Inbox& inbox, unsigned slot, const Grant& grant) {
    store_release(inbox.grants[slot].size, 0);
    store_release(inbox.grants[slot].base, grant.base);
    store_release(inbox.grants[slot].node, grant.node);
    store_release(inbox.grants[slot].size, grant.size);
}

}  // namespace orrery::emu::link
