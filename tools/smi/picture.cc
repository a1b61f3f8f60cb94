// The cards, the switches behind them, and what joins them, as a picture shows it.
#include <fmt/format.h>
#include <orrery/hw/switches.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "tools/cards/cards.h"
#include "tools/smi/links.h"

namespace orrery::smi {
namespace {

using topology::PictureLink;
using topology::Port;

orrLinkInfo link_of(const SwitchPort& port) {
    orrLinkInfo link = ORR_INIT(orrLinkInfo);
    link.state = port.state;
    return link;
}

// At the end of a line that leads to nothing of the picture.
std::string down_text(orrLinkState state, std::uint64_t losses) {
    if (losses != 0) return fmt::format("{}, lost {}", cards::link_state_name(state), times(losses));
    return state == orrLinkStateDown ? "" : cards::link_state_name(state);
}

class Builder {
  public:
    Builder(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches)
        : cards_(cards), switches_(switches) {}

    topology::Picture picture() {
        for (const LinkedCard& card : cards_)
            picture_.cards.push_back({card.name, card.address, card.sku});
        for (const Switch& one : switches_)
            place_of(one.uid, static_cast<int>(std::min(one.level, ORR_SWITCH_MAX_LEVEL)));
        join_cards();
        for (unsigned card = 0; card < cards_.size(); ++card)
            for (unsigned number = 0; number < cards_[card].ports.size(); ++number)
                add_port_of_card({card, number}, cards_[card].ports[number]);
        for (const Switch& one : switches_)
            for (const SwitchPort& port : one.ports)
                add_port_of_switch(one, port);
        return std::move(picture_);
    }

  private:
    unsigned place_of(std::uint64_t uid, int level) {
        const auto [place, first] = places_.emplace(uid, static_cast<unsigned>(picture_.cards.size()));
        if (first) picture_.cards.push_back({"switch", "", fmt::format("{:016x}", uid), level});
        return place->second;
    }

    void join_cards() {
        std::vector<std::vector<orrLinkInfo>> ports(cards_.size());
        for (std::size_t card = 0; card < cards_.size(); ++card)
            for (const LinkPort& port : cards_[card].ports)
                ports[card].push_back(port.link);
        picture_.links = topology::links_between(ports);
        for (const PictureLink& link : picture_.links)
            drawn_.insert({link.edge.first, link.edge.second});
    }

    void add_port_of_card(Port near, const LinkPort& port) {
        if (drawn_.contains(near)) return;
        const orrLinkInfo& link = port.link;
        if (!is_up(link)) {
            picture_.ports.push_back(
                {near, topology::state_of(link), down_text(link.state, port.losses.value_or(0))});
        } else if (port.to_switch) {
            // A card knows of its switch what it is itself told, be it the only one that says so.
            join(near, {place_of(link.peer_uid, 0), link.peer_port},
                 {near, near, link.lanes, link.gbps, link.latency_ns}, topology::state_of(link));
        } else {
            picture_.ports.push_back({near, topology::state_of(link),
                                      fmt::format("to {:016x} port {}", link.peer_uid, link.peer_port)});
        }
    }

    void add_port_of_switch(const Switch& one, const SwitchPort& port) {
        const Port near{places_.at(one.uid), port.number};
        if (drawn_.contains(near)) return;
        const topology::LinkState state = topology::state_of(link_of(port));
        if (!is_up(link_of(port))) {
            if (const std::string note = down_text(port.state, port.losses); !note.empty())
                picture_.ports.push_back({near, state, note});
            return;
        }
        if (const Switch* other = find(port.peer_uid); port.to_switch && other != nullptr) {
            // Only what both ends say is a link: the words of one of them may be of a moment ago.
            const bool agrees = std::ranges::any_of(other->ports, [&](const SwitchPort& end) {
                return is_up(link_of(end)) && end.number == port.peer_port && end.peer_uid == one.uid &&
                       end.peer_port == port.number;
            });
            if (agrees)
                return join(near, {places_.at(other->uid), port.peer_port},
                            {near, near, port.lanes, port.gbps, port.latency_ns}, state);
        }
        picture_.ports.push_back({near, state,
                                  fmt::format("to {}{:016x} port {}", port.to_switch ? "switch " : "",
                                              port.peer_uid, port.peer_port)});
    }

    void join(Port near, Port far, topology::Edge edge, topology::LinkState state) {
        edge.first = near;
        edge.second = far;
        drawn_.insert({near, far});
        picture_.links.push_back({edge, state});
    }

    const Switch* find(std::uint64_t uid) const {
        const auto found = std::ranges::find(switches_, uid, &Switch::uid);
        return found == switches_.end() ? nullptr : &*found;
    }

    const std::vector<LinkedCard>& cards_;
    const std::vector<Switch>& switches_;
    topology::Picture picture_;
    std::set<Port> drawn_;
    std::map<std::uint64_t, unsigned> places_;  // of switches, by uid, behind the cards
};

}  // namespace

std::vector<Switch> switches_behind(std::vector<LinkedCard>& cards) {
    std::vector<Switch> all;
    for (LinkedCard& card : cards)
        for (std::size_t port = 0; port < card.ports.size(); ++port) {
            const LinkPort& leads = card.ports[port];
            if (!leads.to_switch || !is_up(leads.link)) continue;
            auto told = read_switches(card.address, port, leads.link.peer_uid);
            if (!told) {
                if (card.trouble.empty())
                    card.trouble = fmt::format("switches behind port {}: {}", port, told.error().text);
                continue;
            }
            std::ranges::move(*told, std::back_inserter(all));
        }
    return merged(std::move(all));
}

topology::Picture picture_of(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches) {
    return Builder(cards, switches).picture();
}

}  // namespace orrery::smi
