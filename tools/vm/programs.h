// Host-built programs for the guest, with the shared libraries that they load.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/vm/result.h"

namespace orrery::vm {

// The loader that an ELF file asks for, empty if it asks for none (static, or no ELF file at all).
std::string elf_interpreter(std::string_view bytes);

// The loader of this host's programs. No other is ever run to find a file's libraries.
inline constexpr const char* kHostLoader = "/lib64/ld-linux-x86-64.so.2";

// Whether that loader takes this ELF file: a program or a shared library for x86-64.
bool runnable_here(std::string_view bytes);

struct Closure {
    std::vector<std::string> paths;    // absolute; the loader is the first
    std::vector<std::string> missing;  // names of libraries that are not here
};

// The shared libraries of a program, also out of `libraries`. The guest keeps them at the same paths, so that
// the program finds them as it does here, and no environment is needed.
Result<Closure> library_closure(const std::filesystem::path& program, const std::string& interpreter,
                                const std::filesystem::path& libraries = {});

// The words of a command, also of a shell's in `sh -c 'a && b'`.
std::vector<std::string> words_of(const std::vector<std::string>& command);

// Which programs of `directory` the guest gets: orrery's guest tools, and all whose names occur as words in
// the command (so that `sh -c 'a && b'` works too).
std::set<std::string> choose_programs(const std::filesystem::path& directory,
                                      const std::vector<std::string>& command);

}  // namespace orrery::vm
