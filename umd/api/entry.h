// What every exported function goes through: who subscribed is told which call it is, with which parameters,
// and what it gave back (umd/prof/profiler.h). When nobody did that costs one load.
#pragma once

#include <atomic>

#include "entry_points.h"
#include "umd/prof/profiler.h"

namespace orrery::umd {

// params: null if it has none.
template <typename Call>
[[gnu::cold, gnu::noinline]] auto enter(orrProfCall number, const void* params, const Call& call) noexcept {
    CallReport report(number, kEntryNames[number], params);
    const auto result = call();
    report.leave(&result);
    return result;
}

}  // namespace orrery::umd

#define ORR_ENTRY(function, ...)                                                  \
    if (orrery::umd::prof_wanted.load(std::memory_order_relaxed) == 0) [[likely]] \
        return orrery::umd::api::function(__VA_ARGS__);                           \
    const function##_params orr_params{__VA_ARGS__};                              \
    return orrery::umd::enter(orrProfCall_##function, &orr_params,                \
                              [=] { return orrery::umd::api::function(__VA_ARGS__); })

#define ORR_ENTRY_PLAIN(function)                                                 \
    if (orrery::umd::prof_wanted.load(std::memory_order_relaxed) == 0) [[likely]] \
        return orrery::umd::api::function();                                      \
    return orrery::umd::enter(orrProfCall_##function, nullptr, [] { return orrery::umd::api::function(); })
