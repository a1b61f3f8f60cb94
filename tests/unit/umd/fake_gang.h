// What the fake's cards know of gangs over several of them (orr_packet_gang). Thread safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include <orrery/fw/packet.h>

namespace orrery::umd::test {

class FakeGangs {
  public:
    using Key = std::pair<std::uint64_t, std::uint64_t>;  // the first card's board, and the round
    struct Member {
        Key gang;
        std::uint16_t card = 0, cards = 0;
    };
    enum class State : std::uint8_t { kGathers, kRuns, kFailed, kNoPlace };

    static FakeGangs& all() {
        static FakeGangs all;
        return all;
    }
    // Of a card, by its uid.
    State join(const Member& member, std::uint64_t uid) {
        const std::lock_guard lock(mutex_);
        Gang& gang = gangs_[member.gang];
        if (!gang.failed && gang.there.emplace(member.card, uid).second && !has_place(uid)) {
            gang.there.erase(member.card);
            return State::kNoPlace;
        }
        if (!gang.failed && !gang.runs && gang.there.size() == member.cards && are_free(gang)) {
            gang.runs = true;
            if (member.cards == 1) return State::kRuns;
            for (const auto& [card, its] : gang.there)
                busy_[its] = member.gang;
        }
        return gang.failed ? State::kFailed : gang.runs ? State::kRuns : State::kGathers;
    }
    // The card's part is over.
    void end(const Member& member, std::uint64_t uid) {
        const std::lock_guard lock(mutex_);
        const auto busy = busy_.find(uid);
        if (busy != busy_.end() && busy->second == member.gang) busy_.erase(busy);
    }
    // Gangs of other processes that wait on the card.
    void set_others(std::uint64_t uid, std::size_t gangs) {
        const std::lock_guard lock(mutex_);
        others_[uid] = gangs;
    }
    // One that runs goes on.
    void fail(const Key& key) {
        const std::lock_guard lock(mutex_);
        if (Gang& gang = gangs_[key]; !gang.runs) gang.failed = true;
    }
    // What is in the way of gangs on all cards goes first.
    void set_preceded() {
        const std::lock_guard lock(mutex_);
        preceded_ = ORR_GANG_PRECEDED;
    }
    // They have run, and do not go on.
    void set_ran() {
        const std::lock_guard lock(mutex_);
        preceded_ = ORR_GANG_STARTED;
    }
    // ORR_QERR_GANG's detail: a card that has not come.
    std::uint64_t missing(const Member& member) {
        const std::lock_guard lock(mutex_);
        std::uint16_t card = 0;
        while (gangs_[member.gang].there.contains(card))
            ++card;
        return std::uint64_t{card} << 32 | preceded_;
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
        busy_.clear();
        others_.clear();
        preceded_ = 0;
    }

  private:
    struct Gang {
        std::map<std::uint16_t, std::uint64_t> there;  // cards' uids, by number in the gang
        bool failed = false, runs = false;
    };
    // As the firmware's; with the one that wants it.
    bool has_place(std::uint64_t uid) {
        std::size_t own = 0;
        for (const auto& [key, gang] : gangs_) {
            const auto is_it = [&](const auto& there) { return there.second == uid; };
            if (!gang.runs && !gang.failed && std::ranges::any_of(gang.there, is_it)) ++own;
        }
        return own <= ORR_GANG_MAX_OF_CONTEXT && own + others_[uid] <= ORR_GANG_MAX_OF_CARD;
    }
    // A card runs one gang of several cards at a time.
    bool are_free(const Gang& gang) const {
        return std::ranges::none_of(gang.there,
                                    [&](const auto& there) { return busy_.contains(there.second); });
    }
    std::mutex mutex_;
    std::map<Key, Gang> gangs_;
    std::map<std::uint64_t, Key> busy_;            // by uid: the gang of several cards that runs there
    std::map<std::uint64_t, std::size_t> others_;  // by uid
    std::uint64_t preceded_ = 0;
};

}  // namespace orrery::umd::test
