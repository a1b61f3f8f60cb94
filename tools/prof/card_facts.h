// What a card is, asked of the library and of the driver, in a process that is recorded.
#pragma once

#include <orrery/device.h>
#include <orrery/prof.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::prof {

struct CardFacts {
    orrDeviceProp prop{};
    std::vector<std::pair<std::string, std::uint64_t>> sku;    // keys whose values are numbers
    std::vector<std::pair<std::uint32_t, orrLinkInfo>> links;  // ports that have a peer
    orrProfClock clock{};                                      // device_ps 0: it could not be read
    bool known = false;                                        // false: the library does not say
};

// Calls the library.
CardFacts ask_card(int device);
// Thousandths of the cores, and of which period; 0: as the driver likes, or none.
using Quota = std::pair<std::uint32_t, std::uint32_t>;
// Of ORR_QUOTA, which may be null: PERMILLE or PERMILLE/PERIOD_US.
Quota quota_of(const char* text);
// Of the text of the driver's file `sku_table`, which is the card's: lines that make no sense are left out.
std::vector<std::pair<std::string, std::uint64_t>> sku_numbers(std::string_view table);

}  // namespace orrery::prof
