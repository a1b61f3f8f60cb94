#include "umd/runtime/work_log.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include <orrery/hw/trace_sink.h>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/quiet_thread.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr std::size_t kBatch = 256;
constexpr std::chrono::seconds kDrainLimit{10};

// This thread tells records: what a callback calls must not wait for that.
thread_local bool t_telling = false;

using Counters = orrProfWorkCounters;
// By ORR_JOB_*: the same words in the same order, behind the size.
constexpr std::array<std::uint64_t Counters::*, ORR_JOB_COUNTERS> kCounters{
    &Counters::cores,           &Counters::busy_ps,
    &Counters::vram_read,       &Counters::vram_written,
    &Counters::host_read,       &Counters::host_written,
    &Counters::link_read,       &Counters::link_written,
    &Counters::moved,           &Counters::queued_ps,
    &Counters::groups,          &Counters::items,
    &Counters::instructions,    &Counters::latency_ps,
    &Counters::bandwidth_ps,    &Counters::link_ps,
    &Counters::launch_ps,       &Counters::barriers,
    &Counters::simd_int,        &Counters::simd_fp,
    &Counters::simd_moves,      &Counters::simd_loads,
    &Counters::simd_stores,     &Counters::simd_config,
    &Counters::lanes_active,    &Counters::lanes,
    &Counters::flops_f16,       &Counters::flops_f32,
    &Counters::flops_f64,       &Counters::tlb_lookups,
    &Counters::tlb_misses,      &Counters::tlb_walked,
    &Counters::copy_setup_ps,   &Counters::copy_rows_ps,
    &Counters::copy_vram_ps,    &Counters::copy_pcie_ps,
    &Counters::copy_latency_ps, &Counters::copy_translation_ps,
    &Counters::copy_link_ps,    &Counters::copy_credit_ps,
    &Counters::copy_peer_ps,    &Counters::link_ports,
    &Counters::pause_ps};
using Words = std::array<std::uint64_t, 1 + ORR_JOB_COUNTERS>;
consteval bool in_order() {
    Counters numbered{};
    for (std::size_t n = 0; n < kCounters.size(); ++n)
        numbered.*kCounters.at(n) = n + 1;
    const auto words = std::bit_cast<Words>(numbered);
    for (std::size_t n = 0; n < words.size(); ++n)
        if (words.at(n) != n) return false;
    return true;
}
static_assert(in_order());

// As far as all are known.
void counters_of(const drm_orr_work_counters& did, Counters& counters) {
    const std::size_t known =
        std::min(static_cast<std::size_t>(std::countr_one(did.known)), kCounters.size());
    counters = {};
    counters.size = (1 + known) * sizeof(std::uint64_t);
    std::memcpy(reinterpret_cast<std::byte*>(&counters) + sizeof counters.size, did.value,
                known * sizeof(std::uint64_t));
}

}  // namespace

bool WorkLog::makes_records() noexcept {
    const bool counters = prof_has(orrProfWantCounters);
    const auto known = [&] {
        const State now = state_.load();
        return now == State::kRefused || (now == State::kOn && (!counters || counters_.load()));
    };
    if (known()) return state_.load() == State::kOn;
    const std::lock_guard lock(mutex_);
    if (dozes()) {
        state_.store(State::kOn);
        wake_.notify_all();
    }
    if (known()) return state_.load() == State::kOn;
    Status good;
    bool counts = counters;
    try {
        good = context_.winsys().want_work(counters ? WorkWanted::kCounters : WorkWanted::kRecords);
        // For now, maybe: it is asked again.
        counts = counters && (good || good.error().code == orrErrorNotSupported);
        if (counters && !counts && state_.load() != State::kOn)
            good = context_.winsys().want_work(WorkWanted::kRecords);
        if (good && !thread_.joinable())
            thread_ = start_quiet_thread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::exception& error) {
        good = fail(orrErrorSystem, "{}", error.what());
    }
    counters_.store(counts);
    if (state_.load() == State::kOn) return true;
    if (!good) refused_ = good.error();
    if (good) life_.fetch_add(1);
    state_.store(good ? State::kOn : State::kRefused);
    wake_.notify_all();
    return good.has_value();
}

