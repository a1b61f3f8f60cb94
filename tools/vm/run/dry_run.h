// --dry-run and --picture
#pragma once

#include "tools/vm/options.h"

namespace orrery::vm {

// Prints what a run would start, as lines for a shell. Starts nothing and makes no file.
int print_commands(const Options& options);

// Draws the cards of a run and their links. Starts nothing.
int draw_topology(const Options& options);

}  // namespace orrery::vm
