#include "tools/smi/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "tools/cards/cards.h"

namespace orrery::smi {
namespace {

using namespace cards;

std::string last_error(orrError_t code) {
    return fmt::format("{}: {}", orrGetErrorName(code), orrGetLastErrorText());
}

// The first word of a port's file.
template <class Value>
std::optional<Value> read_file(const std::string& address, std::size_t port, const char* name) {
    std::ifstream file(fmt::format("/sys/bus/pci/devices/{}/links/{}/{}", address, port, name));
    Value value{};
    if (file >> value) return value;
    return std::nullopt;
}

std::optional<std::array<std::uint64_t, kPortCounts>> read_counts(const std::string& address,
                                                                  std::size_t port) {
    std::array<std::uint64_t, kPortCounts> counts{};
    for (std::size_t i = 0; i < kPortCounts; ++i) {
        const auto count = read_file<std::uint64_t>(address, port, kPortCountNames[i]);
        if (!count) return std::nullopt;
        counts[i] = *count;
    }
    return counts;
}

// Those that the card has; others stay 0.
orrError_t read_counters(LinkedCard& card) {
    std::vector<orrCounter_t> counters;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < kLinkCounters; ++i) {
        orrCounter_t counter = 0;
        const auto code = orrDeviceFindCounter(&counter, card.device, kLinkCounterNames[i]);
        if (code == orrErrorNotFound) continue;
        if (code != orrSuccess) return code;
        counters.push_back(counter);
        places.push_back(i);
    }
    std::vector<std::uint64_t> values(counters.size());
    const auto code = orrDeviceReadCounters(values.data(), card.device, counters.data(), counters.size());
    if (code != orrSuccess) return code;
    for (std::size_t i = 0; i < places.size(); ++i)
        card.counters[places[i]] = values[i];
    return orrSuccess;
}

bool leads_to_switch(const std::string& address, std::size_t port) {
    std::ifstream file(fmt::format("/sys/bus/pci/devices/{}/links/{}/peer", address, port));
    std::string uid, number, kind;
    return file >> uid >> number >> kind && kind == "switch";
}

orrError_t read_card(LinkedCard& card) {
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    if (const auto code = orrGetDeviceProperties(&prop, card.device); code != orrSuccess) return code;
    card.address = prop.pci_address;
    card.sku = prop.name;
    card.uid = prop.uid;
    for (std::uint32_t port = 0; port < prop.link_ports; ++port) {
        LinkPort one{ORR_INIT(orrLinkInfo), read_file<std::uint64_t>(card.address, port, "losses"),
                     read_counts(card.address, port),
                     read_file<std::string>(card.address, port, "width").value_or(""),
                     read_file<std::string>(card.address, port, "rate").value_or("")};
        one.to_switch = leads_to_switch(card.address, port);
        const auto code = orrDeviceGetLink(&one.link, card.device, static_cast<int>(port));
        if (code != orrSuccess) return code;
        card.ports.push_back(one);
    }
    return read_counters(card);
}

// A count that is not known, or that has begun anew, tells nothing.
std::uint64_t losses_since(const LinkPort& was, const LinkPort& is) {
    return was.losses && is.losses && *is.losses > *was.losses ? *is.losses - *was.losses : 0;
}

std::string denials_since(const LinkPort& was, const LinkPort& is, bool behind) {
    constexpr std::array<const char*, kPortDenials> kWhat = {"denied", "with a wrong key", "refused there",
                                                             "forged handles"};
    std::string text;
    for (std::size_t i = 0; i < kPortDenials; ++i) {
        const auto which = static_cast<PortDenial>(i);
        const auto before = denial_of(was, which), now = denial_of(is, which);
        if (!before || !now || *now <= *before) continue;
        text += fmt::format("{}{} {}", behind ? ", " : "", *now - *before, kWhat[i]);
        behind = true;
    }
    return text;
}

// What has gone wrong on the wire since; empty: nothing, or that is not known.
std::string harm_since(const LinkPort& was, const LinkPort& is) {
    if (!was.counts || !is.counts) return denials_since(was, is, false);
    std::string text;
    const auto more = [&](PortCount count, const char* what) {
        if ((*is.counts)[count] <= (*was.counts)[count]) return;
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", (*is.counts)[count] - (*was.counts)[count],
                            what);
    };
    more(kPortDamaged, "came damaged");
    more(kPortRetries, "sent again");
    more(kPortRetrains, "trained anew");
    return text + denials_since(was, is, !text.empty());
}