void WorkLog::hurry() noexcept {
    if (hurrying_.exchange(true)) return;
    const std::lock_guard lock(mutex_);
    hurried_ = true;
    wake_.notify_all();
}

void WorkLog::count_own_anew() noexcept {
    own_.store(0, std::memory_order_relaxed);
    hurrying_.store(false, std::memory_order_relaxed);
}

void WorkLog::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    LookPause pause;
    bool at_once = false;
    while (!stop.stop_requested()) {
        if (state_.load() != State::kOn) {
            wake_.wait(lock, stop, [this] { return state_.load() == State::kOn; });
            pause = {};
            continue;
        }
        if (!std::exchange(at_once, false))
            wake_.wait_for(lock, stop, pause.length(), [this] { return hurried_; });
        hurried_ = false;
        const bool was_long = pause.length() == LookPause::kLong;
        if (was_long) count_own_anew();
        lock.unlock();
        // Looked at before: whoever stops them inside of a callback is told the last ones.
        const bool unheld = context_.pc_log().unheld();
        (void)drain();
        // One long kernel is one record, and has as many samples as the card has room for.
        const std::size_t found = found_.exchange(0);
        const bool pcs = context_.pc_log().any();
        if (overrun_.exchange(false)) pause.lost();
        pause.found(found, pcs || context_.sample_log().any());
        if (!was_long && pause.length() == LookPause::kLong) count_own_anew();
        const bool idle = found == 0 && !pcs && !under_way();
        lock.lock();
        if (unheld) context_.pc_log().end_unheld();
        if (counters_.load() && !prof_has(orrProfWantCounters)) {
            // They take room of everybody's. The second look is as the one below.
            counters_.store(false);
            std::atomic_thread_fence(std::memory_order_seq_cst);
            if (prof_has(orrProfWantCounters)) {
                counters_.store(true);
            } else if (prof_has(orrProfWantWork)) {
                (void)context_.winsys().want_work(WorkWanted::kRecords);
            }
        }
        if (prof_has(orrProfWantWork)) {
            if (idle && state_.load() == State::kOn) {
                doze(lock, stop);
                at_once = true;
            }
            continue;
        }
        // Whoever subscribes now and still finds it on has been seen by the second look.
        state_.store(State::kOff);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (prof_has(orrProfWantWork)) {
            state_.store(State::kOn);
        } else {
            counters_.store(false);
            context_.pc_log().end_unheld();
            (void)context_.winsys().want_work(WorkWanted::kNone);
        }
    }
}

void WorkLog::doze(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    state_.store(State::kDozing);
    lock.unlock();
    // Who submits and has still found it on is seen by this look, or nearly all are.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool busy = under_way();
    lock.lock();
    if (!busy) wake_.wait_for(lock, stop, LookPause::kDoze, [this] { return !dozes(); });
    if (dozes()) state_.store(State::kOn);
}

// Others may hold their locks and submit, so none is held here. What has ended since the card's records were
// read is in its trail still.
bool WorkLog::under_way() {
    return std::ranges::any_of(context_.fleet().streams(&context_), [](const auto& stream) {
        return stream->hardware_number() && !stream->over(~std::uint64_t{0}) &&
               (stream->executed() != stream->submitted() || !stream->trail().empty());
    });
}

Status WorkLog::drain() {
    if (t_telling) return {};
    if (state_.load() == State::kRefused) {
        const std::lock_guard lock(mutex_);
        return std::unexpected(refused_);
    }
    if (!is_on()) return {};
    std::unique_lock lock(drain_mutex_, std::defer_lock);
    if (!lock.try_lock_for(kDrainLimit))
        return fail(orrErrorTimeout, "a callback that is told of the card's work has not returned for 10 s");
    struct Telling {
        Telling() { t_telling = true; }
        ~Telling() { t_telling = false; }
    } const telling;
    Status all = tell_all();
    (void)tell_ranges_done(false);
    return all;
}

