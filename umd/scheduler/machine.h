// What the planner knows of the cards: how fast they are and what a transfer between two memories costs.
// All times of the scheduler are model time in picoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace orrery::umd {

using Ps = std::int64_t;
constexpr Ps kNever = INT64_MAX;

// What is said or measured to be longer, or further apart, is planned as this: plans add many of them up.
constexpr Ps kLongest = 1'000'000'000'000'000;
constexpr double kMostSlowness = 1e3;

// In bounds; of a NaN it is 0.
constexpr Ps duration_of(double ps) {
    return ps > 0 ? static_cast<Ps>(std::min(ps, static_cast<double>(kLongest))) : 0;
}

constexpr unsigned kMaxCards = 8;
constexpr unsigned kMaxNodes = kMaxCards + 1;  // memories: the cards', then the host's
constexpr unsigned kMaxWorkers = 8;            // of one card
// In sets of nodes.
constexpr unsigned bit(unsigned node) {
    return 1u << node;
}

struct Channel {
    Ps latency = 0;
    double ps_per_byte = 0;
    bool exists = false;
    // Transfers of one channel come one after the other, those of different ones side by side.
    Ps occupied(std::uint64_t bytes) const { return duration_of(ps_per_byte * static_cast<double>(bytes)); }
    Ps duration(std::uint64_t bytes) const { return latency + occupied(bytes); }
};

struct Machine {
    unsigned cards = 1;
    std::array<double, kMaxCards> slowness{};  // duration of a task there = cost * slowness
    std::array<std::array<Channel, kMaxNodes>, kMaxNodes> channel{};
    // Kernels that a card can run side by side, and for how many work-groups each of them has cores. 0: one
    // kernel has the card, whatever its size.
    std::array<unsigned, kMaxNodes> workers{};
    std::array<unsigned, kMaxNodes> groups_a_worker{};

    // Of a task of that cost there.
    Ps duration(unsigned node, Ps cost) const {
        return node == host() ? cost : duration_of(static_cast<double>(cost) * slowness[node]);
    }
    unsigned workers_of(unsigned node) const { return workers[node] == 0 ? 1 : workers[node]; }
    // How many workers of a card so many groups keep busy; 0 groups: all.
    unsigned width(unsigned node, std::uint64_t groups) const {
        const std::uint64_t each = groups_a_worker[node] == 0 ? 1 : groups_a_worker[node];
        if (groups == 0 || groups > each * workers_of(node)) return workers_of(node);
        return static_cast<unsigned>((groups + each - 1) / each);
    }
    // Of a copy that nothing else is in the way of: over the host if there is no channel of the two.
    Ps way(std::uint64_t bytes, unsigned from, unsigned to) const {
        if (channel[from][to].exists) return channel[from][to].duration(bytes);
        return channel[from][host()].duration(bytes) + channel[host()][to].duration(bytes);
    }
    unsigned host() const { return cards; }
    unsigned nodes() const { return cards + 1; }

    // Equal cards, each joined to each other and to the host.
    static Machine uniform(unsigned cards, Ps latency, double link_bytes_per_s, double host_bytes_per_s) {
        Machine machine;
        machine.cards = cards;
        machine.slowness.fill(1.0);
        for (unsigned a = 0; a <= cards; ++a) {
            for (unsigned b = 0; b <= cards; ++b) {
                if (a == b) continue;
                const bool host = a == cards || b == cards;
                machine.channel[a][b] = {latency, 1e12 / (host ? host_bytes_per_s : link_bytes_per_s), true};
            }
        }
        return machine;
    }
};

}  // namespace orrery::umd
