// --dry-run
#pragma once

#include "tools/vm/options.h"

namespace orrery::vm {

// Prints what a run would start, as lines for a shell. Starts nothing and makes no file.
int print_commands(const Options& options);

}  // namespace orrery::vm
