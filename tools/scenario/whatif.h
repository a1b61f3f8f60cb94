// What if: the arrivals of a recording once more, with another firmware or another policy, and what that
// changes.
//
// From the recording come the contexts and queues, the doorbells, commands and pokes with their model times,
// the packets as the ring slots delivered them, and what each job asked of its engine. They become a scenario
// (scenario.h) for one card, which runs on a real card. docs/scenarios.md says what cannot be taken over
// exactly.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/records/statistics.h"
#include "tools/scenario/policy.h"
#include "tools/scenario/scenario.h"

namespace orrery::scenario {

struct WhatIfOptions {
    std::string firmware;  // an image or ELF; empty: the one in the recording
    Policy policy;
    std::string record;  // a file for the recording of what was played; empty: none
};

// A decision over an engine: turns of the core depend on when it looks, and say little.
struct EngineDecision {
    std::size_t number = 0;              // among all decisions of its recording, from 0
    const records::Record* record = {};  // of the side's history
    std::size_t queue = kNoQueue;        // of the scenario
    static constexpr std::size_t kNoQueue = ~std::size_t{0};
    bool same_choice(const EngineDecision& other) const;
};

// The recording, or what was played. Histories do not move: others point into them.
struct WhatIfSide {
    std::unique_ptr<records::History> history;
    records::Statistics figures;
    std::vector<EngineDecision> decisions;
    // Of the scenario's queue; all zero if it had no work.
    records::QueueStatistics queue(std::size_t number) const;
};

struct WhatIf {
    std::string trace, recorded_firmware, firmware;  // build ids
    Scenario scenario;                               // the arrivals, as taken from the recording
    // What was played has other times than the recording by this much; nearly always 0.
    std::int64_t later_ps = 0;
    std::vector<std::string> notes;  // what was taken over inexactly
    WhatIfSide before, after;
    std::optional<std::size_t> first_different;  // index in both lists of decisions; nothing: all the same

    // The recording got all its work done, and what was played did not. What the recording itself leaves
    // over is no failure of the other policy.
    bool fell_short() const { return before.figures.done && !after.figures.done; }
};
inline constexpr const char* kFellShort = "not all work was done when the what-if ended";

// Errors are one line that says what to do.
std::expected<WhatIf, std::string> what_if(const std::string& trace, const WhatIfOptions& options);

// A table for people; the same for programs.
std::string to_text(const WhatIf& result);
nlohmann::ordered_json to_json(const WhatIf& result);

}  // namespace orrery::scenario
