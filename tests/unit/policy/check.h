// What must hold for every run, whatever the firmware decides in detail.
#pragma once

#include <set>
#include <string>

#include "tests/unit/policy/history.h"

namespace orrery::policy {

struct Limits {
    // A queue whose next packet could start, while an engine of its kind is free or works for a lower class,
    // starts within this time.
    Ps grip_ps = 20 * scenario::kUs;
    bool priorities = true;  // false: only that no engine is idle while somebody could use it
    bool grips = true;       // false: something else than classes decides too, such as gangs and quotas
    // Queues that may stop with ORR_QERR_FIRMWARE: each does all that it starts before that once all the
    // same.
    std::set<std::uint32_t> may_fail;
};

struct Verdict {
    std::string wrong;  // the first thing that is wrong; empty: nothing
    Ps longest_grip = 0;
    std::uint64_t starts = 0, preemptions = 0, decisions = 0;
    std::uint64_t gangs_resumed = 0;
};

// No packet lost or done twice; order within a queue, with all that holds packets back; one job an engine at
// a time; gangs start as a whole; priorities; no idle engine while somebody could use it.
Verdict check(const scenario::Scenario& scenario, const History& history, const Limits& limits);

}  // namespace orrery::policy
