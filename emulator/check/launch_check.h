// Checks the accesses of one launch of a kernel (orrery-card --check).
//
// A race is two accesses to the same byte by different items, one of them a write, not both atomic, that
// nothing orders: no barrier of their group, and no release by one that the other has acquired. It is found
// from that order alone, not from the one in which items happen to run here. docs/kernels.md says what
// orders.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "emulator/api/checks.h"
#include "emulator/check/checked_memory.h"
#include "emulator/check/clock.h"
#include "emulator/check/finding.h"
#include "emulator/check/shadow.h"
#include "emulator/check/side_by_side.h"

namespace orrery::emu {

class LaunchCheck {
  public:
    // `what`: of kCheckRace and kCheckMemory. `items`: of a group. `room` and `memory` outlive it; nullptr:
    // there is no limit, and nothing is known of card memory. `asid`: the launch's. `beside`: with which
    // others it may race; nullptr: none.
    LaunchCheck(unsigned what, std::uint32_t items, std::uint64_t local_bytes, CheckRoom* room = nullptr,
                CheckedMemory* memory = nullptr, std::uint32_t asid = 0,
                std::shared_ptr<SideBySide> beside = nullptr)
        : what_(what),
          items_(items),
          local_bytes_(local_bytes),
          room_(room),
          memory_(memory),
          asid_(asid),
          beside_(beside != nullptr ? std::move(beside) : std::make_shared<SideBySide>(room)),
          launch_(beside_->begin()) {}
    ~LaunchCheck();
    LaunchCheck(const LaunchCheck&) = delete;
    LaunchCheck& operator=(const LaunchCheck&) = delete;

    // A work-group between its first item's start and its end.
    struct Group;
    Group& begin(std::uint64_t group);
    // It was saved and goes on.
    Group& go_on(std::uint64_t group);
    void end(Group& group);
    // An item starts, on the core's stack or on its own.
    void start_item(Group& group, bool core_stack);
    void end_item(Group& group, std::uint32_t item);
    // What it cost, in joined entries of clocks: at most kMostJoined and the items. Beyond, the group knows
    // all that there was.
    std::uint64_t barrier(Group& group);
    static constexpr std::uint64_t kMostJoined = 4096;
    // `stack`: the item's stack pointer.
    void access(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t stack,
                const DoneAccess& access);

    // Each pair of places once.
    static constexpr std::size_t kMostFindings = 64;
    const std::vector<Finding>& findings() const { return findings_; }
    // With those that there was no room for.
    std::uint64_t found() const { return found_; }
    // Of the host; and of the memory that was touched.
    std::uint64_t shadow_bytes() const;
    std::uint64_t most_shadow_bytes() const { return most_bytes_; }
    std::uint64_t touched_bytes() const;
    std::uint64_t most_touched_bytes() const { return most_touched_; }
    // There was no more room, or there were more segments than numbers: what came then was not checked.
    bool gave_up() const { return gave_up_ || beside_->gave_up(); }
    // Gives its room back; what it has found stays.
    void give_up();
    // It is saved, and goes on.
    void pause() { beside_->end(launch_); }
    void go_on() { beside_->go_on(launch_); }
    // Takes as much of the room as it needs, or gives up. It does so itself once in kLook events.
    void look();
    static constexpr unsigned kLook = 4096;

  private:
    struct ItemState {
        Clock knows;  // beside what its group knows
        Clock read;   // what atomic reads have seen, for the next fence that acquires
        std::optional<std::uint32_t> segment;  // beside that of its group's phase
        bool fenced = false;                   // a fence that releases stands before its atomics
    };
    struct Load {
        std::uint32_t item = 0;
        std::uint64_t pc = 0;
        std::uint64_t va = 0, bytes = 0;
    };

    Group& add(std::uint64_t group);
    Moment now(const Group& group, std::uint32_t item) const;
    bool ordered(const Group& group, const Moment& past, const Moment& present) const;
    ItemState& state(Group& group, std::uint32_t item);
    Shadow& shadow_of(Group& group, std::uint64_t va);
    void synchronise(Group& group, std::uint32_t item, const DoneAccess& access);
    void fence(Group& group, std::uint32_t item, const DoneAccess& access);
    void release(Group& group, std::uint32_t item, std::uint64_t va);
    // A load whose kind the next instruction tells.
    void settle(Group& group, bool atomic);
    void race(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t va, std::uint64_t bytes,
              AccessKind kind);
    void race_in_granule(Group& group, const Moment& present, PageShadow& page, std::uint64_t va,
                         unsigned part, unsigned place, AccessKind kind);
    void memory(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t stack,
                const DoneAccess& access);
    void check(Group& group, std::uint32_t item, std::uint64_t pc, std::uint64_t stack,
               const DoneAccess& access);
    std::uint64_t own_bytes() const;
    void give_up_all();
    void count();
    void find(const Finding& finding);
    void measure();

    const unsigned what_;
    const std::uint32_t items_;
    const std::uint64_t local_bytes_;
    CheckRoom* const room_;
    CheckedMemory* const memory_;
    const std::uint32_t asid_;
    std::uint64_t taken_ = 0;  // of it
    unsigned events_ = 0;      // since the last look
    const std::shared_ptr<SideBySide> beside_;
    const std::uint64_t launch_;             // among those
    std::map<std::uint64_t, Group> groups_;  // those that have begun and not ended
    Released& released_at(Group& group, std::uint64_t va);
    std::vector<Finding> findings_;
    std::set<std::array<std::uint64_t, 3>> told_;
    std::uint64_t found_ = 0;
    std::uint64_t most_bytes_ = 0, most_touched_ = 0;
    bool no_numbers_ = false;  // for segments
    bool gave_up_ = false;
};

struct LaunchCheck::Group {
    std::uint64_t number = 0;  // among those of all launches beside this one
    std::uint32_t phase = 0;
    std::uint32_t first_segment = 0;  // of this phase, that of item 0
    Shadow own;                       // of its memory and its stacks
    Clock knows;
    std::map<std::uint32_t, ItemState> items;  // those that synchronise in this phase
    std::optional<Load> load;    // the last access, if it is a load that may turn out to be atomic
    Released released;           // in memory of its own
    bool store_follows = false;  // the last access was a fence that releases
    bool complete = true;        // seen from its beginning
};

}  // namespace orrery::emu
