// A replay as gdb sees it.
#pragma once

#include <string>

namespace orrery::step {

// Serves until gdb goes away. Exit status of the program.
int serve_gdb(const std::string& trace, unsigned port);

}  // namespace orrery::step
