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
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/step/scenario/metrics.h"
#include "tools/step/scenario/runner.h"

namespace orrery::scenario {

struct WhatIfOptions {
    std::string firmware;  // an image or ELF; empty: the one in the recording
    std::vector<std::pair<std::string, std::uint64_t>> policy;  // name and value, see ORR_POLICY_LIST
};

struct WhatIf {
    std::string trace, recorded_firmware, firmware;  // build ids
    Scenario scenario;                               // the arrivals, as taken from the recording
    Ps start = 0;                                    // times count from here in the recording
    std::vector<std::string> notes;                  // what was taken over inexactly
    // "Before" is the recording itself, "after" the scenario with the other firmware or policy.
    std::vector<Decision> decisions_before, decisions_after;
    std::optional<std::size_t> first_different;  // index in both lists; nothing: all the same
    Metrics before, after;
};

// Errors are one line that says what to do.
std::expected<WhatIf, std::string> what_if(const std::string& trace, const WhatIfOptions& options);

// A table for people; the same for programs.
std::string to_text(const WhatIf& result);
nlohmann::json to_json(const WhatIf& result);

}  // namespace orrery::scenario
