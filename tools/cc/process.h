// Running other programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace orrery::cc {

// First of the names that is an executable in PATH.
std::optional<std::string> find_program(const std::vector<std::string>& names);

// Runs it with our standard streams and waits. Its exit status; 128 + signal if a signal ended it; 127 if it
// could not be started.
int run(const std::vector<std::string>& command);

}  // namespace orrery::cc
