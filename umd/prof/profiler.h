// Who is told of calls, ranges and markers: the subscriptions, and the way from an entry point to them.
#pragma once

#include <orrery/prof.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "umd/winsys/error.h"

namespace orrery::umd {

// A bit of prof_wanted: nobody has looked for tools yet. Until then everything is told to the profiler.
inline constexpr std::uint32_t kProfNotStarted = 1u << 31;

// What any subscription wants, of orrProfWant...: what nobody wants costs this one load.
inline std::atomic<std::uint32_t> prof_wanted{kProfNotStarted};

// Goes up whenever what cards do for ranges begins to be wanted: a range that began earlier was for others.
inline std::atomic<std::uint64_t> prof_range_life{0};

// Of what cannot come before the first call.
inline bool prof_has(std::uint32_t kind) noexcept {
    return (prof_wanted.load(std::memory_order_relaxed) & kind) != 0;
}

inline bool prof_wants(std::uint32_t kind) noexcept {
    return (prof_wanted.load(std::memory_order_relaxed) & (kind | kProfNotStarted)) != 0;
}

struct ThreadMarks;

// Threads: everything may be called from any thread.
class Profiler {
  public:
    static constexpr std::chrono::milliseconds kUnsubscribeLimit{10'000};

    // Of this process; it is never destroyed, as calls may come until the process ends.
    static Profiler& get();

    // want: as orrProfOptions has it.
    Result<orrProfSubscription_t> subscribe(orrProfCallback callback, void* user, std::uint64_t want);
    // There is such a subscription, and it wants all of this.
    bool wants(orrProfSubscription_t subscription, std::uint64_t want) const;
    // Whose it is, for people: "tool 'orrery-prof'".
    std::string name_of(orrProfSubscription_t subscription) const;
    // Waits until no callback of it runs on another thread, and no longer than this.
    Status unsubscribe(orrProfSubscription_t subscription, std::chrono::milliseconds limit);

    // What each subscriber was given at the beginning of a call.
    struct Told {
        std::uint32_t slots = 0;  // bits of those who were told of it
        std::array<std::uint64_t, orrProfMaxSubscriptions> generation{};
        std::array<std::uint64_t, orrProfMaxSubscriptions> data{};
    };
    // Fills what is the same in all records: size, external, thread, host_ns. `want`: one orrProfWant...
    void tell(orrProfRecord& record, std::uint32_t want) noexcept;
    // The same of one that has them, but for size, and host_ns if that is 0.
    void tell_as_it_is(orrProfRecord& record, std::uint32_t want) noexcept;
    // With this thread's marks at hand, where many are told in a row.
    void tell_as_it_is(orrProfRecord& record, std::uint32_t want, ThreadMarks& marks) noexcept;
    // With the marks of this thread, which whoever calls these has at hand.
    void tell_enter(orrProfRecord& record, Told& told, ThreadMarks& marks) noexcept;
    void tell_leave(orrProfRecord& record, Told& told, ThreadMarks& marks) noexcept;

  private:
    // One that is free has neither owner nor generation, and nothing runs.
    struct alignas(64) Slot {
        std::atomic<std::uint64_t> generation{0};  // of who is told; 0: nobody
        std::atomic<std::uint64_t> running{0};     // callbacks, and threads that look whether there is one
        orrProfCallback callback = nullptr;        // these change only while nothing can run
        void* user = nullptr;
        std::uint64_t want = 0;
        const char* tool = nullptr;  // in whose start() it was made; null: by the program
        std::uint64_t owner = 0;     // generation of who has the slot, also while it ends; under mutex_
    };

    Profiler();
    // What runs on other threads counts no more in a child after fork().
    void enter_child() noexcept;
    // generation: only of this one; 0: any. The generation that was told, 0: it was nobody.
    std::uint64_t call(Slot& slot, orrProfRecord& record, std::uint32_t want, std::uint64_t generation,
                       ThreadMarks& marks) noexcept;
    // Which slot a handle names, and whose it is then; generation 0: it is no subscription's handle.
    struct Named {
        std::size_t slot;
        std::uint64_t generation;
    };
    static Named named_by(orrProfSubscription_t subscription);
    // Of a subscription; nullptr: it has ended, or is none. Under mutex_.
    const Slot* find(orrProfSubscription_t subscription) const;
    std::uint32_t bit(const Slot& slot) const { return 1u << (&slot - slots_.data()); }
    void update_wanted();  // under mutex_

    mutable std::mutex mutex_;  // never held while a callback runs
    std::array<Slot, orrProfMaxSubscriptions> slots_;
    std::atomic<std::uint32_t> live_{0};  // bits of those with a generation: nobody looks at the others
    std::uint64_t last_generation_ = 0;   // under mutex_
};

// A call, from its entry point: tells of its beginning when it is made, and of its end in leave().
class CallReport {
  public:
    CallReport(std::uint32_t number, const char* name, const void* params) noexcept;
    CallReport(const CallReport&) = delete;
    CallReport& operator=(const CallReport&) = delete;
    void leave(const void* result) noexcept;

  private:
    orrProfRecord record_{};
    Profiler::Told told_;
    std::uint64_t around_ = 0;  // number of the call around it
};

// What records of this thread say.
struct ThreadMarks {
    std::uint64_t correlation = 0;  // of the call that it is in; 0: none that is told of
    std::uint64_t external = 0;     // as pushed last
    std::uint32_t inside = 0;       // bits of the slots in whose callbacks it is
    std::uint32_t depth = 0;        // how many those are
    const char* tool = nullptr;     // in whose start() it is: its name
    std::uint32_t failed = 0;  // bits of the depths at which a call failed, in the callback that is there
};
ThreadMarks& thread_marks() noexcept;
// Its number.
std::uint64_t prof_thread() noexcept;

}  // namespace orrery::umd
