// Text with names in it that come from a file of anybody's, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace orrery::text {

// Control characters become '?', except ends of lines, tabs, and the colours of Style: a terminal does what
// others tell it to.
std::string shown(std::string_view text);

}  // namespace orrery::text
