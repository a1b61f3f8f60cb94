// Links as people are told of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "umd/runtime/context.h"

namespace orrery::umd {

// "the link from port 1 of device 0 to device 2"; cards of other processes as sysfs names them.
std::string name_of(const Fleet& fleet, const WayLoss::Link& link);
// The one that ended the way between the two that was this number; nothing, if nobody knows, or none did.
std::optional<std::string> lost_link(const Context& from, const Context& to, std::uint64_t way);
// "… went down first; ", of a card that is lost now: a link of its own, or one between switches. Nothing:
// none has, or nobody knows.
std::string loss_before(const Context& lost);
// "; … went down": the last that did of a way between the two, for what has just found none. Nothing, if none
// has or nobody knows, or a card was gone before.
std::string last_loss(const Context& from, const Context& to);
// The same for what failed some time ago: one that has come up again may have nothing to do with that.
std::string loss_that_stands(const Context& from, const Context& to);
// " (memory of device 2; … went down)", of work that found no way to an address; nothing of another
// machine's.
std::string beyond_link(const Context& from, std::uint64_t va);
// " (a multicast to devices 1 and 2; … went down)": links that it has lost since it was made; nothing: it has
// lost none, or there is none at this address.
std::string lost_of_multicast(const Context& from, std::uint64_t va);

}  // namespace orrery::umd
