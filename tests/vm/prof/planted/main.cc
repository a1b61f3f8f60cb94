// planted CASE: runs one; planted --judge CASE: reads what explain says of it, and says what is to be
// complained of, and with --strict instead of --judge what is wrong, known or not; planted --list: all names
// whose cards may be free, --list-in-step: of the others, --list-first, --list-in-step-first: without the
// fresh ones; --list-blind, --list-blind-in-step: the blind ones, --list-blind-first: of the former those
// whose report is the same on a host that is late.
#include <cstdio>
#include <exception>
#include <iostream>

#include <fmt/format.h>

#include "tests/vm/prof/planted/cases.h"

int main(int argc, char** argv) {
    const std::string_view word = argc > 1 ? argv[1] : "";
    if (argc == 2 && (word == "--list" || word == "--list-first" || word == "--list-in-step" ||
                      word == "--list-in-step-first")) {
        planted::list(word.starts_with("--list-in-step"), !word.ends_with("-first"));
        return 0;
    }
    if (argc == 2 &&
        (word == "--list-blind" || word == "--list-blind-first" || word == "--list-blind-in-step")) {
        planted::list_blind(word == "--list-blind-in-step", word != "--list-blind-first");
        return 0;
    }
    const bool strict = word == "--strict", judges = argc == 3 && (strict || word == "--judge");
    const planted::Case* const one = argc == 2 || judges ? planted::find(argv[argc - 1]) : nullptr;
    if (one == nullptr) {
        fmt::print(
            stderr,
            "usage: planted CASE | --judge CASE | --strict CASE | --list | --list-first | --list-in-step |\n"
            "       --list-in-step-first | --list-blind | --list-blind-first | --list-blind-in-step\n");
        return 2;
    }
    try {
        if (judges) {
            const std::string seen = planted::wrong_in(*one, std::cin);
            const std::string wrong =
                planted::complaint(*one, strict ? nullptr : planted::known_wrong(one->name), seen);
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
