// A replay as gdb sees it.
#pragma once

#include <string>

namespace orrery::step {

// Serves until gdb goes away. `elf` is as for Program::find(). Exit status of the program.
int serve_gdb(const std::string& trace, const std::string& elf, unsigned port);

}  // namespace orrery::step
