#include "tools/prof/card_facts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include <orrery/hw/bar0.h>

namespace orrery::prof {
namespace {

// At most as much as a card may say. Empty: there is none, as of a driver from before 1.3.
std::string read_table(std::string_view address) {
    // It becomes part of a path.
    if (address.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) return {};
    const std::string path = "/sys/bus/pci/devices/" + std::string(address) + "/sku_table";
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    std::string text(ORR_SKU_MAX_BYTES, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
        if (got <= 0) break;
        size += static_cast<std::size_t>(got);
    }
    ::close(fd);
    text.resize(size);
    return text;
}

}  // namespace

std::vector<std::pair<std::string, std::uint64_t>> sku_numbers(std::string_view table) {
    constexpr std::size_t kMostKeys = 512, kLongestKey = 64;
    std::vector<std::pair<std::string, std::uint64_t>> numbers;
    while (!table.empty() && numbers.size() < kMostKeys) {
        const std::string_view line = table.substr(0, table.find('\n'));
        table.remove_prefix(std::min(table.size(), line.size() + 1));
        const std::size_t tab = line.find('\t');
        if (tab == std::string_view::npos || tab == 0 || tab > kLongestKey) continue;
        const std::string_view rest = line.substr(tab + 1), number = rest.substr(0, rest.find('\t'));
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
        if (number.empty() || error != std::errc{} || end != number.data() + number.size()) continue;
        numbers.emplace_back(line.substr(0, tab), value);
    }
    return numbers;
}

Quota quota_of(const char* text) {
    if (text == nullptr) return {};
    Quota quota;
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, quota.first);
    if (error != std::errc{}) return {};
    if (rest != end && *rest == '/') (void)std::from_chars(rest + 1, end, quota.second);
    return quota;
}

CardFacts ask_card(int device) {
    CardFacts facts;
    facts.prop = ORR_INIT(orrDeviceProp);
    if (orrGetDeviceProperties(&facts.prop, device) != orrSuccess) return facts;
    facts.known = true;
    facts.sku = sku_numbers(read_table(facts.prop.pci_address));
    for (std::uint32_t port = 0; port < facts.prop.link_ports; ++port) {
        orrLinkInfo link = ORR_INIT(orrLinkInfo);
        if (orrDeviceGetLink(&link, device, static_cast<int>(port)) != orrSuccess || link.peer_uid == 0)
            continue;
        facts.links.emplace_back(port, link);
    }
    facts.clock = ORR_INIT(orrProfClock);
    if (orrProfReadClock(&facts.clock, device) != orrSuccess) facts.clock.device_ps = 0;
    return facts;
}

}  // namespace orrery::prof
