// Kernel modules for the guest: what a module needs, in the order of loading, uncompressed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/vm/result.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

// modules.dep of one kernel.
class ModuleIndex {
  public:
    static ModuleIndex parse(const std::string& modules_dep);

    // Adds the files (relative to the module directory) that `name` needs, and its own, in the order of
    // loading, leaving out those that `order` holds already. A name that is not there is taken as built in:
    // false.
    bool resolve(const std::string& name, std::vector<std::string>& order) const;

  private:
    std::map<std::string, std::vector<std::string>, std::less<>> load_order_;  // by module name
};

// The names in the "depends=" entry of a module file's .modinfo.
std::vector<std::string> module_dependencies(const std::string& elf);

// "drivers/gpu/drm/drm-exec.ko.xz" -> "drm_exec"
std::string module_name(const std::string& path);

// One module of the tree, uncompressed; kept in the tree's cache, because the guest would take seconds for
// it.
Result<std::filesystem::path> uncompressed(const Tree& tree, const Kernel& kernel,
                                           const std::string& relative);

Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace orrery::vm
