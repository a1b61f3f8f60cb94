// Which release brought which function: a file for each release, named by its version, a name a line.
#pragma once

#include <string>
#include <vector>

#include "tools/apigen/headers.h"

namespace orrery::apigen {

struct Release {
    std::string version;  // "0.2"
    std::vector<std::string> functions;
};

// Oldest first.
std::vector<Release> read_releases(const std::string& folder);

// Every function is in one release, and no release's function has gone.
void check_releases(const std::vector<Release>& releases, const std::vector<Function>& functions,
                    const std::string& folder);

}  // namespace orrery::apigen
