// How the processes of a group on one machine find each other: rank 0 waits at the token's address, hears
// from each member who it is, and tells all who all are. All get in, or none.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "umd/runtime/group_token.h"
#include "umd/winsys/error.h"
#include "umd/winsys/unique_fd.h"

namespace orrery::umd {

// One of those who have come, by rank.
struct Comer {
    UniqueFd semaphore, process;
    UniqueFd barrier;  // its page, see GroupPlan; of oneself only
    int above = -1;    // see plan_group()
};

struct Gathering {
    UniqueFd page;      // what the members share
    bool unit = false;  // see GroupPlan
    std::vector<Comer> all;
};

struct Rendezvous {
    GroupToken token;
    int rank = 0, members = 1;
    std::uint64_t limit_ns = 0;
    int semaphore = -1;  // the member's own
    // Of rank 0: says who is above whom, and makes the page.
    std::function<Status(Gathering&)> plan;
    // Takes all in; who cannot keeps all out.
    std::function<Status(Gathering&)> admit;

    // Of rank 0, if there is more to it: when all have been taken in, and before any is told so.
    std::function<Status()> settle{};
    // What texts call the members; empty: by their ranks.
    std::vector<int> names{};
    int name(std::size_t of) const { return names.empty() ? static_cast<int>(of) : names[of]; }

    // Returns when all members are in.
    Status meet() const;
};

}  // namespace orrery::umd
