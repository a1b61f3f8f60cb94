#include "tools/smi/cards.h"

#include <fmt/format.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/counters.h>
#include <orrery/hw/link.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace orrery::smi {
namespace {

struct CounterName {
    const char* name;
    const char* unit;
};

#define ORR_SMI_NAME(number, NAME, name, unit) {name, unit},
constexpr CounterName kCounterNames[] = {ORR_COUNTER_LIST(ORR_SMI_NAME)};
#undef ORR_SMI_NAME

std::string last_error(orrError_t code) {
    return fmt::format("{}: {}", orrGetErrorName(code), orrGetLastErrorText());
}

void read_device(Card& card, int device) {
    card.device = device;
    for (std::uint32_t port = 0; port < card.prop.link_ports; ++port) {
        orrLinkInfo link{};
        if (const auto code = orrDeviceGetLink(&link, device, static_cast<int>(port)); code != orrSuccess) {
            card.trouble = last_error(code);
            break;
        }
        card.links.push_back(link);
    }
    std::array<std::uint64_t, 256> values{};
    std::size_t count = values.size();
    if (const auto code = orrDeviceGetCounters(values.data(), &count, device); code != orrSuccess) {
        card.trouble = last_error(code);
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        // A newer card may count what we have no name for.
        const bool known = i < std::size(kCounterNames);
        card.counters.push_back({known ? kCounterNames[i].name : fmt::format("counter_{}", i),
                                 known ? kCounterNames[i].unit : "", values[i]});
    }
}

}  // namespace

System look() {
    System system;
    if (auto found = find_pci_cards()) {
        for (auto& pci : *found)
            system.cards.push_back({std::move(pci), {}, {}, {}, {}, {}, {}});
    } else {
        system.trouble = found.error();
    }
    int devices = 0;
    if (const auto code = orrGetDeviceCount(&devices); code != orrSuccess) {
        system.trouble = last_error(code);
        devices = 0;
    }
    for (int device = 0; device < devices; ++device) {
        orrDeviceProp prop{};
        const auto code = orrGetDeviceProperties(&prop, device);
        if (code != orrSuccess) {
            system.trouble = fmt::format("device {}: {}", device, last_error(code));
            continue;
        }
        auto card = std::ranges::find_if(
            system.cards, [&](const Card& c) { return c.pci && c.pci->address == prop.pci_address; });
        if (card == system.cards.end()) card = system.cards.insert(system.cards.end(), Card{});
        card->prop = prop;
        read_device(*card, device);
    }
    for (Process& process : find_processes()) {
        const auto card = std::ranges::find_if(system.cards, [&](const Card& c) {
            return process.address == (c.pci ? c.pci->address : c.prop.pci_address);
        });
        if (card != system.cards.end()) card->processes.push_back(std::move(process));
    }
    for (Card& card : system.cards) {
        if (card.device || !card.trouble.empty()) continue;
        if (!card.pci->responds) {
            card.trouble = "the card does not answer: it was removed or its process ended";
        } else if (card.pci->driver.empty()) {
            card.trouble =
                "no driver is bound: modprobe orrery; if that was done, the kernel log (dmesg) says why "
                "it gave up";
        } else {
            card.trouble = fmt::format(
                "driver {} is bound, but its node cannot be used (see ls -l /dev/accel)", card.pci->driver);
        }
    }
    return system;
}

const char* state_name(std::uint32_t state) {
    switch (state) {
        case ORR_STATE_RESET:
            return "reset";
        case ORR_STATE_BOOTING:
            return "booting";
        case ORR_STATE_RUNNING:
            return "running";
        case ORR_STATE_BOOT_FAILED:
            return "boot failed";
        case ORR_STATE_HALTED:
            return "halted";
        default:
            return "unknown";
    }
}

const char* link_state_name(std::uint32_t state) {
    switch (state) {
        case ORR_LINK_DOWN:
            return "down";
        case ORR_LINK_TRAINING:
            return "training";
        case ORR_LINK_UP:
            return "up";
        case ORR_LINK_DEGRADED:
            return "degraded";
        default:
            return "unknown";
    }
}

}  // namespace orrery::smi
