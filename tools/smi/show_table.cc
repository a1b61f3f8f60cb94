#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/smi/show.h"

namespace orrery::smi {
namespace {

using namespace cards;

std::string pcie_text(const PciCard& pci) {
    if (pci.link_width == 0 || pci.link_gts == 0) return "unknown";
    const auto rate = [](unsigned gts) { return gts == 2 ? std::string("2.5") : fmt::format("{}", gts); };
    std::string text = fmt::format("x{} at {} GT/s", pci.link_width, rate(pci.link_gts));
    if (pci.link_width < pci.link_width_max || pci.link_gts < pci.link_gts_max) {
        text += fmt::format(" (can x{} at {})", pci.link_width_max, rate(pci.link_gts_max));
    }
    return text;
}

std::string mib(std::uint64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

std::string version_text(std::uint32_t version) {
    return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
}

void show_card(const Card& card) {
    const std::string address = address_of(card);
    if (!card.device) {
        fmt::print("-  {}  no device node\n", address);
        return;
    }
    const orrDeviceProp& p = card.prop;
    fmt::print("{}  {}  {}  {}  {}\n", *card.device, address, p.name, p.node, state_name(p.state));
    if (card.pci) fmt::print("   PCIe       {}\n", pcie_text(*card.pci));
    if (card.pci && card.pci->held != "none" && !card.pci->held.empty())
        fmt::print("   held       by a debugger ({}): nothing on the card moves until it goes on\n",
                   card.pci->held);
    if (card.pci && card.pci->checks != "none" && !card.pci->checks.empty())
        fmt::print("   checks     of kernels: {}\n", card.pci->checks);
    fmt::print("   atomics    of kernels on host memory {}\n",
               p.host_atomics != 0 ? "work: AtomicOps of PCIe" : "fail: no AtomicOps of PCIe");
    const orrDeviceVersion& v = card.version;
    fmt::print("   firmware   {} (ABI {}.{}) {}\n", version_text(v.firmware), v.firmware_abi >> 16,
               v.firmware_abi >> 8 & 0xff, v.firmware_build);
    fmt::print("   memory     {} of {} MiB used\n", mib(p.vram_used_bytes), mib(p.vram_bytes));
    fmt::print("   engines    {} copy, {} vector cores at {} MHz, {} kernels in flight\n", p.copy_engines,
               p.vector_cores, p.vector_hz / 1'000'000, p.vector_ports);
    for (std::size_t port = 0; port < card.links.size(); ++port) {
        const orrLinkInfo& link = card.links[port];
        if (link.state == orrLinkStateDown) {
            fmt::print("   link {}     down\n", port);
            continue;
        }
        const std::string peer = link.peer_device >= 0 ? fmt::format("card {}", link.peer_device)
                                                       : fmt::format("card with uid {:#x}", link.peer_uid);
        fmt::print("   link {}     {} to {} port {}, {} lanes, {} Gbit/s, {} ns\n", port,
                   link_state_name(link.state), peer, link.peer_port, link.lanes, link.gbps, link.latency_ns);
    }
}

}  // namespace

void show_table(const System& system, bool counters) {
    for (const Card& card : system.cards) {
        show_card(card);
        if (!card.trouble.empty()) fmt::print("   problem    {}\n", card.trouble);
        for (const Process& process : card.processes) {
            fmt::print(
                "   process    {} {}: {} MiB, {:.3f} ms of vector cores and {:.3f} ms of copy engines in "
                "model time\n",
                process.pid, process.name, mib(process.memory_bytes),
                static_cast<double>(process.vector_ns) / 1e6, static_cast<double>(process.copy_ns) / 1e6);
        }
        if (!counters) continue;
        std::size_t width = 0;
        for (const Counter& counter : card.counters)
            width = std::max(width, counter.name.size());
        for (const Metric& metric : card.metrics)
            width = std::max(width, metric.name.size());
        for (const Counter& counter : card.counters)
            fmt::print("   {:<{}} {:>20} {:<12} {}\n", counter.name, width, counter.value, counter.unit,
                       counter.meaning);
        for (const Metric& metric : card.metrics) {
            if (std::isnan(metric.value)) continue;
            fmt::print("   {:<{}} {:>20.2f} {:<12} {}\n", metric.name, width, metric.value, metric.unit,
                       metric.meaning);
        }
    }
}

}  // namespace orrery::smi
