// Tools that the environment names (ORR_PROF_TOOL).
#pragma once

#include <orrery/prof.h>

#include <string>

#include "umd/winsys/error.h"

namespace orrery::umd {

// At the first call of the process; then it does nothing. It loads and starts the tools; what goes wrong is a
// line on stderr each, and the process goes on. Other threads wait for that, and no longer than 10 s.
void start_tools() noexcept;

// What the library at this path exports, which stays loaded. The text of a failure names no path.
Result<const orrProfTool*> load_tool(const std::string& path);

}  // namespace orrery::umd
