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

// What the guest says of its symbols with --gdb. Anything may run in a guest, and gdb evaluates what stands
// in its commands, so only plain names and numbers are kept, and not without a limit.
class GuestSymbols {
  public:
    // A line of kallsyms; one that gdb has no use for is passed over.
    Result<void> kernel(const std::string& line);
    // Name and address of a section of orrery.ko, as in ".text 0xffffffffc0000000".
    Result<void> section(const std::string& name_and_address);

    // symbol_file() of the lines so far, which it forgets; empty if there were none.
    std::string take_symbol_file();
    const std::string& sections() const { return sections_; }  // as add-symbol-file takes them

  private:
    std::string kallsyms_;
    std::string sections_;
    std::size_t section_count_ = 0;
};

// The commands with which gdb begins. `sections` are those of orrery.ko, as add-symbol-file takes them.
std::string gdb_script(const std::filesystem::path& symbols, const std::filesystem::path& socket,
                       const std::filesystem::path& module, const std::string& sections);

}  // namespace orrery::vm
