// What every exported function goes through: who listens is told which call it is, with which parameters, and
// what it gave back. When nobody listens that costs one load.
#pragma once

#include <atomic>
#include <cstddef>

#include "entry_points.h"

namespace orrery::umd {

// For profilers. Called on the thread of the call; it may itself call the API, of which it is told as well.
class EntryListener {
  public:
    virtual ~EntryListener() = default;
    // params: the function's orr..._params, whose pointers are the caller's.
    virtual void enter(Entry entry, const void* params) noexcept = 0;
    // result: what the function gives back, an orrError_t for all but texts.
    virtual void leave(Entry entry, const void* params, const void* result) noexcept = 0;
};

inline const char* entry_name(Entry entry) {
    return kEntryNames[static_cast<std::size_t>(entry)];
}

// Null: nobody. It must live until all calls have ended that began before another one is set.
inline std::atomic<EntryListener*> entry_listener{nullptr};

template <typename Params, typename Call>
[[gnu::cold, gnu::noinline]] auto enter(EntryListener& listener, Entry entry, const Params& params,
                                        const Call& call) noexcept {
    listener.enter(entry, &params);
    const auto result = call();
    listener.leave(entry, &params, &result);
    return result;
}

}  // namespace orrery::umd

#define ORR_ENTRY(function, ...)                                                            \
    auto* const orr_listener = orrery::umd::entry_listener.load(std::memory_order_acquire); \
    if (orr_listener == nullptr) [[likely]]                                                 \
        return orrery::umd::api::function(__VA_ARGS__);                                     \
    return orrery::umd::enter(*orr_listener, orrery::umd::Entry::function,                  \
                              orrery::umd::function##_params{__VA_ARGS__},                  \
                              [=] { return orrery::umd::api::function(__VA_ARGS__); })
