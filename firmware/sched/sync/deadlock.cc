// SPDX-License-Identifier: MIT
#include "firmware/sched/sync/deadlock.h"

#include <orrery/fw/packet.h>

#include "firmware/hal/bits.h"
#include "firmware/hal/window.h"
#include "firmware/sched/queue/packets.h"
#include "firmware/sched/show/trace.h"

namespace orrery::fw {
namespace {

constexpr uint64_t kNoTime = ~uint64_t{0};
constexpr uint16_t kNone = WaitTable::kNone;

// Waiter::marks.
constexpr uint8_t kReported = 1;  // part of a cycle that has been told; stays until the queue leaves
constexpr uint8_t kAlive = 2;
constexpr uint8_t kOnPath = 4;
constexpr uint8_t kWalked = 8;

bool waits(const Queue& queue) {
    return queue.exists && queue.place == Place::kSemaphore;
}

}  // namespace

void Deadlocks::init(Hal& hal, Alarm& alarm, Queue* queues, WaitTable& waits, uint64_t interval_ps) {
    hal_ = &hal;
    alarm_ = &alarm;
    queues_ = queues;
    waits_ = &waits;
    interval_ps_ = interval_ps;
}

bool Deadlocks::work(bool idle) {
    if (phase_ == Phase::kTell) return false;
    // All that waited when the round began have left. What remains of it would take the time of those who
    // have parked since, and longer than a round of theirs.
    if (phase_ != Phase::kRest && waits_->emptied() != emptied_) enter(Phase::kRest);
    // What an idle card has begun is begun anew: how far it came is the host's doing.
    if (!idle && phase_ != Phase::kRest && !timed_) {
        enter(Phase::kRest);
        behind_ = true;
    }
    const bool active = phase_ != Phase::kRest;
    if (!active && !due()) {
        if (alarm_->at(Alarm::kDeadlock) != kNoTime) alarm_->set(*hal_, Alarm::kDeadlock, kNoTime);
        return false;
    }
    if (!idle) {
        // The clock runs anyway: an alarm does not make it jump.
        if (alarm_->at(Alarm::kDeadlock) == kNoTime)
            alarm_->set(*hal_, Alarm::kDeadlock, hal_->reg(SOC_TIME) + (active ? kPausePs : interval_ps_));
        return false;
    }
    // The alarm stays until the round has ended: a card that is idle for moments only comes to an end by it.
    if (!active) {
        timed_ = false;
        begin();
    }
    chunk();
    return true;
}

void Deadlocks::on_timer(uint64_t now) {
    if (alarm_->at(Alarm::kDeadlock) > now) return;
    alarm_->set(*hal_, Alarm::kDeadlock, kNoTime);
    if (phase_ == Phase::kTell) return;
    // Also what an idle card has begun: on one that is idle for moments only it would never end.
    timed_ = true;
    if (phase_ == Phase::kRest) {
        if (!due()) return;
        begin();
    }
    chunk();
}

void Deadlocks::begin() {
    seen_ = waits_->sequence();
    emptied_ = waits_->emptied();
    behind_ = false;
    held_ = false;
    for (uint64_t& word : spread_)
        word = 0;
    scanning_ = false;
    removed_before_ = waits_->removed();
    ++rounds_;
    enter(Phase::kReset);
}

void Deadlocks::enter(Phase phase) {
    phase_ = phase;
    row_ = waiting_ = 0;
    removed_ = waits_->removed();
    if (phase == Phase::kRest) again_ = 0;
}

[[gnu::noinline]] void Deadlocks::chunk() {
    const uint64_t end = hal_->reg(SOC_TIME) + kChunkPs;
    while (phase_ != Phase::kRest && phase_ != Phase::kTell) {
        // Rows are cheap to step over, packets are not.
        for (uint32_t n = 0; n < 16 && !scanning_ && phase_ != Phase::kRest && phase_ != Phase::kTell; ++n)
            step();
        if (scanning_) scan_packet();
        if (hal_->reg(SOC_TIME) >= end) return;
    }
}

// One row of the phase, or the next phase.
void Deadlocks::step() {
    if (phase_ == Phase::kSpread) {
        if (!spread()) enter(Phase::kCycles);
        return;
    }
    // Of the waiting ones no more rows need looking at than there are, if none of those seen has left.
    const bool all = phase_ == Phase::kLive || waits_->removed() != removed_;
    if (row_ == ORR_FW_QUEUES || (!all && waiting_ >= waits_->count())) {
        switch (phase_) {
            case Phase::kReset:
                return enter(Phase::kHolders);
            case Phase::kHolders:
                return enter(held_ ? Phase::kLive : Phase::kRest);
            case Phase::kLive:
                return enter(Phase::kSpread);
            default:
                return enter(Phase::kRest);
        }
    }
    Queue& queue = queues_[row_];
    const auto number = static_cast<uint16_t>(row_);
    ++row_;
    const bool waiting = waits(queue);
    if (waiting) ++waiting_;
    switch (phase_) {
        case Phase::kReset:
            if (!waiting) return;
            queue.wait.marks &= kReported;
            queue.wait.holder = kNone;
            return;
        case Phase::kHolders:
            if (waiting) begin_scan(queue, false);
            return;
        case Phase::kLive:
            if (!queue.exists || queue.stopping || queue.destroying) return;
            if (waiting ? queue.wait.holder == kNone : queue.next != queue.producer) begin_scan(queue, true);
            return;
        default:  // kCycles
            if (waiting && dead(number) && (queue.wait.marks & kWalked) == 0) walk(number);
    }
}

// Starts with the packets of somebody who has turned out alive, and may have left its wait since. False:
// there is nobody left.
bool Deadlocks::spread() {
    for (uint32_t n = 0; n < ORR_FW_QUEUES / 64; ++n) {
        if (spread_[n] == 0) continue;
        const Queue& queue = queues_[64 * n + lowest_bit(spread_[n])];
        spread_[n] &= spread_[n] - 1;
        if (queue.exists && !queue.stopping && !queue.destroying) begin_scan(queue, true);
        return true;
    }
    return false;
}

// Starts to read the packets behind the queue's next one. False: there are none.
bool Deadlocks::begin_scan(const Queue& queue, bool alive) {
    uint64_t producer = queue.producer;
    if (waits(queue)) {
        // What was submitted while it waited has not been looked at.
        const uint64_t fresh = hal_->load(queue.ring + offsetof(orr_ring, producer));
        const uint64_t used = fresh - queue.retired;
        if (!take_window_fault(*hal_) && used <= queue.mask + 1ull && used >= queue.next - queue.retired)
            producer = fresh;
    }
    if (producer == queue.next) return false;
    scanning_ = true;
    alive_ = alive;
    scanned_ = queue.number;
    index_ = queue.next;
    end_ = producer - queue.next > kScanPackets ? queue.next + kScanPackets : producer;
    return true;
}

void Deadlocks::scan_packet() {
    const Queue& queue = queues_[scanned_];
    scanning_ = false;
    if (!queue.exists) return;
    const uint64_t slot = queue.ring + sizeof(orr_ring) + (index_ & queue.mask) * ORR_PACKET_SIZE;
    uint64_t packet[3];
    packet[0] = hal_->load(slot);
    // FAIL sets everybody free.
    const bool fails = packet_opcode(packet) == ORR_PKT_FAIL;
    const bool signal = fails || packet_opcode(packet) == ORR_PKT_SIGNAL;
    if (signal) {
        packet[1] = hal_->load(slot + 8);
        packet[2] = fails ? ~uint64_t{0} : hal_->load(slot + 16);
    }
    if (take_window_fault(*hal_)) return;  // the rest of the ring is no better
    ++index_;
    scanning_ = index_ < end_;
    if (!signal || packet[1] >= kVaEnd) return;
    hal_->set_reg(SOC_MMU_ASID, queue.context_number);
    hal_->set_reg(SOC_MMU_ARG, packet[1]);
    hal_->set_reg(SOC_MMU_CMD, SOC_MMU_TRANSLATE);
    const uint64_t memory = hal_->reg(SOC_MMU_RESULT);
    if (memory != ~uint64_t{0}) found_signal(memory, packet[2]);
}

void Deadlocks::found_signal(uint64_t memory, uint64_t value) {
    waits_->for_each_due(memory, value, [this](Queue& waiter) {
        Waiter& wait = waiter.wait;
        if (!alive_) {
            held_ = true;
            if (wait.holder == kNone) wait.holder = scanned_;
            return;
        }
        if ((wait.marks & kAlive) != 0) return;
        wait.marks |= kAlive;
        // One that nobody holds is looked at for its own sake.
        if (wait.holder == kNone) return;
        spread_[waiter.number / 64] |= uint64_t{1} << waiter.number % 64;
    });
}

// Waits, and cannot be woken by anybody who is alive.
bool Deadlocks::dead(uint16_t number) const {
    const Queue& queue = queues_[number];
    return waits(queue) && queue.wait.holder != kNone && (queue.wait.marks & kAlive) == 0 &&
           WaitTable::parked_before(queue, seen_);
}

// Follows the holders from one queue to a cycle, if it is one that has not been looked at.
void Deadlocks::walk(uint16_t from) {
    uint16_t n = from;
    while (dead(n) && (queues_[n].wait.marks & (kOnPath | kWalked)) == 0) {
        queues_[n].wait.marks |= kOnPath;
        n = queues_[n].wait.holder;
    }
    const bool cycle = dead(n) && (queues_[n].wait.marks & kOnPath) != 0;
    for (uint16_t m = from; dead(m) && (queues_[m].wait.marks & kOnPath) != 0; m = queues_[m].wait.holder)
        queues_[m].wait.marks = static_cast<uint8_t>((queues_[m].wait.marks & ~kOnPath) | kWalked);
    if (!cycle) return;
    bool known = true;
    uint16_t m = n;
    do {
        known = known && (queues_[m].wait.marks & kReported) != 0;
        m = queues_[m].wait.holder;
    } while (m != n);
    if (known) return;
    if (waits_->removed() != removed_before_ && again_ < kAgain) {
        ++again_;
        begin();
        return;
    }
    edges_ = 0;
    do {
        queues_[m].wait.marks |= kReported;
        ++edges_;
        m = queues_[m].wait.holder;
    } while (m != n);
    ++reports_;
    told_ = n;
    edge_ = 0;
    phase_ = Phase::kTell;
}

bool Deadlocks::take_message(orr_mbox_message& message) {
    const Queue& queue = queues_[told_];
    if (!dead(told_)) {
        // Somebody has set one of them free: what was told stays half told.
        phase_ = Phase::kCycles;
        return false;
    }
    const uint64_t va = queue.packet[1];
    const uint64_t now = hal_->load(ORR_CONTEXT_WINDOW(queue.context_number, va));
    static_cast<void>(take_window_fault(*hal_));
    message = {};
    message.opcode = ORR_EVENT_DEADLOCK;
    message.arg[0] = reports_ | uint64_t{edge_} << 32 | uint64_t{edges_} << 48;
    message.arg[1] = told_ | uint64_t{queue.wait.holder} << 32;
    message.arg[2] = va;
    message.arg[3] = queue.wait.value;
    message.arg[4] = now;
    message.arg[5] = queue.next;
    trace::deadlock(*hal_, told_, queue.wait.holder, edge_ < 255 ? edge_ : 255, edges_ < 255 ? edges_ : 255,
                    queue.wait.memory, queue.wait.value, now);
    told_ = queue.wait.holder;
    if (++edge_ == edges_) phase_ = Phase::kCycles;
    return true;
}

}  // namespace orrery::fw
