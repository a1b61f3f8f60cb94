// What a vector core does with the memory of other cards.
//
// A load or atomic there is a request with an answer. The core stops before the instruction (Hart::hold()),
// its unit sends what the instruction wants when its time has come, and when all answers are there the core
// comes to it once more and finds them. An atomic is sent once. Stores are posted: the core goes on behind an
// instruction that has stored when its bytes have left. A group can leave its core at any time, and what it
// owes then goes with it.
//
// What came for one instruction is not for another, but for rows of vectors that follow each other: the next
// ones are asked for ahead. What has come ahead is used once, by the first that loads any of it, and
// forgotten behind whatever orders loads, and when the core stores or does an atomic there. It is as if those
// loads had been done early; an address that was made of another load does not hold them back, which RVWMO
// asks for (docs/engines.md, Known limits).
//
// Card thread only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/engines/engine.h"
#include "emulator/engines/ways.h"

namespace orrery::emu {

class PeerAccess final : private Asker {
  public:
    // `event` is the core's: it is scheduled when what the core waits for is there. `ahead`: bytes of a row
    // that are asked for before the core comes to them. `cores`: of the card.
    PeerAccess(EngineContext& context, Event& event, std::uint64_t ahead, std::uint32_t cores)
        : context_(context),
          event_(event),
          most_ahead_(ahead),
          most_reads_(std::min(kMostReads, PeerPort::kMostRequests / 2 / cores)) {}
    PeerAccess(const PeerAccess&) = delete;
    PeerAccess& operator=(const PeerAccess&) = delete;

    // Requests of one core that are on their way at once, at most: all cores have half of a port's.
    static constexpr unsigned kMostReads = 32;

    // --- inside of an instruction, of which `step` is the number; each access is aligned ---
    enum class Got : std::uint8_t { kHere, kNotYet, kFault };
    Got load(std::uint64_t step, std::uint64_t va, unsigned size, std::uint64_t& value);
    // What goes together with a load that was not there yet; `row`: it is all the rest of it. False: that is
    // enough.
    bool foresee(std::uint64_t va, std::uint64_t bytes, bool row);
    Got atomic(std::uint64_t step, std::uint64_t va, const LinkAtomic& what, std::uint64_t& old);
    void store(std::uint64_t va, unsigned size, std::uint64_t value, std::uint64_t pc);
    // No load behind this is done before those in front of it.
    void acquire() { drop_ahead(); }
    // All stores in front of this, which is at `pc`, have been carried out by their owners. What is sent to
    // one of them and answered says so; else each is asked.
    Got release(std::uint64_t pc);
    // Some may not have been.
    bool has_stored() const { return !stored_.empty(); }
    const MmuFault& fault() const { return fault_; }

    // --- between two quanta ---
    // Nothing is to be sent or waited for.
    bool idle() const {
        return wanted_ == 0 && in_flight_ == 0 && stores_.empty() && !rests_ && !goes_ahead_ &&
               (!atomic_ || atomic_->here) && !releases_;
    }
    enum class Next : std::uint8_t {
        kGoOn,
        kWaits,   // the core's event comes
        kFailed,  // a store, as fault() and fault_pc() say
    };
    Next go_on(std::uint32_t asid, Ways& ways, ModelTime now);
    std::uint64_t fault_pc() const { return fault_pc_; }
    // Bytes that go_on() has asked other cards for and sent them since this was called last.
    struct Moved {
        std::uint64_t read = 0, written = 0;
    };
    Moved take_moved() { return std::exchange(moved_, {}); }
    // Since forget(), which then has nothing to do.
    bool unused() const { return !used_; }
    // The group leaves its core between two quanta: as forget(), but for what would be lost or done twice,
    // which is stores that have not left, or that a release would wait for, and an atomic that has been
    // sent. nullptr: there is no such thing.
    // What was loaded is loaded again.
    class Owed;
    std::unique_ptr<Owed> leave();
    // The group that left goes on here. Behind forget().
    void take(std::unique_ptr<Owed> owed);
    // A debugger has the core go on elsewhere: nobody comes to the atomic that may have been sent.
    void forget_atomic();
    // Its group ends here or goes on elsewhere: no answer comes any more.
    void forget();
    // The core's event comes now, if it was to come for an answer or for room.
    void wake();

  private:
    // Bytes inside of one page that a load wants: whole lines.
    struct Piece {
        enum class State : std::uint8_t { kWanted, kSent, kHere, kNotThere };
        std::uint64_t va = 0, bytes = 0;
        State state = State::kWanted;
        bool needed = false;  // not only foreseen
        std::uint32_t fault = ORR_FAULT_NONE;
        std::uint32_t tag = 0, node = 0;
        PeerPort* link = nullptr;
        std::vector<std::byte> data{};
        // Of one that was asked for ahead, whose bytes need not be whole lines: of which row, and where the
        // load behind it begins.
        unsigned row = 0;
        std::uint64_t next = 0;
    };
    // Loads of so many bytes each, of which each begins where the last one ended.
    struct Row {
        std::uint64_t bytes = 0;
        std::uint64_t next = 0;   // where the next one begins
        std::uint64_t asked = 0;  // up to here
        std::uint64_t come = 0;   // so many bytes of it: at most as many are asked for ahead
        bool goes_on = false;     // it has done so once
    };
    static constexpr unsigned kRows = 4;  // that are followed at once
    // Asks by itself, as its answer may come while its group is on no core.
    struct Atomic final : Asker {
        Atomic(PeerAccess* its_core, std::uint64_t its_step, std::uint64_t its_va, const LinkAtomic& its_what)
            : core(its_core), step(its_step), va(its_va), what(its_what) {}
        void answered(std::uint32_t tag, const LinkAnswer& answer) override;
        void ways_changed() override;
        void abandon();

