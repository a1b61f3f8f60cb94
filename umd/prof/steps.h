// What happens within one call of graphs, task graphs and groups: see orrProfStep.
#pragma once

#include <orrery/prof.h>

#include <cstdint>
#include <string>

#include "umd/prof/profiler.h"

namespace orrery::umd {

// Whose call asked for something, as records say it.
struct StepMarks {
    std::uint64_t correlation = 0, external = 0, thread = 0;

    // Of the call that this thread is in.
    static StepMarks here() noexcept;
};

struct StepNote {
    std::uint64_t from = 0, to = 0;  // of cards: its packets, of those that are submitted together
    orrProfStep step{};
    std::string name;
    StepMarks marks;
    std::uint64_t life = 0;  // of cards: of the log in which it was submitted, see WorkLog::life()
};

inline bool steps_wanted() noexcept {
    return prof_has(orrProfWantSteps);
}

// Of a graph, task graph or group of this process.
std::uint64_t next_step_owner() noexcept;
// Of a card, without its packets; of a host's without its times.
orrProfStep make_step(orrProfStepKind kind, orrProfOwner of, std::uint64_t owner, std::uint64_t number,
                      int device) noexcept;
void tell_step(const StepNote& note) noexcept;
// Of the host, which ends now.
void tell_host_step(StepNote note, std::int64_t begin_ns) noexcept;

}  // namespace orrery::umd
