// SPDX-License-Identifier: MIT
// Gangs: dispatches of several queues that start together or not at all, on one card or on several.
//
// A member's GANG packet attaches its queue to the record of its gang (same context, board and round); the
// dispatch behind it joins. When all members of this card have joined, a gang of several cards goes through
// three steps, each told to the others on their boards (board[card] = round * 2^28 + attempt * 8 + step):
//   arrived   all members of this card are there. Nothing is held before all cards have arrived.
//   locked    no other gang may take this card's vector ports; other work does. Cards lock in order of their
//             numbers, when it is the gang's turn there and what does not make room leaves it enough: so
//             gangs cannot deadlock. Until the last one is locked takes as long as what such a card still
//             runs.
//   held      ports and cores are free for it: what ran there has been preempted. This takes microseconds,
//             since all cards have locked.
// When all hold, all start. A gang of one card locks, holds and starts. A card that has locked, and would
// keep others waiting, says `arrived` of the next attempt: then all give back what they have locked, and wait
// for their turns again. A card that gives up says `failed`.
//
// What has started is preempted as a whole (gang_run.cc): a card that wants its ports for others says
// `arrived` of the next attempt, and all save what they run. Then the gang waits for its turn as one that has
// not started, and goes through the same steps; it resumes as it started, when all cards hold. A card on
// which all members have ended says `done`, which is as good as any step of any attempt; one that cannot save
// its part lets it run, and answers.
#pragma once

#include <orrery/fw/packet.h>

#include "firmware/hal/alarm.h"
#include "firmware/hal/bits.h"
#include "firmware/hal/hal.h"
#include "firmware/sched/queue/queue.h"
#include "firmware/sched/run/engines.h"
#include "firmware/sched/sync/wait_table.h"

namespace orrery::fw {

class Arbiter;
class Tenants;
struct PersistHeader;
struct Tables;

inline constexpr uint32_t kGangs = ORR_GANG_MAX_OF_CARD;  // that have not started
// Those, and the ones that have: of these each has a save area, and all together not the last quarter.
inline constexpr uint32_t kGangRows = 64;
inline constexpr uint32_t kGangUsers = 256;  // rows of users
// How long ports may be held for a gang, and, in multiples of what cores stood idle meanwhile, how long its
// user's gangs are kept from them afterwards if others want them. Cards have no common clock, so waiting for
// another card takes the longer limit.
inline constexpr uint64_t kGangHoldPs = 1'000'000'000;
inline constexpr uint64_t kGangCrossHoldPs = 100'000'000'000;
// How long a gang keeps the lock from gangs of other users, in its first attempt; then twice as long each
// time, up to kGangCrossHoldPs. What it is said to wait for may be a lie.
inline constexpr uint64_t kGangTurnPs = 5'000'000'000;
// So long may those to whom it yields have nothing to do.
inline constexpr uint64_t kGangGapPs = 1'000'000'000;
inline constexpr uint64_t kGangPause = 20;  // times the hold
// So long it runs before it leaves because a board says so: that may be a lie, and leaving and resuming takes
// the core a twentieth of this.
inline constexpr uint64_t kGangFollowPs = 200'000'000;
// So much of that is for nothing: most gangs hold ports for microseconds.
inline constexpr uint64_t kGangFreeHoldPs = 1'000'000'000;
// In one go so many gangs are looked at: that takes some microseconds, for which others wait. A look at all
// takes longer if there are many; then what is beyond that takes a fifth of the core's time at most.
inline constexpr uint32_t kGangLooks = 2;
inline constexpr uint64_t kGangFreeLookPs = 3'000'000;
inline constexpr uint64_t kGangLookGap = 4;  // times the rest
// An idle card moves its clock to the next alarm, at once or after about the same time of the host. In small
// steps the other cards have the time that the limits promise. A jump of the clock, as a message of a card
// that is ahead makes it, counts as one such step.
inline constexpr uint64_t kGangLookPs = 1'000'000'000;

enum class GangStep : uint8_t {
    kFree,     // the record is nobody's
    kGather,   // not all members of this card are there
    kArrived,  // waits for the other cards
    kWaits,    // waits for its turn to lock the card
    kLocked,   // waits for the others' locks
    kHolds,    // waits for what runs to make room
    kHeld,     // waits for the others
    kRuns,     // it has started
    kSaves,    // waits until what runs has been saved
};

struct Gang {
    uint64_t board, peers, round;
    uint64_t memory;      // of the board, for traces
    uint64_t deadline;    // of its step, model time; kNever: none
    uint64_t ends;        // deadline of kWaits and kLocked
    uint64_t not_before;  // it pauses until then
    uint64_t limit_ps;
    uint64_t turn_ends;        // kLocked: others who want the lock get it then
    uint64_t turn_ps;          // how long that turn is; its attempt may be over
    uint64_t yields_until;     // to tenants who have had less; kNever: has not met any
    uint64_t yields_ps;        // so long in all
    uint64_t met_ps;           // when it met one last
    uint64_t yields_class_ps;  // for how long higher classes have gone first
    uint64_t yields_since;     // when that was looked at last; 0: they did not
    uint64_t slice_ends;       // kRuns: it may be preempted then
    uint64_t follows_from;     // kRuns: when a peer asks it to leave
    uint64_t waits_since;      // for its turn
    uint64_t cause;            // failure word of the member that failed after the start; 0: not known
    uint32_t order;            // of arrival
    uint32_t attempt;
    uint32_t base;   // attempt in which it started last
    uint32_t cores;  // that its dispatches need
    uint16_t context;
    uint16_t card, cards;
    uint16_t members;  // of this card, that have not ended
    uint16_t running;  // of these, on ports
    uint16_t attached, joined;
    uint16_t queue[ORR_GANG_MAX_MEMBERS];  // attached; those that have joined wait in Place::kGang
    GangStep step;
    bool parked;   // queue[0] stands in the wait table for a value on the board
    bool polls;    // it has started, and looks at the board itself
    bool blocked;  // kWaits: by work that goes first; it looks again when something ends
    bool crowded;  // kWaits: by other gangs
    bool presses;  // kWaits: by gangs that can be preempted; those who come behind it do not start before it
    bool told_held;  // in this attempt
    bool started;
    bool untold;  // a peer had no room for its last attempt, and is told at the next look
    bool fixed;   // it has started, owns no save areas, and is not preempted
    bool broken;  // a member has failed after the start
};

// What the gangs of a user have had.
struct GangDebt {
    uint64_t ran_ps;    // since one started
    uint64_t ended_ps;  // when one ended last
    uint64_t owes_ps;   // for so long they are to let others go first
    uint32_t user;      // its id: the row may be another's by now
};

// All gangs of the card. Zeroed memory is a valid object without gangs.
class Gangs {
  public:
    // Call once before all else.
    void init(Hal& hal, Alarm& alarm, Engines& engines, WaitTable& waits, Tenants& tenants, Tables& tables,
              Arbiter& arbiter);

