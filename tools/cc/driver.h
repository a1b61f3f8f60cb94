// From one C++ file to a module that orrModuleLoad takes.
#pragma once

#include <string>
#include <vector>

namespace orrery::cc {

struct Options {
    std::string source;
    std::string output;
    std::string optimisation = "-O2";
    std::vector<std::string> passed_on;  // -g, -I, -D, -W..., -std=...
    std::string dependencies;            // file for a list of the headers; empty: none
    bool save_temps = false;
    bool verbose = false;
};

// Exit status of orrery-cc: 0, the compiler's or linker's own, 1 if the result is not a module, 127 if a tool
// is missing. Explains itself on standard error.
int compile(const Options& options);

}  // namespace orrery::cc
