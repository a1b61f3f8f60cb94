// The files that are made.
#pragma once

#include <string>
#include <vector>

#include "tools/apigen/headers.h"
#include "tools/apigen/releases.h"

namespace orrery::apigen {

// For the linker: a node for each release.
std::string symbol_map(const std::vector<Release>& releases);
// orrery/prof_calls.h: number and parameters of each function, whose place in the list is its number.
std::string calls_header(const std::vector<Function>& functions);
// Name of each function, and the declaration of what carries it out.
std::string entry_points_header(const std::vector<Function>& functions);
// The exported functions.
std::string entry_points_source(const std::vector<Function>& functions);

}  // namespace orrery::apigen
