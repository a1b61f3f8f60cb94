// orrery-smi: what Orrery cards are here, and how they are.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "tools/smi/show.h"
#include "tools/smi/sku.h"

namespace {

constexpr const char* kHelp =
    "usage: orrery-smi [--json] [--counters]\n"
    "       orrery-smi sku [--json] [--sources]\n"
    "Lists the Orrery cards of this system, with or without a driver, or what they are made of: each number\n"
    "of their SKUs, its unit, where it is from and what it means.\n"
    "\n"
    "  --json       everything, counters or sources too, as JSON\n"
    "  --counters   the cards' counters in the table\n"
    "  --sources    below each number of a SKU, the document, formula or reason that it is from\n"
    "Exit status: 0 all cards can be used, 1 no card or one with a problem, 2 a mistake in the command "
    "line.\n";

}  // namespace

int main(int argc, char** argv) {
    bool json = false, counters = false, sku = false, sources = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help" || argument == "-h") {
            fmt::print("{}", kHelp);
            return 0;
        }
        if (argument == "--json") {
            json = true;
        } else if (argument == "--counters" && !sku) {
            counters = true;
        } else if (argument == "--sources" && sku) {
            sources = true;
        } else if (argument == "sku" && i == 1) {
            sku = true;
        } else {
            fmt::print(stderr, "orrery-smi: unknown option {}\n{}", argument, kHelp);
            return 2;
        }
    }
    const orrery::smi::System system = orrery::smi::look();
    bool told = true;
    if (sku) {
        const auto skus = orrery::smi::read_skus(system);
        if (json) {
            orrery::smi::show_sku_json(skus);
        } else {
            orrery::smi::show_sku_table(skus, sources);
        }
        told = std::ranges::all_of(skus, [](const auto& card) { return card.trouble.empty(); });
    } else if (json) {
        orrery::smi::show_json(system);
    } else {
        orrery::smi::show_table(system, counters);
    }
    if (!system.trouble.empty()) fmt::print(stderr, "orrery-smi: {}\n", system.trouble);
    if (system.cards.empty()) {
        fmt::print(stderr, "orrery-smi: there is no Orrery card in this system\n");
        return 1;
    }
    const bool fine =
        told && system.trouble.empty() &&
        std::ranges::all_of(system.cards, [](const auto& card) { return card.trouble.empty(); });
    return fine && std::fflush(stdout) == 0 ? 0 : 1;
}
