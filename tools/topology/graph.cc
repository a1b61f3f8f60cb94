#include "tools/topology/graph.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace orrery::topology {
namespace {

using Pairs = std::set<std::pair<unsigned, unsigned>>;  // the lower number first

Pairs pairs_of(unsigned cards, const std::vector<Edge>& edges) {
    Pairs pairs;
    for (const Edge& edge : edges) {
        const auto [low, high] = std::minmax(edge.first.card, edge.second.card);
        if (low != high && high < cards) pairs.emplace(low, high);
    }
    return pairs;
}

// One behind the other from `first` on, as far as each has one neighbour that was not there yet.
std::vector<unsigned> walk(unsigned first, const std::vector<std::vector<unsigned>>& neighbours) {
    std::vector<unsigned> order{first};
    std::vector<bool> seen(neighbours.size());
    seen[first] = true;
    for (bool on = true; on;) {
        on = false;
        for (const unsigned next : neighbours[order.back()]) {
            if (seen[next]) continue;
            seen[next] = on = true;
            order.push_back(next);
            break;
        }
    }
    return order;
}

std::optional<Sides> torus_sides(unsigned cards, const Pairs& pairs) {
    for (unsigned columns = cards / 3; columns >= 3; --columns) {
        if (cards % columns != 0) continue;
        const auto torus = make(Shape::kTorus, cards, Sides{columns, cards / columns});
        if (!torus || torus->links.size() != pairs.size()) continue;
        const bool same = std::ranges::all_of(torus->links, [&](const Link& link) {
            return pairs.contains({link.first.card, link.second.card});
        });
        if (same) return torus->sides;
    }
    return std::nullopt;
}

bool better(const Way& a, const Way& b) {
    return std::tuple(a.links, b.gbps, a.latency_ns) < std::tuple(b.links, a.gbps, b.latency_ns);
}

}  // namespace

Ways::Ways(unsigned cards, const std::vector<Edge>& edges) : cards_(cards), all_(std::size_t{cards} * cards) {
    std::vector<Edge> one_way;
    for (const Edge& edge : edges) {
        if (edge.first.card >= cards || edge.second.card >= cards) continue;
        one_way.push_back(edge);
        one_way.push_back(edge.back());
    }
    for (unsigned from = 0; from < cards; ++from) {
        std::optional<Way>* ways = &all_[std::size_t{from} * cards];
        // Round N finds what is N links away.
        for (unsigned links = 1; links < cards; ++links)
            for (const Edge& edge : one_way) {
                const auto [near, far] = std::pair(edge.first.card, edge.second.card);
                if (far == from || (near == from) != (links == 1)) continue;
                const Way before = near == from ? Way{0, edge.gbps, 0} : ways[near].value_or(Way{});
                if (before.links + 1 != links) continue;
                const Way way{links, std::min(before.gbps, edge.gbps), before.latency_ns + edge.latency_ns};
                if (!ways[far] || better(way, *ways[far])) ways[far] = way;
            }
    }
}

Form form_of(unsigned cards, const std::vector<Edge>& edges) {
    Form form;
    form.order.resize(cards);
    std::iota(form.order.begin(), form.order.end(), 0U);
    if (cards < 2) return form;
    // Of more than cards nothing has a name.
    if (std::ranges::any_of(
            edges, [&](const Edge& edge) { return edge.first.card >= cards || edge.second.card >= cards; }))
        return form;
    const Pairs pairs = pairs_of(cards, edges);
    std::vector<std::vector<unsigned>> neighbours(cards);
    for (const auto& [a, b] : pairs) {
        neighbours[a].push_back(b);
        neighbours[b].push_back(a);
    }
    const auto with = [&](std::size_t degree) {
        return static_cast<unsigned>(
            std::ranges::count_if(neighbours, [&](const auto& each) { return each.size() == degree; }));
    };
    const auto take = [&](Shape shape, unsigned first) {
        auto order = walk(first, neighbours);
        if (order.size() != cards) return false;
        form.shape = shape;
        form.order = std::move(order);
        return true;
    };
    if (cards == 2 && pairs.size() == 1) {
        form.shape = Shape::kPair;
    } else if (with(1) == 2 && with(2) == cards - 2) {
        const auto end = std::ranges::find_if(neighbours, [](const auto& each) { return each.size() == 1; });
        take(Shape::kChain, static_cast<unsigned>(end - neighbours.begin()));
    } else if (with(2) == cards) {
        take(Shape::kRing, 0);
    } else if (pairs.size() == std::size_t{cards} * (cards - 1) / 2) {
        form.shape = Shape::kMesh;
    } else if (const auto sides = torus_sides(cards, pairs)) {
        form.shape = Shape::kTorus;
        form.sides = *sides;
    }
    return form;
}

}  // namespace orrery::topology
