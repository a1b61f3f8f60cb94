// SPDX-License-Identifier: MIT
// Who waits for a resource, and who gets it next.
//
// Classes: REALTIME before all else. HIGH before NORMAL before LOW, except that a class which has been there
// for the policy's bound without being served gets one turn or slice. In a class: the queue that has used the
// least of this resource for its weight.
#pragma once

#include <orrery/fw/mailbox.h>
#include <orrery/fw/trace.h>

#include "firmware/sched/calendar.h"

namespace orrery::fw {

inline constexpr uint32_t kClasses = ORR_PRIORITY_REALTIME + 1;

// `kResource`: of which resource; kOther: as init() says.
inline constexpr uint32_t kOther = kResources;
template <uint32_t kResource>
class MarketOf {
  public:
    // Who comes back may be `credit_ps` of virtual time behind the others, but not more.
    // `calendars`: kClasses of them, all zero.
    void init(uint64_t credit_ps, Calendar* calendars, Resource resource = Resource{kResource}) {
        by_class_ = calendars;
        resource_ = static_cast<uint32_t>(resource);
        credit_ps_ = credit_ps;
    }

    bool empty() const { return count_ == 0; }
    uint32_t count() const { return count_; }
    uint32_t classes() const { return classes_; }  // bit n: somebody of class n
    bool has(uint32_t level) const { return (classes_ >> level & 1) != 0; }
    uint32_t count_of(uint32_t level) const {
        return solo_ != nullptr ? classes_ >> level & 1 : by_class_[level].count();
    }
    // Of the class; null: nobody. It stays.
    Queue* front(Queue* all, uint32_t level) {
        if (solo_ != nullptr) return has(level) ? solo_ : nullptr;
        return by_class_[level].front(all, resource());
    }
    // Who waits, if it is one alone; else null.
    Queue* solo() const { return solo_; }

    // It cannot save up time by being away.
    void admit(Queue& queue) const {
        uint64_t& vtime = queue.vtime[resource()];
        const uint64_t reached = vtime_[queue.priority];
        if (vtime + credit_ps_ < reached) vtime = reached - credit_ps_;
    }
    [[gnu::noinline]] void enter(Queue* all, Queue& queue) {
        admit(queue);
        classes_ |= 1u << queue.priority;
        if (count_++ == 0) {
            solo_ = &queue;
            return;
        }
        if (solo_ != nullptr) share(all);
        insert(all, queue);
    }
    // The queue must be in here.
    void leave(Queue* all, Queue& queue) {
        --count_;
        if (solo_ != nullptr) {
            solo_ = nullptr;
            classes_ = 0;
            return;
        }
        Calendar& calendar = by_class_[queue.priority];
        calendar.remove(all, queue);
        if (calendar.empty()) classes_ &= ~(1u << queue.priority);
    }

    // It has used some time, and waits again; as leave() and enter().
    void move(Queue* all, Queue& queue) {
        if (solo_ != nullptr) {
            admit(queue);
            return;
        }
        leave(all, queue);
        enter(all, queue);
    }

    // The class has come as far as this queue: call it for whom gets the resource.
    void serve(const Queue& queue) {
        const uint64_t vtime = queue.vtime[resource()];
        if (vtime_[queue.priority] < vtime) vtime_[queue.priority] = vtime;
    }
    uint64_t reached(uint32_t level) const { return vtime_[level]; }

  private:
    uint32_t resource() const { return kResource == kOther ? resource_ : kResource; }
    void insert(Queue* all, Queue& queue) {
        by_class_[queue.priority].insert(all, queue, queue.vtime[resource()]);
    }
    // Somebody comes to one that was alone.
    [[gnu::noinline]] void share(Queue* all) {
        insert(all, *solo_);
        solo_ = nullptr;
    }

    Queue* solo_;  // one alone needs no calendar: it is in none
    uint64_t credit_ps_;
    uint32_t count_;
    uint32_t classes_;
    uint64_t vtime_[kClasses];
    Calendar* by_class_;
    uint32_t resource_;
};
using Market = MarketOf<kOther>;

// Who waits for the core's attention. As a market, but for a short way: as long as all who wait are of one
// class and in one bucket of virtual time, they stand in a lane, in the order in which they came, as they
// would in their bucket.
class Turns {
  public:
    void init(Calendar* calendars) { others_.init(0, calendars); }