Status WorkLog::tell_all() {
    struct Known {
        std::shared_ptr<Stream> stream;
        std::uint64_t executed;  // before the card's records are read: all of these are among them
        bool over;               // so it is with all that is not executed and was begun
        std::uint32_t number;
        std::string label{};  // once it is told of
    };
    std::vector<Known> streams;
    // Those that are not there yet, of which so much as executed() says was recorded before; `late`: nobody
    // knows.
    const auto look = [&](bool late) {
        for (auto& stream : context_.fleet().streams(&context_)) {
            if (!stream->hardware_number()) continue;  // another one may have its number
            if (late && std::ranges::find(streams, stream, &Known::stream) != streams.end()) continue;
            const bool over = !late && stream->over(~std::uint64_t{0});
            const std::uint64_t executed = late ? 0 : stream->executed();
            const std::uint32_t number = stream->number();
            streams.push_back(
                {.stream = std::move(stream), .executed = executed, .over = over, .number = number});
        }
    };
    bool looked = false;
    const auto find = [&](std::uint32_t queue) {
        const auto is_it = [&](const Known& one) { return one.number == queue; };
        const auto known = std::ranges::find_if(streams, is_it);
        if (known != streams.end() || std::exchange(looked, true)) return known;
        // It was made meanwhile.
        look(true);
        return std::ranges::find_if(streams, is_it);
    };
    // Whoever is inside of a callback would tell them past it: they are told by this log's thread.
    ThreadMarks& marks = thread_marks();
    const bool later = marks.inside != 0;
    if (!later) tell_backlog(marks);
    look(false);
    std::array<drm_orr_work_record, kBatch> records;
    // 100 KB, which is not made anew for the few that most looks find.
    if (const std::size_t room = counters_.load() ? kBatch : 0; room != did_.size())
        did_ = std::vector<drm_orr_work_counters>(room);
    WorkRead read{};
    do {
        const auto got = context_.winsys().read_work(records, did_);
        if (!got) {
            for (const Known& known : streams)
                if (got.error().code == orrErrorDeviceLost) known.stream->trail().end_ranges();
            return std::unexpected(got.error());
        }
        read = *got;
        found_.fetch_add(read.count, std::memory_order_relaxed);
        // One look at the clock for all: in a VM it costs as much as the rest of a record.
        const auto read_ns = static_cast<std::uint64_t>(now_ns());
        looked = false;
        Kept one;
        for (std::size_t i = 0; i < read.count; ++i, one.clear()) {
            const auto known = find(records.at(i).queue);
            one.record.host_ns = read_ns;
            if (known == streams.end() || !read_one(records.at(i), *known->stream, one)) continue;
            if (!did_.empty() && did_[i].known != 0) counters_of(did_[i], one.counters.emplace());
            if (known->label.empty()) known->label = known->stream->label();
            if (later) {
                one.stream_name = known->label;
                keep(std::move(one));
            } else {
                tell(one, known->label, marks);
            }
        }
        if (!read.lost) continue;
        overrun_.store(true, std::memory_order_relaxed);
        look(true);
        // Where all was told before, they were others'.
        for (const Known& each : streams)
            if (each.stream->trail().lose()) lost_ = lost_.value_or(0);
    } while (read.more);
    // A stream may be going, and its trail with it.
    for (const Known& known : streams) {
        known.stream->trail().take_steps(known.executed, steps_);
        known.stream->trail().take_marks(known.executed, marks_);
    }
    // Samples and the count of what is lost go by what the trails still have.
    if (later) return {};
    looked = false;
    Status sampled = context_.pc_log().tell_all([&](std::uint32_t queue) -> Stream* {
        const auto known = find(queue);
        return known == streams.end() ? nullptr : known->stream.get();
    });
    std::uint64_t count = 0;
    for (const Known& known : streams) {
        count += known.stream->trail().drop(known.executed);
        if (known.over) known.stream->trail().end_ranges();
    }
    if (count != 0) lost_ = lost_.value_or(0) + count;
    if (const auto lost = std::exchange(lost_, std::nullopt)) tell_lost(*lost);
    // Mostly there are none, and an empty deque is several pieces of memory.
    if (!steps_.empty()) {
        for (const StepNote& step : std::exchange(steps_, {})) {
            if (step.life == life()) tell_step(step);
        }
    }
    if (!marks_.empty()) {
        for (const StreamMarkNote& mark : std::exchange(marks_, {})) {
            if (mark.life == life()) tell_mark(mark);
        }
    }
    return sampled;
}

