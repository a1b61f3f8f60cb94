#include "umd/runtime/link_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "umd/runtime/fleet.h"
#include "umd/runtime/memory.h"

namespace orrery::umd {
namespace {

// A card of this process, or, as a switch, as sysfs and orrery-smi name it (links/PORT/peer).
std::string name_of(const Fleet& fleet, std::uint64_t uid, bool is_switch) {
    if (is_switch) return uid == 0 ? "a switch" : fmt::format("switch {:016x}", uid);
    const int device = fleet.device_of(uid);
    return device < 0 ? fmt::format("the card {:016x}", uid) : fmt::format("device {}", device);
}

const Context* of_device(const Context& from, int device) {
    const auto cards = from.fleet().contexts();
    const auto owner =
        std::ranges::find_if(cards, [&](const auto* card) { return card->device() == device; });
    return owner == cards.end() ? nullptr : *owner;
}

// At this moment, as the driver says. Of another process's card nobody asks.
bool is_down(const Fleet& fleet, const WayLoss::Link& link) {
    for (const Context* card : fleet.contexts()) {
        if (card->uid() != link.uid) continue;
        const auto now = card->winsys().link(link.port);
        return now && now->state < ORR_LINK_UP;
    }
    return false;
}

}  // namespace

std::string name_of(const Fleet& fleet, const WayLoss::Link& link) {
    return fmt::format("the link from port {} of {} to {}", link.port,
                       name_of(fleet, link.uid, link.at_switch),
                       name_of(fleet, link.peer, link.to_switch || link.peer == 0));
}

std::optional<std::string> lost_link(const Context& from, const Context& to, std::uint64_t way) {
    const auto loss = from.way_loss(to, way);
    if (!loss || !loss->link) return std::nullopt;
    return name_of(from.fleet(), *loss->link);
}

std::string loss_before(const Context& lost) {
    for (const Context* from : lost.fleet().contexts()) {
        if (from == &lost || from->lost() || !from->knows_first()) continue;
        const auto link = from->last_lost_link(lost);
        // One between others may have ended the way there long ago, and says nothing of the card.
        if (link && (link->uid == lost.uid() || link->peer == lost.uid() || link->at_switch))
            return name_of(lost.fleet(), *link) + " went down first; ";
    }
    return {};
}

std::string last_loss(const Context& from, const Context& to) {
    if (from.lost() || (to.lost() && !from.knows_first())) return {};
    const auto link = from.last_lost_link(to);
    return link ? fmt::format("; {} went down", name_of(from.fleet(), *link)) : std::string();
}

std::string loss_that_stands(const Context& from, const Context& to) {
    const auto link = from.last_lost_link(to);
    return link && is_down(from.fleet(), *link) ? last_loss(from, to) : std::string();
}

std::string beyond_link(const Context& from, std::uint64_t va) {
    const auto memory = from.memory().find(va);
    if (!memory || memory->device == kHost) return {};
    if (memory->elsewhere) return lost_of_multicast(from, va);
    if (memory->device == from.device()) return {};
    const Context* const owner = of_device(from, memory->device);
    return fmt::format(" (memory of device {}{})", memory->device,
                       owner == nullptr ? std::string() : last_loss(from, *owner));
}

std::string lost_of_multicast(const Context& from, std::uint64_t va) {
    const auto memory = from.memory().find(va);
    if (!memory || !memory->elsewhere) return {};
    const std::vector<MulticastWay>& members = memory->block->members;
    std::string devices, links;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const char* const between = i == 0 ? "" : i + 1 == members.size() ? " and " : ", ";
        devices += fmt::format("{}{}", between, members[i].device);
        const Context* const member = of_device(from, members[i].device);
        const auto loss = member == nullptr ? std::nullopt : from.way_loss(*member, members[i].way);
        if (!loss || !loss->link) continue;
        const std::string link = fmt::format("; {} went down", name_of(from.fleet(), *loss->link));
        // It may be the one link of all, of the card that writes.
        if (links.find(link) == std::string::npos) links += link;
    }
    if (links.empty()) return {};
    return fmt::format(" (a multicast to device{} {}{})", members.size() == 1 ? "" : "s", devices, links);
}

}  // namespace orrery::umd