        PeerAccess* core;                   // nullptr: none has its group
        std::optional<std::uint64_t> step;  // nothing: the group's first on the core
        std::uint64_t va;
        LinkAtomic what;
        bool sent = false, here = false;
        std::uint32_t tag = 0, node = 0;
        PeerPort* link = nullptr;
        LinkAnswer answer{};
    };
    struct Store {
        std::uint64_t va = 0, pc = 0;
        std::vector<std::byte> data;
    };
    // To which it has stored since something came from there; `va`: of the first.
    struct Stored {
        std::uint32_t node = 0;
        std::uint64_t va = 0;
        // The way by which they went.
        PeerPort* link = nullptr;
        std::uint64_t session = 0;
        std::uint32_t route = 0;
        std::uint32_t tag = 0;  // asked, for a release
    };
    enum class Sent : std::uint8_t { kYes, kNoRoom, kTryAgain };

    void answered(std::uint32_t tag, const LinkAnswer& answer) override;
    void ways_changed() override;
    void begin_step(std::uint64_t step);
    Piece* find(std::uint64_t va);
    void add(std::uint64_t va, std::uint64_t bytes, bool needed);
    // Pieces that were asked for ahead and have any of these bytes are this instruction's.
    void take_ahead(std::uint64_t va, std::uint64_t bytes);
    void follow_row(std::uint64_t va, std::uint64_t bytes);
    void send_ahead(std::uint32_t asid, Ways& ways, ModelTime now);
    void came_ahead(std::uint32_t tag, std::uint32_t fault);
    void drop_ahead();
    // What was added is in order, and no more pieces than need be.
    void merge();
    // False: one fails.
    bool send_stores(std::uint32_t asid, Ways& ways, ModelTime now);
    Sent send(Piece& piece, std::uint32_t asid, Ways& ways, ModelTime now);
    Sent send(Atomic& atomic, std::uint32_t asid, Ways& ways, ModelTime now);
    Sent sent(const LinkAsk& ask, std::uint32_t node, PeerPort* link);
    // To those that went by a way that is another one now no answer comes.
    void look_at_ways(Ways& ways);
    // Of those that a release waits for; false: one fails.
    bool ask_stored(ModelTime now, Sent& how);
    bool fails(std::uint32_t fault, std::uint64_t va, std::uint64_t pc);
    bool is_way_of(const Stored& one) const;
    void arrived(std::uint32_t node, const PeerPort* link);
    void came(Piece& piece, std::uint32_t fault);
    static void came(Atomic& atomic, const LinkAnswer& answer);
    void one_came();

    EngineContext& context_;
    Event& event_;
    bool used_ = false;
    std::uint64_t step_ = 0;  // of the instruction that wants the pieces
    std::vector<Piece> pieces_;
    bool took_ahead_ = false;  // some of them came ahead
    bool fresh_ = false;       // some were added since merge()
    unsigned wanted_ = 0;      // pieces that are to be asked for
    unsigned in_flight_ = 0;   // requests to which an answer is to come
    std::uint64_t most_ahead_;
    unsigned most_reads_;
    std::vector<Piece> ahead_;  // sent, or here
    unsigned ahead_in_flight_ = 0;
    std::array<Row, kRows> rows_;
    unsigned last_row_ = 0;
    bool goes_ahead_ = false;  // there may be more to be asked for ahead
    std::unique_ptr<Atomic> atomic_;
    std::vector<Store> stores_;         // in their order
    std::size_t sent_ = 0, bytes_ = 0;  // of them, and bytes of the next one
    ModelTime left_ = 0;                // when the last one has left
    std::vector<Stored> stored_;
    bool releases_ = false;  // it waits for these
    std::uint64_t release_pc_ = 0;
    std::uint32_t release_fault_ = ORR_FAULT_NONE;  // of one of these, which was at
    std::uint64_t release_va_ = 0;
    bool rests_ = false;          // until then
    bool waits_ = false;          // for answers, which schedule the event
    PeerPort* parked_ = nullptr;  // the link that had no room, and wakes the event
    std::uint32_t parked_node_ = 0;
    MmuFault fault_;
    std::uint64_t fault_pc_ = 0;
    Moved moved_;
};

// What a group has left behind on its way.
class PeerAccess::Owed {
  public:
    // It never goes on: no answer comes any more.
    void forget() {
        if (atomic_) atomic_->abandon();
    }

  private:
    friend class PeerAccess;
    std::vector<Store> stores_;
    std::size_t sent_ = 0, bytes_ = 0;
    std::vector<Stored> stored_;
    std::unique_ptr<Atomic> atomic_;
};

}  // namespace orrery::emu