    bool empty() const { return count() == 0; }
    uint32_t count() const { return tail_ - head_ + others_.count(); }
    // All who wait are in the lane, of this class. (They can be of one class without it.)
    bool of_one_class() const { return tail_ != head_; }
    uint32_t level() const { return level_; }
    // Those in the lane are not asked for.
    uint32_t classes() const { return others_.classes(); }
    uint32_t count_of(uint32_t level) const { return others_.count_of(level); }

    void enter(Queue* all, Queue& queue) {
        others_.admit(queue);
        const auto bucket = static_cast<uint32_t>(vtime(queue) >> Calendar::kWidthShift);
        if (others_.count() == 0) {
            if (tail_ == head_) {
                level_ = queue.priority;
                bucket_ = bucket;
            }
            if (level_ == queue.priority && bucket_ == bucket) [[likely]] {
                lane_[tail_++ % ORR_FW_QUEUES] = queue.number;
                return;
            }
            spread(all);
        }
        others_.enter(all, queue);
    }

    // The one of the class that is next leaves; the class has somebody. `next`: who comes after it, if that
    // is known already; else null.
    Queue& take(Queue* all, uint32_t level, Queue*& next) {
        if (tail_ != head_) [[likely]] {
            Queue& queue = all[lane_[head_++ % ORR_FW_QUEUES]];
            next = tail_ != head_ ? &all[lane_[head_ % ORR_FW_QUEUES]] : nullptr;
            return queue;
        }
        Queue& queue = *others_.front(all, level);
        next = QueueList::next(all, queue);
        others_.leave(all, queue);
        return queue;
    }

    // The queue must be in here.
    void leave(Queue* all, Queue& queue) {
        if (tail_ != head_) spread(all);
        others_.leave(all, queue);
    }

    void serve(const Queue& queue) { others_.serve(queue); }
    uint64_t reached(uint32_t level) const { return others_.reached(level); }

  private:
    static uint64_t vtime(const Queue& queue) { return queue.vtime[static_cast<uint32_t>(Resource::kTurn)]; }
    // All from the lane to their buckets.
    [[gnu::noinline]] void spread(Queue* all) {
        while (tail_ != head_)
            others_.enter(all, all[lane_[head_++ % ORR_FW_QUEUES]]);
    }

    uint32_t head_, tail_;
    uint32_t bucket_;                                          // of all in the lane, modulo 2^32
    uint8_t level_;                                            // their class
    MarketOf<static_cast<uint32_t>(Resource::kTurn)> others_;  // empty unless the lane is
    uint16_t lane_[ORR_FW_QUEUES];
};
static_assert((ORR_FW_QUEUES & (ORR_FW_QUEUES - 1)) == 0);

// Which of several classes that wait is next. `waiting`: bit n: class n, not 0.
class Bound {
  public:
    struct Choice {
        uint32_t level;
        bool due;  // ORR_RULE_BOUND
    };
    Choice choose(uint32_t waiting, uint64_t now, uint64_t bound_ps) {
        const uint32_t top = highest(waiting);
        if ((waiting & (waiting - 1)) == 0 || top == ORR_PRIORITY_REALTIME) return {top, false};
        for (uint32_t level = 0; level < top; ++level) {
            if ((waiting >> level & 1) == 0) {
                since_[level] = 0;
            } else if (since_[level] == 0) {
                since_[level] = now;
            } else if (now - since_[level] >= bound_ps) {
                return {level, true};
            }
        }
        return {top, false};
    }
    void served(uint32_t level) { since_[level] = 0; }
    // It was served, but did not get what it should: as if it had waited since the beginning of time.
    void owe(uint32_t level) { since_[level] = 1; }
    // When a class below the highest that waits will be due; all-ones: never.
    uint64_t next(uint32_t waiting, uint64_t bound_ps) const {
        uint64_t at = ~uint64_t{0};
        for (uint32_t level = 0; level < kClasses; ++level) {
            if ((waiting >> level & 1) != 0 && since_[level] != 0 && since_[level] + bound_ps < at)
                at = since_[level] + bound_ps;
        }
        return at;
    }

    // Of the bits set.
    static uint32_t highest(uint32_t waiting) {
        static constexpr uint8_t kHighest[1 << kClasses] = {0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
        return kHighest[waiting];
    }

  private:
    uint64_t
        since_[kClasses];  // since when it waits without having been served; 0: does not, or not noticed yet
};

}  // namespace orrery::fw
