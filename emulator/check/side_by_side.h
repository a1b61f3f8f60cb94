// What launches of one address space that are in flight together have in common: memory that they all may
// touch, and what happened before what. Two of them are in no order, whichever streams and events there are,
// if the second began before the first had ended; those that did not meet may be in one, and are taken to be.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "emulator/check/clock.h"
#include "emulator/check/shadow.h"

namespace orrery::emu {

// Of the host's memory, for all checks of a card together: kernels choose how much they need.
struct CheckRoom {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    std::function<bool()> spare;  // gives some back that may not be needed again; false: there is none
};

// What was released, by the granule of the location. Beyond so many locations the others are as one.
class Released {
  public:
    // Nothing: nobody released there.
    const Clock* at(std::uint64_t granule) const;
    Clock& to(std::uint64_t granule);
    void overwrite(std::uint64_t granule) { clocks_.erase(granule); }
    std::uint64_t bytes() const;

  private:
    static constexpr std::size_t kMost = 256;
    std::unordered_map<std::uint64_t, Clock> clocks_;
    Clock others_;
};

class SideBySide {
  public:
    // Of a group's number; the launch's stands above.
    static constexpr unsigned kGroupBits = 31;

    // `room` outlives it; nullptr: there is no limit.
    explicit SideBySide(CheckRoom* room) : room_(room) {}
    ~SideBySide() { take(0); }
    SideBySide(const SideBySide&) = delete;
    SideBySide& operator=(const SideBySide&) = delete;

    // Gives the launch's number.
    std::uint64_t begin();
    // It has ended, or is saved: then nobody knows whether it goes on.
    void end(std::uint64_t launch);
    void go_on(std::uint64_t launch) { launches_[launch].end = kRuns; }
    // `past` had ended when `present` began.
    bool ordered(std::uint64_t past, std::uint64_t present) const {
        return launches_[past].end < launches_[present].begin;
    }
    // False: it has so much already that the next launch does better to begin anew.
    bool takes_more() const;

    unsigned place_of(std::uint64_t pc);
    std::uint64_t pc_of(unsigned place) const { return pcs_[place]; }

    std::uint64_t bytes() const;
    // Tells its room what it takes now.
    void look() { take(gave_up_ ? 0 : bytes()); }
    bool gave_up() const { return gave_up_; }
    void give_up();

    Segments segments;
    Shadow memory;
    Released released;

  private:
    static constexpr std::uint64_t kRuns = ~std::uint64_t{0};
    static constexpr std::size_t kMostLaunches = 4096;
    struct Launch {
        std::uint64_t begin = 0, end = kRuns;
    };
    void take(std::uint64_t bytes);

    CheckRoom* const room_;
    std::uint64_t taken_ = 0;  // of it
    std::uint64_t now_ = 0;    // of beginnings and ends
    std::vector<Launch> launches_;
    std::unordered_map<std::uint64_t, unsigned> places_;
    std::vector<std::uint64_t> pcs_{0};
    bool gave_up_ = false;
};

}  // namespace orrery::emu
