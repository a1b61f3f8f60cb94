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

    // The file of one module, relative to the module directory; empty if it is not there.
    std::string file(const std::string& name) const;

  private:
    std::map<std::string, std::vector<std::string>, std::less<>> load_order_;  // by module name
};

// The names in the "depends=" entry of a module file's .modinfo.
std::vector<std::string> module_dependencies(const std::string& elf);

// The release in its "vermagic=" entry, empty if it has none.
std::string module_release(const std::string& elf);

// "drivers/gpu/drm/drm-exec.ko.xz" -> "drm_exec"
std::string module_name(const std::string& path);

// The bytes of one module of a kernel, uncompressed, because the guest would take seconds for it. Those of
// the tree's kernels are kept in the tree's cache.
Result<std::string> uncompressed(const Tree& tree, const Kernel& kernel, const std::string& relative);

}  // namespace orrery::vm
