#include "umd/runtime/work_trail.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include <orrery/hw/engine.h>

#include "umd/prof/profiler.h"
#include "umd/prof/ranges.h"
#include "umd/runtime/clock.h"
#include "umd/runtime/signal_log.h"

namespace orrery::umd {
namespace {

orrProfOutcome outcome_of(std::uint32_t status) {
    if (status == ORR_DONE_OK) return orrProfOutcomeDone;
    return status == ORR_DONE_PREEMPTED ? orrProfOutcomePreempted : orrProfOutcomeFailed;
}

}  // namespace

std::uint64_t WorkTrail::next_number() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void WorkTrail::live(std::uint64_t index, std::uint64_t life) {
    if (std::exchange(life_, life) != life) marks_.begin(index);
}

void WorkTrail::add(std::uint64_t index, const WorkNote& note, std::uint64_t life) noexcept {
    const ThreadMarks& marks = thread_marks();
    Entry entry{index, marks.correlation, marks.external, prof_thread(), static_cast<std::uint64_t>(now_ns()),
                note};
    if (note.operation != orrProfOperationWait) entry.ranges = ranges_around();
    const std::lock_guard lock(mutex_);
    live(index, life);
    has_ranges_ = has_ranges_ || entry.ranges != nullptr;
    last_index_ = index + 1;
    if (entries_.size() == kMost) {
        lost_below_ = std::max(lost_below_, entries_.front().index + 1);
        forget_first();
    }
    try {
        entries_.push_back(std::move(entry));  // left as it is if there is no memory
    } catch (const std::bad_alloc&) {
        if (note.operation != orrProfOperationWait) ++lost_;
        if (entry.ranges != nullptr) entry.ranges->miss();
    }
}

void WorkTrail::forget_first() noexcept {
    Entry& first = entries_.front();
    // A wait that found its semaphore there has no record.
    if (!first.told && first.index < lost_below_ && first.note.operation != orrProfOperationWait) ++lost_;
    if (const HeldRanges ranges = std::exchange(first.ranges, nullptr)) ranges->miss();
    entries_.pop_front();
    next_ -= next_ == 0 ? 0 : 1;
}

void WorkTrail::end_ranges() noexcept {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(has_ranges_, false)) return;
    for (std::size_t place = 0; place < entries_.size(); ++place) {
        if (const HeldRanges ranges = std::exchange(entries_[place].ranges, nullptr)) ranges->miss();
    }
}

std::size_t WorkTrail::place_of(std::uint64_t index) const {
    std::size_t first = 0;
    for (std::size_t count = entries_.size(); count != 0;) {
        const std::size_t half = count / 2;
        const bool below = entries_[first + half].index < index;
        first += below ? half + 1 : 0;
        count = below ? count - half - 1 : half;
    }
    return first;
}

bool WorkTrail::lose() {
    const std::lock_guard lock(mutex_);
    bool all = signals_.all_told();
    // Those at the end are the likely ones.
    for (std::size_t place = entries_.size(); all && place-- > 0;)
        all = entries_[place].told;
    if (all) return false;
    lost_below_ = std::max(lost_below_, last_index_);
    marks_.lose();
    return true;
}

bool WorkTrail::empty() {
    const std::lock_guard lock(mutex_);
    return entries_.empty() && signals_.empty();
}

void WorkTrail::add_signal(std::uint64_t index, std::uint64_t va, std::uint64_t value,
                           std::uint64_t semaphore, std::int32_t memory, std::uint64_t life) noexcept {
    const ThreadMarks& marks = thread_marks();
    const SignalNote note{.index = index,
                          .correlation = marks.correlation,
                          .external = marks.external,
                          .thread = prof_thread(),
                          .submitted_ns = static_cast<std::uint64_t>(now_ns()),
                          .va = va,
                          .value = value,
                          .semaphore = semaphore,
                          .memory = memory};
    const std::lock_guard lock(mutex_);
    live(index, life);
    last_index_ = index + 1;
    if (!signals_.add(note)) ++lost_;
}

bool WorkTrail::find_signal(const drm_orr_work_record& record, orrProfRecord& told, orrProfSignal& signal) {
    const std::lock_guard lock(mutex_);
    const bool failed = (record.value & ORR_SEM_FAILED) != 0;
    const auto note = signals_.take(record.va, record.value, failed);
    if (!note) return false;
    marks_.ended(note->index, record.time_ps);
    told.name = "signal";
    told.correlation = note->correlation;
    told.external = note->external;
    told.thread = note->thread;
    signal.outcome = failed ? orrProfOutcomeFailed : orrProfOutcomeDone;
    signal.stream = number_;
    signal.index = note->index;
    signal.time_ps = record.time_ps;
    signal.submitted_ns = note->submitted_ns;
    signal.semaphore = note->semaphore;
    signal.value = note->value;
    signal.memory = note->memory;
    signal.waiters = record.status;
    return true;
}

void WorkTrail::add_mark(StreamMarkNote note) noexcept {
    const ThreadMarks& marks = thread_marks();
    note.correlation = marks.correlation;
    note.external = marks.external;
    note.thread = prof_thread();
    note.submitted_ns = static_cast<std::uint64_t>(now_ns());
    note.stream = number_;
    const std::lock_guard lock(mutex_);
    live(note.index, note.life);
    marks_.add(std::move(note));
}

