// What cards did for ranges of the program (orrProfRangeWork). A range has its sums, which all hold that may
// still add to them: its thread while it is open, work that was submitted in it and is not told yet, and
// ranges within it. The last that lets go of them ends them, and they are told.
#pragma once

#include <orrery/prof.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "umd/prof/profiler.h"

namespace orrery::umd {

struct RangeSums;

inline bool range_work_wanted() noexcept {
    constexpr std::uint32_t kBoth = orrProfWantRangeWork | orrProfWantWork;
    return (prof_wanted.load(std::memory_order_relaxed) & kBoth) == kBoth;
}

// What its RangeBegin says, and where it begins. Names live as long as the process, but text.
struct RangeBegun {
    const char* text = nullptr;
    const char* domain = nullptr;
    std::uint64_t depth = 0;
    std::uint64_t begin_ns = 0;
    RangeSums* around = nullptr;  // innermost of those of its domain that are open; null: none
};
// For its thread, which holds them until end_range(). Null: there are kMostRanges already.
inline constexpr std::size_t kMostRanges = 65'536;
RangeSums* begin_range(const RangeBegun& begun) noexcept;
void end_range(RangeSums* range, std::uint64_t end_ns, bool popped) noexcept;
std::uint64_t range_number(const RangeSums* range) noexcept;  // 0: of null
std::uint64_t range_depth(const RangeSums& range) noexcept;

// The ranges around a call, innermost of each domain, which it holds.
class RangesAround {
  public:
    explicit RangesAround(std::vector<RangeSums*> innermost) noexcept;
    ~RangesAround();
    RangesAround(const RangesAround&) = delete;
    RangesAround& operator=(const RangesAround&) = delete;
    // Of work that has been told just now.
    void add(const orrProfWork& work) const noexcept;
    // A kernel, a copy or a fill will never be told, or not to its end.
    void miss() const noexcept;

  private:
    const std::vector<RangeSums*> innermost_;
};
// Null: work is in none.
using HeldRanges = std::shared_ptr<const RangesAround>;

// Ranges that have ended are told to those who want it, in that order, by one thread at a time; inside of a
// callback nothing is, as somebody else will. `wait`: all that had ended before, and for who tells some just
// now; false: a callback has not returned for 10 s. Else some thousands at most, and what is left whoever
// comes next tells.
bool tell_ranges_done(bool wait) noexcept;

}  // namespace orrery::umd
