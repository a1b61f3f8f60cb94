// What a recording says about the world outside the control core: who asked for what, and when. For what-ifs.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "tools/step/scenario/image.h"
#include "tools/step/scenario/runner.h"

namespace orrery::scenario {

struct Extract {
    std::string program, build_id;
    Image image;
    Scenario scenario;
    Result recorded;                 // jobs and decisions as they were, times from the scenario's start
    Ps start = 0;                    // where that is in the recording
    std::vector<std::string> notes;  // what was taken over inexactly
};

// Errors are one line with the file and what to do.
std::expected<Extract, std::string> extract(const std::string& trace);

}  // namespace orrery::scenario
