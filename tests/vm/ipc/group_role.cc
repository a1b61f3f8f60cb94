// A member of a group in a process of its own: does what it is told, and tells what came of it.
#include <orrery/group.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/vm/ipc/peer.h"

namespace orrery::umd::vm {
namespace {

orrError_t do_it(std::uint64_t what, orrGroup_t group, orrStream_t stream, orrSemaphore_t never, int rank,
                 int members) {
    std::uint64_t own = static_cast<std::uint64_t>(rank) * 1000 + 7, all[ORR_GROUP_MAX_MEMBERS] = {};
    switch (what) {
        case kGroupBarrier:
            return orrGroupBarrier(group, kLongNs);
        case kGroupGather: {
            const orrError_t done = orrGroupAllGather(group, all, &own, sizeof own, kLongNs);
            for (int i = 0; done == orrSuccess && i < members; ++i) {
                if (all[i] != static_cast<std::uint64_t>(i) * 1000 + 7) return orrErrorInternal;
            }
            return done;
        }
        case kGroupBroadcast: {
            const orrError_t done = orrGroupBroadcast(group, &own, sizeof own, members - 1, kLongNs);
            const bool good = own == static_cast<std::uint64_t>(members - 1) * 1000 + 7;
            return done == orrSuccess && !good ? orrErrorInternal : done;
        }
        case kGroupEnqueue:
            return orrGroupBarrierAsync(group, stream, nullptr);
        case kGroupHold:
            return orrStreamWaitSemaphore(stream, never, 1, nullptr);
        case kGroupRelease:
            return orrSemaphoreSignal(never, 1);
        case kGroupSync:
            return orrStreamSynchronize(stream);
        case kGroupAbort:
            return orrGroupAbort(group, "as it was told");
        case kGroupLeave:
            return orrGroupDestroy(group);
    }
    return orrErrorInternal;
}

}  // namespace

orrError_t join(orrGroup_t* group, int rank, int members, std::uint64_t limit_ns) {
    orrGroupToken token{};
    const char* text = std::getenv(kTokenVariable);
    if (text != nullptr) std::strncpy(token.text, text, sizeof token.text - 1);
    orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
    params.rank = rank;
    params.members = members;
    params.limit_ns = limit_ns;
    return orrGroupJoin(group, &token, &params);
}

int be_member() {
    const std::uint64_t said = hear(kPeerSocket).number;
    const int rank = static_cast<int>(said & 0xff), members = static_cast<int>(said >> 8 & 0xff);
    orrGroup_t group = nullptr;
    orrStream_t stream = nullptr;
    orrSemaphore_t never = nullptr;
    const orrError_t joined = join(&group, rank, members, (said >> 16) * 1'000'000);
    say(kPeerSocket, joined);
    if (joined != orrSuccess) return 0;
    if (orrStreamCreate(&stream, 0) != orrSuccess || orrSemaphoreCreate(&never, 0) != orrSuccess) return 1;
    while (true) {
        const std::uint64_t what = hear(kPeerSocket).number;
        if (what == kGroupCause) {
            orrGroupCause cause = ORR_INIT(orrGroupCause);
            if (orrGroupGetCause(&cause, group) != orrSuccess) return 1;
            say(kPeerSocket, static_cast<std::uint64_t>(cause.code) << 32 |
                                 static_cast<std::uint32_t>(cause.rank + 1) << 8 |
                                 static_cast<std::uint32_t>(cause.device + 1));
        } else {
            say(kPeerSocket, do_it(what, group, stream, never, rank, members));
        }
    }
}

}  // namespace orrery::umd::vm
