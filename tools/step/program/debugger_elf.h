// What a debugger is given of an ELF that came with anybody's recording.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::step {

// The same symbols, debug information and addresses, and nothing else: a debugger may run scripts that it
// finds in a file, and opens others that the file names. Code and data are left out; they are read from the
// target. Empty if `elf` cannot be read.
std::vector<std::uint8_t> elf_for_debugger(std::vector<std::uint8_t>& elf);

}  // namespace orrery::step
