// The links of the cards of this system, as the library tells them.
#pragma once

#include <orrery/device.h>

#include <vector>

#include "tools/topology/picture.h"

namespace orrery::topology {

bool is_up(const orrLinkInfo& link);
LinkState state_of(const orrLinkInfo& link);

// By device and port; what is up between two of the devices, each link once.
std::vector<PictureLink> links_between(const std::vector<std::vector<orrLinkInfo>>& devices);

std::vector<Edge> edges_of(const std::vector<PictureLink>& links);

}  // namespace orrery::topology
