// Everything that orrery-smi shows.
#pragma once

#include <orrery/orrery.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/smi/pci.h"
#include "tools/smi/processes.h"

namespace orrery::smi {

struct Counter {
    std::string name, unit, meaning;
    std::uint64_t value = 0;
};

// What follows from the counters since the card's power-on.
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
    std::string trouble;  // of the whole system
};

System look();

const char* state_name(orrDeviceState state);
const char* link_state_name(orrLinkState state);

}  // namespace orrery::smi
