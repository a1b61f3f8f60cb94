// What cards counted while a command ran, as `perf stat -a` does it.
#pragma once

#include <string>
#include <vector>

#include "tools/cards/cards.h"

namespace orrery::prof {

// Of what went on between two looks at the same cards.
std::string counted_between(const cards::System& before, const cards::System& after);

// The exit status: the command's. Prints to stderr, or to a file if it has a name.
int run_stat(const std::vector<std::string>& command, const std::string& file);

}  // namespace orrery::prof
