// orrery-smi: what Orrery cards are here, and how they are.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "tools/smi/show.h"

namespace {

constexpr const char* kHelp =
    "usage: orrery-smi [--json] [--counters]\n"
    "Lists the Orrery cards of this system, with or without a driver.\n"
    "\n"
    "  --json       everything, counters too, as JSON\n"
    "  --counters   the cards' counters in the table\n"
    "Exit status: 0 all cards can be used, 1 no card or one with a problem, 2 a mistake in the command "
    "line.\n";

}  // namespace

int main(int argc, char** argv) {
    bool json = false, counters = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help" || argument == "-h") {
            fmt::print("{}", kHelp);
            return 0;
        }
        if (argument == "--json") {
            json = true;
        } else if (argument == "--counters") {
            counters = true;
        } else {
            fmt::print(stderr, "orrery-smi: unknown option {}\n{}", argument, kHelp);
            return 2;
        }
    }
    const orrery::smi::System system = orrery::smi::look();
    if (json) {
        orrery::smi::show_json(system);
    } else {
        orrery::smi::show_table(system, counters);
    }
    if (!system.trouble.empty()) fmt::print(stderr, "orrery-smi: {}\n", system.trouble);
    if (system.cards.empty()) {
        fmt::print(stderr, "orrery-smi: there is no Orrery card in this system\n");
        return 1;
    }
    const bool fine = system.trouble.empty() && std::ranges::all_of(system.cards, [](const auto& card) {
                          return card.trouble.empty();
                      });
    return fine && std::fflush(stdout) == 0 ? 0 : 1;
}
