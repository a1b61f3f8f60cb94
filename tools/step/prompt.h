// The interactive prompt: line editing, history over sessions, completion.
#pragma once

#include <functional>

#include "tools/step/commands/debugger.h"

namespace orrery::step {

// Until quit or the end of the input. Exit status of the program.
int run_prompt(Debugger& debugger, const std::function<void()>& begin);

}  // namespace orrery::step
