// Host-built programs for the guest, with the shared libraries that they load.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tools/vm/result.h"

namespace orrery::vm {

// The loader that an ELF file asks for, empty if it asks for none (static, or no ELF file at all).
std::string elf_interpreter(const std::string& bytes);

// Absolute paths of the shared libraries of a program and of its loader. The guest keeps them at the same
// paths, so that the program finds them as it does here, and no environment is needed.
Result<std::vector<std::string>> library_closure(const std::filesystem::path& program,
                                                 const std::string& interpreter);

// Which programs of `directory` the guest gets: orrery's guest tools, and all whose names occur as words in
// the command (so that `sh -c 'a && b'` works too).
std::set<std::string> choose_programs(const std::filesystem::path& directory,
                                      const std::vector<std::string>& command);

}  // namespace orrery::vm
