#include "emulator/time/event_queue.h"

namespace orrery::emu {

namespace {
constexpr std::size_t kReserved = 1024;
}

EventQueue::EventQueue() {
    heap_.reserve(kReserved);
}

EventQueue::~EventQueue() {
    for (const Entry& entry : heap_)
        entry.event->queue_ = nullptr;
}

void EventQueue::place(std::size_t position, const Entry& entry) {
    heap_[position] = entry;
    entry.event->position_ = position;
}

void EventQueue::sift_up(std::size_t position, const Entry& entry) {
    while (position > 0) {
        const std::size_t parent = (position - 1) / 2;
        if (!entry.before(heap_[parent])) break;
        place(position, heap_[parent]);
        position = parent;
    }
    place(position, entry);
}

void EventQueue::sift_down(std::size_t position, const Entry& entry) {
    const std::size_t size = heap_.size();
    for (;;) {
        std::size_t child = 2 * position + 1;
        if (child >= size) break;
        if (child + 1 < size && heap_[child + 1].before(heap_[child])) ++child;
        if (!heap_[child].before(entry)) break;
        place(position, heap_[child]);
        position = child;
    }
    place(position, entry);
}

void EventQueue::remove_at(std::size_t position) {
    heap_[position].event->queue_ = nullptr;
    if (heap_[position].event == unfinished_) unfinished_ = nullptr;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (position == heap_.size()) return;
    // The last entry may belong above or below the gap, as it comes from another branch.
    if (position > 0 && last.before(heap_[(position - 1) / 2])) {
        sift_up(position, last);
    } else {
        sift_down(position, last);
    }
}

void EventQueue::schedule(Event& event, ModelTime at) {
    const auto entry = [&] {
        return Entry{at > now_ ? at : now_, std::uint64_t{event.rank_} << kRankShift | next_sequence_++,
                     &event};
    };
    if (event.queue_ == this && at != kNever) {
        if (&event == unfinished_) unfinished_ = nullptr;
        // As out and in again.
        const Entry moved = entry();
        event.time_ = moved.time;
        const std::size_t from = event.position_;
        if (from > 0 && moved.before(heap_[(from - 1) / 2]))
            sift_up(from, moved);
        else
            sift_down(from, moved);
        return;
    }
    if (event.queue_ != nullptr) event.queue_->cancel(event);
    if (at != kNever) insert(entry());
}

void EventQueue::insert(const Entry& entry) {
    entry.event->queue_ = this;
    entry.event->time_ = entry.time;
    heap_.push_back(entry);
    sift_up(heap_.size() - 1, entry);
}

void EventQueue::again(Event& event) {
    if (event.queue_ != nullptr) event.queue_->cancel(event);
    unfinished_ = &event;
    --fired_;
    insert({now_, 0, &event});
}

void EventQueue::cancel(Event& event) {
    if (event.queue_ != this) return;
    remove_at(event.position_);
}

bool EventQueue::run_next(ModelTime limit) {
    if (heap_.empty() || heap_.front().time > limit) return false;
    Event& event = *heap_.front().event;
    if (heap_.front().time > now_) {
        now_ = heap_.front().time;
        if (now_ >= watch_at_) [[unlikely]] {
            watch_at_ = kNever;
            watch_(watch_owner_);
        }
    }
    remove_at(0);
    ++fired_;
    if (before_others_ != nullptr && !event.apart_) before_others_(before_owner_);
    event.handler_(event.owner_, now_);
    return true;
}

std::size_t EventQueue::run_due() {
    // Not what handlers schedule for this same moment: an engine that waits for its peer's credits tries
    // again at one model time, and the card must get to look at its links in between.
    const std::uint64_t limit = next_sequence_, sequence = (std::uint64_t{1} << kRankShift) - 1;
    std::size_t count = 0;
    while (!heap_.empty() && (heap_.front().order & sequence) < limit && run_next(now_))
        ++count;
    return count;
}

}  // namespace orrery::emu
