// What an engine has at hand of page tables, for what its accesses cost: tags of the pages that it used last,
// and of the tables in which their entries lie. There are no translations in it: those come from the MMU as
// ever, and what the host keeps of them (a hart's page cache, the MMU's own) is no part of the model.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery::emu {

// The last so many different keys that were used. A key is not 0.
class RecentKeys {
  public:
    static constexpr std::size_t kMost = 4096;

    explicit RecentKeys(std::size_t capacity = 0) : slots_(capacity) {
        if (capacity == 0) return;
        buckets_.resize(std::bit_ceil(2 * capacity));
        clear();
    }
    std::size_t capacity() const { return slots_.size(); }

    // Whether it was one of them. It is the last one now.
    bool use(std::uint64_t key) {
        if (slots_[newest_].key == key) return true;
        std::uint16_t* const bucket = &buckets_[bucket_of(key)];
        std::uint16_t at = *bucket;
        while (at != kNone && slots_[at].key != key)
            at = slots_[at].next;
        const bool there = at != kNone;
        if (!there) {
            at = oldest_;
            if (slots_[at].key != 0) leave_bucket(at);
            slots_[at].key = key;
            slots_[at].next = *bucket;
            *bucket = at;
        }
        to_front(at);
        return there;
    }
    template <class Which>
    void forget(Which which) {
        std::vector<std::uint64_t> rest;
        std::size_t all = 0;
        for (std::uint16_t at = oldest_; at != kNone; at = slots_[at].newer) {
            const std::uint64_t key = slots_[at].key;
            if (key == 0) continue;
            ++all;
            if (!which(key)) rest.push_back(key);
        }
        if (rest.size() == all) return;
        clear();
        for (const std::uint64_t key : rest)
            use(key);
    }

  private:
    static constexpr std::uint16_t kNone = 0xffff;
    struct Slot {
        std::uint64_t key = 0;  // 0: none yet
        std::uint16_t newer = kNone, older = kNone;
        std::uint16_t next = kNone;  // in its bucket
    };

    std::size_t bucket_of(std::uint64_t key) const {
        return (key * 0x9e37'79b9'7f4a'7c15 >> 32) & (buckets_.size() - 1);
    }
    void clear() {
        buckets_.assign(buckets_.size(), kNone);
        for (std::size_t at = 0; at < slots_.size(); ++at) {
            const bool first = at == 0, last = at + 1 == slots_.size();
            slots_[at] = {.newer = first ? kNone : static_cast<std::uint16_t>(at - 1),
                          .older = last ? kNone : static_cast<std::uint16_t>(at + 1)};
        }
        newest_ = 0;
        oldest_ = static_cast<std::uint16_t>(slots_.size() - 1);
    }
    void leave_bucket(std::uint16_t at) {
        std::uint16_t* link = &buckets_[bucket_of(slots_[at].key)];
        while (*link != at)
            link = &slots_[*link].next;
        *link = slots_[at].next;
    }
    void to_front(std::uint16_t at) {
        if (at == newest_) return;
        Slot& slot = slots_[at];
        slots_[slot.newer].older = slot.older;
        (slot.older == kNone ? oldest_ : slots_[slot.older].newer) = slot.newer;
        slot.newer = kNone;
        slot.older = newest_;
        slots_[newest_].newer = at;
        newest_ = at;
    }

    std::vector<Slot> slots_;
    std::vector<std::uint16_t> buckets_;
    std::uint16_t newest_ = 0, oldest_ = 0;
};

// What the card's software has had forgotten, by number. Whoever has tags follows when it looks at them next.
class Invalidations {
  public:
    struct One {
        std::uint32_t space = 0;  // kAll: every one
        std::uint64_t first = 0, last = 0;
    };
    static constexpr std::uint32_t kAll = ~std::uint32_t{0};
    static constexpr std::size_t kKept = 64;

