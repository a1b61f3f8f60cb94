// The commands whose work tools/scenario does.
#pragma once

#include <string>
#include <vector>

namespace orrery::step {

struct RunOptions {
    std::string scenario, output, firmware;
    std::vector<std::string> policy;  // "name=value"
    bool json = false;
    bool print = false;  // what was understood, and no run
};
struct WhatIfCommand {
    std::string trace, firmware, output;
    std::vector<std::string> policy;
    bool json = false;
};

// Exit status of the program: 0, 1 failed or work was left over, 2 a mistake in the command line. Messages go
// to the standard error.
int run_scenario(const RunOptions& options);
int run_whatif(const WhatIfCommand& options);

}  // namespace orrery::step
