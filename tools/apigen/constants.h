// Macros of the headers that stand for a value.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace orrery::apigen {

// Those without parameters that the headers in `folder`/orrery define, by name, as they are written.
using Macros = std::map<std::string, std::string>;
Macros read_macros(const std::string& folder);

// Those of a version and those that stand for an attribute promise no value.
bool is_constant(const std::string& name, const std::string& text);

// "0.2", as the headers say.
std::string version_of(const Macros& macros);

// What they are, by name; only of constants of an integer type.
std::map<std::string, std::string> evaluate(const std::string& folder, const std::vector<std::string>& names);

}  // namespace orrery::apigen
