#include "tests/vm/prof/planted/cases.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace planted {
namespace {

std::array<const std::vector<Case>*, 8> all() {
    return {&one_card_cases(),        &several_cards_cases(),
            &fresh_one_card_cases(),  &fresh_several_cards_cases(),
            &blind_one_card_cases(),  &blind_several_cards_cases(),
            &blind2_one_card_cases(), &blind2_several_cards_cases()};
}

}  // namespace

const Case* find(std::string_view name) {
    for (const auto* cases : all()) {
        const auto found = std::ranges::find(*cases, name, &Case::name);
        if (found != cases->end()) return &*found;
    }
    return nullptr;
}

void list(bool in_step, bool fresh) {
    const auto every = all();
    for (std::size_t i = 0; i < (fresh ? 4u : 2u); ++i)
        for (const Case& one : *every[i])
            if (one.in_step == in_step) fmt::print("{}\n", one.name);
}

void list_blind(bool in_step, bool prompt) {
    const auto every = all();
    for (std::size_t i = 4; i < (prompt ? 8u : 6u); ++i)
        for (const Case& one : *every[i])
            if (one.in_step == in_step && (prompt || !one.needs_prompt_host)) fmt::print("{}\n", one.name);
}

}  // namespace planted
