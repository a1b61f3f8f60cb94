// What cards did for each range of the program: for what was submitted in it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/prof/counter_fields.h"
#include "tools/prof/model.h"

namespace orrery::prof {

// Kernels, copies and fills of a range, with what they counted. Nothing is estimated: what was not counted is
// in the numbers of work and not in those of counters.
struct RangeSums {
    std::uint64_t work = 0, kernels = 0, copies = 0;  // the parts of a kernel that was preempted are one
    std::uint64_t counted = 0;
    std::uint64_t kernel_ps = 0, copy_ps = 0;  // model time, summed
    std::array<std::uint64_t, kCounterFields.size()> counters{};

    void add(const Work& one);
    void add(const RangeSums& others);
    std::uint64_t operator[](std::uint64_t WorkCountersRecord::* field) const;
};

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
    std::vector<RangeSums> sums() const;

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
    RangeSums sums;
};
// Those in which work was submitted; what took cards most first.
std::vector<NamedRange> named_ranges(const Activity& activity);

}  // namespace orrery::prof
