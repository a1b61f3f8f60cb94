// orrery-apigen: makes the map of exported symbols and all entry points from the headers of the C API, and
// refuses headers that break its rules or what a release had.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "tools/apigen/constants.h"
#include "tools/apigen/output.h"

namespace {

namespace fs = std::filesystem;
using namespace orrery::apigen;

void write(const fs::path& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    if (!file) throw Problem(path.string() + " cannot be written");
}

// The headers and the lists, which fit together.
struct Api {
    std::vector<Release> releases;
    std::string version;
    Headers headers;
    std::vector<Item> missing;  // in the lists
};

Api read(const std::string& include, const std::string& lists) {
    Api api;
    api.releases = read_releases(lists);
    const auto macros = read_macros(include);
    api.version = version_of(macros);
    api.headers = read_headers(include);
    check_rules(api.headers.functions);
    const auto contract = read_contract(include, api.headers, macros);
    check_releases(api.releases, contract, lists);
    api.missing = unlisted(api.releases, contract);
    return api;
}

void make(const std::string& program, const std::string& include, const std::string& lists,
          const fs::path& output) {
    const Api api = read(include, lists);
    std::string missing;
    for (const Item& item : api.missing)
        missing += fmt::format("no release has: {}\n", line(item));
    if (!missing.empty()) {
        throw Problem(fmt::format("{}add this to the list of the next release: {} list MAJOR.MINOR {} {}",
                                  missing, program, include, lists));
    }
    check_version(api.releases.back().version, api.version);
    check_locks(api.releases, api.version, lists);
    const auto functions = in_order_of(api.releases, api.headers.functions);
    write(output / "orrery.map", symbol_map(api.releases));
    fs::create_directories(output / "include/orrery");
    write(output / "include/orrery/prof_calls.h", calls_header(functions));
    write(output / "entry_points.h", entry_points_header(functions));
    write(output / "entry_points.cc", entry_points_source(functions));
}

void list(const std::string& version, const std::string& include, const std::string& lists) {
    const Api api = read(include, lists);
    check_version(version, api.version);
    check_locks(api.releases, api.version, lists);
    if (!api.missing.empty()) add_to_release(lists, version, api.missing);
    fmt::print("{} lines added to {}/{}\n", api.missing.size(), lists, version);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv, argv + argc);
    const bool lists = words.size() == 5 && words[1] == "list";
    const bool locks = words.size() == 4 && words[1] == "release";
    if (!lists && words.size() != 4) {
        fmt::print(stderr,
                   "usage: orrery-apigen INCLUDE RELEASES OUTPUT\n"
                   "       orrery-apigen list VERSION INCLUDE RELEASES\n"
                   "       orrery-apigen release VERSION RELEASES\n"
                   "  INCLUDE   the folder of orrery/*.h\n"
                   "  RELEASES  the folder with a list of what each release brought\n"
                   "  OUTPUT    where orrery.map, entry_points.h, entry_points.cc and include/orrery go\n"
                   "  list      adds what no release has to the list of this one, MAJOR.MINOR\n"
                   "  release   locks the list of a version that is out: nobody can change it by accident\n");
        return 2;
    }
    try {
        if (lists) {
            list(words[2], words[3], words[4]);
        } else if (locks) {
            lock_release(words[3], words[2]);
        } else {
            make(words[0], words[1], words[2], words[3]);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-apigen: {}\n", error.what());
        return 1;
    }
}
