// What graphs, task graphs and groups did within calls, as rows of a timeline and as sums; and who came last
// to barriers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/prof/model.h"

namespace orrery::prof {

inline bool on_host(const StepRecord& step) {
    return step.device < 0;
}
inline StepKind kind_of(const StepRecord& step) {
    return static_cast<StepKind>(step.kind);
}
// "kernel", "barrier": for people.
const char* name_of(StepKind kind);
// Of its time something is known: it is no barrier at which nobody was waited for.
inline bool has_time(const StepRecord& step) {
    return on_host(step) || step.end_ps != 0;
}

// Steps that lie one behind the other.
struct StepRow {
    std::int32_t device = -1;  // -1: the host's, in its time; else the card's, in its own
    std::string title{};       // "graph 1, lane 2"
    std::vector<const StepRecord*> steps{};
};
// The host's first. Of devices only those that the activity has.
std::vector<StepRow> step_rows(const Activity& activity);

// Of one owner, kind and name.
struct StepSums {
    std::string owner;  // "task graph 1"
    StepKind kind{};
    std::string name;
    bool host = false;
    std::uint64_t count = 0, total_ps = 0, longest_ps = 0;  // times of those that have one
    std::uint64_t timed = 0;
};
// By owner, what took most first.
std::vector<StepSums> step_sums(const Activity& activity);

// Who came last to the barriers of groups, in streams: who waited least. Known as far as the steps of all
// members are in the profile.
class BarrierLasts {
  public:
    explicit BarrierLasts(const Model& model);
    // The rank; nothing: not known, or the step is no such barrier.
    std::optional<std::uint64_t> last(const Activity& activity, const StepRecord& step) const;

  private:
    // The process, of groups that are of one; the owner, the round.
    using Key = std::tuple<std::size_t, std::uint64_t, std::uint64_t>;
    Key key_of(const Activity& activity, const StepRecord& barrier) const;

    const Model& model_;
    std::map<Key, std::uint64_t> lasts_;
};

// To how many of the process's barriers a rank came last, of those whose last one is known.
struct LastRank {
    std::string owner;  // "group 1", as StepSums has it: rank 1 of another one is somebody else
    std::uint64_t rank = 0, count = 0;
};
// By owner, then by rank.
std::vector<LastRank> last_ranks(const Activity& activity, const BarrierLasts& lasts);

}  // namespace orrery::prof
