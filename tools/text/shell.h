// Words of a command line.
#pragma once

#include <string>

namespace orrery::text {

// A word as a POSIX shell reads it back.
std::string shell_quote(const std::string& word);

}  // namespace orrery::text
