#include "umd/runtime/counter_catalogue.h"

#include <orrery/hw/counters.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace orrery::umd {
namespace {

// Above all numbers, so that nobody takes a counter for an index.
constexpr orrCounter_t kFirst = 0x1000;

#define ORR_ENTRY(number, NAME, name, unit, engine, meaning) {name, unit, engine, meaning},
constexpr std::array<CatalogueEntry, ORR_COUNTER_COUNT> kCatalogue = {{ORR_COUNTER_LIST(ORR_ENTRY)}};
#undef ORR_ENTRY
#define ORR_NUMBER(number, ...) number,
constexpr std::size_t kNumbers[] = {ORR_COUNTER_LIST(ORR_NUMBER)};
#undef ORR_NUMBER
static_assert(std::ranges::is_sorted(kNumbers) && std::size(kNumbers) == kCatalogue.size());

}  // namespace

std::size_t catalogued(std::size_t counters) {
    return std::min(counters, kCatalogue.size());
}

const CatalogueEntry& catalogue_entry(std::size_t number) {
    return kCatalogue.at(number);
}

std::optional<std::size_t> find_in_catalogue(std::string_view name) {
    const auto found =
        std::ranges::find_if(kCatalogue, [&](const CatalogueEntry& entry) { return name == entry.name; });
    if (found == kCatalogue.end()) return std::nullopt;
    return static_cast<std::size_t>(found - kCatalogue.begin());
}

orrCounter_t counter_of(std::size_t number) {
    return kFirst + static_cast<orrCounter_t>(number);
}

std::optional<std::size_t> number_of(orrCounter_t counter) {
    if (counter < kFirst || counter - kFirst >= kCatalogue.size()) return std::nullopt;
    return counter - kFirst;
}

}  // namespace orrery::umd
