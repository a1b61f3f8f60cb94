// planted CASE: runs one; planted --judge CASE: reads what explain says of it; planted --list: all names.
#include <cstdio>
#include <exception>
#include <iostream>

#include <fmt/format.h>

#include "tests/vm/prof/planted/cases.h"

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--list") {
        planted::list();
        return 0;
    }
    const bool judges = argc == 3 && std::string_view(argv[1]) == "--judge";
    const planted::Case* const one = argc == 2 || judges ? planted::find(argv[argc - 1]) : nullptr;
    if (one == nullptr) {
        fmt::print(stderr, "usage: planted CASE | --judge CASE | --list\n");
        return 2;
    }
    try {
        if (judges) {
            const std::string wrong = planted::judge(*one, std::cin);
            if (wrong.empty()) return 0;
            fmt::print("{}\n", wrong);
            return 1;
        }
        one->run();
    } catch (const std::exception& error) {
        fmt::print(stderr, "planted {}: {}\n", one->name, error.what());
        return 1;
    }
    return 0;
}
