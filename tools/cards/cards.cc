#include "tools/cards/cards.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::cards {
namespace {

std::string last_error(orrError_t code) {
    return fmt::format("{}: {}", orrGetErrorName(code), orrGetLastErrorText());
}

// `before`: the same counters earlier; null: since power-on.
orrError_t read_metrics(std::vector<Metric>& all, int device, const std::vector<Counter>& now,
                        const std::vector<Counter>* before) {
    std::size_t count = 0;
    if (const auto code = orrGetMetricCount(&count); code != orrSuccess) return code;
    std::vector<orrMetric_t> metrics;
    std::vector<Metric> found;
    for (std::size_t i = 0; i < count; ++i) {
        orrMetricInfo info = ORR_INIT(orrMetricInfo);
        if (const auto code = orrGetMetricInfo(&info, i); code != orrSuccess) return code;
        metrics.push_back(info.metric);
        found.push_back({info.name, info.unit, info.meaning, 0});
    }
    std::vector<orrCounter_t> counters;
    std::vector<std::uint64_t> to, from;
    for (std::size_t i = 0; i < now.size(); ++i) {
        counters.push_back(now[i].number);
        to.push_back(now[i].value);
        if (before != nullptr) from.push_back((*before)[i].value);
    }
    std::vector<double> computed(count);
    const auto code =
        orrDeviceComputeMetrics(computed.data(), device, metrics.data(), count, counters.data(),
                                before != nullptr ? from.data() : nullptr, to.data(), counters.size());
    if (code != orrSuccess) return code;
    for (std::size_t i = 0; i < count; ++i)
        found[i].value = computed[i];
    all = std::move(found);
    return orrSuccess;
}

orrError_t read_counters(Card& card, int device) {
    std::size_t count = 0;
    if (const auto code = orrDeviceGetCounterCount(&count, device); code != orrSuccess) return code;
    std::vector<orrCounter_t> counters;
    for (std::size_t i = 0; i < count; ++i) {
        orrCounterInfo info = ORR_INIT(orrCounterInfo);
        if (const auto code = orrDeviceGetCounterInfo(&info, device, i); code != orrSuccess) return code;
        counters.push_back(info.counter);
        card.counters.push_back({info.name, info.unit, info.meaning, 0, info.counter});
    }
    std::vector<std::uint64_t> values(count);
    if (const auto code = orrDeviceReadCounters(values.data(), device, counters.data(), count);
        code != orrSuccess) {
        card.counters.clear();
        return code;
    }
    for (std::size_t i = 0; i < count; ++i)
        card.counters[i].value = values[i];
    return read_metrics(card.metrics, device, card.counters, nullptr);
}

void read_device(Card& card, int device) {
    card.device = device;
    for (std::uint32_t port = 0; port < card.prop.link_ports; ++port) {
        orrLinkInfo link = ORR_INIT(orrLinkInfo);
        if (const auto code = orrDeviceGetLink(&link, device, static_cast<int>(port)); code != orrSuccess) {
            card.trouble = last_error(code);
            break;
        }
        card.links.push_back(link);
    }
    card.version = ORR_INIT(orrDeviceVersion);
    if (const auto code = orrDeviceGetVersion(&card.version, device); code != orrSuccess)
        card.trouble = last_error(code);
    if (const auto code = read_counters(card, device); code != orrSuccess) card.trouble = last_error(code);
}

}  // namespace

System look() {
    System system;
    if (auto found = find_pci_cards()) {
        for (auto& pci : *found)
            system.cards.push_back({std::move(pci), {}, {}, {}, {}, {}, {}, {}, {}});
    } else {
        system.trouble = found.error();
    }
    int devices = 0;
    if (const auto code = orrGetDeviceCount(&devices); code != orrSuccess) {
        system.trouble = last_error(code);
        devices = 0;
    }
    for (int device = 0; device < devices; ++device) {
        orrDeviceProp prop = ORR_INIT(orrDeviceProp);
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
    for (Process& process : find_processes("/proc", &system.hidden_processes)) {
        const auto card = std::ranges::find_if(
            system.cards, [&](const Card& c) { return process.address == address_of(c); });
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

std::string address_of(const Card& card) {
    return card.pci ? card.pci->address : card.prop.pci_address;
}

std::vector<Metric> metrics_since(const Card& before, const Card& now) {
    std::vector<Metric> metrics;
    const auto same = [](const Counter& a, const Counter& b) { return a.number == b.number; };
    if (now.device && std::ranges::equal(before.counters, now.counters, same))
        (void)read_metrics(metrics, *now.device, now.counters, &before.counters);
    return metrics;
}

const char* state_name(orrDeviceState state) {
    switch (state) {
        case orrDeviceStateReset:
            return "reset";
        case orrDeviceStateBooting:
            return "booting";
        case orrDeviceStateRunning:
            return "running";
        case orrDeviceStateBootFailed:
            return "boot failed";
        case orrDeviceStateHalted:
            return "halted";
        default:
            return "unknown";
    }
}

const char* link_state_name(orrLinkState state) {
    switch (state) {
        case orrLinkStateDown:
            return "down";
        case orrLinkStateTraining:
            return "training";
        case orrLinkStateUp:
            return "up";
        case orrLinkStateDegraded:
            return "degraded";
        default:
            return "unknown";
    }
}

}  // namespace orrery::cards
