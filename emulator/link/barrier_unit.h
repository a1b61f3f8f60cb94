// The barrier unit (orrery/hw/bar0.h, ORR_R_BARRIER): this card's part in barriers of several cards.
//
// Members tell each other of their arrivals directly, so a round takes one way from the last to arrive. What
// a member has said is the round at which it is: words only grow, and the last says all that those before it
// did. So one that waits for room at a link is never more than one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>

#include "emulator/link/wire.h"
#include "emulator/memory/peer.h"
#include "emulator/memory/vram.h"
#include "emulator/probes/counters.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

// Card thread only.
class BarrierUnit final : public Arrivals {
  public:
    struct Hooks {
        // The semaphore at this VRAM offset has another value: SOC_POKE_POP.
        std::function<void(std::uint64_t vram_offset)> poke;
        // There is room for a poke of each slot, whatever theirs were before. Empty: always.
        std::function<bool()> room_to_arm;
        // By the clock, when to act on what the host's time brought. Empty: now.
        std::function<ModelTime()> act_at;
        // states() is another one. May be empty.
        std::function<void()> changed;
    };

    // The references outlive it.
    BarrierUnit(EventQueue& events, Vram& vram, const Peers& peers, Counters& counters, Hooks hooks);

    // --- the host's commands: ORR_FAULT_* ---
    // `member` as ORR_R_BARRIER_MEMBER.
    std::uint32_t add(std::uint32_t slot, std::uint32_t member, std::uint64_t word);
    std::uint32_t arm(std::uint32_t slot, std::uint64_t key, std::uint64_t release, std::uint64_t word);
    std::uint32_t clear(std::uint32_t slot, std::uint64_t word);
    // As ORR_R_BARRIER_STATES.
    std::uint64_t states() const;
    // The card is about to be reset: all slots are free. `tell`: the others, as far as there is room; not by
    // a card that others count on to keep quiet now.
    void reset(bool tell);

    std::uint32_t arrive(std::uint64_t slot, std::uint64_t value) override;

    // --- links ---
    // A word from another card, which came by the port of its route. kDenied, kBadKey: it is none of its
    // business.
    link::Status take(const link::Message& message);
    // A route is another one, or a link has gone down.
    void ways_changed();

  private:
    struct Slot;
    struct MemberState {
        std::uint32_t node = 0;
        std::uint32_t there = 0;  // its slot
        std::uint64_t word = 0;   // for when the way to it is lost
        // The way as it was when the slot was armed.
        PeerPort* port = nullptr;
        std::uint32_t route = 0;
        std::uint64_t session = 0;
        bool gone = false;        // that way is lost, or it has said that it has failed
        std::uint64_t order = 0;  // of those that are gone, or about to be as their way is; 0: it is not
        std::uint64_t cause = 0;  // why it is gone
        std::uint64_t last = 0;   // the last round that it has seen to its end before
        std::uint64_t seen = 0;   // the round at which it is
        std::uint64_t told = 0;   // the round that it knows of
        unsigned lost_words = 0;  // on their way to it, which still stands
        bool owes_leave = false;  // it is still to be told that the barrier has failed
    };
    struct Member : MemberState {
        void on_room(ModelTime);
        BarrierUnit* unit = nullptr;
        Slot* slot = nullptr;
        bool waits = false;  // for room
        Event room = Event::of<&Member::on_room>(this);
    };
    struct SlotState {
        std::uint32_t members = 0;
        std::uint64_t key = 0;
        std::uint64_t release = 0;  // VRAM offset
        std::uint64_t word = 0;     // for when this card is reset
        std::uint64_t arrived = 0;  // the round at which this card is
        std::uint64_t released = 0, raised = 0;
        std::uint64_t last_order = 0;  // of its members
        ModelTime released_at = 0;     // in system time
        std::uint64_t cause = 0;       // why it has failed, as the semaphore has it; 0: it has not
        bool cause_raised = false;
    };
    struct Slot : SlotState {
        std::uint32_t state = ORR_BARRIER_FREE;
        std::array<Member, ORR_BARRIER_MEMBERS - 1> member;
    };
    bool has_way(const Member& member) const;
    void set_state(Slot& slot, std::uint32_t state);
    // What the member does not know yet, if there is room.
    void tell(Slot& slot, Member& member);
    void tell_all(Slot& slot);
    static void note_order(Slot& slot, Member& member);
    static void lose(Slot& slot, Member& member);
    // And what that means for the slot.
    void lost(Slot& slot, Member& member);
    void stop_waiting(Member& member);
    void count_up(Slot& slot, ModelTime at);
    // Fails it if this card has arrived at a round of which one that is gone has not seen the end. Of several
    // the first that went is the cause.
    void check(Slot& slot, ModelTime at);
    // All members hear of it, also from those that only heard of it: one may have lost its way to who knew
    // first.
    void fail(Slot& slot, std::uint64_t word, ModelTime at);
    void raise(Slot& slot);
    // Of a slot that leaves: nobody is left to be told.
    void end_leaving(Slot& slot);
    void empty(Slot& slot);
    // All but what goes out at the moment of a signal: never in the middle of somebody else's work.
    void on_work(ModelTime);
    void on_ways(ModelTime);

    EventQueue& events_;
    Vram& vram_;
    const Peers& peers_;
    Counters& counters_;
    Hooks hooks_;
    std::array<Slot, ORR_BARRIER_SLOTS> slots_;
    Event work_ = Event::of<&BarrierUnit::on_work>(this);
    Event ways_ = Event::of<&BarrierUnit::on_ways>(this);
};

}  // namespace orrery::emu
