// Requests of others that a port has passed on to its peer, until their answers come back by it. While there
// are some, somebody waits for what the peer does, or who is behind it, and cannot see that peer himself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <unordered_map>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

class Followed {
  public:
    // More than are on their way by one port at a time, but for who lies: others are not followed then.
    static constexpr std::size_t kMost = 8192, kMostOfAPair = 1024;
    // A peer that has shown so often since then that it lives is not who has stopped: the answer takes long
    // behind it, comes by another port, or nobody waits for it any more.
    static constexpr std::uint64_t kLives = 200;

    void add(const Message& request) {
        if (request.op != kOpRead && request.op != kOpAtomic) return;
        if (count_ >= kMost) return;
        std::deque<Request>& all = pairs_[pair_of(request.source, request.destination)];
        if (all.size() >= kMostOfAPair) return;
        all.push_back({request.tag, lives_});
        ++count_;
    }
    // Answers come in the order of their requests: so those of the same two nodes before it have none any
    // more, as what was left of an epoch.
    void answered(const Message& answer) {
        const auto pair = pairs_.find(pair_of(answer.destination, answer.source));
        if (pair == pairs_.end()) return;
        std::deque<Request>& all = pair->second;
        std::size_t which = 0;
        while (which < all.size() && all[which].tag != answer.tag)
            ++which;
        if (which < all.size()) drop(pair, which + 1);
    }
    // The peer has shown that it lives.
    void alive() {
        ++lives_;
        for (auto pair = pairs_.begin(); pair != pairs_.end();) {
            const auto next = std::next(pair);
            std::size_t old = 0;
            while (old < pair->second.size() && lives_ - pair->second[old].lives > kLives)
                ++old;
            drop(pair, old);
            pair = next;
        }
    }
    void clear() {
        pairs_.clear();
        count_ = 0;
    }
    bool any() const { return count_ != 0; }

  private:
    struct Request {
        std::uint32_t tag;
        std::uint64_t lives;  // of the peer, when it was passed on
    };
    using Pairs = std::unordered_map<std::uint32_t, std::deque<Request>>;

    static std::uint32_t pair_of(std::uint16_t source, std::uint16_t destination) {
        return std::uint32_t{source} << 16 | destination;
    }
    // The first so many of a pair.
    void drop(Pairs::iterator pair, std::size_t first) {
        std::deque<Request>& all = pair->second;
        all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
        count_ -= first;
        if (all.empty()) pairs_.erase(pair);
    }

    Pairs pairs_;
    std::size_t count_ = 0;
    std::uint64_t lives_ = 0;
};

}  // namespace orrery::emu::link
