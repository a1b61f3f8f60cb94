// Priorities, shares, names and statistics of streams.
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "umd/api/guard.h"

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

Result<QueueOptions> options_of(const orrStreamAttributes* attributes) {
    if (attributes == nullptr) return std::unexpected(null_argument("attributes").error());
    for (const std::uint64_t word : attributes->reserved) {
        if (word != 0) return fail(orrErrorInvalidValue, "attributes->reserved is not zero");
    }
    if (attributes->weight > ORR_QUEUE_WEIGHT_MAX) {
        return fail(orrErrorInvalidValue, "a weight of {}: give 1 to {}, or 0 for the default",
                    attributes->weight, ORR_QUEUE_WEIGHT_MAX);
    }
    QueueOptions options;
    options.priority = queue_priority(attributes->priority);
    options.weight = attributes->weight;
    options.slice_us = attributes->slice_us;
    options.limit_us = attributes->limit_us;
    if (attributes->name == nullptr) return options;
    options.name = attributes->name;
    const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (options.name.size() > QueueOptions::kMaxName || !std::ranges::all_of(options.name, printable)) {
        return fail(orrErrorInvalidValue, "a stream's name has at most {} printable ASCII characters",
                    QueueOptions::kMaxName);
    }
    return options;
}

orrError_t create_stream(orrStream_t* stream, const orrStreamAttributes* attributes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (stream == nullptr) return null_argument("stream");
        ORR_TRY(options, options_of(attributes));
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(made, (*context)->create_stream(std::move(*options)));
        void* handle = runtime.streams.insert(*made);
        if (handle == nullptr) return fail(orrErrorOutOfMemory, "too many live streams");
        *stream = static_cast<orrStream_t>(handle);
        return {};
    });
}

}  // namespace

extern "C" {

orrError_t orrStreamCreateWithPriority(orrStream_t* stream, unsigned flags, int priority) {
    if ((flags & ~orrStreamNonBlocking) != 0) {
        return guarded([&]() -> Status {
            return fail(orrErrorInvalidValue, "unknown flags {:#x}: orrStreamDefault or orrStreamNonBlocking",
                        flags);
        });
    }
    orrStreamAttributes attributes{};
    attributes.priority = priority;
    return create_stream(stream, &attributes);
}

orrError_t orrStreamCreateWithAttributes(orrStream_t* stream, const orrStreamAttributes* attributes) {
    return create_stream(stream, attributes);
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
        ORR_TRY(options, options_of(attributes));
        if (attributes->name != nullptr || attributes->limit_us != 0) {
            return fail(orrErrorInvalidValue,
                        "a stream gets its name and its limit when it is made: give null and 0 here");
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
        if (stats == nullptr) return null_argument("stats");
        ORR_TRY(queue, runtime.stream(stream));
        ORR_TRY(counted, (*queue)->stats());
        *stats = {counted->vector_ps,   counted->copy_ps,   counted->jobs,
                  counted->preemptions, counted->waited_ps, counted->longest_wait_ps};
        return {};
    });
}

}  // extern "C"
