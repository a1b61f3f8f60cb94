// What must hold for every run, whatever the firmware decides in detail.
#pragma once

#include <string>

#include "tests/unit/policy/history.h"

namespace orrery::policy {

struct Limits {
    // A queue whose next packet could start, while an engine of its kind is free or works for a lower class,
    // starts within this time.
    Ps grip_ps = 20 * scenario::kUs;
    bool priorities = true;  // false: only that no engine is idle while somebody could use it
};

struct Verdict {
    std::string wrong;  // the first thing that is wrong; empty: nothing
    Ps longest_grip = 0;
    std::uint64_t starts = 0, preemptions = 0, decisions = 0;
};

// No packet lost or done twice; order within a queue, with all that holds packets back; one job an engine at
// a time; priorities; no idle engine while somebody could use it.
Verdict check(const scenario::Scenario& scenario, const History& history, const Limits& limits);

}  // namespace orrery::policy
