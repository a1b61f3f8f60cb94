#include "umd/runtime/sample_log.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "umd/prof/profiler.h"
#include "umd/runtime/context.h"
#include "umd/runtime/counter_catalogue.h"
#include "umd/runtime/quiet_thread.h"

namespace orrery::umd {
namespace {

// Room for samples of all counters, and some of them.
constexpr std::size_t kWords = 8192;
constexpr std::size_t kHead = 2;  // words of a sample before its counters: its time, and its number

// This thread tells samples of this one: what a callback calls must not wait for that.
thread_local const SampleLog* t_telling = nullptr;

}  // namespace

Status SampleLog::start(std::uint64_t period_ns, std::vector<orrCounter_t> counters) {
    if (t_telling != nullptr)
        return fail(orrErrorInvalidValue, "samples cannot be started by who is told of one");
    std::ranges::sort(counters);
    if (std::ranges::adjacent_find(counters) != counters.end())
        return fail(orrErrorInvalidValue, "a counter is named twice");
    std::array<std::uint64_t, 2> set{};
    for (const orrCounter_t counter : counters) {
        const std::size_t number = *number_of(counter);
        if (number >= 128) return fail(orrErrorNotSupported, "samples have no counter {:#x}", counter);
        set.at(number / 64) |= std::uint64_t{1} << number % 64;
    }
    std::unique_lock<std::timed_mutex> telling;
    ORR_TRY(entered, enter(telling));
    ORR_TRY(told, tell_all());
    ORR_TRY(started, context_.winsys().want_samples(static_cast<std::uint32_t>(period_ns), set));
    words_.resize(kWords);
    counters_ = std::move(counters);
    period_ns_ = period_ns;
    last_ = 0;
    const std::lock_guard lock(mutex_);
    on_ = true;
    try {
        if (!thread_.joinable())
            thread_ = start_quiet_thread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::exception& error) {
        return fail(orrErrorSystem, "{}", error.what());
    }
    wake_.notify_all();
    return {};
}

Status SampleLog::stop() {
    std::unique_lock<std::timed_mutex> telling;
    Status drained;
    // Who is told of one may end them.
    if (t_telling != this) {
        ORR_TRY(entered, enter(telling));
        drained = tell_all();
    }
    const std::lock_guard lock(mutex_);
    if (!std::exchange(on_, false)) return drained;
    counters_.clear();
    auto stopped = context_.winsys().want_samples(0, {});
    return drained ? stopped : drained;
}

void SampleLog::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        if (!on_) {
            wake_.wait(lock, stop, [this] { return on_; });
            continue;
        }
        wake_.wait_for(lock, stop, kPause, [] { return false; });
        lock.unlock();
        (void)drain();
        lock.lock();
    }
}

Status SampleLog::drain() {
    if (t_telling != nullptr) return {};
    std::unique_lock<std::timed_mutex> telling;
    ORR_TRY(entered, enter(telling));
    return tell_all();
}

Status SampleLog::enter(std::unique_lock<std::timed_mutex>& telling) {
    telling = std::unique_lock(drain_mutex_, std::defer_lock);
    if (telling.try_lock_for(kDrainLimit)) return {};
    return fail(orrErrorTimeout, "a callback that is told of samples has not returned for a second");
}

Status SampleLog::tell_all() {
    struct Telling {
        explicit Telling(const SampleLog* log) { t_telling = log; }
        ~Telling() { t_telling = before; }
        const SampleLog* before = t_telling;
    } const telling(this);
    SampleRead read{};
    do {
        if (counters_.empty()) return {};
        ORR_TRY(got, context_.winsys().read_samples(words_));
        read = *got;
        const std::size_t size = kHead + counters_.size();
        for (std::size_t at = 0; at + size <= read.words; at += size) {
            if (counters_.size() + kHead != size) return {};  // a callback has ended them
            orrProfSample sample = ORR_INIT(orrProfSample);
            sample.device = context_.device();
            sample.count = static_cast<std::uint32_t>(counters_.size());
            sample.period_ns = period_ns_;
            sample.time_ps = words_[at];
            // Numbers begin anew where what was asked for before was still in the ring.
            const std::uint64_t number = std::max<std::uint64_t>(words_[at + 1], 1);
            sample.lost = number - 1 - (number > last_ ? last_ : 0);
            sample.counters = counters_.data();
            sample.values = words_.data() + at + kHead;
            last_ = number;
            orrProfRecord told = ORR_INIT(orrProfRecord);
            told.kind = orrProfSampled;
            told.params = &sample;
            Profiler::get().tell_as_it_is(told, orrProfWantSamples);
        }
    } while (read.more);
    return {};
}

void SampleLog::end() {
    (void)stop();
    end_quiet_thread(mutex_, thread_);
}

}  // namespace orrery::umd