    // The queue's GANG packet: it belongs to a gang from now on. False: it has been stopped.
    bool attach(Queue& queue);
    // The dispatch behind a GANG packet, of a queue with a gang. Afterwards the queue waits, is ready for its
    // next packet (the gang has started), or is stopping (it has failed).
    void join(Queue& queue);
    // The gang's first queue has been taken out of the wait table.
    void woken(Queue& leader, uint64_t value);
    // A queue stops or goes away.
    void leave(Queue& queue);
    // A GANG packet that a queue which has stopped did not come to: the gang will never be complete. Those of
    // its members who are here, the other cards, and those who are still to come, learn why.
    void fail_unread(Queue& queue, const uint64_t (&words)[kPacketWords]);

    // serve() is wanted.
    bool due() const { return due_ != 0; }
    void set_due() { due_ |= kWanted; }
    // So that the scheduler's queues that wait for areas have their look.
    void set_areas_due() { due_ |= kForAreas; }
    // A card or ports may be free for the gangs that wait for them: looks at a few of them, and stays due
    // until it has seen all. `more`: it stays due for areas.
    void serve(bool more);
    void check(uint64_t now);  // Alarm::kGang

    // Jobs that leave ports are to be told to port_freed().
    bool watches() const { return watches_; }
    // A job has left a port that was a gang's, or that a gang waits for.
    enum class Left : uint8_t { kSaved, kDone, kFailed };
    void port_freed(const Port& port, Left how);
    // A saved dispatch of a gang has been dropped, as its queue stops or goes away.
    void dropped(uint8_t gang, const Queue& queue, uint32_t groups);
    // The queue of a dispatch that left a port as failed has its error now.
    void failed(uint8_t gang, const Queue& queue);
    // Preempts all of the gang, if it can be.
    void preempt(uint8_t gang, uint32_t for_queue, uint64_t now);
    // REALTIME wants a port or cores. True: a gang makes room, or is about to.
    bool give_way(uint32_t for_queue, uint64_t now) { return used_ != 0 && one_leaves(for_queue, now); }
    // A peer has signalled this memory.
    void poked(uint64_t memory) {
        if (cross_ != 0) poked_board(memory);
    }

