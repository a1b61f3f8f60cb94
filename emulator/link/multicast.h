// Multicasts of a card at its switch: numbers that stand for several nodes. What the card sends there once
// the switch sends on to each of them, as if the card had sent it to that node alone: from the card's node,
// in the epoch of that pair, and judged by that node's grants. So a multicast lets nobody do what he could
// not do without. docs/switch.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <orrery/hw/link.h>

#include "emulator/link/wire.h"
#include "emulator/memory/reduction.h"

namespace orrery::emu::link {

static_assert(ORR_MULTICAST_MEMBERS <= 32);

// Of requests only these have no answer.
constexpr bool is_for_all(const Message& message) {
    return message.op == kOpWrite || message.op == kOpSignal;
}

// Of Message::function of a read; nullptr: none.
inline ReduceLoop loop_of(std::uint16_t function) {
    return reduce_loop(function & 0xffu, (function & 0x7fffu) >> 8);
}

struct Multicast {
    struct Member {
        std::uint16_t node = 0;
        std::uint16_t epoch = 0;  // of the pair
        std::uint64_t base = 0;   // where in its VRAM offset 0 is
        std::uint64_t key = 0;    // that its grants want
    };
    std::uint16_t number = 0;
    std::uint16_t epoch = 0;  // of what is for these members; what is in another is lost to them
    std::vector<Member> members;

    bool takes(const Message& message) const { return message.epoch == epoch; }
    // What goes to the nth; the owner judges an offset that wraps.
    Message copy(const Message& message, std::size_t n) const {
        Message copy = message;
        copy.destination = members[n].node;
        copy.epoch = members[n].epoch;
        copy.offset += members[n].base;
        copy.key = members[n].key;
        return copy;
    }
};

// Those of the card at one port.
class Multicasts {
  public:
    // What a kOpMember says. False: there is no room, or that node is a member already.
    bool change(const Message& message) {
        const auto at = std::ranges::find(all_, message.destination, &Multicast::number);
        if (message.value == 0) {
            if (at != all_.end()) all_.erase(at);
            return true;
        }
        const Multicast::Member member{.node = static_cast<std::uint16_t>(message.value & 0xffff),
                                       .epoch = static_cast<std::uint16_t>(message.value >> 16),
                                       .base = message.offset,
                                       .key = message.key};
        if (at == all_.end()) {
            if (all_.size() == ORR_MULTICASTS) return false;
            all_.push_back({.number = message.destination, .epoch = message.epoch, .members = {member}});
            return true;
        }
        if (at->epoch != message.epoch || at->members.size() == ORR_MULTICAST_MEMBERS ||
            std::ranges::find(at->members, member.node, &Multicast::Member::node) != at->members.end())
            return false;
        at->members.push_back(member);
        return true;
    }
    // The next change() ends it.
    const Multicast* find(std::uint32_t number) const {
        const auto at = std::ranges::find(all_, number, &Multicast::number);
        return at == all_.end() ? nullptr : &*at;
    }
    void clear() { all_.clear(); }

  private:
    std::vector<Multicast> all_;
};

}  // namespace orrery::emu::link