void WorkLog::Kept::clear() {
    signal.reset();
    counters.reset();
    ranges.reset();
    semaphore_name.clear();
    work.counters = nullptr;
    work.semaphore = work.value = 0;
    work.from = orrProfFromUnknown;
    work.from_stream = work.from_index = 0;
}

bool WorkLog::read_one(const drm_orr_work_record& record, Stream& stream, Kept& one) {
    std::uint64_t semaphore = 0;
    if (record.kind == ORR_WORK_SIGNAL) {
        one.signal = ORR_INIT(orrProfSignal);
        if (!stream.trail().find_signal(record, one.record, *one.signal)) return false;
        one.signal->device = context_.device();
        if (stream.use() == Stream::Use::kHostSignals) one.signal->stream = 0;
        semaphore = record.va;
    } else {
        if (!stream.trail().find(record, one.record, one.work, semaphore, &one.ranges)) return false;
        if (one.work.from == orrProfFromOutside && context_.fleet().may_have_signalled(semaphore))
            one.work.from = orrProfFromUnknown;
        one.work.device = context_.device();
    }
    if (semaphore != 0) one.semaphore_name = context_.semaphore_name(semaphore);
    return true;
}

void WorkLog::keep(Kept one) {
    if (backlog_.size() == kMostBacklog) {
        const Kept& first = backlog_.front();
        const bool counts = first.signal || (first.work.operation != orrProfOperationWait &&
                                             first.work.outcome != orrProfOutcomePreempted);
        lost_ = lost_.value_or(0) + (counts ? 1 : 0);
        if (first.ranges != nullptr && counts) first.ranges->miss();
        backlog_.pop_front();
    }
    backlog_.push_back(std::move(one));
}

void WorkLog::tell(Kept& one, const std::string& stream_name, ThreadMarks& marks) {
    const char* const name = one.semaphore_name.empty() ? nullptr : one.semaphore_name.c_str();
    if (one.signal) {
        one.signal->stream_name = stream_name.c_str();
        one.signal->semaphore_name = name;
        one.record.kind = orrProfSignalDone;
        one.record.params = &*one.signal;
        profiler_.tell_as_it_is(one.record, orrProfWantSignals, marks);
        return;
    }
    one.work.stream_name = stream_name.c_str();
    one.work.from_name = name;
    if (one.counters) one.work.counters = &*one.counters;
    one.record.kind = orrProfWorkDone;
    one.record.params = &one.work;
    profiler_.tell_as_it_is(one.record, orrProfWantWork, marks);
    // Whoever is told of the ranges has been told of this before.
    if (const HeldRanges ranges = std::exchange(one.ranges, nullptr)) ranges->add(one.work);
}

void WorkLog::tell_backlog(ThreadMarks& marks) {
    for (; !backlog_.empty(); backlog_.pop_front())
        tell(backlog_.front(), backlog_.front().stream_name, marks);
}

void WorkLog::tell_mark(const StreamMarkNote& mark) const {
    orrProfStreamMark told = ORR_INIT(orrProfStreamMark);
    told.device = context_.device();
    told.stream = mark.stream;
    told.stream_name = mark.stream_name.c_str();
    told.index = mark.index;
    told.time_ps = mark.time_ps;
    told.submitted_ns = mark.submitted_ns;
    orrProfRecord record = ORR_INIT(orrProfRecord);
    record.kind = orrProfStreamMarker;
    record.name = mark.text.c_str();
    record.params = &told;
    record.domain = mark.domain;
    record.correlation = mark.correlation;
    record.external = mark.external;
    record.thread = mark.thread;
    Profiler::get().tell_as_it_is(record, orrProfWantRanges);
}

void WorkLog::tell_lost(std::uint64_t lost) {
    orrProfWork work = ORR_INIT(orrProfWork);
    orrProfRecord told = ORR_INIT(orrProfRecord);
    work.device = context_.device();
    work.lost = lost;
    told.kind = orrProfWorkLost;
    told.params = &work;
    Profiler::get().tell_as_it_is(told, orrProfWantWork);
}

void WorkLog::end() {
    if (!end_quiet_thread(mutex_, thread_)) return;
    if (is_on(state_.exchange(State::kOff))) (void)context_.winsys().want_work(WorkWanted::kNone);
}

}  // namespace orrery::umd
