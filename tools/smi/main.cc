// orrery-smi: what Orrery cards are here, how they are, and how they are joined.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tools/smi/links.h"
#include "tools/smi/show.h"
#include "tools/smi/sku.h"

namespace {

using namespace orrery::cards;
using namespace orrery::smi;

constexpr const char* kHelp =
    "usage: orrery-smi [--json] [--counters]\n"
    "       orrery-smi sku [--json] [--sources]\n"
    "       orrery-smi topo [--json] [--svg FILE]\n"
    "       orrery-smi links [--json | --watch]\n"
    "Lists the Orrery cards of this system, with or without a driver; or what they are made of: each number\n"
    "of their SKUs, its unit, where it is from and what it means; or which card reaches which, and how; or\n"
    "their ports, what these lead to and what has crossed them.\n"
    "\n"
    "  --json       everything, counters or sources too, as JSON\n"
    "  --counters   the cards' counters in the table\n"
    "  --sources    below each number of a SKU, the document, formula or reason that it is from\n"
    "  --svg FILE   a picture of the cards and their links\n"
    "  --watch      again each second, with what has changed, until Ctrl-C\n"
    "Exit status: 0 all cards can be used, 1 no card or one with a problem, 2 a mistake in the command "
    "line.\n";

enum class Show { kCards, kSku, kTopology, kLinks };

struct Options {
    Show show = Show::kCards;
    bool json = false, counters = false, sources = false, watch = false;
    std::string svg;
};

// What is wrong with the command line; empty: nothing.
std::string parse(int argc, char** argv, Options& options) {
    const auto with = [&](Show show) { return options.show == show; };
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--json") {
            options.json = true;
        } else if (argument == "--counters" && with(Show::kCards)) {
            options.counters = true;
        } else if (argument == "--sources" && with(Show::kSku)) {
            options.sources = true;
        } else if (argument == "--watch" && with(Show::kLinks)) {
            options.watch = true;
        } else if (argument == "--svg" && with(Show::kTopology)) {
            if (++i == argc) return "--svg wants a file";
            options.svg = argv[i];
        } else if (argument == "sku" && i == 1) {
            options.show = Show::kSku;
        } else if (argument == "topo" && i == 1) {
            options.show = Show::kTopology;
        } else if (argument == "links" && i == 1) {
            options.show = Show::kLinks;
        } else {
            return fmt::format("unknown option {}", argument);
        }
    }
    if (options.watch && options.json) return "--watch and --json exclude each other";
    return "";
}

// False: something is missing in it.
bool show(const Options& options, const System& system) {
    if (options.show == Show::kSku) {
        const auto skus = read_skus(system);
        if (options.json)
            show_sku_json(skus);
        else
            show_sku_table(skus, options.sources);
        return std::ranges::all_of(skus, [](const auto& card) { return card.trouble.empty(); });
    }
    if (options.show == Show::kCards) {
        if (options.json)
            show_json(system);
        else
            show_table(system, options.counters);
        return true;
    }
    auto cards = read_links();
    std::vector<MissingCard> missing;
    for (const Card& card : system.cards)
        if (!card.device) missing.push_back({card.pci ? card.pci->address : "a card", card.trouble});
    const auto switches = options.show == Show::kTopology ? switches_behind(cards) : std::vector<Switch>{};
    if (options.show == Show::kLinks && options.json)
        show_links_json(cards, missing);
    else if (options.show == Show::kLinks)
        fmt::print("{}", links_text(cards));
    else if (options.json)
        show_topology_json(cards, switches, missing);
    else
        show_topology(cards, switches);
    if (!options.json) fmt::print("{}", missing_text(missing));
    if (!options.svg.empty() && !cards.empty()) {
        if (const auto drawn = draw_topology(cards, switches, options.svg); !drawn) {
            fmt::print(stderr, "orrery-smi: --svg {}\n", drawn.error().text);
            return false;
        }
    }
    return std::ranges::all_of(cards, [](const auto& card) { return card.trouble.empty(); });
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help" || argument == "-h") {
            fmt::print("{}", kHelp);
            return 0;
        }
    }
    if (const std::string mistake = parse(argc, argv, options); !mistake.empty()) {
        fmt::print(stderr, "orrery-smi: {}\n{}", mistake, kHelp);
        return 2;
    }
    if (options.watch) end_when_told();
    const System system = look();
    const bool watched = options.watch && !system.cards.empty();
    bool told = false;
    if (watched)
        watch_links();
    else
        told = show(options, system);
    if (!system.trouble.empty()) fmt::print(stderr, "orrery-smi: {}\n", system.trouble);
    if (system.cards.empty()) {
        fmt::print(stderr, "orrery-smi: there is no Orrery card in this system\n");
        return 1;
    }
    if (watched) return 1;  // nobody reads it any more
    const bool fine =
        told && system.trouble.empty() &&
        std::ranges::all_of(system.cards, [](const auto& card) { return card.trouble.empty(); });
    return fine && std::fflush(stdout) == 0 ? 0 : 1;
}
