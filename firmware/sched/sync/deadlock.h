// SPDX-License-Identifier: MIT
// Finds cycles of waits: queues each of which waits for a signal that stands only in the packets, not yet
// carried out, of the next. Nothing is stopped (a process can still signal); the driver and the trace learn
// of it once.
//
// A queue is *alive* if it does not wait, if nobody's packets hold the signal that it waits for (then a
// process or a peer is expected to signal), or if a queue that is alive holds it. Of those that are left each
// has only holders that are left too, so there are cycles among them.
//
// A round reads the packets of waiting queues (and, if that found any holder, of the others), at most
// kScanPackets of each, in chunks of kChunkPs of model time: back to back while the card is idle; else, an
// interval after it has become busy, one every kPausePs. A round begins only if somebody has parked or
// submitted behind a wait since the last one.
// The card goes on between two chunks, so any queue may leave, or come back as another, in the midst of a
// round: what a round keeps are numbers, whose rows it looks at afresh. A cycle that it finds after waits
// have ended is looked for again (kAgain times at most), since one of those queues may hold a signal and be
// alive now.
#pragma once

#include <orrery/fw/mailbox.h>

#include "firmware/hal/alarm.h"
#include "firmware/hal/hal.h"
#include "firmware/sched/sync/wait_table.h"

namespace orrery::fw {

class Deadlocks {
  public:
    static constexpr uint32_t kScanPackets = 1024;
    static constexpr uint64_t kChunkPs = 2'000'000;
    static constexpr uint64_t kPausePs = 100'000'000;
    static constexpr uint32_t kAgain = 3;

    // `interval_ps`: until a round begins while queues run.
    void init(Hal& hal, Alarm& alarm, Queue* queues, WaitTable& waits, uint64_t interval_ps);

    // A queue that waits was rung: there may be packets behind its wait.
    void submitted_behind() { behind_ = true; }

    // Whether work() has anything to do or to cancel.
    bool wants() const {
        return waits_->count() != 0 || phase_ != Phase::kRest || alarm_->at(Alarm::kDeadlock) != ~uint64_t{0};
    }
    // Once a pass. `idle`: nothing runs and nothing is ready. True: there is more to do at once.
    bool work(bool idle);
    void on_timer(uint64_t now);

    // One message for each edge of a cycle.
    bool telling() const { return phase_ == Phase::kTell; }
    // False: the cycle is gone.
    bool take_message(orr_mbox_message& message);

    uint32_t reports() const { return reports_; }
    uint32_t rounds() const { return rounds_; }

  private:
    enum class Phase : uint8_t { kRest, kReset, kHolders, kLive, kSpread, kCycles, kTell };

    bool due() const { return waits_->count() != 0 && (behind_ || waits_->sequence() != seen_); }
    void begin();
    void chunk();
    void enter(Phase phase);
    void step();
    bool spread();
    bool begin_scan(const Queue& queue, bool alive);
    void scan_packet();
    void found_signal(uint64_t memory, uint64_t value);
    void walk(uint16_t from);
    bool dead(uint16_t number) const;

    Hal* hal_;
    Alarm* alarm_;
    Queue* queues_;
    WaitTable* waits_;
    uint64_t interval_ps_;
    uint32_t seen_;     // WaitTable::sequence() when the last round began
    uint32_t emptied_;  // WaitTable::emptied() then
    uint32_t rounds_;
    uint32_t reports_;
    bool behind_;
    bool timed_;  // the alarm has begun the round or gone on with it, on a card with other things to do

    Phase phase_;
    uint32_t row_;
    uint32_t waiting_;                     // rows of the phase that wait, so far
    bool held_;                            // some signal that is waited for was found
    uint32_t removed_;                     // WaitTable::removed() when the phase began
    uint32_t removed_before_;              // the same for the round
    uint32_t again_;                       // rounds begun anew because waits have ended meanwhile
    uint64_t spread_[ORR_FW_QUEUES / 64];  // bit: has just turned out alive; its packets are still to be read

    // The queue whose packets are being read.
    bool scanning_;
    bool alive_;
    uint16_t scanned_;
    uint64_t index_, end_;

    // The cycle that is being told.
    uint16_t told_;
    uint16_t edge_, edges_;
};

}  // namespace orrery::fw
