#include "tools/prof/links.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tools/prof/counter_series.h"
#include "tools/prof/intervals.h"

namespace orrery::prof {
namespace {

// Cards that keep step have one time.
bool in_step(const Activity& activity, std::uint32_t device) {
    return std::ranges::any_of(activity.process->clocks, [&](const ClockRecord& clock) {
        return clock.device == device && clock.in_step != 0;
    });
}

struct Carried {
    std::uint64_t bytes = 0;
    Intervals times;
};
// What this card's engines copied to the peer, or from it.
Carried copies(const Activity& activity, const DeviceModel& device, std::int32_t peer, Direction direction) {
    Carried carried;
    for (const std::uint32_t i : device.work) {
        const Work& one = activity.work[i];
        if (one.operation() != Operation::kCopy || direction_of(*one.record) != direction) continue;
        if ((direction == Direction::kToPeer ? one.record->destination : one.record->source) != peer)
            continue;
        carried.bytes += one.record->bytes;
        carried.times.push_back({one.record->begin_ps, one.record->end_ps});
    }
    carried.times = union_of(std::move(carried.times));
    return carried;
}

LinkSums::Way way_of(Carried own, Carried peers, bool one_time) {
    LinkSums::Way way{own.bytes + peers.bytes, 0};
    if (!one_time) {
        way.ps = length_of(own.times) + length_of(peers.times);
        return way;
    }
    own.times.insert(own.times.end(), peers.times.begin(), peers.times.end());
    way.ps = length_of(union_of(std::move(own.times)));
    return way;
}

}  // namespace

std::vector<LinkSums> link_sums(const Activity& activity, const DeviceModel& device) {
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
    for (LinkSums& one : all) {
        const std::int32_t peer = one.first().peer_device;
        if (peer < 0) continue;
        const auto own = static_cast<std::int32_t>(device.number);
        const DeviceModel* const other = activity.device(static_cast<std::uint32_t>(peer));
        const auto of_other = [&](Direction direction) {
            return other == nullptr ? Carried() : copies(activity, *other, own, direction);
        };
        const bool one_time =
            in_step(activity, device.number) && in_step(activity, static_cast<std::uint32_t>(peer));
        one.sent = way_of(copies(activity, device, peer, Direction::kToPeer), of_other(Direction::kFromPeer),
                          one_time);
        one.received = way_of(copies(activity, device, peer, Direction::kFromPeer),
                              of_other(Direction::kToPeer), one_time);
    }
    return all;
}

std::optional<LinkCounts> link_counts(const Activity& activity, const DeviceModel& device) {
    const Process& process = *activity.process;
    using Member = std::uint64_t LinkCounts::*;
    static constexpr std::array<std::pair<std::string_view, Member>, 5> kCounters = {{
        {"link_tx_bytes", &LinkCounts::sent},
        {"link_rx_bytes", &LinkCounts::received},
        {"link_retries", &LinkCounts::retries},
        {"link_tx_messages", &LinkCounts::messages},
        {"link_credit_ps", &LinkCounts::credit_ps},
    }};
    std::optional<LinkCounts> counts;
    const auto sets = samples_of_sets(process);
    for (std::size_t number = 0; number < sets.size(); ++number) {
        const Process::SampleSet& set = process.sample_sets[number];
        if (set.device != device.number || sets[number].size() < 2) continue;
        const Process::Sample &first = *sets[number].front(), &last = *sets[number].back();
        LinkCounts own;
        std::size_t known = 0;
        const auto ups = went_up(process, set, first, last);
        for (std::size_t i = 0; i < ups.size(); ++i) {
            for (const auto& [name, member] : kCounters) {
                if (process.text(set.counters[i].name) != name || !ups[i]) continue;
                own.*member = *ups[i];
                ++known;
            }
        }
        // Of a set that lacks some there is nothing to say; of several the first that has them.
        if (known != kCounters.size() || last.time_ps == first.time_ps) continue;
        own.ps = last.time_ps - first.time_ps;
        counts = counts ? counts : std::optional(own);
    }
    return counts;
}

}  // namespace orrery::prof
