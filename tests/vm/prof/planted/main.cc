// planted CASE: runs one; planted --list: name, limit and cards of each.
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "tests/vm/prof/planted/cases.h"

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--list") {
        planted::list();
        return 0;
    }
    const planted::Case* const one = argc == 2 ? planted::find(argv[1]) : nullptr;
    if (one == nullptr) {
        fmt::print(stderr, "usage: planted CASE | --list\n");
        return 2;
    }
    try {
        one->run();
    } catch (const std::exception& error) {
        fmt::print(stderr, "planted {}: {}\n", one->name, error.what());
        return 1;
    }
    return 0;
}
