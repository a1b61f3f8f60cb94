// orrery-cc: compiles kernels for Orrery cards. The command line follows that of other compilers.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "tools/cc/driver.h"

namespace {

constexpr const char* kHelp =
    "usage: orrery-cc [options] FILE.cc\n"
    "Compiles a C++ kernel file to a module for orrModuleLoad.\n"
    "\n"
    "  -o FILE        the module (default: FILE.elf)\n"
    "  -O0 ... -O3, -Os, -Oz   optimisation (default: -O2)\n"
    "  -g             debug information\n"
    "  -I DIR         look for headers there\n"
    "  -D NAME[=V]    define a macro\n"
    "  -W..., -std=...  passed on to the compiler\n"
    "  -MD            write the headers that the file includes to FILE.elf.d, for build tools\n"
    "  -MF FILE       the same, to FILE\n"
    "  --save-temps   keep FILE.elf.s and FILE.elf.o\n"
    "  -v             show the commands\n";

int usage(const std::string& problem) {
    fmt::print(stderr, "orrery-cc: {}\n{}", problem, kHelp);
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    orrery::cc::Options options;
    bool default_dependencies = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help" || argument == "-h") {
            fmt::print("{}", kHelp);
            return 0;
        }
        if (argument == "-o" || argument == "-I" || argument == "-D" || argument == "-MF") {
            if (i + 1 == argc) return usage(fmt::format("{} needs a value", argument));
            const std::string value = argv[++i];
            if (argument == "-o") {
                options.output = value;
            } else if (argument == "-MF") {
                options.dependencies = value;
            } else {
                options.passed_on.push_back(std::string(argument) + value);
            }
        } else if (argument == "-MD") {
            default_dependencies = true;
        } else if (argument == "-v") {
            options.verbose = true;
        } else if (argument == "--save-temps") {
            options.save_temps = true;
        } else if (argument.starts_with("-O")) {
            options.optimisation = argument;
        } else if (argument.starts_with("-I") || argument.starts_with("-D") || argument.starts_with("-W") ||
                   argument.starts_with("-g") || argument.starts_with("-std=") ||
                   argument.starts_with("-f")) {
            options.passed_on.emplace_back(argument);
        } else if (argument.starts_with("-")) {
            return usage(fmt::format("unknown option {}", argument));
        } else if (!options.source.empty()) {
            return usage(fmt::format("one file at a time: {} and {}", options.source, argument));
        } else {
            options.source = argument;
        }
    }
    if (options.source.empty()) return usage("no file");
    if (options.output.empty()) {
        const auto dot = options.source.rfind('.');
        const auto slash = options.source.rfind('/');
        const bool has_suffix = dot != std::string::npos && (slash == std::string::npos || dot > slash);
        options.output = options.source.substr(0, has_suffix ? dot : std::string::npos) + ".elf";
    }
    if (default_dependencies && options.dependencies.empty()) options.dependencies = options.output + ".d";
    return orrery::cc::compile(options);
}
