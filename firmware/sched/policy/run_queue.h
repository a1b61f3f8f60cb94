// SPDX-License-Identifier: MIT
// Run queues: which queues wait for a resource, and which gets it next.
// Classes: REALTIME first, then HIGH, NORMAL, LOW, except that a class which has waited for the policy's
// bound without being served gets one turn or slice. Within a class, hierarchical fair queueing by virtual
// time: the user with least use of the resource, his process with least use, and its queue with least use for
// its weight (tenants.h).
#pragma once

#include <orrery/fw/mailbox.h>
#include <orrery/fw/trace.h>

#include "firmware/hal/bits.h"
#include "firmware/sched/policy/calendar.h"
#include "firmware/sched/policy/tenants.h"

namespace orrery::fw {

inline constexpr uint32_t kClasses = ORR_PRIORITY_REALTIME + 1;

// A pool of calendars for process groups with more queues than fit into the group itself. A queue waits in
// one run queue at a time, and a group returns its calendar when few are left: so the pool never runs out.
class Calendars {
  public:
    // From 1 on.
    uint16_t take() {
        if (free_ != 0) {
            const uint16_t number = free_;
            free_ = next_[number];
            return number;
        }
        return ++made_;
    }
    void give_back(uint16_t number) {
        next_[number] = free_;
        free_ = number;
        all_[number] = {};
    }
    Calendar& operator[](uint16_t number) { return all_[number]; }

  private:
    static constexpr uint32_t kMost = ORR_FW_QUEUES / 3 + 2;
    Calendar all_[kMost];
    uint16_t next_[kMost];
    uint16_t free_, made_;
};

// The queues of one process that wait for a resource in one class.
struct ProcessGroup {
    static constexpr uint32_t kFew = 4;

    Link link;  // among those of its user
    uint32_t key;
    uint16_t few[kFew];  // numbers of the queues in order of arrival, while there is no calendar
    uint16_t count;
    uint16_t calendar;  // 0: none
    uint16_t number;    // row of its process

    void add(Calendars& calendars, Queue* all, Queue& queue, uint32_t resource) {
        if (calendar == 0 && count == kFew) {
            calendar = calendars.take();
            uint64_t least = queue.vtime[resource];
            for (const uint16_t n : few)
                lower(least, all[n].vtime[resource]);
            calendars[calendar].begin(least);
            for (const uint16_t n : few)
                calendars[calendar].insert(all, all[n], all[n].vtime[resource]);
        }
        if (calendar != 0)
            calendars[calendar].insert(all, queue, queue.vtime[resource]);
        else
            few[count] = queue.number;
        ++count;
    }
    void remove(Calendars& calendars, Queue* all, Queue& queue, uint32_t resource) {
        --count;
        if (calendar != 0) {
            calendars[calendar].remove(all, queue);
            // At two, not at kFew: one queue that comes and goes does not make it switch each time.
            if (count == 2) spread(calendars, all, resource);
            return;
        }
        uint32_t n = 0;
        while (few[n] != queue.number)
            ++n;
        for (; n < count; ++n)
            few[n] = few[n + 1];
    }
    // There is one.
    Queue& front(Calendars& calendars, Queue* all, uint32_t resource) const {
        if (calendar != 0) return *calendars[calendar].front(all, resource);
        Queue* best = &all[few[0]];
        for (uint32_t n = 1; n < count; ++n) {
            Queue& other = all[few[n]];
            if (other.vtime[resource] >> Calendar::kWidthShift < best->vtime[resource] >>
                Calendar::kWidthShift)
                best = &other;
        }
        return *best;
    }

  private:
    [[gnu::noinline]] void spread(Calendars& calendars, Queue* all, uint32_t resource) {
        for (uint32_t n = 0; n < count; ++n) {
            Queue* const queue = calendars[calendar].front(all, resource);
            calendars[calendar].remove(all, *queue);
            few[n] = queue->number;
        }
        calendars.give_back(calendar);
        calendar = 0;
    }
};

// Process groups or user groups in order of virtual time, to within a bucket's width; equals in order of
// arrival. Time used since an entry was inserted is taken into account when it reaches the front.
template <typename T>
class VtimeOrder {
  public:
    bool empty() const { return list_.empty(); }
    bool has_others(T* all, uint32_t number) const {
        const T* const first = list_.front(all);
        return first != nullptr && (first->number != number || !list_.only(*first));
    }
    void insert(T* all, T& one, uint64_t vtime) {
        one.key = key_of(vtime);
        T* after = list_.back(all);
        while (after != nullptr && static_cast<int32_t>(after->key - one.key) > 0)
            after = List<T, &T::link>::previous(all, *after);
        list_.insert_after(all, after, one);
    }
    void remove(T* all, T& one) { list_.remove(all, one); }
    // Sorts it in again, behind its equals.
    void again(T* all, T& one, uint64_t vtime) {
        if (list_.only(one)) return;
        remove(all, one);
        insert(all, one, vtime);
    }
    // There is one. `vtime_of`: of a row.
    template <typename F>
    T& front(T* all, F vtime_of) {
        for (;;) {
            T& first = *list_.front(all);
            if (list_.only(first)) return first;
            const uint64_t vtime = vtime_of(first);
            if (static_cast<int32_t>(key_of(vtime) - first.key) <= 0) return first;
            again(all, first, vtime);
        }
    }