    void add(const One& one) { last_[count_++ % kKept] = one; }
    std::uint64_t count() const { return count_; }
    const One& at(std::uint64_t number) const { return last_[number % kKept]; }

  private:
    std::array<One, kKept> last_{};
    std::uint64_t count_ = 0;
};

// Translations that were needed, those of them that were not at hand, and entries of tables that were read
// for these.
struct TlbLookups {
    std::uint64_t all = 0, missed = 0, walked = 0;
    // One, as TlbTags::use() said.
    void add(unsigned entries) {
        ++all;
        missed += entries != 0 ? 1 : 0;
        walked += entries;
    }
    TlbLookups& operator+=(const TlbLookups& other) {
        all += other.all;
        missed += other.missed;
        walked += other.walked;
        return *this;
    }
    bool operator==(const TlbLookups&) const = default;
};

class TlbTags {
  public:
    static constexpr unsigned kLevels = 4;  // of tables

    // 0 pages: translations cost nothing.
    explicit TlbTags(std::size_t pages = 0) : pages_(pages), tables_((pages + 3) / 4) {}
    bool on() const { return pages_.capacity() != 0; }

    // An access to the page at `va`, of 2 MiB if `huge`: how many entries of tables have to be read for it,
    // one after the other. 0: none.
    unsigned use(std::uint32_t space, std::uint64_t va, bool huge) {
        if (!on() || pages_.use(key_of(space, va, page_shift(huge), huge))) return 0;
        if (tables_.use(key_of(space, va, page_shift(huge) + kTableBits, huge))) return 1;
        return huge ? kLevels - 1 : kLevels;
    }
    // True: something of this space was among what has been forgotten since the last call.
    bool follow(const Invalidations& all, std::uint32_t space) {
        bool ours = false;
        // What is no longer kept may have been anything.
        if (on() && all.count() - followed_ > Invalidations::kKept) {
            forget({.space = Invalidations::kAll});
            ours = true;
            followed_ = all.count();
        }
        for (; followed_ != all.count(); ++followed_) {
            const Invalidations::One& one = all.at(followed_);
            if (!on()) continue;
            forget(one);
            ours |= one.space == space || one.space == Invalidations::kAll;
        }
        return ours;
    }
    // An engine's own names of pages begin here: they mean others now.
    static constexpr std::uint64_t kOwnNames = std::uint64_t{1} << 47;
    void forget_own_names(std::uint32_t space) {
        if (on()) forget({.space = space, .first = kOwnNames, .last = kOwnNames});
    }

  private:
    static constexpr unsigned kTableBits = 9, kVaBits = 48, kNumberBits = 36;

    static unsigned page_shift(bool huge) { return huge ? 21 : 12; }
    static std::uint64_t key_of(std::uint32_t space, std::uint64_t va, unsigned shift, bool huge) {
        const std::uint64_t number = (va & ((std::uint64_t{1} << kVaBits) - 1)) >> shift;
        return std::uint64_t{space} << (kNumberBits + 1) | number << 1 | (huge ? 1 : 0);
    }
    // Own names of the space go with whatever of it goes.
    void forget(const Invalidations::One& one) {
        const auto forget_in = [&one](RecentKeys& keys, unsigned above) {
            keys.forget([&](std::uint64_t key) {
                if (one.space == Invalidations::kAll) return true;
                if (key >> (kNumberBits + 1) != one.space) return false;
                const unsigned shift = page_shift((key & 1) != 0) + above;
                const std::uint64_t first = (key >> 1 & ((std::uint64_t{1} << kNumberBits) - 1)) << shift;
                const std::uint64_t last = first + ((std::uint64_t{1} << shift) - 1);
                return last >= kOwnNames || (first <= one.last && last >= one.first);
            });
        };
        forget_in(pages_, 0);
        forget_in(tables_, kTableBits);
    }

    RecentKeys pages_, tables_;
    std::uint64_t followed_ = 0;
};

}  // namespace orrery::emu
