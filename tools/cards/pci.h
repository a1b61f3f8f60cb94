// What PCI knows about the system's Orrery cards, whether or not a driver is bound.
#pragma once

#include <expected>
#include <string>
#include <vector>

namespace orrery::cards {

struct PciCard {
    std::string address;  // "0000:01:00.0"
    std::string driver;   // empty: none is bound
    // As the driver says it in sysfs; empty: no driver, or one that does not.
    std::string held;                               // by debuggers: "firmware", "kernels", both, or "none"
    std::string checks;                             // of kernels: "race", "memory", both, or "none"
    bool responds = true;                           // false: its configuration space reads as all-ones
    unsigned link_width = 0, link_gts = 0;          // negotiated; 0: unknown
    unsigned link_width_max = 0, link_gts_max = 0;  // what the card can do
};

// In the order of addresses. The error is a sentence.
std::expected<std::vector<PciCard>, std::string> find_pci_cards();

}  // namespace orrery::cards
