#include <fmt/format.h>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tools/smi/show.h"

namespace orrery::smi {
namespace {

using namespace cards;

using Json = nlohmann::ordered_json;

Json pci_json(const PciCard& pci) {
    return {{"address", pci.address},
            {"driver", pci.driver.empty() ? Json(nullptr) : Json(pci.driver)},
            {"held", pci.held.empty() ? Json(nullptr) : Json(pci.held)},
            {"checks", pci.checks.empty() ? Json(nullptr) : Json(pci.checks)},
            {"link_width", pci.link_width},
            {"link_gts", pci.link_gts == 2 ? Json(2.5) : Json(pci.link_gts)},
            {"link_width_max", pci.link_width_max},
            {"link_gts_max", pci.link_gts_max == 2 ? Json(2.5) : Json(pci.link_gts_max)}};
}

// What its card and driver count.
Json link_counters(const orrLinkInfo& link) {
    Json counters = Json::object();
    if ((link.known & orrLinkKnowsCounts) != 0)
        counters.update({{"tx_messages", link.tx_messages},
                         {"tx_bytes", link.tx_bytes},
                         {"rx_messages", link.rx_messages},
                         {"rx_bytes", link.rx_bytes},
                         {"crc_errors", link.crc_errors},
                         {"retries", link.retries},
                         {"retrains", link.retrains},
                         {"changes", link.changes}});
    if ((link.known & orrLinkKnowsDenials) != 0)
        counters.update({{"denied", link.denied}, {"bad_keys", link.bad_keys}, {"refused", link.refused}});
    if ((link.known & orrLinkKnowsDriver) != 0)
        counters.update({{"forged", link.forged}, {"losses", link.losses}});
    return counters;
}

Json device_json(const Card& card) {
    const orrDeviceProp& p = card.prop;
    const orrDeviceVersion& v = card.version;
    const auto version = [](std::uint32_t of) {
        return fmt::format("{}.{}.{}", of >> 16, of >> 8 & 0xff, of & 0xff);
    };
    const auto short_version = [](std::uint32_t of) {
        return fmt::format("{}.{}", of >> 16, of >> 8 & 0xff);
    };
    Json links = Json::array();
    for (std::size_t port = 0; port < card.links.size(); ++port) {
        const orrLinkInfo& link = card.links[port];
        links.push_back({{"port", port},
                         {"state", link_state_name(link.state)},
                         {"peer_uid", link.peer_uid},
                         {"peer_device", link.peer_device},
                         {"peer_port", link.peer_port},
                         {"lanes", link.lanes},
                         {"gbps", link.gbps},
                         {"latency_ns", link.latency_ns},
                         {"counters", link_counters(link)}});
    }
    Json counters = Json::object();
    for (const Counter& counter : card.counters)
        counters[counter.name] = counter.value;
    Json metrics = Json::object();
    for (const Metric& metric : card.metrics)
        metrics[metric.name] = std::isnan(metric.value) ? Json() : Json(metric.value);
    return {{"device", *card.device},
            {"sku", p.name},
            {"node", p.node},
            {"uid", p.uid},
            {"state", state_name(p.state)},
            {"driver_version", version(v.driver)},
            {"hardware_version", short_version(v.hardware)},
            {"firmware_version", version(v.firmware)},
            {"firmware_abi", short_version(v.firmware_abi)},
            {"firmware_build", v.firmware_build},
            {"vram_bytes", p.vram_bytes},
            {"vram_used_bytes", p.vram_used_bytes},
            {"core_hz", p.core_hz},
            {"vector_hz", p.vector_hz},
            {"vector_vlen", p.vector_vlen},
            {"vector_isa", p.vector_isa},
            {"host_atomics", p.host_atomics != 0},
            {"copy_engines", p.copy_engines},
            {"vector_ports", p.vector_ports},
            {"vector_cores", p.vector_cores},
            {"links", links},
            {"counters", counters},
            {"metrics", metrics}};
}

}  // namespace

void show_json(const System& system) {
    Json cards = Json::array();
    for (const Card& card : system.cards) {
        Json json = card.device ? device_json(card) : Json::object({{"device", nullptr}});
        json["pci"] = card.pci ? pci_json(*card.pci) : Json(nullptr);
        json["problem"] = card.trouble.empty() ? Json(nullptr) : Json(card.trouble);
        json["processes"] = Json::array();
        for (const Process& process : card.processes) {
            json["processes"].push_back({{"pid", process.pid},
                                         {"name", process.name},
                                         {"memory_bytes", process.memory_bytes},
                                         {"vector_ns", process.vector_ns},
                                         {"copy_ns", process.copy_ns}});
        }
        cards.push_back(std::move(json));
    }
    const Json all = {{"cards", cards},
                      {"problem", system.trouble.empty() ? Json(nullptr) : Json(system.trouble)}};
    fmt::print("{}\n", all.dump(2, ' ', true, Json::error_handler_t::replace));
}

}  // namespace orrery::smi
