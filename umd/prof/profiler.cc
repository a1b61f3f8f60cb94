#include "umd/prof/profiler.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>
#include <thread>

#include "umd/prof/tools.h"
#include "umd/runtime/handle_table.h"

namespace orrery::umd {
namespace {

std::atomic<std::uint64_t> g_calls{0};

std::uint64_t host_time_ns() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Counters of work cost others room, and ranges' sums are of little use without them: who wants them says so.
constexpr std::uint64_t kUsual = orrProfWantCalls | orrProfWantRanges | orrProfWantWork | orrProfWantSamples |
                                 orrProfWantPcs | orrProfWantSteps | orrProfWantSignals;

}  // namespace

// The thread's, whose number changes in a child after fork().
std::uint64_t prof_thread() noexcept {
    thread_local pid_t process = 0;
    thread_local std::uint64_t number = 0;
    static std::atomic<pid_t> own{0};
    static const int registered = ::pthread_atfork(nullptr, nullptr, [] { own.store(::getpid()); });
    if (own.load(std::memory_order_relaxed) == 0) own.store(::getpid());
    if (const pid_t now = own.load(std::memory_order_relaxed); registered != 0 || process != now) {
        process = now;
        number = static_cast<std::uint64_t>(::gettid());
    }
    return number;
}

ThreadMarks& thread_marks() noexcept {
    thread_local ThreadMarks marks;
    return marks;
}

Profiler& Profiler::get() {
    alignas(Profiler) static std::byte room[sizeof(Profiler)];
    static Profiler* const profiler = new (room) Profiler;
    return *profiler;
}

Profiler::Profiler() {
    // A thread that forks holds the mutex meanwhile, so the child finds it in order.
    (void)::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                           [] {
                               get().enter_child();
                               get().mutex_.unlock();
                           });
}

void Profiler::enter_child() noexcept {
    const std::uint32_t inside = thread_marks().inside;
    for (Slot& slot : slots_)
        slot.running.store((inside & bit(slot)) != 0 ? 1 : 0);
}

void Profiler::update_wanted() {
    std::uint32_t wanted = 0, live = 0;
    for (const Slot& slot : slots_) {
        if (slot.generation.load() == 0) continue;
        wanted |= static_cast<std::uint32_t>(slot.want);
        live |= bit(slot);
    }
    live_.store(live);
    constexpr std::uint32_t kRanges = orrProfWantRangeWork | orrProfWantWork;
    if ((wanted & kRanges) == kRanges && (prof_wanted.load() & kRanges) != kRanges)
        prof_range_life.fetch_add(1);
    // start_tools() may clear its bit meanwhile.
    std::uint32_t before = prof_wanted.load();
    while (!prof_wanted.compare_exchange_weak(before, (before & kProfNotStarted) | wanted)) {
    }
}

Result<orrProfSubscription_t> Profiler::subscribe(orrProfCallback callback, void* user, std::uint64_t want) {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) {
        // Whoever looks at a slot whose last owner is gone is there for a moment.
        if (slot.owner != 0 || slot.running.load() != 0) continue;
        slot.owner = ++last_generation_;
        slot.callback = callback;
        slot.user = user;
        slot.want = want == 0 ? kUsual : want;
        slot.tool = thread_marks().tool;
        slot.generation.store(slot.owner);
        update_wanted();
        const std::uint64_t number = slot.owner << 3 | static_cast<std::uint64_t>(&slot - slots_.data());
        return reinterpret_cast<orrProfSubscription_t>(handle_mark(HandleKind::kProfSubscription) |
                                                       (number & kHandleBits));
    }
    return fail(orrErrorOutOfMemory, "there are {} subscriptions already: end one (orrProfUnsubscribe)",
                orrProfMaxSubscriptions);
}

Profiler::Named Profiler::named_by(orrProfSubscription_t subscription) {
    static_assert(orrProfMaxSubscriptions == 8);  // three bits of a handle
    const auto handle = reinterpret_cast<std::uintptr_t>(subscription);
    const std::uint64_t number = handle & kHandleBits;
    const bool kind = (handle & ~kHandleBits) == handle_mark(HandleKind::kProfSubscription);
    return {number & 7, kind ? number >> 3 : 0};
}

const Profiler::Slot* Profiler::find(orrProfSubscription_t subscription) const {
    const auto [number, generation] = named_by(subscription);
    const Slot& slot = slots_[number];
    return generation != 0 && slot.generation.load() == generation ? &slot : nullptr;
}

bool Profiler::wants(orrProfSubscription_t subscription, std::uint64_t want) const {
    const std::lock_guard lock(mutex_);
    const Slot* const slot = find(subscription);
    return slot != nullptr && (slot->want & want) == want;
}

std::string Profiler::name_of(orrProfSubscription_t subscription) const {
    const std::lock_guard lock(mutex_);
    const Slot* const slot = find(subscription);
    if (slot == nullptr) return "a subscription that has ended";
    return slot->tool == nullptr ? "the program, or a library of it," : fmt::format("tool '{}'", slot->tool);
}

