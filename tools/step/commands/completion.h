// What could stand at the end of a line that is being typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/step/commands/debugger.h"

namespace orrery::step {

struct Completions {
    std::size_t from = 0;            // where the word begins that they complete
    std::vector<std::string> words;  // sorted, each beginning with what is there
};
Completions complete(const Debugger& debugger, std::string_view line);
// The longest beginning that all have in common.
std::string common_beginning(const std::vector<std::string>& words);

}  // namespace orrery::step
