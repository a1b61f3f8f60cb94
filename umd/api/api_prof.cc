#include <orrery/prof.h>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/prof/profiler.h"
#include "umd/prof/ranges.h"
#include "umd/runtime/clock.h"
#include "umd/runtime/counter_catalogue.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace orrery::umd::api {
namespace {

// All that cards have done until now.
Status tell_work() {
    Runtime* const runtime = Runtime::usable();
    Status first;
    for (Context* context : runtime == nullptr ? std::vector<Context*>() : runtime->contexts()) {
        auto drained = context->work_log().drain();
        if (!drained && first) first = std::move(drained);
        auto sampled = context->sample_log().drain();
        if (!sampled && first) first = std::move(sampled);
    }
    return first;
}

}  // namespace

orrError_t orrProfSubscribe(orrProfSubscription_t* subscription, orrProfCallback callback, void* user,
                            const orrProfOptions* options) {
    return guarded([&]() -> Status {
        if (subscription == nullptr) return null_argument("subscription");
        if (callback == nullptr) return null_argument("callback");
        ORR_TRY(wanted, read_optional(options, "orrProfOptions"));
        ORR_TRY(known, check_flags(wanted->want,
                                   orrProfWantCalls | orrProfWantRanges | orrProfWantWork |
                                       orrProfWantCounters | orrProfWantSamples | orrProfWantPcs |
                                       orrProfWantSteps | orrProfWantSignals | orrProfWantRangeWork,
                                   "orrProfSubscribe"));
        // What has ended is told to those who wanted it then; who cannot be told now is told with the rest.
        if (prof_has(orrProfWantWork)) (void)tell_work();
        ORR_TRY(made, Profiler::get().subscribe(callback, user, wanted->want));
        *subscription = *made;
        return {};
    });
}

orrError_t orrProfUnsubscribe(orrProfSubscription_t subscription) {
    return guarded([&] { return Profiler::get().unsubscribe(subscription, Profiler::kUnsubscribeLimit); });
}

orrError_t orrProfFlush() {
    return guarded([]() -> Status {
        Status first = tell_work();
        // What streams have left that are gone, and threads that have ended.
        if (!tell_ranges_done(true) && first)
            return fail(orrErrorTimeout, "a callback that is told of a range has not returned for 10 s");
        return first;
    });
}

orrError_t orrProfStartSamples(orrProfSubscription_t subscription, int device, uint64_t period_ns,
                               const orrCounter_t* counters, size_t count) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (counters == nullptr && count != 0) return null_argument("counters");
        if (period_ns < 1000 || period_ns > 0xffff'ffff)
            return fail(orrErrorInvalidValue, "a period of {} ns: give 1000 to 4294967295", period_ns);
        ORR_TRY(context, runtime.context(device));
        ORR_TRY(card, (*context)->winsys().query());
        const std::size_t known = catalogued(card->counters);
        std::vector<orrCounter_t> wanted(counters, counters + count);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const auto number = number_of(wanted[i]);
            if (number && *number < known) continue;
            return fail(orrErrorInvalidValue,
                        "counters[{}] is {:#x}, which is no counter of device {}: ask orrDeviceFindCounter",
                        i, wanted[i], device);
        }
        for (std::size_t number = 0; count == 0 && number < known; ++number)
            wanted.push_back(counter_of(number));
        // As the driver has it (DRM_IOCTL_ORR_SAMPLE_READ): the card's room for records is everybody's.
        const std::uint64_t least = 50 * (4 + wanted.size());
        if (period_ns < least)
            return fail(
                orrErrorInvalidValue,
                "samples of {} counters each {} ns would take the room for what the card has done: give "
                "{} ns or more, or fewer counters",
                wanted.size(), period_ns, least);
        return (*context)->sample_log().start(subscription, period_ns, std::move(wanted));
    });
}

orrError_t orrProfStopSamples(orrProfSubscription_t subscription, int device) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(context, runtime.context(device));
        return (*context)->sample_log().stop(subscription);
    });
}

orrError_t orrProfStartPcSampling(orrProfSubscription_t subscription, int device, uint64_t period_ns) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (period_ns < 100 || period_ns > 0xffff'ffff)
            return fail(orrErrorInvalidValue, "a period of {} ns: give 100 to 4294967295", period_ns);
        ORR_TRY(context, runtime.context(device));
        return (*context)->pc_log().start(subscription, static_cast<std::uint32_t>(period_ns));
    });
}

orrError_t orrProfStartInstructionTrace(orrProfSubscription_t subscription, int device, uint32_t core,
                                        uint64_t from_ps, uint64_t until_ps) {
    return with_runtime([&](Runtime& runtime) -> Status {
        constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
        if (from_ps >= until_ps || until_ps > kMost)
            return fail(orrErrorInvalidValue, "from {} to {} ps is no time", from_ps, until_ps);
        ORR_TRY(context, runtime.context(device));
        return (*context)->pc_log().trace(subscription, core, from_ps, until_ps);
    });
}

orrError_t orrProfStopPcSampling(orrProfSubscription_t subscription, int device) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(context, runtime.context(device));
        return (*context)->pc_log().stop(subscription);
    });
}

orrError_t orrProfReadClock(orrProfClock* clock, int device) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(clock, "orrProfClock"));
        ORR_TRY(context, runtime.context(device));
        orrProfClock read{};
        read.device = device;
        read.before_ns = static_cast<std::uint64_t>(now_ns());
        ORR_TRY(card, (*context)->winsys().query());
        read.after_ns = static_cast<std::uint64_t>(now_ns());
        read.device_ps = card->model_time_ps;
        read.in_step = (card->features & ORR_FEATURE_IN_STEP) != 0 ? 1 : 0;
        return write_struct(clock, read, "orrProfClock");
    });
}

orrError_t orrProfDomainCreate(orrProfDomain_t* domain, const char* name) {
    return guarded([&]() -> Status {
        if (domain == nullptr) return null_argument("domain");
        ORR_TRY(made, create_domain(name));
        *domain = *made;
        return {};
    });
}

orrError_t orrProfRangePush(orrProfDomain_t domain, const char* text) {
    return guarded([&] { return push_range(domain, text); });
}

orrError_t orrProfRangePop(orrProfDomain_t domain) {
    return guarded([&] { return pop_range(domain); });
}

orrError_t orrProfMark(orrProfDomain_t domain, const char* text) {
    return guarded([&] { return mark(domain, text); });
}

orrError_t orrProfMarkStream(orrStream_t stream, orrProfDomain_t domain, const char* text) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (text == nullptr) return null_argument("text");
        ORR_TRY(name, domain_name(domain));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrProfMarkStream");
        (*queue)->mark(*name, text);
        return {};
    });
}

orrError_t orrProfExternalPush(uint64_t id) {
    return guarded([&] { return push_external(id); });
}

orrError_t orrProfExternalPop(uint64_t* id) {
    return guarded([&]() -> Status {
        ORR_TRY(popped, pop_external());
        if (id != nullptr) *id = *popped;
        return {};
    });
}

}  // namespace orrery::umd::api
