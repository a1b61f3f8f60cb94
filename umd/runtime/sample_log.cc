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

Status SampleLog::start(orrProfSubscription_t who, std::uint64_t period_ns,
                        std::vector<orrCounter_t> counters) {
    if (t_telling != nullptr)
        return fail(orrErrorInvalidValue, "samples cannot be started by who is told of one");
    if (!Profiler::get().wants(who, orrProfWantSamples))
        return fail(orrErrorInvalidValue,
                    "the subscription has ended, or would not be told: subscribe with orrProfWantSamples");
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
    {
        const std::lock_guard lock(mutex_);
        const bool same = on_ && period_ns == period_ns_ && counters == counters_;
        if (same && !holders_.empty()) {
            holders_.add(who);
            return {};
        }
        if (!holders_.only(who))
            return fail(orrErrorSystem,
                        "{} has samples of device {}'s counters, {} of them each {} ns, and a card takes one "
                        "kind at a time: ask for just those, or wait until they are ended",
                        holders_.other_than(who), context_.device(), counters_.size(), period_ns_);
    }
    ORR_TRY(told, take_all(true));
    ORR_TRY(started, context_.winsys().want_samples(static_cast<std::uint32_t>(period_ns), set));
    words_.resize(kWords);
    counters_ = std::move(counters);
    period_ns_ = period_ns;
    const std::lock_guard lock(mutex_);
    on_ = true;
    holders_.add(who);
    try {
        if (!thread_.joinable())
            thread_ = start_quiet_thread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::exception& error) {
        return fail(orrErrorSystem, "{}", error.what());
    }
    wake_.notify_all();
    return {};
}

Status SampleLog::stop(orrProfSubscription_t who) {
    {
        const std::lock_guard lock(mutex_);
        if (!holders_.has(who)) return {};
        holders_.remove(who);
    }
    return end_unless_held();
}

bool SampleLog::any() {
    const std::lock_guard lock(mutex_);
    return on_;
}

Status SampleLog::end_unless_held() {
    const auto held = [this] {
        const std::lock_guard lock(mutex_);
        return !holders_.empty();
    };
    std::unique_lock<std::timed_mutex> telling;
    Status taken;
    if (t_telling == this) {
        // Who is told of one may end them: what there is beside it is not told.
        if (held()) return {};
        ended_ = true;
        backlog_.clear();
    } else {
        ORR_TRY(entered, enter(telling));
        if (held()) return take_all(false);
        taken = take_all(true);
    }
    const std::lock_guard lock(mutex_);
    if (!std::exchange(on_, false)) return taken;
    counters_.clear();
    auto stopped = context_.winsys().want_samples(0, {});
    return taken ? stopped : taken;
}

void SampleLog::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        if (!on_ && !owes_) {
            wake_.wait(lock, stop, [this] { return on_ || owes_; });
            continue;
        }
        wake_.wait_for(lock, stop, kPause, [] { return false; });
        owes_ = false;
        lock.unlock();
        const bool told = drain().has_value();
        lock.lock();
        owes_ = owes_ || !told;
        if (!on_ || !holders_.empty()) continue;
        // Their subscriptions have ended.
        lock.unlock();
        (void)end_unless_held();
        lock.lock();
    }
}

Status SampleLog::drain() {
    if (t_telling != nullptr) return {};
    std::unique_lock<std::timed_mutex> telling;
    ORR_TRY(entered, enter(telling));
    return take_all(false);
}

Status SampleLog::enter(std::unique_lock<std::timed_mutex>& telling) {
    telling = std::unique_lock(drain_mutex_, std::defer_lock);
    if (telling.try_lock_for(kDrainLimit)) return {};
    return fail(orrErrorTimeout, "a callback that is told of samples has not returned for 10 s");
}

Status SampleLog::take_all(bool last) {
    // Whoever is inside of a callback would tell them past it.
    const bool later = thread_marks().inside != 0;
    if (!later) tell_backlog();
    for (SampleRead read{.more = true}; read.more && !counters_.empty();) {
        ORR_TRY(got, context_.winsys().read_samples(words_));
        read = *got;
        const std::span words = std::span(words_).first(read.words);
        if (!later) {
            tell(words, counters_, period_ns_, read.lost);
        } else if ((!words.empty() || read.lost) && backlog_.size() < kMostBatches) {
            backlog_.push_back({{words.begin(), words.end()}, counters_, period_ns_, read.lost, false});
        } else if (!words.empty() && !backlog_.empty()) {
            backlog_.back().lost = true;
        }
    }
    if (last && !counters_.empty()) {
        if (later) {
            if (backlog_.empty()) backlog_.push_back({{}, counters_, period_ns_, false, false});
            backlog_.back().last = true;
        } else {
            tell_end(counters_, period_ns_);
        }
    }
    if (later && !backlog_.empty()) {
        const std::lock_guard lock(mutex_);
        owes_ = true;
        wake_.notify_all();
    }
    return {};
}

void SampleLog::tell_backlog() {
    while (!backlog_.empty()) {
        const Batch batch = std::move(backlog_.front());
        backlog_.pop_front();
        tell(batch.words, batch.counters, batch.period_ns, batch.lost);
        if (batch.last && !ended_) tell_end(batch.counters, batch.period_ns);
    }
}

void SampleLog::tell(std::span<const std::uint64_t> words, std::span<const orrCounter_t> counters,
                     std::uint64_t period_ns, bool lost) {
    const std::vector<orrCounter_t> own(counters.begin(), counters.end());
    const std::size_t size = kHead + own.size();
    ended_ = false;
    for (std::size_t at = 0; at + size <= words.size(); at += size) {
        orrProfSample sample = ORR_INIT(orrProfSample);
        sample.count = static_cast<std::uint32_t>(own.size());
        sample.period_ns = period_ns;
        sample.time_ps = words[at];
        // Numbers begin anew with what is asked for.
        const std::uint64_t number = std::max<std::uint64_t>(words[at + 1], 1);
        sample.lost = number - 1 - (number > last_ ? last_ : 0);
        sample.counters = own.data();
        sample.values = words.data() + at + kHead;
        last_ = number;
        lost_ = false;
        tell_one(sample);
        if (!ended_) continue;
        last_ = 0;
        return;
    }
    lost_ = lost_ || lost;
}

void SampleLog::tell_end(std::span<const orrCounter_t> counters, std::uint64_t period_ns) {
    last_ = 0;
    if (!std::exchange(lost_, false)) return;
    orrProfSample sample = ORR_INIT(orrProfSample);
    sample.period_ns = period_ns;
    sample.lost = 1;
    sample.counters = counters.data();
    tell_one(sample);
}

void SampleLog::tell_one(orrProfSample& sample) {
    const SampleLog* const before = std::exchange(t_telling, this);
    sample.device = context_.device();
    orrProfRecord told = ORR_INIT(orrProfRecord);
    told.kind = orrProfSampled;
    told.params = &sample;
    Profiler::get().tell_as_it_is(told, orrProfWantSamples);
    t_telling = before;
}

void SampleLog::end() {
    {
        const std::lock_guard lock(mutex_);
        holders_.clear();
    }
    (void)end_unless_held();
    end_quiet_thread(mutex_, thread_);
}

}  // namespace orrery::umd