Status Profiler::unsubscribe(orrProfSubscription_t subscription, std::chrono::milliseconds limit) {
    const auto [number, generation] = named_by(subscription);
    Slot& slot = slots_[number];
    {
        const std::lock_guard lock(mutex_);
        if (generation == 0 || slot.owner != generation) {
            return fail(orrErrorInvalidHandle, "{} is not a subscription, or was ended",
                        fmt::ptr(subscription));
        }
        slot.generation.store(0);
        update_wanted();
    }
    const std::uint64_t own = (thread_marks().inside & bit(slot)) != 0 ? 1 : 0;
    const auto until = std::chrono::steady_clock::now() + limit;
    std::chrono::microseconds pause{1};
    while (slot.running.load() > own) {
        if (std::chrono::steady_clock::now() >= until) {
            return fail(
                orrErrorTimeout,
                "a callback of the subscription has not returned for {} ms; no other begins: see what "
                "it waits for, and end the subscription again",
                limit.count());
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::microseconds{1'000});
    }
    const std::lock_guard lock(mutex_);
    if (slot.owner == generation) slot.owner = 0;
    return {};
}

std::uint64_t Profiler::call(Slot& slot, orrProfRecord& record, std::uint32_t want, std::uint64_t generation,
                             ThreadMarks& marks) noexcept {
    if (slot.generation.load(std::memory_order_relaxed) == 0 || (marks.inside & bit(slot)) != 0) return 0;
    // Counted first: either unsubscribe() sees the count, or this sees that it is over.
    slot.running.fetch_add(1);
    const std::uint64_t now = slot.generation.load();
    const bool told = now != 0 && (generation == 0 || now == generation) && (slot.want & want) != 0;
    if (told) {
        marks.inside |= bit(slot);
        marks.failed &= ~(1u << ++marks.depth);
        slot.callback(slot.user, &record);
        --marks.depth;
        marks.inside &= ~bit(slot);
    }
    slot.running.fetch_sub(1);
    return told ? now : 0;
}

void Profiler::tell(orrProfRecord& record, std::uint32_t want) noexcept {
    ThreadMarks& marks = thread_marks();
    record.correlation = marks.correlation;
    record.external = marks.external;
    record.thread = prof_thread();
    tell_as_it_is(record, want, marks);
}

void Profiler::tell_as_it_is(orrProfRecord& record, std::uint32_t want) noexcept {
    tell_as_it_is(record, want, thread_marks());
}

void Profiler::tell_as_it_is(orrProfRecord& record, std::uint32_t want, ThreadMarks& marks) noexcept {
    record.size = sizeof record;
    if (record.host_ns == 0) record.host_ns = host_time_ns();
    for (std::uint32_t live = live_.load(std::memory_order_relaxed); live != 0; live &= live - 1)
        (void)call(slots_[static_cast<std::size_t>(std::countr_zero(live))], record, want, 0, marks);
}

void Profiler::tell_enter(orrProfRecord& record, Told& told, ThreadMarks& marks) noexcept {
    record.thread = prof_thread();
    record.host_ns = host_time_ns();
    for (std::uint32_t live = live_.load(std::memory_order_relaxed); live != 0; live &= live - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(live));
        record.data = &told.data[i];
        told.generation[i] = call(slots_[i], record, orrProfWantCalls, 0, marks);
        if (told.generation[i] != 0) told.slots |= 1u << i;
    }
}

void Profiler::tell_leave(orrProfRecord& record, Told& told, ThreadMarks& marks) noexcept {
    record.host_ns = host_time_ns();
    // The last who was told of the beginning is the first who is told of the end: his time is within.
    while (told.slots != 0) {
        const auto i = static_cast<std::size_t>(std::bit_width(told.slots)) - 1;
        told.slots &= ~(1u << i);
        record.data = &told.data[i];
        (void)call(slots_[i], record, orrProfWantCalls, told.generation[i], marks);
    }
}

CallReport::CallReport(std::uint32_t number, const char* name, const void* params) noexcept {
    if ((prof_wanted.load(std::memory_order_relaxed) & kProfNotStarted) != 0) start_tools();
    ThreadMarks& marks = thread_marks();
    around_ = marks.correlation;
    // What the card does names its call, whether calls are told or not.
    if ((prof_wanted.load(std::memory_order_relaxed) & (orrProfWantCalls | orrProfWantWork)) == 0) return;
    marks.correlation = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
    record_.size = sizeof record_;
    record_.kind = orrProfEnter;
    record_.call = number;
    record_.name = name;
    record_.params = params;
    record_.correlation = marks.correlation;
    record_.external = marks.external;
    Profiler::get().tell_enter(record_, told_, marks);
}

void CallReport::leave(const void* result) noexcept {
    ThreadMarks& marks = thread_marks();
    if (record_.kind != 0) {
        record_.kind = orrProfLeave;
        record_.result = result;
        record_.external = marks.external;
        Profiler::get().tell_leave(record_, told_, marks);
    }
    marks.correlation = around_;
}

}  // namespace orrery::umd
