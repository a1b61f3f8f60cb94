// Which ranges of this card's VRAM which nodes may write to by a port. The owner's copy judges; a second one
// in shared memory tells the peer, so that it can refuse an access before it sends it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include <orrery/hw/mmu.h>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

// True if the grants for `node` together cover [offset, offset + bytes), which is at most one message;
// `bytes` > 0.
inline bool covered(std::span<const Grant> grants, std::uint32_t node, std::uint64_t offset,
                    std::uint64_t bytes) {
    // A round goes through a page at least, so more rounds do not help; who wrote the grants may be hostile.
    for (std::uint64_t round = 0; round < kMaxWriteBytes / ORR_PAGE_SIZE + 2; ++round) {
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
class PublishedGrants {
  public:
    void forget() { version_ = kNone; }
    bool cover(Inbox& inbox, std::uint32_t node, std::uint64_t offset, std::uint64_t bytes) {
        if (const std::uint64_t version = load_acquire(inbox.grants_version); version != version_) {
            version_ = version;
            end_ = std::min<std::uint64_t>(load_relaxed(inbox.grants_end), grants_.size());
            for (std::uint64_t i = 0; i < end_; ++i) {
                grants_[i].base = load_relaxed(inbox.grants[i].base);
                grants_[i].size = load_relaxed(inbox.grants[i].size);
                grants_[i].node = load_relaxed(inbox.grants[i].node);
            }
        }
        return covered(std::span(grants_).first(end_), node, offset, bytes);
    }

  private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::array<Grant, ORR_LINK_GRANT_SLOTS> grants_{};
    std::uint64_t end_ = 0, version_ = kNone;
};

inline void publish_grant(Inbox& inbox, unsigned slot, const Grant& grant) {
    store_release(inbox.grants[slot].size, 0);
    store_release(inbox.grants[slot].base, grant.base);
    store_release(inbox.grants[slot].node, grant.node);
    store_release(inbox.grants[slot].size, grant.size);
}

}  // namespace orrery::emu::link
