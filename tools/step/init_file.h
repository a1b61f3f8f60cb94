// What people want at every prompt: commands of $XDG_CONFIG_HOME/orrery/step, and of .orrery-step in the
// current folder.
#pragma once

#include <string>
#include <vector>

namespace orrery::step {

// Those that are there. A file in the current folder counts only if it is the user's own and nobody else can
// write to it; `note` says so of one that is left out.
std::vector<std::string> init_files(std::string& note);

}  // namespace orrery::step
