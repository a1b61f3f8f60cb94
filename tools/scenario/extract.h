// What a recording says about the world outside the control core: who asked for what, and when. For what-ifs.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "tools/scenario/image.h"
#include "tools/scenario/runner.h"

namespace orrery::scenario {

struct Extract {
    std::string program, build_id;
    Image image;
    Scenario scenario;  // starts when the recorded arrivals did, so that their times are the same
    std::vector<records::Record> records;  // all that the firmware told
    Ps end = 0;                            // of the recording, in model time
    std::vector<std::string> notes;        // what was taken over inexactly
};

// Errors are one line with the file and what to do.
std::expected<Extract, std::string> extract(const std::string& trace);

}  // namespace orrery::scenario
