// Links as people are told of them.
#pragma once

#include <cstdint>
#include <string>

#include "umd/runtime/context.h"

namespace orrery::umd {

// "the link from port 1 of device 0 to device 2"; cards of other processes as sysfs names them.
std::string name_of(Fleet& fleet, const WayLoss::Link& link);
// The one that ended the way between the two that was this number; "the link between them", if nobody knows.
std::string lost_link(const Context& from, const Context& to, std::uint64_t way);
// " (memory of device 2; … went down)", of work that found no way to an address; nothing of one elsewhere.
std::string beyond_link(const Context& from, std::uint64_t va);

}  // namespace orrery::umd
