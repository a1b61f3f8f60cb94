// What the fake's cards know of gangs over several of them (orr_packet_gang). Thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace orrery::umd::test {

class FakeGangs {
  public:
    using Key = std::pair<std::uint64_t, std::uint64_t>;  // the first card's board, and the round
    struct Member {
        Key gang;
        std::uint16_t card = 0, cards = 0;
    };
    enum class State : std::uint8_t { kGathers, kRuns, kFailed };

    static FakeGangs& all() {
        static FakeGangs all;
        return all;
    }
    State join(const Member& member) {
        const std::lock_guard lock(mutex_);
        Gang& gang = gangs_[member.gang];
        gang.there.insert(member.card);
        if (!gang.failed) gang.runs |= gang.there.size() == member.cards;
        return gang.failed ? State::kFailed : gang.runs ? State::kRuns : State::kGathers;
    }
    // One that runs goes on.
    void fail(const Key& key) {
        const std::lock_guard lock(mutex_);
        if (Gang& gang = gangs_[key]; !gang.runs) gang.failed = true;
    }
    // The number of a card that has not come.
    std::uint64_t missing(const Member& member) {
        const std::lock_guard lock(mutex_);
        std::uint16_t card = 0;
        while (gangs_[member.gang].there.contains(card))
            ++card;
        return card;
    }
    // Parts that have come and do not run yet.
    std::size_t waiting() {
        const std::lock_guard lock(mutex_);
        std::size_t parts = 0;
        for (const auto& [key, gang] : gangs_)
            parts += gang.runs || gang.failed ? 0 : gang.there.size();
        return parts;
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        gangs_.clear();
    }

  private:
    struct Gang {
        std::set<std::uint16_t> there;
        bool failed = false, runs = false;
    };
    std::mutex mutex_;
    std::map<Key, Gang> gangs_;
};

}  // namespace orrery::umd::test
