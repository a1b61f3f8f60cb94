// From C++ files, objects and archives to a module that orrModuleLoad takes.
#pragma once

#include <string>
#include <vector>

namespace orrery::cc {

struct Options {
    std::vector<std::string> sources;
    std::vector<std::string> link_inputs;  // objects, archives, -l, -L: in their order
    std::string output;                    // empty: after the first source
    std::string optimisation = "-O2";
    std::string march = "-march=rv64imafdc";
    std::vector<std::string> passed_on;  // -g, -I, -D, -W..., -std=...
    bool list_headers = false;           // -MD
    std::string dependencies;            // -MF: file for the list; empty: beside the output
    bool objects_only = false;           // -c
    bool save_temps = false;
    bool verbose = false;
};

// Exit status of orrery-cc: 0, the compiler's or linker's own, 1 if the result is not a module, 127 if a tool
// is missing. Explains itself on standard error.
int compile(const Options& options);

}  // namespace orrery::cc
