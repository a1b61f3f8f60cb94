// Which modules the guest loads: what its devices need, what orrery.ko needs, and orrery.ko.
#pragma once

#include <string>
#include <vector>

#include "tools/vm/options.h"
#include "tools/vm/result.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

struct GuestModule {
    std::string name;
    std::string bytes;
};

struct GuestModules {
    std::vector<GuestModule> first;     // in the order of loading
    std::filesystem::path orrery_file;  // on the host
    std::string orrery;                 // its bytes; empty with --no-module
};

Result<GuestModules> choose_modules(const Options& options, const Tree& tree, const Kernel& kernel);

}  // namespace orrery::vm
