// What cards say they are made of: the numbers of their SKUs.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cards/cards.h"

namespace orrery::smi {

struct SkuLine {
    std::string key, value, unit, origin, source, meaning;
};

struct CardSku {
    std::string address;
    std::vector<SkuLine> lines;
    std::string trouble;  // why there are none
};

// The text of ORR_R_SKU. It comes from a card, so nothing in it is believed.
std::expected<std::vector<SkuLine>, std::string> parse_sku(std::string_view text);

std::vector<CardSku> read_skus(const cards::System& system);

void show_sku_table(const std::vector<CardSku>& cards, bool sources);
// docs/runtime.md describes the keys; new ones may be added.
void show_sku_json(const std::vector<CardSku>& cards);

}  // namespace orrery::smi