void WorkTrail::take_marks(std::uint64_t below, std::deque<StreamMarkNote>& marks) {
    const std::lock_guard lock(mutex_);
    marks_.take(below, marks);
}

bool WorkTrail::find(const drm_orr_work_record& record, orrProfRecord& told, orrProfWork& work,
                     std::uint64_t& semaphore, HeldRanges* ranges) {
    const std::lock_guard lock(mutex_);
    drm_orr_work_record whole = record;
    if (record.kind == ORR_WORK_WAIT) {
        wait_ = record;
        return false;
    }
    if (record.kind == ORR_WORK_WAKE) {
        if (!wait_) return false;
        whole = *std::exchange(wait_, std::nullopt);
        whole.start_ps = whole.time_ps;
        whole.end_ps = record.time_ps;
        whole.status = ORR_DONE_OK;
    }
    marks_.ended(whole.index, whole.end_ps);
    if (next_ >= entries_.size() || entries_[next_].index != whole.index) next_ = place_of(whole.index);
    if (next_ >= entries_.size() || entries_[next_].index != whole.index) return false;
    Entry* const entry = &entries_[next_++];
    note_step(whole);
    told.name = entry->note.name;
    told.correlation = entry->correlation;
    told.external = entry->external;
    told.thread = entry->thread;
    work.operation = entry->note.operation;
    work.stream = number_;
    work.index = whole.index;
    work.begin_ps = whole.start_ps;
    work.end_ps = whole.end_ps;
    work.used_ps = whole.used_ps;
    work.submitted_ns = entry->submitted_ns;
    const auto seen = std::ranges::upper_bound(seen_, whole.index, {}, &Seen::below);
    work.ended_by_ns = seen == seen_.end() ? told.host_ns : std::min(seen->ns, told.host_ns);
    work.reduces = entry->note.reduces ? 1 : 0;
    work.outcome = outcome_of(whole.status);
    if (ranges != nullptr) {
        const bool ends = work.outcome != orrProfOutcomePreempted;
        entry->told = entry->told || ends;
        *ranges = ends ? std::exchange(entry->ranges, nullptr) : entry->ranges;
    }
    work.bytes = entry->note.bytes;
    work.source = entry->note.source;
    work.destination = entry->note.destination;
    work.groups = entry->note.groups;
    work.items = entry->note.items;
    semaphore = entry->note.semaphore;
    if (semaphore == 0) return true;
    work.semaphore = entry->note.generation;
    work.value = entry->note.value;
    const SignalLog::Source source =
        SignalLog::get().find(semaphore, entry->note.generation, entry->note.value, number_, whole.index);
    work.from = source.from;
    work.from_stream = source.stream;
    work.from_index = source.index;
    return true;
}

void WorkTrail::see(std::uint64_t below) noexcept {
    const std::lock_guard lock(mutex_);
    // Mostly there is something to be told: whoever waits has submitted it. None is seen twice.
    if (entries_.empty() || entries_.front().index >= below || seen_.size() == kMostSeen ||
        (!seen_.empty() && seen_.back().below >= below))
        return;
    try {
        seen_.push_back({below, static_cast<std::uint64_t>(now_ns())});
    } catch (const std::bad_alloc&) {
        // When its record was read has to do.
    }
}

std::uint64_t WorkTrail::drop(std::uint64_t below) {
    const std::lock_guard lock(mutex_);
    std::erase_if(seen_, [&](const Seen& one) { return one.below <= below; });
    while (!entries_.empty() && entries_.front().index < below)
        forget_first();
    lost_ += signals_.drop(below, lost_below_);
    return std::exchange(lost_, 0);
}

void WorkTrail::add_step(std::uint64_t index, const StepNote& note, std::uint64_t life) noexcept {
    const std::lock_guard lock(mutex_);
    if (steps_.size() == kMostSteps) steps_.pop_front();
    try {
        StepNote& added = steps_.emplace_back(note);
        added.step.stream = number_;
        added.life = life;
        added.step.first_index = index + note.from;
        added.step.end_index = index + note.to;
    } catch (const std::bad_alloc&) {
        // Nobody is told of this one.
    }
}

void WorkTrail::note_step(const drm_orr_work_record& record) {
    if (steps_.empty()) return;
    const auto behind = [](const StepNote& note) { return note.step.end_index - 1; };
    const auto found = std::ranges::lower_bound(steps_, record.index, {}, behind);
    if (found == steps_.end() || found->step.first_index > record.index) return;
    orrProfStep& step = found->step;
    step.begin_ps =
        step.end_ps == 0 ? record.start_ps : std::min<std::uint64_t>(step.begin_ps, record.start_ps);
    step.end_ps = std::max<std::uint64_t>(step.end_ps, record.end_ps);
}

void WorkTrail::take_steps(std::uint64_t below, std::deque<StepNote>& steps) {
    const std::lock_guard lock(mutex_);
    for (; !steps_.empty() && steps_.front().step.end_index <= below; steps_.pop_front())
        steps.push_back(std::move(steps_.front()));
}

}  // namespace orrery::umd
