// orrery-apigen: makes the map of exported symbols and all entry points from the headers of the C API, and
// refuses headers that break its rules.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "tools/apigen/output.h"

namespace {

namespace fs = std::filesystem;
using namespace orrery::apigen;

void write(const fs::path& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    if (!file) throw Problem(path.string() + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        fmt::print(stderr,
                   "usage: orrery-apigen INCLUDE SYMBOLS OUTPUT\n"
                   "  INCLUDE  the folder of orrery/*.h\n"
                   "  SYMBOLS  the folder with a list of functions for each release\n"
                   "  OUTPUT   where orrery.map, entry_points.h and entry_points.cc go\n");
        return 2;
    }
    try {
        const auto functions = read_headers(argv[1]);
        const auto releases = read_releases(argv[2]);
        check_rules(functions);
        check_releases(releases, functions, argv[2]);
        const fs::path output = argv[3];
        write(output / "orrery.map", symbol_map(releases));
        write(output / "entry_points.h", entry_points_header(functions));
        write(output / "entry_points.cc", entry_points_source(functions));
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-apigen: {}\n", error.what());
        return 1;
    }
}
