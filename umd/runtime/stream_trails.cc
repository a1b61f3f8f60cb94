#include "umd/runtime/stream_trails.h"

#include <algorithm>
#include <new>
#include <utility>

namespace orrery::umd {

bool SignalTrail::add(const SignalNote& note) noexcept {
    bool good = true;
    if (notes_.size() == kMost) {
        good = notes_.front().told;
        notes_.pop_front();
        next_ -= next_ == 0 ? 0 : 1;
    }
    try {
        notes_.push_back(note);
    } catch (const std::bad_alloc&) {
        good = false;
    }
    return good;
}

std::optional<SignalNote> SignalTrail::take(std::uint64_t va, std::uint64_t value, bool failed) {
    const auto is_it = [&](const SignalNote& note) {
        return note.va == va && (failed || note.value == value);
    };
    const auto found = std::find_if(notes_.begin() + static_cast<std::ptrdiff_t>(next_), notes_.end(), is_it);
    if (found == notes_.end()) return {};
    found->told = true;
    next_ = static_cast<std::size_t>(found - notes_.begin()) + 1;
    return *found;
}

std::uint64_t SignalTrail::drop(std::uint64_t below, std::uint64_t lost_below) {
    std::uint64_t lost = 0;
    for (; !notes_.empty() && notes_.front().index < below; notes_.pop_front()) {
        if (!notes_.front().told && notes_.front().index < lost_below) ++lost;
        next_ -= next_ == 0 ? 0 : 1;
    }
    return lost;
}

void MarkTrail::add(StreamMarkNote note) noexcept {
    if (entries_.size() == kMost) return;
    try {
        note.time_ps = std::exchange(behind_ps_, 0);
        // Another thread's may have come first.
        if (!entries_.empty()) note.index = std::max(note.index, entries_.back().note.index);
        entries_.push_back(
            {std::move(note), std::exchange(behind_lost_, false), std::exchange(behind_first_, false)});
    } catch (const std::bad_alloc&) {
        // Nobody is told of this one.
    }
}

void MarkTrail::ended_between(std::uint64_t index, std::uint64_t end_ps) {
    // Most come behind all marks, or before the first.
    const auto mark =
        std::ranges::upper_bound(entries_, index, {}, [](const Entry& entry) { return entry.note.index; });
    std::uint64_t& ps = mark == entries_.end() ? behind_ps_ : mark->note.time_ps;
    ps = std::max(ps, end_ps);
}

void MarkTrail::lose() {
    for (Entry& entry : entries_)
        entry.lost = true;
    behind_lost_ = true;
}

void MarkTrail::begin(std::uint64_t index) {
    begin_ = index;
    behind_ps_ = 0;
    behind_lost_ = false;
    behind_first_ = true;
}

void MarkTrail::take(std::uint64_t below, std::deque<StreamMarkNote>& marks) {
    for (; !entries_.empty() && entries_.front().note.index <= below; entries_.pop_front()) {
        Entry& first = entries_.front();
        if (first.first) {
            before_ps_ = 0;
            before_known_ = false;
        }
        before_ps_ = std::max(before_ps_, first.note.time_ps);
        // One without an end of its own has the time of the mark before, if that is known.
        before_known_ = !first.lost && (before_known_ || first.note.time_ps != 0);
        first.note.time_ps = before_known_ ? before_ps_ : 0;
        marks.push_back(std::move(first.note));
    }
}

}  // namespace orrery::umd
