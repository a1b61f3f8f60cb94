// The channels of a task graph's machine: each is measured once in a process, or once for all that share a
// file of costs.
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "umd/runtime/fleet.h"
#include "umd/scheduler/calibration.h"
#include "umd/scheduler/runtime_executor.h"

namespace orrery::umd {
namespace {

// Of this process.
struct Measured {
    std::mutex mutex;
    std::map<std::string, Channel> channels;  // by name
    // Each is held while its card measures, so that no two sessions measure each other. By device: one that
    // does not answer holds up only those that use it.
    std::map<int, std::mutex> turns;
};
Measured& measured() {
    static Measured all;
    return all;
}

std::mutex& turn_of(int device) {
    const std::lock_guard lock(measured().mutex);
    return measured().turns[device];
}

std::optional<Channel> known_channel(const std::string& name) {
    const std::lock_guard lock(measured().mutex);
    const auto known = measured().channels.find(name);
    return known == measured().channels.end() ? std::nullopt : std::optional(known->second);
}

}  // namespace

// Of the same name are those that are as fast: between the same SKUs, over a link of the same kind.
std::string RuntimeExecutor::channel_name(unsigned from, unsigned to) const {
    const auto node = [&](unsigned which) {
        return which == machine_.host() ? std::string("host") : cards_[which].sku;
    };
    const bool link = from != machine_.host() && to != machine_.host();
    return node(from) + ">" + node(to) + (link ? cards_[from].links[to] : "");
}

void RuntimeExecutor::calibrate(CostModel& costs) {
    for (unsigned card = 0; card < machine_.cards; ++card) {
        const std::lock_guard turn(turn_of(cards_[card].device));
        std::vector<std::pair<unsigned, unsigned>> unknown;
        for (unsigned other = 0; other < machine_.nodes(); ++other) {
            // A card measures what it does itself: both ways to the host, and what it sends to others.
            for (const auto& way : {std::pair(card, other), std::pair(other, card)}) {
                const auto [from, to] = way;
                if (!machine_.channel[from][to].exists) continue;
                if (from != card && from != machine_.host()) continue;
                const std::string name = channel_name(from, to);
                if (costs.channel(name)) continue;
                if (const auto known = known_channel(name)) {
                    costs.set_channel(name, *known);
                } else {
                    unknown.push_back(way);
                }
            }
        }
        // What cannot be measured stays as it is; if that is a card that is gone, its first command says so.
        if (!unknown.empty()) (void)measure_channels(card, unknown, costs);
    }
    for (unsigned from = 0; from < machine_.nodes(); ++from) {
        for (unsigned to = 0; to < machine_.nodes(); ++to) {
            if (!machine_.channel[from][to].exists) continue;
            if (const auto known = costs.channel(channel_name(from, to))) machine_.channel[from][to] = *known;
        }
    }
}

Status RuntimeExecutor::measure_channels(unsigned card,
                                         std::span<const std::pair<unsigned, unsigned>> unknown,
                                         CostModel& costs) {
    Memory& memory = runtime_.memory();
    std::vector<std::uint64_t> taken;
    const auto measure_all = [&]() -> Status {
        std::map<unsigned, std::uint64_t> places;  // by node
        const auto place = [&](unsigned node) -> Result<std::uint64_t> {
            if (const auto known = places.find(node); known != places.end()) return known->second;
            ORR_TRY(made, node == machine_.host()
                              ? memory.allocate_host(cards_[card].device, kCalibrationBytes)
                              : memory.allocate_device(cards_[node].device, kCalibrationBytes));
            taken.push_back(*made);
            if (node != machine_.host()) {
                ORR_TRY(told, cards_[node].context->tell_heap());
            }
            places.emplace(node, *made);
            return *made;
        };
        std::vector<Way> ways;
        for (const auto& [from, to] : unknown) {
            ORR_TRY(src, place(from));
            ORR_TRY(dst, place(to));
            const bool crosses = to != card && to != machine_.host();
            ways.push_back({*dst, *src, crosses ? cards_[to].context : nullptr});
        }
        ORR_TRY(channels, measure(runtime_, *cards_[card].context, ways));
        for (std::size_t i = 0; i < channels->size(); ++i) {
            if (!(*channels)[i]) continue;
            const auto [from, to] = unknown[i];
            Channel channel = *(*channels)[i];
            // The sender's time ends when the last byte is on the link.
            if (ways[i].peer != nullptr) channel.latency += cards_[card].link_latency[to];
            costs.set_channel(channel_name(from, to), channel);
            const std::lock_guard lock(measured().mutex);
            measured().channels[channel_name(from, to)] = channel;
        }
        return {};
    };
    const Status done = measure_all();
    // What a sender that gave up has put on a link still arrives: its place is not given to others before.
    Context& sender = *cards_[card].context;
    if (!done && !sender.fleet().wait_quiet(sender)) return done;
    free_all(taken);
    return done;
}

}  // namespace orrery::umd
