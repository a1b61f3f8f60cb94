#include "umd/runtime/link_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "umd/runtime/fleet.h"
#include "umd/runtime/memory.h"

namespace orrery::umd {
namespace {

// A card of this process, or as sysfs names it (links/PORT/peer).
std::string name_of(Fleet& fleet, std::uint64_t uid) {
    const int device = fleet.device_of(uid);
    return device < 0 ? fmt::format("the card {:016x}", uid) : fmt::format("device {}", device);
}

}  // namespace

std::string name_of(Fleet& fleet, const WayLoss::Link& link) {
    return fmt::format("the link from port {} of {} to {}", link.port, name_of(fleet, link.uid),
                       link.peer == 0 ? "a switch" : name_of(fleet, link.peer));
}

std::string lost_link(const Context& from, const Context& to, std::uint64_t way) {
    const auto loss = from.way_loss(to, way);
    return loss && loss->link ? name_of(from.fleet(), *loss->link) : "the link between them";
}

std::string beyond_link(const Context& from, std::uint64_t va) {
    const auto memory = from.memory().find(va);
    if (!memory || memory->elsewhere || memory->device == kHost || memory->device == from.device()) return {};
    std::string text = fmt::format(" (memory of device {}", memory->device);
    const auto cards = from.fleet().contexts();
    const auto owner =
        std::ranges::find_if(cards, [&](const Context* card) { return card->device() == memory->device; });
    const auto link = owner == cards.end() ? std::nullopt : from.last_lost_link(**owner);
    if (link) text += fmt::format("; {} went down", name_of(from.fleet(), *link));
    return text + ")";
}

}  // namespace orrery::umd
