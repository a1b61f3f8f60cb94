// orrery-cc: compiles kernels for Orrery cards. The command line follows that of other compilers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tools/cc/driver.h"

namespace {

constexpr const char* kHelp =
    "usage: orrery-cc [options] FILE...\n"
    "Compiles C++ kernel files to a module for orrModuleLoad. Files *.o and *.a are linked in.\n"
    "\n"
    "  -o FILE        the module (default: the first file's name with .elf), or with -c the object\n"
    "  -c             an object FILE.o of each source, no module\n"
    "                 What is given no name by -o goes into the current folder.\n"
    "  -O0 ... -O3, -Os, -Oz   optimisation (default: -O2)\n"
    "  -g             debug information; errors of a kernel then name its source line\n"
    "  -march=ISA     what the kernels may use (default: rv64imafdc; with vectors: rv64gcv)\n"
    "  -mabi=lp64d    the only one there is\n"
    "  -I DIR         look for headers there\n"
    "  -D NAME[=V]    define a macro\n"
    "  -L DIR, -l NAME  link libNAME.a, sought in DIR\n"
    "  -W..., -f..., -std=...  passed on to the compiler\n"
    "  -MD            write the headers that the files include to OUTPUT.d (k.elf: k.elf.d), for make\n"
    "  -MF FILE       the same, to FILE\n"
    "  --save-temps   keep what the compiler made, as OUTPUT.s and OUTPUT.o\n"
    "  -v             show the commands\n"
    "Exit status: 0 done, 1 a file is missing or cannot be written, or what was made is no module, 2 a\n"
    "mistake in the command line, 127 there is no compiler, else the compiler's own.\n";

int usage(const std::string& problem) {
    fmt::print(stderr, "orrery-cc: {} (--help lists the options)\n", problem);
    return 2;
}

bool ends_with_one_of(std::string_view text, std::initializer_list<std::string_view> ends) {
    return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

bool starts_with_one_of(std::string_view text, std::initializer_list<std::string_view> begins) {
    return std::ranges::any_of(begins, [&](std::string_view begin) { return text.starts_with(begin); });
}

// Why the options do not go together; empty: they do.
std::string why_not(const orrery::cc::Options& options) {
    const std::size_t sources = options.sources.size();
    if (sources == 0 && (options.objects_only || options.link_inputs.empty())) return "no file";
    if (!options.objects_only) return {};
    if (!options.link_inputs.empty())
        return fmt::format("-c makes objects and links nothing: what is {} for?",
                           options.link_inputs.front());
    if (sources > 1 && !options.output.empty())
        return fmt::format("-c makes an object of each of {} files: leave out -o {}", sources,
                           options.output);
    if (sources > 1 && !options.dependencies.empty())
        return fmt::format("-c has a list of headers for each of {} files: -MD instead of -MF", sources);
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    orrery::cc::Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help" || argument == "-h") {
            fmt::print("{}", kHelp);
            return 0;
        }
        if (argument == "-o" || argument == "-I" || argument == "-D" || argument == "-MF" ||
            argument == "-l" || argument == "-L") {
            if (i + 1 == argc) return usage(fmt::format("{} needs a value", argument));
            const std::string value = argv[++i];
            if (argument == "-o") {
                options.output = value;
            } else if (argument == "-MF") {
                options.list_headers = true;
                options.dependencies = value;
            } else if (argument == "-l" || argument == "-L") {
                options.link_inputs.push_back(std::string(argument) + value);
            } else {
                options.passed_on.push_back(std::string(argument) + value);
            }
        } else if (argument == "-c") {
            options.objects_only = true;
        } else if (argument == "-MD") {
            options.list_headers = true;
        } else if (argument == "-v") {
            options.verbose = true;
        } else if (argument == "--save-temps") {
            options.save_temps = true;
        } else if (argument.starts_with("-O")) {
            options.optimisation = argument;
        } else if (argument.starts_with("-march=")) {
            // Which extensions a card has the finished module is asked; here only what no linker could mend.
            if (!argument.starts_with("-march=rv64"))
                return usage(fmt::format("{}: cards are RV64, as in -march=rv64gcv", argument));
            options.march = argument;
        } else if (argument == "-mabi=lp64d") {
            continue;
        } else if (argument.starts_with("-m")) {
            return usage(
                fmt::format("{}: a card runs what -march=rv64... and -mabi=lp64d make, and no other "
                            "code models or ABIs",
                            argument));
        } else if (starts_with_one_of(argument, {"-l", "-L"})) {
            options.link_inputs.emplace_back(argument);
        } else if (starts_with_one_of(argument, {"-I", "-D", "-W", "-g", "-std=", "-f"})) {
            options.passed_on.emplace_back(argument);
        } else if (argument.starts_with("-")) {
            return usage(fmt::format("unknown option {}", argument));
        } else if (ends_with_one_of(argument, {".o", ".a"})) {
            options.link_inputs.emplace_back(argument);
        } else {
            options.sources.emplace_back(argument);
        }
    }
    if (const std::string problem = why_not(options); !problem.empty()) return usage(problem);
    return orrery::cc::compile(options);
}
