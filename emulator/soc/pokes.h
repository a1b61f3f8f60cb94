// What peers' signals leave for the control core (SOC_POKE_POP): which memory to look at.
//
// Every link port has a lane of its own, so that a peer that signals without end costs its own port and no
// other. A memory that already waits in its lane is not entered again: whoever looks there sees the newest
// value. A lane that is full takes nothing; the port then leaves its next signal where it is, and the link's
// credits hold the sender back. So no poke is ever lost.
#pragma once

#include <array>
#include <cstdint>

#include <orrery/hw/link.h>

namespace orrery::emu {

// Card thread only.
class Pokes {
  public:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    static constexpr unsigned kDepth = 256;

    bool room(unsigned lane) const { return lanes_[lane].count < kDepth; }
    bool empty() const { return waiting_ == 0; }

    // false: the lane is full, and nothing was done.
    bool push(unsigned lane, std::uint64_t memory) {
        Lane& to = lanes_[lane];
        for (unsigned i = 0; i < to.count; ++i) {
            if (to.memory[(to.first + i) % kDepth] == memory) return true;
        }
        if (to.count == kDepth) return false;
        to.memory[(to.first + to.count++) % kDepth] = memory;
        ++waiting_;
        return true;
    }

    // The lanes take turns. kNone: nothing waits. `freed`: the lane that was full until now and is half empty
    // again; else kLanes.
    std::uint64_t pop(unsigned& freed) {
        freed = kLanes;
        if (waiting_ == 0) return kNone;
        while (lanes_[turn_].count == 0)
            turn_ = (turn_ + 1) % kLanes;
        Lane& from = lanes_[turn_];
        const std::uint64_t memory = from.memory[from.first];
        from.first = (from.first + 1) % kDepth;
        --from.count;
        --waiting_;
        if (from.count == kDepth / 2) freed = turn_;
        turn_ = (turn_ + 1) % kLanes;
        return memory;
    }

    void clear() {
        for (Lane& lane : lanes_)
            lane.first = lane.count = 0;
        waiting_ = turn_ = 0;
    }

    // The barrier unit's has room for each slot that is armed, if one is armed only while this holds.
    static constexpr unsigned kBarrierLane = ORR_LINK_MAX_PORTS;
    static constexpr unsigned kLanes = ORR_LINK_MAX_PORTS + 1;
    static_assert(ORR_BARRIER_SLOTS <= kDepth);
    bool room_to_arm() const { return lanes_[kBarrierLane].count <= kDepth - ORR_BARRIER_SLOTS; }

  private:
    struct Lane {
        std::array<std::uint64_t, kDepth> memory{};
        unsigned first = 0;
        unsigned count = 0;
    };
    std::array<Lane, kLanes> lanes_;
    unsigned turn_ = 0;
    unsigned waiting_ = 0;
};

}  // namespace orrery::emu
