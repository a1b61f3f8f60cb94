// The cards of this system, with all that their driver and PCI say of them.
#pragma once

#include <orrery/orrery.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/cards/pci.h"
#include "tools/cards/processes.h"

namespace orrery::cards {

struct Counter {
    std::string name, unit, meaning;
    std::uint64_t value = 0;
    orrCounter_t number = 0;
};

// What follows from the counters since the card's power-on, or between two looks.
struct Metric {
    std::string name, unit, meaning;
    double value = 0;  // NaN: none
};

struct Card {
    std::optional<PciCard> pci;      // nothing: the card is not on PCI, or PCI cannot be read
    std::optional<int> device;       // number in the API; nothing: no driver, or it may not be opened
    orrDeviceProp prop{};            // with `device`
    orrDeviceVersion version{};      // with `device`
    std::vector<orrLinkInfo> links;  // with `device`, by port
    std::vector<Counter> counters;   // with `device`
    std::vector<Metric> metrics;     // with `counters`
    std::vector<Process> processes;  // that have the card open and may be looked at
    std::string trouble;             // why something is missing
};

struct System {
    std::vector<Card> cards;
    std::size_t hidden_processes = 0;  // that may not be looked at
    std::string trouble;               // of the whole system
};

System look();

// The card's PCI address, which it keeps from look to look.
std::string address_of(const Card& card);
// From an earlier look at the same card on; empty: its counters are not known.
std::vector<Metric> metrics_since(const Card& before, const Card& now);

const char* state_name(orrDeviceState state);
const char* link_state_name(orrLinkState state);

}  // namespace orrery::cards
