// Reads of multicasts at a switch: each member is asked for its bytes, and their elements are combined, in
// the order of the members, into one answer. So its bits are the same whoever answers first. docs/switch.md.
//
// A member is asked as if the card had asked it alone (kPart): its grants judge, and what it says comes back
// here. An answer that does not come, or is none, makes the whole one a fault, once nobody else is waited
// for.
//
// What is kept is bounded for each port. Switch thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "emulator/link/multicast.h"
#include "emulator/link/wire.h"
#include "emulator/memory/reduction.h"

namespace orrery::emu::link {

class Reductions {
  public:
    // Of one port at once: requests, and bytes that their members' answers may have.
    static constexpr std::uint32_t kOfPort = 64;
    static constexpr std::uint64_t kBytesOfPort = 8 << 20;

    // `ended`: next_ended() has something.
    explicit Reductions(std::function<void()> ended) : ended_hook_(std::move(ended)) {}

    // The tag with which the members are asked for what came by that port. 0: there is no room.
    std::uint32_t begin(unsigned port, const Message& request, const Multicast& all);
    // That member is not waited for any more.
    void lose(std::uint32_t tag, unsigned member, Status why);

    // A member's answer, of which nothing is taken unless it is `good`. kAll: it was the last, and whole() is
    // to be sent before end(); said again of the same one.
    enum class Took : std::uint8_t { kNone, kPart, kAll };
    Took take(const Message& part, const Channel& from, bool good);
    struct Whole {
        Message answer{};
        std::span<const std::uint8_t> data{};
    };
    Whole whole(std::uint32_t tag) const;
    void end(std::uint32_t tag);
    // Its last answer went with the channel in which it waited to be sent on.
    void drop(std::uint32_t tag);

    // What one node is asked by another, in either way, may be lost.
    void lose_pair(std::uint32_t node, std::uint32_t other);
    void lose_if(const std::function<bool(std::uint32_t node)>& gone);
    // That multicast of a port has other members from now on.
    void lose_number(unsigned port, std::uint32_t number);
    // Who asked by that port has gone, or begun anew.
    void forget(unsigned port);

    // What has ended without an answer that was the last: who asked is to be told, once.
    struct Ended {
        unsigned port = 0;
        Message request{};
        Status status = kDone;
    };
    std::optional<Ended> next_ended();
    // For tests.
    std::uint32_t used() const;

  private:
    struct Part {
        std::uint16_t node = 0, epoch = 0;
        bool open = true;
        Status status = kDone;
        std::vector<std::uint8_t> data{};  // until its turn has come
    };
    struct Entry {
        bool used = false;
        std::uint32_t round = 1;  // in the upper bits of the tag: an old answer is for nothing
        Message request{};
        ReduceLoop loop = nullptr;
        std::vector<Part> parts{};
        unsigned open = 0;      // parts that are waited for
        unsigned last = 0;      // the one that came last
        unsigned combined = 0;  // so many are in `data`
        std::vector<std::uint8_t> data{};
        std::uint64_t head_ps = 0, arrival_ps = 0;  // the latest
    };
    struct Port {
        std::vector<Entry> entries;
        std::uint64_t bytes = 0;
    };
    static constexpr std::uint32_t kPlaces = kMostSwitchPorts * kOfPort;
    static constexpr std::uint32_t kRounds = 0xffff'ffff / kPlaces;

    static std::uint64_t bytes_of(const Message& request, std::size_t members) {
        return request.bytes * std::uint64_t{members};
    }
    static Status status_of(const Entry& entry);
    Entry* find(std::uint32_t tag);
    const Entry* find(std::uint32_t tag) const { return const_cast<Reductions*>(this)->find(tag); }
    void lose(std::uint32_t tag, Entry& entry, Part& part, Status why);
    template <class Which>
    void lose_parts(Which which);
    void free(std::uint32_t tag);

    std::function<void()> ended_hook_;
    std::array<Port, kMostSwitchPorts> ports_{};
    std::vector<std::uint32_t> ended_;  // tags
};

}  // namespace orrery::emu::link
