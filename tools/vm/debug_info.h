// What a guest carries without ever reading it: the larger part of a module and of a program, which it would
// take seconds to unpack under TCG.
#pragma once

#include <string>
#include <string_view>

namespace orrery::vm {

// An ELF of 64 bits without its debug information; symbols and all that is loaded stay as they are, and so do
// the sections' numbers. Anything else, and an ELF that makes no sense, comes back unchanged.
std::string without_debug_info(std::string_view elf);

}  // namespace orrery::vm
