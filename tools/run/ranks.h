// Which ranks run where.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/text/result.h"

namespace orrery::run {

inline constexpr unsigned kMaxRanks = 64;  // as ORR_GROUP_MAX_MEMBERS

// Ranks that are next to each other: those of VM 0, those of VM 1, … If they do not go evenly the first VMs
// have one more.
struct Share {
    unsigned first, count;
};
Share share_of(unsigned ranks, unsigned vms, unsigned vm);

// The words of --profile-with, as a shell has them: what stands in quotes is one, whatever is in it. An
// error: an option that orrery-run gives itself, or a quote that does not end.
text::Result<std::vector<std::string>> profile_options(std::string_view text);

// The file in which a rank's profile is.
std::string profile_of(unsigned rank);

// A token for one group, as orrGroupMakeToken gives it, and for several VMs orrGroupMakeFolderToken with
// /share; empty if the system has no random bytes.
std::string make_token(unsigned vms);

}  // namespace orrery::run
