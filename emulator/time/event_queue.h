// The model clock and the events on it: all that makes a card a discrete-event simulation.
//
// One thread (the card's) uses a queue; nothing here locks. Events fire in the order of their time, those of
// one time in the order of their ranks, and then in the order in which they were scheduled, so a run depends
// on nothing but what was scheduled. No call allocates as long as no more events are scheduled at once than
// ever before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/api/model_time.h"

namespace orrery::emu {

// No card gets this far by itself (53 days); a clock that ran beyond would soon wrap.
inline constexpr ModelTime kLatestSystemTime = ModelTime{1} << 62;

class EventQueue;

// Something that happens at a model time. It lives inside its owner (which must outlive its time in a queue
// or be destroyed first: the destructor takes the event out) and can be scheduled again and again, at one
// time at once.
class Event {
  public:
    using Handler = void (*)(void* owner, ModelTime now);

    Event(Handler handler, void* owner) : handler_(handler), owner_(owner) {}
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event();

    // An event that calls (owner->*Method)(now): `Event step_ = Event::of<&Engine::step>(this);`
    template <auto Method, class Owner>
    static Event of(Owner* owner) {
        return Event([](void* self, ModelTime now) { (static_cast<Owner*>(self)->*Method)(now); }, owner);
    }

    // An event at which nothing happens: the clock only does not pass it unseen.
    static Event stop() {
        return Event([](void*, ModelTime) {}, nullptr);
    }

    // Of events of the same time lower ranks fire first. For those that come from another card, of which it
    // is not known how early this one hears. Not while scheduled.
    using Rank = std::uint8_t;
    static constexpr Rank kFirst = 0, kLast = 255;
    void set_rank(Rank rank) { rank_ = rank; }

    // What others have left to be done later (EventQueue::before_others) is none of its business.
    void set_apart() { apart_ = true; }

    bool scheduled() const { return queue_ != nullptr; }
    // Only while scheduled.
    ModelTime time() const { return time_; }

  private:
    friend class EventQueue;
    Handler handler_;
    void* owner_;
    EventQueue* queue_ = nullptr;
    ModelTime time_ = 0;
    std::size_t position_ = 0;  // in the heap
    Rank rank_ = kLast;
    bool apart_ = false;
};

class EventQueue {
  public:
    EventQueue();
    ~EventQueue();
    EventQueue(const EventQueue&) = delete;
    EventQueue& operator=(const EventQueue&) = delete;

    // The model clock. It never goes backward.
    ModelTime now() const { return now_; }

    // The time that cards which are linked have in common: what hosts, users and peers are told. It is this
    // clock plus the time that the card has skipped: a card that finds itself behind jumps, and its own
    // clock, by which all durations and deadlines on it go, stays as it is.
    ModelTime system_now() const { return later(now_, skipped_); }
    ModelTime to_system(ModelTime time) const { return later(time, skipped_); }
    ModelTime from_system(ModelTime time) const { return time > skipped_ ? time - skipped_ : 0; }
    ModelTime skipped() const { return skipped_; }
    // system_now() becomes max(system_now(), time). true: it did jump.
    bool jump_to(ModelTime system_time) {
        if (system_time <= system_now()) return false;
        skipped_ += system_time - system_now();
        return true;
    }

    // Moves the clock to `time`, but never backward and never past an event that has not fired: a handler's
    // `now` is the time of its event. Fires nothing. The card does this while the control core executes.
    void advance_to(ModelTime time) {
        time = time < next_time() ? time : next_time();
        if (time > now_) now_ = time;
    }

    // Schedules `event` at max(now, at), after all others of that time; takes it out of its old place first.
    // `at` == kNever is the same as cancel().
    void schedule(Event& event, ModelTime at);
    void cancel(Event& event);

    // Time of the first event; kNever: there is none.
    ModelTime next_time() const { return heap_.empty() ? kNever : heap_.front().time; }
    bool empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }

    // For the handler of `event`: it is not done, and is called again at this time before any other. Until
    // then it counts as one that has not fired.
    void again(Event& event);
    // There is such an event: nothing else of the model may go on before it.
    bool unfinished() const { return unfinished_ != nullptr; }

    // Fires the first event if its time is <= `limit`, with the clock moved to its time. The event is
    // out of the queue when its handler runs, which may schedule and cancel anything, also itself.
    bool run_next(ModelTime limit);

    // Where no event is due by now: the caller does what `event`, which is not scheduled, would do if it were
    // for now, as the next one to fire.
    bool none_is_due() const { return next_time() > now_; }
    void count_as_fired(const Event& event) {
        ++fired_;
        if (before_others_ != nullptr && !event.apart_) before_others_(before_owner_);
    }

    // Fires everything due up to now(), except what these events schedule for now. Returns how many fired.
    std::size_t run_due();

    // Called before each event fires that is not apart.
    void before_others(void (*what)(void* owner), void* owner) {
        before_others_ = what;
        before_owner_ = owner;
    }

    // Called once, with the clock at the first event at or behind `at`, before that event fires. It changes
    // nothing of the model. kNever: no more.
    void watch(ModelTime at, void (*what)(void* owner), void* owner) {
        watch_at_ = at;
        watch_ = what;
        watch_owner_ = owner;
    }

    // Events fired since construction.
    std::uint64_t fired() const { return fired_; }

  private:
    struct Entry {
        ModelTime time;
        std::uint64_t order;  // rank, and in the order of scheduling
        Event* event;
        bool before(const Entry& other) const {
            return time != other.time ? time < other.time : order < other.order;
        }
    };
    void insert(const Entry& entry);
    void place(std::size_t position, const Entry& entry);
    void sift_up(std::size_t position, const Entry& entry);
    void sift_down(std::size_t position, const Entry& entry);
    void remove_at(std::size_t position);

    std::vector<Entry> heap_;
    ModelTime now_ = 0;
    ModelTime skipped_ = 0;
    static constexpr unsigned kRankShift = 56;
    std::uint64_t next_sequence_ = 1;
    const Event* unfinished_ = nullptr;
    std::uint64_t fired_ = 0;
    ModelTime watch_at_ = kNever;
    void (*watch_)(void* owner) = nullptr;
    void* watch_owner_ = nullptr;
    void (*before_others_)(void* owner) = nullptr;
    void* before_owner_ = nullptr;
};

inline Event::~Event() {
    if (queue_ != nullptr) queue_->cancel(*this);
}

}  // namespace orrery::emu