  private:
    void settle();
    uint16_t user_of(const Gang& gang) const;
    GangDebt& debt_of(uint16_t user);
    bool others_wait(const Gang& gang, bool only_who_could, bool own_too) const;
    uint64_t& pause_of(const Gang& gang);
    uint64_t core_time() const;
    uint64_t idle_of(const Gang& gang, uint64_t now) const;
    bool charge_hold(const Gang& gang, uint64_t now, uint64_t in_vain_ps);
    void tell(const Gang& gang, const Queue& queue, uint32_t what);
    bool signal_cards(Gang& gang, uint64_t step);
    bool cards_reached(Gang& gang, uint64_t step, uint32_t cards);
    void advance(Gang& gang);
    bool its_turn(Gang& gang);
    bool yields(Gang& gang, uint64_t now);
    bool precedes(const Gang& a, const Gang& b) const;
    int by_class(const Gang& a, const Gang& b) const;
    // What of the gangs that run is left out of account.
    enum class Beside : uint8_t { kAll, kNone };
    bool leaves_room(const Gang& gang, Beside beside = Beside::kAll, uint64_t without = 0) const;
    bool preceded(const Gang& gang) const;
    bool lacks_areas(const Gang& gang) const;
    void begin_turn(Gang& gang, uint64_t now) const;
    bool make_room(const Gang& gang);
    void start(Gang& gang);
    void unpark(Gang& gang);
    void free(Gang& gang);
    void charge_lock(const Gang& gang, uint64_t now);
    void give_back(Gang& gang, uint64_t now);
    void try_again(Gang& gang, uint64_t now);
    void fail(Gang& gang, uint32_t lacking, const Queue* except, uint64_t value = 0, bool late = false);
    uint64_t own_entry(uint16_t context, const orr_packet_gang& packet);

    // gang_run.cc
    uint8_t number_of(const Gang& gang) const { return static_cast<uint8_t>(&gang - rows_ + 1); }
    uint64_t bit_of(const Gang& gang) const { return uint64_t{1} << (&gang - rows_); }
    Gang* record_of(uint8_t number) {
        return number == 0 || number == kNoGangRow ? nullptr : &rows_[number - 1];
    }
    bool can_leave(const Gang& gang) const {
        return gang.step == GangStep::kRuns && !gang.fixed &&
               queues_[gang.queue[0]].priority != ORR_PRIORITY_REALTIME;
    }
    uint64_t slice_of(const Gang& gang, uint64_t idle_ps, bool pauses) const;
    void ask_to_leave(const Gang& gang, uint32_t for_queue, uint64_t now);
    void save(Gang& gang, uint32_t for_queue, uint64_t now);
    void push_off(Gang& gang, uint32_t for_queue, uint64_t now);
    void remove_member(Gang& gang, const Queue& queue, uint32_t groups, Left how);
    bool lower_locked(const Gang& gang);
    uint64_t said_by_peers(const Gang& gang, uint64_t least, uint64_t most);
    void follow(Gang& gang, uint64_t now);
    void hear(Gang& gang, uint64_t now);
    void look_at_started(uint64_t now);
    void look_at(uint64_t now);
    uint64_t may_leave_for(const Gang& gang) const;
    void press(uint64_t now);
    void poked_board(uint64_t memory);
    bool one_leaves(uint32_t for_queue, uint64_t now);
    template <typename F>
    void each(F look) {
        for (uint64_t rows = used_; rows != 0; rows &= rows - 1)
            look(rows_[lowest_bit(rows)]);
    }
    void set_alarm(uint64_t now);

    static constexpr uint8_t kWanted = 1;  // something has changed
    static constexpr uint8_t kGoesOn = 2;  // a look at all has begun
    static constexpr uint8_t kForAreas = 4;

    // What the hot path looks at is first.
    uint8_t due_;
    bool watches_;  // a gang has the lock, or is blocked by what runs
    bool grants_;   // ports that were held are free for others
    Hal* hal_;
    Alarm* alarm_;
    Engines* engines_;
    WaitTable* waits_;
    Tenants* tenants_;
    Context* contexts_;
    Queue* queues_;
    PersistHeader* persist_;
    Arbiter* arbiter_;
    Gang rows_[kGangRows];
    uint64_t used_;        // bit n: of row n
    uint64_t cross_;       // the same, of gangs of several cards
    uint64_t unread_;      // of these: what peers say is to be read
    uint64_t reading_;     // by this look at all: not what they say from then on, which may never end
    uint64_t left_;        // that this look at all has not seen yet
    bool looking_;         // a look at all has begun
    bool wanted_;          // a further one is wanted
    uint64_t look_ps_;     // what this look has taken
    uint64_t look_after_;  // the next one begins then
    GangDebt debts_[kGangUsers];
    Gang* locked_by_;  // the gang that may take the vector ports; null: none
    uint64_t looked_;  // model time when the clock was looked at
    uint64_t look_;  // when blocked gangs are looked at, whatever else happens until then; 0: there are none
    uint64_t worked_;  // core time since ports are held, without that of what runs now
    uint32_t order_;
    uint32_t cross_jobs_;  // dispatches of gangs of several cards that run
};

}  // namespace orrery::fw
