// Commands from a file or the command line, without a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tools/step/commands/debugger.h"

namespace orrery::step {

// Lines of a file; "-" is the standard input.
Result<std::vector<std::string>> script_lines(const std::string& file);

// Of several cards the one that commands are about; else the debugger itself.
Debugger& current_of(Debugger& debugger);
std::string prompt_of(const Debugger& debugger);  // "orrery-step> ", "card 1> "

// Runs the lines in order up to `quit`. With `json` each writes one object on a line: {"command", "ok",
// "result"} or {"command", "ok", "error"}. Else each command is shown behind a prompt, and then what it
// answers. After a failed command the rest still runs. False: one failed.
bool run_script(Debugger& first, const std::vector<std::string>& lines, bool json, std::FILE* out);

}  // namespace orrery::step