std::string port_text(const LinkPort& port) {
    std::string text = link_state_name(port.link.state);
    if (is_up(port.link)) text += " " + peer_text(port);
    return text;
}

}  // namespace

std::string times(std::uint64_t count) {
    return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

std::vector<LinkedCard> read_links() {
    std::vector<LinkedCard> cards;
    int devices = 0;
    if (orrGetDeviceCount(&devices) != orrSuccess) return cards;  // look() says why
    for (int device = 0; device < devices; ++device) {
        LinkedCard& card = cards.emplace_back();
        card.device = device;
        card.name = fmt::format("card {}", device);
        if (const auto code = read_card(card); code != orrSuccess) card.trouble = last_error(code);
    }
    return cards;
}

std::optional<std::uint64_t> denial_of(const LinkPort& port, PortDenial which) {
    const orrLinkInfo& link = port.link;
    if ((link.known & (which == kPortForged ? orrLinkKnowsDriver : orrLinkKnowsDenials)) == 0)
        return std::nullopt;
    return std::array{link.denied, link.bad_keys, link.refused, link.forged}[which];
}

std::string peer_text(const LinkPort& port) {
    if (port.to_switch && is_up(port.link))
        return fmt::format("to switch {:016x} port {}", port.link.peer_uid, port.link.peer_port);
    return peer_text(port.link);
}

std::string peer_text(const orrLinkInfo& link) {
    if (!is_up(link)) return "";
    if (link.peer_device >= 0) return fmt::format("to card {} port {}", link.peer_device, link.peer_port);
    return fmt::format("to a card that is not here ({:016x}) port {}", link.peer_uid, link.peer_port);
}

const LinkedCard* same_card(const std::vector<LinkedCard>& cards, const LinkedCard& card) {
    const auto found = std::ranges::find_if(cards, [&](const LinkedCard& other) {
        return card.address.empty() || other.address.empty() ? card.device == other.device
                                                             : card.address == other.address;
    });
    return found == cards.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> counted_since(const std::vector<LinkedCard>& before, const LinkedCard& now,
                                           LinkCounter counter) {
    const LinkedCard* old = same_card(before, now);
    if (old == nullptr || !old->trouble.empty() || !now.trouble.empty() ||
        old->counters[counter] > now.counters[counter])
        return std::nullopt;
    return now.counters[counter] - old->counters[counter];
}

std::vector<std::string> changes(const std::vector<LinkedCard>& before, const std::vector<LinkedCard>& now) {
    std::vector<std::string> lines;
    for (const LinkedCard& card : now) {
        const LinkedCard* old = same_card(before, card);
        if (old == nullptr) {
            lines.push_back(fmt::format("{}: is there", card.name));
            continue;
        }
        if (card.trouble != old->trouble)
            lines.push_back(
                fmt::format("{}: {}", card.name, card.trouble.empty() ? "answers again" : card.trouble));
        for (std::size_t i = 0; i < std::min(card.ports.size(), old->ports.size()); ++i) {
            const LinkPort &was = old->ports[i], &is = card.ports[i];
            const std::uint64_t lost = losses_since(was, is);
            const std::string how = lost == 0 ? "" : fmt::format(", lost {} since", times(lost));
            if (port_text(was) != port_text(is))
                lines.push_back(
                    fmt::format("{} port {}: {} -> {}{}", card.name, i, port_text(was), port_text(is), how));
            else if (lost != 0)
                lines.push_back(fmt::format("{} port {}: {}{}", card.name, i, port_text(is), how));
            if (const std::string harm = harm_since(was, is); !harm.empty())
                lines.push_back(fmt::format("{} port {}: {}", card.name, i, harm));
            if (is_up(was.link) && is_up(is.link) &&
                (was.link.lanes != is.link.lanes || was.link.gbps != is.link.gbps))
                lines.push_back(fmt::format("{} port {}: {} lanes, {} Gbit/s -> {} lanes, {} Gbit/s",
                                            card.name, i, was.link.lanes, was.link.gbps, is.link.lanes,
                                            is.link.gbps));
        }
    }
    for (const LinkedCard& card : before)
        if (same_card(now, card) == nullptr) lines.push_back(fmt::format("{}: is gone", card.name));
    return lines;
}

}  // namespace orrery::smi
