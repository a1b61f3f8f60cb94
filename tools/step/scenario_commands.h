// The commands whose work tools/step/scenario does.
#pragma once

#include <string>
#include <vector>

namespace orrery::step {

struct RunOptions {
    std::string scenario, output, firmware;
    std::vector<std::string> policy;  // "name=value"
    bool json = false;
};
struct WhatIfCommand {
    std::string trace, firmware;
    std::vector<std::string> policy;
    bool json = false;
};

// Exit status of the program: 0, 1 failed, 2 a mistake in the command line. Messages go to the standard
// error.
int run_scenario(const RunOptions& options);
int run_whatif(const WhatIfCommand& options);

}  // namespace orrery::step