  private:
    // Wraps after 40 hours of use; only differences count.
    static uint32_t key_of(uint64_t vtime) { return static_cast<uint32_t>(vtime >> Calendar::kWidthShift); }
    List<T, &T::link> list_;
};

// A user's processes that wait for a resource in one class.
struct UserGroup {
    Link link;
    uint32_t key;
    VtimeOrder<ProcessGroup> processes;
    uint16_t number;  // row of the user
};

// What the run queues keep for each tenant.
struct RunQueueTables {
    uint64_t min_vtime[kResources][kClasses][kProcesses];  // floor of the virtual times of a process's queues
    ProcessGroup of_process[kResources][kClasses][kProcesses];
    UserGroup of_user[kResources][kClasses][kUsers];
    Calendars calendars;
};

// `kResource`: of which resource; kOther: as init() says.
inline constexpr uint32_t kOther = kResources;
template <uint32_t kResource>
class RunQueueOf {
  public:
    // Who comes back may be `max_lag_ps` of virtual time behind the others, but not more.
    void init(uint64_t max_lag_ps, Tenants& tenants, RunQueueTables& tables,
              Resource which = Resource{kResource}) {
        tenants_ = &tenants;
        tables_ = &tables;
        resource_ = static_cast<uint32_t>(which);
        min_vtime_ = tables.min_vtime[resource_];
        max_lag_ps_ = max_lag_ps;
    }

    bool empty() const { return count_ == 0; }
    uint32_t count() const { return count_; }
    uint32_t classes() const { return classes_; }  // bit n: somebody of class n
    bool has(uint32_t level) const { return (classes_ >> level & 1) != 0; }
    uint32_t count_of(uint32_t level) const {
        return solo_ != nullptr ? classes_ >> level & 1 : of_class_[level];
    }
    // The next queue of the class, which stays enqueued; null: there is none.
    Queue* front(Queue* all, uint32_t level) {
        if (solo_ != nullptr) return has(level) ? solo_ : nullptr;
        if (!has(level)) return nullptr;
        const uint32_t r = resource();
        UserGroup& user = users_[level].front(
            user_groups(level), [&](const UserGroup& s) { return tenants_->user(s.number).vtime[r]; });
        ProcessGroup& group = user.processes.front(process_groups(level), [&](const ProcessGroup& s) {
            return tenants_->process(s.number).vtime[r];
        });
        return &group.front(tables_->calendars, all, r);
    }
    // Another user waits.
    bool has_others(uint32_t user) const {
        if (solo_ != nullptr) return tenants_->user_of(solo_->process) != user;
        bool any = false;
        for (uint32_t level = 0; level < kClasses; ++level)
            any |= users_[level].has_others(user_groups(level), user);
        return any;
    }
    // The only queue that waits; null: there are none or several.
    Queue* solo() const { return solo_; }

    // Raises the queue's virtual time so that it cannot save up time by being away.
    void limit_lag(Queue& queue) const {
        uint64_t& vtime = queue.vtime[resource()];
        raise(vtime, less_or_zero(min_vtime_[queue.priority][queue.process], max_lag_ps()));
        raise(vtime, rested_);
    }
    // Nobody has or wants the resource: who comes next finds all alike, whatever they had, and with the same
    // way to the border of a bucket. `greatest`: of the virtual times of all queues.
    void rest(uint64_t greatest) {
        constexpr uint64_t kWidth = uint64_t{1} << Calendar::kWidthShift;
        rested_ = (greatest + kWidth - 1) & ~(kWidth - 1);
    }
    [[gnu::noinline]] void enqueue(Queue* all, Queue& queue) {
        limit_lag(queue);
        classes_ |= 1u << queue.priority;
        if (count_++ == 0) {
            solo_ = &queue;
            return;
        }
        if (solo_ != nullptr) share(all);
        insert(all, queue);
    }
    // The queue must be in here.
    void dequeue(Queue* all, Queue& queue) {
        --count_;
        if (solo_ != nullptr) {
            solo_ = nullptr;
            classes_ = 0;
            return;
        }
        const uint32_t level = queue.priority;
        ProcessGroup& group = group_of(queue);
        group.remove(tables_->calendars, all, queue, resource());
        if (--of_class_[level] == 0) classes_ &= ~(1u << level);
        if (group.count == 0) close(group, level);
    }

