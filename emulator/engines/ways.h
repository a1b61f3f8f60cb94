// By which way each node was reached when a job first went there: what comes after goes there too, or not at
// all, as something may have been lost with the way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/memory/peer.h"

namespace orrery::emu {

class Ways {
  public:
    // nullptr: there is none, or it is not the one that it was.
    PeerPort* to(const Peers& peers, std::uint32_t node) {
        PeerPort* const link = peers.towards(node);
        const std::uint32_t route = peers.route(node);
        const auto way = std::ranges::find(ways_, node, &Way::node);
        if (way != ways_.end()) {
            const bool same = link != nullptr && way->link == link && way->route == route;
            return same && way->session == link->session() ? link : nullptr;
        }
        if (link != nullptr) ways_.push_back({node, route, link, link->session()});
        return link;
    }
    void forget() { ways_.clear(); }

  private:
    struct Way {
        std::uint32_t node;
        std::uint32_t route;
        PeerPort* link;
        std::uint64_t session;
    };
    std::vector<Way> ways_;
};

}  // namespace orrery::emu
