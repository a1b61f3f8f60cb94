// What happened before what in launches of kernels that run side by side; groups have numbers of their own in
// all of them.
//
// The time of a work-item is cut into segments: a new one begins where others may learn of what it did so
// far, at a barrier of its group and when it releases by an atomic or a fence. A segment is a number; which
// group, item and phase (barriers that the group has passed) it stands for is kept in runs, of which a launch
// without barriers has one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace orrery::emu {

// Who did an access, and when.
struct Moment {
    std::uint64_t group = 0;
    std::uint32_t item = 0;
    std::uint32_t phase = 0;
    std::uint32_t segment = 0;
};

class Segments {
  public:
    static constexpr std::uint32_t kMost = (1u << 29) - 1;

    // One for each of the group's items, the first of which is given. Nothing: there are no more numbers.
    std::optional<std::uint32_t> add_group(std::uint64_t group, std::uint32_t items, std::uint32_t phase);
    // One for an item that has released.
    std::optional<std::uint32_t> add_item(std::uint64_t group, std::uint32_t item, std::uint32_t phase);
    Moment of(std::uint32_t segment) const;
    // All that there are have lower numbers.
    std::uint32_t next() const { return next_; }
    std::uint64_t bytes() const { return runs_.capacity() * sizeof(Run); }
    // Nobody asks for one of them any more.
    void forget() { runs_ = std::vector<Run>(); }

  private:
    struct Run {
        std::uint64_t group;  // the first
        std::uint32_t first;  // segment
        std::uint32_t phase;
        std::uint32_t item;   // all are its; kAll: groups follow each other, each with all its items
        std::uint32_t items;  // of a group
    };
    static constexpr std::uint32_t kAll = ~0u;
    std::optional<std::uint32_t> take(std::uint32_t count);

    std::uint32_t next_ = 0;
    std::vector<Run> runs_;
    mutable std::size_t last_ = 0;  // looked up
};

// What an item, a group or a location that is used for synchronisation knows of others.
class Clock {
  public:
    bool empty() const { return floor_ == 0 && items_.empty() && groups_.empty(); }
    bool knows(const Moment& past) const;
    void learn(const Clock& other, const Segments& segments);
    // Of the host, with an allowance for what its library keeps for each entry.
    std::uint64_t bytes() const { return entries() * 64; }
    std::size_t entries() const { return items_.size() + groups_.size(); }
    // All that there was until now.
    void learn_all(const Segments& segments);
    // All that `now` itself has done, and its group before its phase.
    void learn(const Moment& now, const Segments& segments);

  private:
    // Beyond so many entries it knows all that there was until then: races may be missed, none is invented.
    static constexpr std::size_t kMost = 256;
    static constexpr unsigned kItemBits = 16;
    void bound(const Segments& segments);

    std::uint32_t floor_ = 0;                        // segments below it
    std::map<std::uint64_t, std::uint32_t> items_;   // group << kItemBits | item -> last segment
    std::map<std::uint64_t, std::uint32_t> groups_;  // group -> phases below this one
};

}  // namespace orrery::emu
