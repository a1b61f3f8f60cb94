// Groups of threads and processes.
#include <orrery/group.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/api/wait_options.h"
#include "umd/runtime/group.h"
#include "umd/runtime/group_token.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

constexpr std::uint64_t kJoinNs = 60'000'000'000;

using GroupRef = decltype(Runtime::groups)::Ref;

Result<GroupRef> find_group(Runtime& runtime, orrGroup_t handle) {
    auto group = runtime.groups.find(handle);
    if (!group) return std::unexpected(bad_handle("group", handle).error());
    return group;
}

Status check_bytes(std::size_t bytes) {
    static_assert(ORR_GROUP_MAX_BYTES == kMaxGroupBytes && ORR_GROUP_MAX_MEMBERS == kMaxGroupMembers);
    if (bytes <= kMaxGroupBytes) return {};
    return fail(orrErrorInvalidValue, "{} bytes: a group's calls carry at most {}", bytes, kMaxGroupBytes);
}

Status check_members(std::int64_t members) {
    if (members >= 1 && members <= static_cast<std::int64_t>(kMaxGroupMembers)) return {};
    return fail(orrErrorInvalidValue, "a group of {} members: they are from 1 to {}", members,
                kMaxGroupMembers);
}

Status make_token(orrGroupToken& token, std::string_view folder) {
    static_assert(GroupToken::kMaxText == sizeof token.text - 1);
    ORR_TRY(made, GroupToken::make(folder));
    std::memset(token.text, 0, sizeof token.text);
    made->text().copy(token.text, GroupToken::kMaxText);
    return {};
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrGroupMakeToken(orrGroupToken* token, unsigned flags) {
    return guarded([&]() -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrGroupMakeToken"));
        if (token == nullptr) return null_argument("token");
        return make_token(*token, {});
    });
}

orrError_t orrGroupMakeFolderToken(orrGroupToken* token, const char* folder, unsigned flags) {
    return guarded([&]() -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrGroupMakeFolderToken"));
        if (token == nullptr) return null_argument("token");
        if (folder == nullptr || *folder == 0) return null_argument("folder");
        return make_token(*token, folder);
    });
}

orrError_t orrGroupJoin(orrGroup_t* group, const orrGroupToken* token, const orrGroupJoinParams* params) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (group == nullptr) return null_argument("group");
        if (token == nullptr) return null_argument("token");
        ORR_TRY(given, read_struct(params, "orrGroupJoinParams"));
        ORR_TRY(known, check_flags(given->flags, 0, "orrGroupJoinParams"));
        if (given->reserved != 0)
            return fail(orrErrorInvalidValue, "orrGroupJoinParams::reserved is not zero");
        const int members = given->members == 0 ? 1 : given->members;
        ORR_TRY(possible, check_members(members));
        if (given->rank < 0 || given->rank >= members)
            return fail(orrErrorInvalidValue, "rank {} in a group of {} members", given->rank, members);
        ORR_TRY(parsed, GroupToken::parse({token->text, ::strnlen(token->text, sizeof token->text)}));
        auto joined = Group::join(runtime, *parsed, given->rank, members,
                                  given->limit_ns == 0 ? kJoinNs : given->limit_ns);
        if (!joined) {
            runtime.sweep();
            return std::unexpected(joined.error());
        }
        ORR_TRY(handle, give_handle(runtime.groups, std::move(*joined), "groups"));
        *group = static_cast<orrGroup_t>(*handle);
        return {};
    });
}

orrError_t orrGroupCreateAll(orrGroup_t* groups, size_t members, const int* devices, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrGroupCreateAll"));
        if (groups == nullptr) return null_argument("groups");
        ORR_TRY(possible, check_members(static_cast<std::int64_t>(std::min<std::size_t>(members, 1u << 20))));
        std::vector<int> all(members, current_device());
        if (devices != nullptr) all.assign(devices, devices + members);
        for (int device : all) {
            ORR_TRY(there, runtime.device(device));
        }
        ORR_TRY(made, Group::create_all(runtime, all));
        std::vector<orrGroup_t> handles;
        for (auto& one : *made) {
            auto handle = give_handle(runtime.groups, std::move(one), "groups");
            if (!handle) {
                for (orrGroup_t given : handles)
                    runtime.groups.remove(given);
                return std::unexpected(handle.error());
            }
            handles.push_back(static_cast<orrGroup_t>(*handle));
        }
        std::ranges::copy(handles, groups);
        return {};
    });
}

orrError_t orrGroupDestroy(orrGroup_t group) {
    return with_runtime([&](Runtime& runtime) -> Status {
        auto gone = runtime.groups.remove(group);
        if (gone == nullptr) return bad_handle("group", group);
        gone->leave();
        gone.reset();
        runtime.sweep();
        return {};
    });
}

orrError_t orrGroupGetInfo(orrGroupInfo* info, orrGroup_t group) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_group(runtime, group));
        orrGroupInfo value = ORR_INIT(orrGroupInfo);
        value.rank = (*found)->rank();
        value.members = (*found)->size();
        value.device = (*found)->context().device();
        value.by_units = (*found)->by_units() ? 1 : 0;
        return write_struct(info, value, "orrGroupInfo");
    });
}

orrError_t orrGroupBarrier(orrGroup_t group, uint64_t limit_ns) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_group(runtime, group));
        return (*found)->barrier(limit_ns);
    });
}

orrError_t orrGroupBarrierAsync(orrGroup_t group, orrStream_t stream, const orrWaitOptions* options) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_group(runtime, group));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrGroupBarrierAsync");
        ORR_TRY(limit_ns, limit_of(options));
        return (*found)->barrier(*queue, *limit_ns);
    });
}

orrError_t orrGroupBroadcast(orrGroup_t group, void* data, size_t bytes, int root, uint64_t limit_ns) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_group(runtime, group));
        if (data == nullptr && bytes != 0) return null_argument("data");
        ORR_TRY(fits, check_bytes(bytes));
        if (root < 0 || root >= (*found)->size()) {
            return fail(orrErrorInvalidValue, "there is no rank {} in a group of {} members", root,
                        (*found)->size());
        }
        return (*found)->broadcast({static_cast<std::byte*>(data), bytes}, root, limit_ns);
    });
}

orrError_t orrGroupAllGather(orrGroup_t group, void* all, const void* own, size_t bytes, uint64_t limit_ns) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_group(runtime, group));
        if (all == nullptr && bytes != 0) return null_argument("all");
        if (own == nullptr && bytes != 0) return null_argument("own");
        ORR_TRY(fits, check_bytes(bytes));
        return (*found)->all_gather(
            {static_cast<std::byte*>(all), bytes * static_cast<std::size_t>((*found)->size())},
            {static_cast<const std::byte*>(own), bytes}, limit_ns);
    });
}

orrError_t orrGroupAbort(orrGroup_t group, const char* why) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_group(runtime, group));
        (*found)->abort(why == nullptr ? "" : why);
        return {};
    });
}

orrError_t orrGroupGetCause(orrGroupCause* cause, orrGroup_t group) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(room, check_result_struct(cause, "orrGroupCause"));
        ORR_TRY(found, find_group(runtime, group));
        orrGroupCause value = ORR_INIT(orrGroupCause);
        value.code = orrSuccess;
        value.rank = value.device = -1;
        if (const auto first = (*found)->cause()) {
            value.code = first->code;
            value.rank = first->rank;
            value.device = (*found)->device(first->rank);
            first->text.copy(value.text, sizeof value.text - 1);
        }
        return write_struct(cause, value, "orrGroupCause");
    });
}

}  // namespace orrery::umd::api
