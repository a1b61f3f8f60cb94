// --gdb: what gdb needs to debug the guest's kernel.
#pragma once

#include <filesystem>
#include <string>

#include "tools/vm/result.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

// An ELF file without code whose symbols are those of /proc/kallsyms: functions and data, also of modules.
std::string symbol_file(const std::string& kallsyms);

// vmlinux of this kernel, where builds and Debian's packages put it; empty if there is none.
std::filesystem::path find_vmlinux(const Kernel& kernel);

// The commands with which gdb begins. `sections` are those of orrery.ko, as add-symbol-file takes them.
std::string gdb_script(const std::filesystem::path& symbols, const std::filesystem::path& socket,
                       const std::filesystem::path& module, const std::string& sections);

}  // namespace orrery::vm
