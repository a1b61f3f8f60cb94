// SPDX-License-Identifier: MIT
#include "firmware/sched/recover/failing.h"

#include "firmware/hal/window.h"
#include "firmware/sched/arbiter.h"
#include "firmware/sched/policy/policy.h"
#include "firmware/sched/policy/tenants.h"

namespace orrery::fw {
namespace {

// A chunk, and the pause after it in multiples of what it took, while the card has other work.
constexpr uint64_t kFailChunkPs = 2 * kPsPerUs;
constexpr uint64_t kFailPause = 19;
// Of a queue that is just being destroyed or aborted: a usual ring has failed before the command is over.
constexpr uint64_t kFailFirstPs = 8 * kPsPerUs;
// Between two tries of a signal for which a peer's inbox has no room.
constexpr uint64_t kBusyPausePs = 100 * kPsPerUs;

}  // namespace

void FailingQueues::init(Hal& hal, Alarm& alarm, Tenants& tenants, Tables& tables, Arbiter& arbiter) {
    hal_ = &hal;
    alarm_ = &alarm;
    tenants_ = &tenants;
    queues_ = tables.queues;
    persist_ = &tables.header;
    arbiter_ = &arbiter;
}

void FailingQueues::begin(Queue& queue) {
    queue.failed_to = queue.next;
    queue.fail_tries = 0;
    look(queue);
}

void FailingQueues::look(Queue& queue) {
    if (has(queue)) return;  // it looks again at the end
    const uint64_t entries = uint64_t{queue.mask} + 1;
    const uint64_t from = queue.failed_to - queue.retired;
    if (queue.ring == 0 || from > entries) {
        // Nobody knows where its packets are; or it is not to be tried again.
        queue.failed_to = queue.producer;
    } else {
        const uint64_t producer = hal_->load(queue.ring + offsetof(orr_ring, producer));
        const uint64_t used = producer - queue.retired;
        if (!take_window_fault(*hal_) && used <= entries && used >= from) queue.producer = producer;
        if (queue.producer - queue.retired < from) queue.producer = queue.failed_to;
    }
    if (queue.failed_to == queue.producer) {
        arbiter_->all_failed(queue);
        return;
    }
    add(queue);
}

void FailingQueues::add(Queue& queue) {
    member_[queue.number / 64] |= uint64_t{1} << queue.number % 64;
    const uint16_t row = tenants_->user_of(queue.process);
    User& user = of_user_[row];
    user.number = row;
    if (user.queues.empty()) users_.push_back(of_user_, user);
    if (queue.destroying || queue.abort_sequence != 0)
        user.queues.push_front(queues_, queue);
    else
        user.queues.push_back(queues_, queue);
    // The alarm is due at once, so that the main loop need not look.
    if (count_++ == 0) alarm_->set(*hal_, Alarm::kFailing, 0);
}

void FailingQueues::expedite(Queue& queue) {
    if (!has(queue)) return;
    QueueList& own = of_user_[tenants_->user_of(queue.process)].queues;
    own.remove(queues_, queue);
    own.push_front(queues_, queue);
    // On top of what all have together, so it puts nobody else off.
    static_cast<void>(chunk(queue, hal_->reg(SOC_TIME), kFailFirstPs));
    if (count_ == 0) alarm_->set(*hal_, Alarm::kFailing, kNever);
}

// Gives the time at its end.
uint64_t FailingQueues::chunk(Queue& queue, uint64_t now, uint64_t chunk_ps) {
    const WorkingFor blame(*persist_, queue.number);
    User& user = of_user_[tenants_->user_of(queue.process)];
    users_.remove(of_user_, user);
    uint64_t time = now;
    bool room = true;
    while (room && queue.failed_to != queue.producer && time - now < chunk_ps) {
        room = arbiter_->fail_packet(queue);
        time = hal_->reg(SOC_TIME);
    }
    busy_ = !room;
    const bool done = queue.failed_to == queue.producer;
    if (done) {
        user.queues.remove(queues_, queue);
        member_[queue.number / 64] &= ~(uint64_t{1} << queue.number % 64);
        --count_;
    }
    if (!user.queues.empty()) users_.push_back(of_user_, user);
    if (!done) return time;
    look(queue);
    return hal_->reg(SOC_TIME);
}

void FailingQueues::serve(uint64_t now) {
    if (count_ == 0 || alarm_->at(Alarm::kFailing) > now) return;
    Queue& queue = *users_.front(of_user_)->queues.front(queues_);
    const uint64_t time = chunk(queue, now, kFailChunkPs);
    const bool others = arbiter_->busy();
    uint64_t pause = others ? kFailPause * (time - now) : 0;
    if (busy_ && pause < kBusyPausePs) pause = kBusyPausePs;
    alarm_->set(*hal_, Alarm::kFailing, count_ == 0 ? kNever : time + pause);
}

}  // namespace orrery::fw
