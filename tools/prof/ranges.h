// What cards did for each range of the program: for what was submitted in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/prof/model.h"
#include "tools/prof/work_sums.h"

namespace orrery::prof {

// Which range a piece of work was submitted in: that was open around its call, on the same thread. Ranges of
// two domains need not lie within each other, so there is an innermost one for each domain.
class RangeTree {
  public:
    explicit RangeTree(const Activity& activity);
    // Of Activity::spans, the innermost of each domain.
    std::vector<std::uint32_t> innermost(const Work& one) const;
    // kNone: it lies in none of its domain.
    std::uint32_t parent(std::uint32_t span) const { return parents_[span]; }
    // For each of Activity::spans, with what lies in ranges within it.
    std::vector<WorkSums> sums() const;

  private:
    const Activity& activity_;
    std::vector<std::uint32_t> parents_;
    // By thread and domain, in the order in which they began.
    std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint32_t>>> tracks_;
};

// The same by name: a range that lies in one of the same name and domain is in that one only.
struct NamedRange {
    std::string name;  // with its domain's, "domain: name"
    std::uint64_t count = 0;
    std::uint64_t host_ns = 0;
    WorkSums sums;
};
// Those in which work was submitted; what took cards most first.
std::vector<NamedRange> named_ranges(const Activity& activity);

}  // namespace orrery::prof
