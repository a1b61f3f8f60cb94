// Requests of others that a port has passed on to its peer, until their answers come back by it. While there
// are some, somebody waits for what the peer does, or who is behind it, and cannot see that peer himself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "emulator/link/wire.h"

namespace orrery::emu::link {

class Followed {
  public:
    // More than are on their way by one port at a time, but for who lies: of more the oldest are forgotten.
    static constexpr std::size_t kMost = 8192;

    void add(const Message& request) {
        if (request.op != kOpRead && request.op != kOpAtomic) return;
        if (requests_.size() == kMost) requests_.pop_front();
        requests_.push_back({request.source, request.destination, request.tag});
    }
    // Answers come in the order of their requests: so those of the same two nodes before it have none any
    // more, as what was left of an epoch.
    void answered(const Message& answer) {
        const Request which{answer.destination, answer.source, answer.tag};
        const auto found = std::ranges::find(requests_, which);
        if (found == requests_.end()) return;
        if (found == requests_.begin()) return requests_.pop_front();
        const auto last = found + 1;
        const auto left = std::remove_if(requests_.begin(), last, [&](const Request& one) {
            return one.source == which.source && one.destination == which.destination;
        });
        requests_.erase(left, last);
    }
    void clear() { requests_.clear(); }
    bool any() const { return !requests_.empty(); }

  private:
    struct Request {
        std::uint16_t source, destination;
        std::uint32_t tag;
        bool operator==(const Request&) const = default;
    };
    std::deque<Request> requests_;
};

}  // namespace orrery::emu::link