    // It has used some time, and waits again: dequeue() and enqueue().
    void requeue(Queue* all, Queue& queue) {
        if (solo_ != nullptr) {
            limit_lag(queue);
            return;
        }
        dequeue(all, queue);
        enqueue(all, queue);
    }

    // Advances the minimum virtual time to the queue's: call it for the queue that gets the resource.
    void advance(const Queue& queue) {
        raise(min_vtime_[queue.priority][queue.process], queue.vtime[resource()]);
        if (tenants_->several()) [[unlikely]]
            advance_tenant(queue);
    }
    // Where a queue that is new among these begins.
    uint64_t min_vtime(const Queue& queue) const {
        uint64_t least = min_vtime_[queue.priority][queue.process];
        raise(least, rested_);
        return least;
    }

  private:
    uint32_t resource() const { return kResource == kOther ? resource_ : kResource; }
    // Nobody is behind others at turns.
    uint64_t max_lag_ps() const {
        return kResource == static_cast<uint32_t>(Resource::kTurn) ? 0 : max_lag_ps_;
    }
    ProcessGroup* process_groups(uint32_t level) const { return tables_->of_process[resource()][level]; }
    UserGroup* user_groups(uint32_t level) const { return tables_->of_user[resource()][level]; }
    ProcessGroup& group_of(const Queue& queue) const { return process_groups(queue.priority)[queue.process]; }

    void insert(Queue* all, Queue& queue) {
        ProcessGroup& group = group_of(queue);
        if (group.count == 0) open(group, queue);
        group.add(tables_->calendars, all, queue, resource());
        ++of_class_[queue.priority];
    }
    // A second queue arrives: the first goes into its groups.
    [[gnu::noinline]] void share(Queue* all) {
        insert(all, *solo_);
        solo_ = nullptr;
    }
    // The group gets its first queue in this class; close(): has lost its last.
    void open(ProcessGroup& group, const Queue& queue) {
        const uint32_t r = resource();
        const uint32_t level = queue.priority;
        const uint16_t row = tenants_->user_of(queue.process);
        UserGroup& user = user_groups(level)[row];
        group.number = queue.process;
        user.number = row;
        if (tenants_->several()) tenants_->arrive(queue.process, r);
        if (user.processes.empty())
            users_[level].insert(user_groups(level), user, tenants_->user(row).vtime[r]);
        user.processes.insert(process_groups(level), group, tenants_->process(queue.process).vtime[r]);
    }
    void close(ProcessGroup& group, uint32_t level) {
        UserGroup& user = user_groups(level)[tenants_->user_of(group.number)];
        user.processes.remove(process_groups(level), group);
        if (user.processes.empty()) users_[level].remove(user_groups(level), user);
    }
    // Its process and user are sorted in behind those with equal use.
    [[gnu::noinline]] void advance_tenant(const Queue& queue) {
        const uint32_t r = resource();
        const uint32_t level = queue.priority;
        tenants_->advance(queue, r);
        ProcessGroup& group = group_of(queue);
        if (group.count == 0) return;
        const uint16_t row = tenants_->user_of(queue.process);
        UserGroup& user = user_groups(level)[row];
        user.processes.again(process_groups(level), group, tenants_->process(queue.process).vtime[r]);
        users_[level].again(user_groups(level), user, tenants_->user(row).vtime[r]);
    }

    Queue* solo_;  // a single queue is in no group
    uint64_t max_lag_ps_;
    uint64_t rested_;  // floor of all virtual times
    uint32_t count_;
    uint32_t classes_;
    uint64_t (*min_vtime_)[kProcesses];  // by class
    Tenants* tenants_;
    RunQueueTables* tables_;
    uint32_t resource_;
    uint32_t of_class_[kClasses];
    VtimeOrder<UserGroup> users_[kClasses];
};
using RunQueue = RunQueueOf<kOther>;

// The run queue for turns on the control core, with a fast path: while all queues that wait belong to one
// process, one class and one bucket of virtual time, they are kept in a FIFO (the lane), which is the order
// that their bucket would give.
class Turns {
  public:
    void init(Tenants& tenants, RunQueueTables& tables) { others_.init(0, tenants, tables); }

