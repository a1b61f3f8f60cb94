// The counters of a card as the API names them. Names and numbers of counters never change; a card may have
// fewer than there are here, or more, which have no name yet.
#pragma once

#include <orrery/device.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace orrery::umd {

struct CatalogueEntry {
    const char* name;
    const char* unit;
    const char* engine;
    const char* meaning;
};

// How many of the card's `counters` counters have an entry.
std::size_t catalogued(std::size_t counters);
const CatalogueEntry& catalogue_entry(std::size_t number);
std::optional<std::size_t> find_in_catalogue(std::string_view name);

// What the API calls it, and back; nothing of what is not in the catalogue.
orrCounter_t counter_of(std::size_t number);
std::optional<std::size_t> number_of(orrCounter_t counter);

}  // namespace orrery::umd
