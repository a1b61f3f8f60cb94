// Which nodes may do what with which ranges of this card's VRAM by a port. The owner's copy judges; a second
// one in shared memory tells the peer, so that it can refuse an access before it sends it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include <orrery/hw/mmu.h>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

// What a request wants.
struct Wish {
    std::uint32_t node = 0;  // whose it is
    std::uint64_t rights = 0;
    std::uint64_t key = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // > 0, and at most one message's
};

// What the owner keeps of a grant beside what all may see.
struct OwnGrant {
    Grant grant{};
    std::uint64_t key = 0;  // 0: any
};
inline const Grant& public_part(const OwnGrant& own) {
    return own.grant;
}
inline const Grant& public_part(const Grant& grant) {
    return grant;
}
inline bool fits(const OwnGrant& own, std::uint64_t key) {
    return own.key == 0 || own.key == key;
}
// A peer's keys are not told.
inline bool fits(const Grant&, std::uint64_t) {
    return true;
}

// Whether this one alone allows all of it.
template <class AGrant>
bool allows(const AGrant& entry, const Wish& wish) {
    const Grant& grant = public_part(entry);
    const std::uint64_t inside = wish.offset - grant.base;  // wraps if below
    return inside < grant.size && grant.size - inside >= wish.bytes && grant.node == wish.node &&
           (grant.rights & wish.rights) == wish.rights && fits(entry, wish.key);
}

// kDone if the grants together allow all of it; else kBadKey or kDenied.
template <class AGrant>
Status judge_all(std::span<const AGrant> grants, Wish wish, std::size_t& last) {
    bool wrong_key = false;
    // A round goes through a page at least, so more rounds do not help; who wrote the grants may be hostile.
    for (std::uint64_t round = 0; round < kMaxWriteBytes / ORR_PAGE_SIZE + 2; ++round) {
        const std::uint64_t before = wish.bytes;
        for (const AGrant& entry : grants) {
            const Grant& grant = public_part(entry);
            const std::uint64_t inside = wish.offset - grant.base;  // wraps if below
            if (inside >= grant.size || grant.node != wish.node) continue;
            if ((grant.rights & wish.rights) != wish.rights) continue;
            if (!fits(entry, wish.key)) {
                wrong_key = true;
                continue;
            }
            const std::uint64_t reach = grant.size - inside;
            if (reach >= wish.bytes) {
                last = static_cast<std::size_t>(&entry - grants.data());
                return kDone;
            }
            wish.offset += reach;
            wish.bytes -= reach;
        }
        if (wish.bytes == before) break;
    }
    return wrong_key ? kBadKey : kDenied;
}

// `last`: where to look first, which is where the last one was found: any number will do.
template <class AGrant>
Status judge(std::span<const AGrant> grants, const Wish& wish, std::size_t& last) {
    if (last < grants.size() && allows(grants[last], wish)) [[likely]]
        return kDone;
    return judge_all(grants, wish, last);
}

inline std::uint64_t rights_for(std::uint32_t op) {
    switch (op) {
        case kOpWrite:
            return ORR_LINK_RIGHT_WRITE;
        case kOpSignal:
            return ORR_LINK_RIGHT_SIGNAL;
        case kOpRead:
            return ORR_LINK_RIGHT_READ;
        default:
            return ORR_LINK_RIGHT_ATOMIC;
    }
}

// One word of memory that another process may write at any time.
inline std::uint64_t load_acquire(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
}
inline std::uint64_t load_relaxed(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_relaxed);
}
inline void store_relaxed(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
}
inline void store_release(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
}
// A word by which one end says that it is about to block, and the other one that it has done something since.
// Both only swap it: so whoever comes second sees what the first did before, either the word or all else.
// (Fences would do as well; compilers have MFENCE for them, which takes several times as long.)
inline std::uint32_t swap_word(std::uint32_t& word, std::uint32_t value) {
    return std::atomic_ref(word).exchange(value, std::memory_order_acq_rel);
}

// The sender's look at the owner's published grants. May be torn by a change in progress: the owner judges
// again.
class PublishedGrants {
  public:
    void forget() { version_ = kNone; }
    bool cover(Inbox& inbox, const Wish& wish) {
        if (const std::uint64_t version = load_acquire(inbox.grants_version); version != version_) {
            version_ = version;
            take_over(inbox);
        }
        return judge(std::span<const Grant>(grants_).first(end_), wish, last_) == kDone;
    }

  private:
    void take_over(Inbox& inbox) {
        end_ = std::min<std::uint64_t>(load_relaxed(inbox.grants_end), grants_.size());
        for (std::uint64_t i = 0; i < end_; ++i) {
            grants_[i].base = load_relaxed(inbox.grants[i].base);
            grants_[i].size = load_relaxed(inbox.grants[i].size);
            grants_[i].node = load_relaxed(inbox.grants[i].node);
            grants_[i].rights = load_relaxed(inbox.grants[i].rights);
        }
    }
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::array<Grant, ORR_LINK_GRANT_SLOTS> grants_{};
    std::uint64_t end_ = 0, version_ = kNone;
    std::size_t last_ = 0;
};

inline void publish_grant(Inbox& inbox, unsigned slot, const Grant& grant) {
    store_release(inbox.grants[slot].size, 0);
    store_release(inbox.grants[slot].base, grant.base);
    store_release(inbox.grants[slot].node, grant.node);
    store_release(inbox.grants[slot].rights, grant.rights);
    store_release(inbox.grants[slot].size, grant.size);
}

}  // namespace orrery::emu::link
