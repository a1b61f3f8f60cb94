#include "tools/topology/system.h"

#include <set>

namespace orrery::topology {

bool is_up(const orrLinkInfo& link) {
    return link.state == orrLinkStateUp || link.state == orrLinkStateDegraded;
}

LinkState state_of(const orrLinkInfo& link) {
    switch (link.state) {
        case orrLinkStateUp:
            return LinkState::kUp;
        case orrLinkStateDegraded:
            return LinkState::kDegraded;
        case orrLinkStateTraining:
            return LinkState::kTraining;
        default:
            return LinkState::kDown;
    }
}

std::vector<PictureLink> links_between(const std::vector<std::vector<orrLinkInfo>>& devices) {
    std::vector<PictureLink> links;
    std::set<Port> known;
    for (unsigned device = 0; device < devices.size(); ++device)
        for (unsigned number = 0; number < devices[device].size(); ++number) {
            const orrLinkInfo& link = devices[device][number];
            const Port near{device, number};
            const Port far{static_cast<unsigned>(link.peer_device), link.peer_port};
            // Of the two ends the first to be seen counts: the other may have been seen a moment earlier.
            if (!is_up(link) || link.peer_device < 0 || far.card >= devices.size() || far.card == device ||
                known.contains(near))
                continue;
            known.insert({near, far});
            links.push_back({{near, far, link.lanes, link.gbps, link.latency_ns}, state_of(link)});
            // Lanes that fail later are one end's, which sends by fewer.
            if (far.port >= devices[far.card].size()) continue;
            const orrLinkInfo& other = devices[far.card][far.port];
            if (!is_up(other) || other.peer_device != static_cast<int>(device) || other.peer_port != number)
                continue;
            links.back().edge.gbps_back = other.gbps;
            links.back().edge.lanes_back = other.lanes;
            if (other.state == orrLinkStateDegraded) links.back().state = LinkState::kDegraded;
        }
    return links;
}

std::vector<Edge> edges_of(const std::vector<PictureLink>& links) {
    std::vector<Edge> edges;
    edges.reserve(links.size());
    for (const PictureLink& link : links)
        edges.push_back(link.edge);
    return edges;
}

}  // namespace orrery::topology
