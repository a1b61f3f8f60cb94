// Priorities, shares, names and statistics of streams.
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "umd/api/guard.h"
#include "umd/api/structs.h"

using namespace orrery::umd;

namespace {

// As CUDA has it, a lower number comes first; 0 is what orrStreamCreate gives.
constexpr int kLeast = 1, kGreatest = -2;
constexpr int kNormal = ORR_QUEUE_PRIORITY_NORMAL;

std::uint32_t queue_priority(int priority) {
    return static_cast<std::uint32_t>(kNormal - std::clamp(priority, kGreatest, kLeast));
}

bool may_be_real_time() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
    if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
    return (data[CAP_TO_INDEX(CAP_SYS_NICE)].effective & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
}

Result<QueueOptions> options_of(const orrStreamAttributes& given) {
    if (given.reserved != 0) return fail(orrErrorInvalidValue, "orrStreamAttributes::reserved is not zero");
    ORR_TRY(known, check_flags(given.flags, orrStreamNonBlocking, "orrStreamAttributes"));
    if (given.weight > ORR_QUEUE_WEIGHT_MAX) {
        return fail(orrErrorInvalidValue, "a weight of {}: give 1 to {}, or 0 for the default", given.weight,
                    ORR_QUEUE_WEIGHT_MAX);
    }
    QueueOptions options;
    options.priority = queue_priority(given.priority);
    options.weight = given.weight;
    options.slice_us = given.slice_us;
    options.limit_us = given.limit_us;
    if (given.name == nullptr) return options;
    options.name = given.name;
    const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (options.name.size() > QueueOptions::kMaxName || !std::ranges::all_of(options.name, printable)) {
        return fail(orrErrorInvalidValue, "a stream's name has at most {} printable ASCII characters",
                    QueueOptions::kMaxName);
    }
    return options;
}

Status create_stream(Runtime& runtime, orrStream_t* stream, const orrStreamAttributes& attributes) {
    if (stream == nullptr) return null_argument("stream");
    ORR_TRY(options, options_of(attributes));
    ORR_TRY(context, runtime.current_context());
    ORR_TRY(made, (*context)->create_stream(std::move(*options)));
    ORR_TRY(handle, give_handle(runtime.streams, *made, "streams"));
    *stream = static_cast<orrStream_t>(*handle);
    return {};
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrStreamCreate(orrStream_t* stream, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.flags = flags;
        return create_stream(runtime, stream, attributes);
    });
}

orrError_t orrStreamCreateWithPriority(orrStream_t* stream, unsigned flags, int priority) {
    return with_runtime([&](Runtime& runtime) -> Status {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.flags = flags;
        attributes.priority = priority;
        return create_stream(runtime, stream, attributes);
    });
}

orrError_t orrStreamCreateWithAttributes(orrStream_t* stream, const orrStreamAttributes* attributes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(given, read_optional(attributes, "orrStreamAttributes"));
        return create_stream(runtime, stream, *given);
    });
}

orrError_t orrDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, runtime.device(current_device()));
        if (least != nullptr) *least = kLeast;
        if (greatest != nullptr) *greatest = may_be_real_time() ? kGreatest : kGreatest + 1;
        return {};
    });
}

orrError_t orrStreamSetAttributes(orrStream_t stream, const orrStreamAttributes* attributes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(given, read_struct(attributes, "orrStreamAttributes"));
        ORR_TRY(options, options_of(*given));
        if (given->name != nullptr || given->limit_us != 0 || given->flags != 0) {
            return fail(orrErrorInvalidValue,
                        "a stream gets its name, its limit and its flags when it is made: give null and 0 "
                        "here");
        }
        ORR_TRY(queue, runtime.stream(stream));
        return (*queue)->set_options(*options);
    });
}

orrError_t orrStreamGetPriority(int* priority, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (priority == nullptr) return null_argument("priority");
        ORR_TRY(queue, runtime.stream(stream));
        *priority = kNormal - static_cast<int>((*queue)->options().priority);
        return {};
    });
}

orrError_t orrStreamGetStats(orrStreamStats* stats, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(stats, "orrStreamStats"));
        ORR_TRY(queue, runtime.stream(stream));
        ORR_TRY(counted, (*queue)->stats());
        const orrStreamStats told{.size = sizeof(orrStreamStats),
                                  .vector_ps = counted->vector_ps,
                                  .copy_ps = counted->copy_ps,
                                  .jobs = counted->jobs,
                                  .preemptions = counted->preemptions,
                                  .waited_ps = counted->waited_ps,
                                  .longest_wait_ps = counted->longest_wait_ps};
        return write_struct(stats, told, "orrStreamStats");
    });
}

}  // namespace orrery::umd::api
