#include "tools/prof/links.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tools/prof/counter_series.h"

namespace orrery::prof {

namespace {

constexpr std::uint64_t bit_of(std::uint32_t port) {
    return port < 64 ? std::uint64_t{1} << port : 0;
}

}  // namespace

bool in_step(const Activity& activity, std::uint32_t device) {
    return std::ranges::any_of(activity.process->clocks, [&](const ClockRecord& clock) {
        return clock.device == device && clock.in_step != 0;
    });
}

LinkTraffic::LinkTraffic(const Model& model) {
    for (const Activity& activity : model.processes) {
        for (const DeviceModel& device : activity.devices) {
            const auto card = card_of(activity, device.number);
            if (!card) continue;
            cards_.insert(*card);
            if (in_step(activity, device.number)) in_step_.insert(*card);
            for (const std::uint32_t i : device.work) {
                const Work& one = activity.work[i];
                const WorkRecord& record = *one.record;
                if (one.operation() != Operation::kCopy) continue;
                const Direction direction = direction_of(record);
                if (direction != Direction::kToPeer && direction != Direction::kFromPeer) continue;
                const std::int32_t place = peer_of(record, direction);
                const auto peer =
                    place < 0 ? std::nullopt : card_of(activity, static_cast<std::uint32_t>(place));
                const std::uint64_t ports = one.counters != nullptr ? one.counters->link_ports : 0;
                Carried& to = copies_[{*card, peer ? peer->uid : 0, direction, ports}];
                to.bytes += record.bytes;
                to.times.push_back({record.begin_ps, record.end_ps});
            }
        }
    }
    for (auto& [key, one] : copies_)
        one.times = union_of(std::move(one.times));
}

std::optional<LinkTraffic::Card> LinkTraffic::card_of(const Activity& activity, std::uint32_t number) {
    const std::size_t machine = activity.process->machine_at;
    const DeviceModel* const device = activity.device(number);
    if (device != nullptr && device->card != nullptr) return Card{machine, device->card->uid};
    // A card that did nothing for the process is known by its links to others.
    for (const DeviceModel& other : activity.devices) {
        for (const LinkRecord* link : other.links) {
            if (link->peer_device >= 0 && static_cast<std::uint32_t>(link->peer_device) == number)
                return Card{machine, link->peer_uid};
        }
    }
    return std::nullopt;
}

LinkTraffic::Carried LinkTraffic::carried(const Card& card, std::uint64_t peer, Direction direction,
                                          std::optional<std::uint32_t> port) const {
    Carried all;
    for (auto at = copies_.lower_bound({card, peer, direction, 0}); at != copies_.end(); ++at) {
        const auto& [key, one] = *at;
        if (key.card != card || key.peer != peer || key.direction != direction) break;
        if (port && key.ports != bit_of(*port)) continue;
        all.bytes += one.bytes;
        all.times.insert(all.times.end(), one.times.begin(), one.times.end());
    }
    all.times = union_of(std::move(all.times));
    return all;
}

bool LinkTraffic::by_port(const Card& card, const Card& peer,
                          const std::vector<const LinkRecord*>& ports) const {
    return std::ranges::all_of(copies_, [&](const auto& copy) {
        const Key& key = copy.first;
        const bool own = key.card == card && key.peer == peer.uid;
        if (!own && (key.card != peer || key.peer != card.uid)) return true;
        return std::ranges::any_of(ports, [&](const LinkRecord* link) {
            return key.ports == bit_of(own ? link->port : link->peer_port);
        });
    });
}

LinkSums::Way LinkTraffic::way(const Card& card, const Card& peer, Direction own, Direction peers,
                               const LinkRecord* port) const {
    const auto number = [&](std::uint32_t LinkRecord::* end) {
        return port == nullptr ? std::nullopt : std::optional(port->*end);
    };
    const Carried one = carried(card, peer.uid, own, number(&LinkRecord::port));
    const Carried other = carried(peer, card.uid, peers, number(&LinkRecord::peer_port));
    LinkSums::Way way{one.bytes + other.bytes, 0};
    if (!in_step_.contains(card) || !in_step_.contains(peer)) {
        way.ps = length_of(one.times) + length_of(other.times);
        return way;
    }
    Intervals both = one.times;
    both.insert(both.end(), other.times.begin(), other.times.end());
    way.ps = length_of(union_of(std::move(both)));
    return way;
}

std::vector<LinkSums> LinkTraffic::of(const Activity& activity, const DeviceModel& device) const {
    std::vector<LinkSums> all;
    std::vector<const LinkRecord*> links = device.links;
    std::ranges::sort(links, {}, &LinkRecord::port);
    for (const LinkRecord* link : links) {
        auto found =
            std::ranges::find(all, link->peer_uid, [](const LinkSums& one) { return one.first().peer_uid; });
        if (found == all.end()) {
            all.emplace_back();
            found = all.end() - 1;
        }
        found->ports.push_back(link);
        found->gb_per_s += link->gbit_per_s / 8.0;
    }
    const auto card = card_of(activity, device.number);
    std::vector<LinkSums> rows;
    for (LinkSums& one : all) {
        const Card peer{activity.process->machine_at, one.first().peer_uid};
        one.known = card && (one.first().peer_device >= 0 || cards_.contains(peer));
        const auto sum = [&](LinkSums& of, const LinkRecord* port) {
            of.sent = way(*card, peer, Direction::kToPeer, Direction::kFromPeer, port);
            of.received = way(*card, peer, Direction::kFromPeer, Direction::kToPeer, port);
        };
        if (one.known && one.ports.size() > 1 && by_port(*card, peer, one.ports)) {
            for (const LinkRecord* link : one.ports) {
                LinkSums& row = rows.emplace_back();
                row.ports = {link};
                row.gb_per_s = link->gbit_per_s / 8.0;
                sum(row, link);
            }
            continue;
        }
        if (one.known) sum(one, nullptr);
        rows.push_back(std::move(one));
    }
    std::ranges::sort(rows, {}, [](const LinkSums& one) { return one.first().port; });
    return rows;
}

std::vector<LinkTraffic::Beyond> LinkTraffic::beyond(const Activity& activity,
                                                     const DeviceModel& device) const {
    const auto card = card_of(activity, device.number);
    if (!card) return {};
    std::set<std::uint64_t> peers;
    for (const auto& [key, one] : copies_) {
        if (key.card == *card && key.peer != 0) peers.insert(key.peer);
        if (key.card.machine == card->machine && key.peer == card->uid) peers.insert(key.card.uid);
    }
    for (const LinkRecord* link : device.links)
        peers.erase(link->peer_uid);
    std::vector<Beyond> all;
    for (const std::uint64_t uid : peers) {
        const Card peer{card->machine, uid};
        all.push_back({uid, way(*card, peer, Direction::kToPeer, Direction::kFromPeer),
                       way(*card, peer, Direction::kFromPeer, Direction::kToPeer)});
    }
    return all;
}

std::pair<LinkSums::Way, LinkSums::Way> LinkTraffic::elsewhere(const Activity& activity,
                                                               const DeviceModel& device) const {
    const auto card = card_of(activity, device.number);
    if (!card) return {};
    const auto sum = [&](Direction direction) {
        const Carried one = carried(*card, 0, direction);
        return LinkSums::Way{one.bytes, length_of(one.times)};
    };
    return {sum(Direction::kToPeer), sum(Direction::kFromPeer)};
}

std::optional<LinkCounts> link_counts(const Activity& activity, const DeviceModel& device) {
    static constexpr std::array<std::string_view, 5> kNames = {
        "link_tx_bytes", "link_rx_bytes", "link_retries", "link_tx_messages", "link_credit_ps"};
    const auto ups = sampled_ups(*activity.process, device.number, kNames);
    if (!ups) return {};
    return LinkCounts{.ps = ups->ps,
                      .sent = ups->values[0],
                      .received = ups->values[1],
                      .retries = ups->values[2],
                      .messages = ups->values[3],
                      .credit_ps = ups->values[4]};
}

}  // namespace orrery::prof
