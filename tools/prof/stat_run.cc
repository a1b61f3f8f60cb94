#include "tools/prof/stat_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "tools/child/child.h"
#include "tools/prof/counts.h"
#include "tools/text/clock.h"
#include "tools/text/files.h"
#include "tools/text/shown.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

std::string card_text(const cards::Card& before, const cards::Card& after) {
    std::vector<Count> counts;
    std::uint64_t passed = 0;
    bool anew = false;
    for (const cards::Counter& counter : after.counters) {
        const auto from = std::ranges::find(before.counters, counter.name, &cards::Counter::name);
        if (from == before.counters.end()) continue;
        anew = anew || from->value > counter.value;
        counts.emplace_back(counter.name, counter.unit, counter.value - std::min(counter.value, from->value));
        if (counter.name == "time_ps") passed = counts.back().value;
    }
    std::string text =
        fmt::format("\n  device {}: {}, {}, {} of model time\n", *after.device, text::shown(after.prop.name),
                    cards::address_of(after), text::duration(passed));
    if (anew) return text + "    it began anew meanwhile\n";
    return text + counts_text(counts, static_cast<double>(after.prop.vector_hz));
}

}  // namespace

std::string counted_between(const cards::System& before, const cards::System& after) {
    std::string text;
    for (const cards::Card& card : after.cards) {
        const std::string address = cards::address_of(card);
        const auto from = std::ranges::find_if(
            before.cards, [&](const cards::Card& one) { return cards::address_of(one) == address; });
        if (card.device && from != before.cards.end()) text += card_text(*from, card);
        if (!card.trouble.empty()) text += fmt::format("\n  {}: {}\n", address, card.trouble);
    }
    if (!after.trouble.empty()) text += "\n  " + after.trouble + "\n";
    return text;
}

int run_stat(const std::vector<std::string>& command, const std::string& file) {
    const cards::System before = cards::look();
    if (before.cards.empty()) {
        fmt::print(stderr, "orrery-prof: there is no Orrery card in this system{}{}\n",
                   before.trouble.empty() ? "" : ": ", before.trouble);
        return 1;
    }
    const double begun = text::seconds_now();
    const auto ended = child::run(command);
    if (!ended) {
        fmt::print(stderr, "orrery-prof: {}\n", text::shown(ended.error().text));
        return 127;
    }
    const int status = child::exit_status(*ended);
    const double seconds = text::seconds_now() - begun;
    std::string words;
    for (const std::string& word : command)
        words += (words.empty() ? "" : " ") + word;
    const std::string all = fmt::format(
        "\nWhat the cards counted for '{}', and whoever else used them:\n{}\n  {:.3f} s of the "
        "host's time\n",
        text::shown(words), counted_between(before, cards::look()), seconds);
    if (file.empty()) {
        fmt::print(stderr, "{}", all);
        return status;
    }
    if (const auto written = text::write_file(file, all); !written) {
        fmt::print(stderr, "orrery-prof: {}\n", text::shown(written.error().text));
        return status == 0 ? 1 : status;
    }
    return status;
}

}  // namespace orrery::prof