    bool empty() const { return count() == 0; }
    uint32_t count() const { return tail_ - head_ + others_.count(); }
    // All queues that wait are in the lane, which has one class.
    bool of_one_class() const { return tail_ != head_; }
    uint32_t level() const { return level_; }
    // Those in the lane are not asked for.
    uint32_t classes() const { return others_.classes(); }
    uint32_t count_of(uint32_t level) const { return others_.count_of(level); }
    Queue* front(Queue* all, uint32_t level) { return others_.front(all, level); }

    void enqueue(Queue* all, Queue& queue) {
        others_.limit_lag(queue);
        const auto bucket = static_cast<uint32_t>(vtime(queue) >> Calendar::kWidthShift);
        if (others_.count() == 0) {
            if (tail_ == head_) {
                level_ = queue.priority;
                process_ = queue.process;
                bucket_ = bucket;
            }
            if (level_ == queue.priority && bucket_ == bucket && process_ == queue.process) [[likely]] {
                lane_[tail_++ % ORR_FW_QUEUES] = queue.number;
                return;
            }
            spread(all);
        }
        others_.enqueue(all, queue);
    }

    // Dequeues the next queue of the class, which must not be empty. `next`: the one after it if that is
    // known already, else null.
    Queue& take(Queue* all, uint32_t level, Queue*& next) {
        if (tail_ != head_) [[likely]] {
            Queue& queue = all[lane_[head_++ % ORR_FW_QUEUES]];
            next = tail_ != head_ ? &all[lane_[head_ % ORR_FW_QUEUES]] : nullptr;
            return queue;
        }
        Queue& queue = *others_.front(all, level);
        others_.dequeue(all, queue);
        return queue;
    }

    // The queue must be in here.
    void dequeue(Queue* all, Queue& queue) {
        if (tail_ != head_) spread(all);
        others_.dequeue(all, queue);
    }

    // For a queue that gets a turn without having been enqueued.
    void limit_lag(Queue& queue) const { others_.limit_lag(queue); }
    void advance(const Queue& queue) { others_.advance(queue); }
    void rest(uint64_t greatest) { others_.rest(greatest); }
    uint64_t min_vtime(const Queue& queue) const { return others_.min_vtime(queue); }

  private:
    static uint64_t vtime(const Queue& queue) { return queue.vtime[static_cast<uint32_t>(Resource::kTurn)]; }
    // All from the lane to their buckets.
    [[gnu::noinline]] void spread(Queue* all) {
        while (tail_ != head_)
            others_.enqueue(all, all[lane_[head_++ % ORR_FW_QUEUES]]);
    }

    uint32_t head_, tail_;
    uint32_t bucket_;                                            // of all in the lane, modulo 2^32
    uint16_t process_;                                           // theirs
    uint8_t level_;                                              // their class
    RunQueueOf<static_cast<uint32_t>(Resource::kTurn)> others_;  // empty unless the lane is
    uint16_t lane_[ORR_FW_QUEUES];
};
static_assert((ORR_FW_QUEUES & (ORR_FW_QUEUES - 1)) == 0);

// Chooses among the classes that wait, with a bound on starvation. Bit n of a mask: class n.
class StarvationBound {
  public:
    struct Choice {
        uint32_t level;
        bool due;  // ORR_RULE_BOUND
    };
    // `waiting` is not 0; `running`: those that hold what is waited for.
    Choice choose(uint32_t waiting, uint32_t running, uint64_t now, uint64_t bound_ps) {
        const uint32_t top = highest(waiting | running);
        // A class that does not wait now starts its wait afresh.
        for (uint32_t level = 0; level < kClasses; ++level) {
            if ((waiting >> level & 1) == 0) since_[level] = 0;
        }
        if (top != ORR_PRIORITY_REALTIME) {
            for (uint32_t level = 0; level < top; ++level) {
                if ((waiting >> level & 1) == 0) continue;
                if (since_[level] == 0)
                    since_[level] = now;
                else if (now - since_[level] >= bound_ps)
                    return {level, true};
            }
        }
        return {highest(waiting), false};
    }
    void served(uint32_t level) { since_[level] = 0; }
    // It was served but lost its slice early: it is due again at once.
    void make_due(uint32_t level) { since_[level] = 1; }
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
