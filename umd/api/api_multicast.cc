// Memory of several devices that one writes at once.
#include <map>
#include <span>
#include <vector>

#include "umd/api/guard.h"
#include "umd/api/structs.h"

using namespace orrery::umd;

namespace orrery::umd::api {

orrError_t orrMulticastCreate(void** ptr, void* const* members, int count, size_t bytes, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, orrMulticastReadable, "orrMulticastCreate"));
        if (ptr == nullptr) return null_argument("ptr");
        if (members == nullptr) return null_argument("members");
        if (count < 1 || static_cast<unsigned>(count) > ORR_MULTICAST_MEMBERS)
            return fail(orrErrorInvalidValue, "a multicast has 1 to {} members, not {}",
                        ORR_MULTICAST_MEMBERS, count);
        if (bytes == 0) return fail(orrErrorInvalidValue, "a multicast has a byte or more");
        std::vector<std::uint64_t> starts;
        for (void* member : std::span(members, static_cast<std::size_t>(count)))
            starts.push_back(reinterpret_cast<std::uintptr_t>(member));
        ORR_TRY(context, runtime.current_context());
        // Before it is made: a link that goes down meanwhile is told, too.
        std::map<int, std::uint64_t> ways;
        for (const Context* peer : (*context)->fleet().contexts())
            if (peer != *context) ways[peer->device()] = (*context)->way_to(*peer).value_or(0);
        ORR_TRY(allocation, runtime.memory().make_multicast((*context)->device(), starts, bytes,
                                                            (flags & orrMulticastReadable) != 0, ways));
        *ptr = reinterpret_cast<void*>(allocation->va);
        return {};
    });
}

}  // namespace orrery::umd::api
