// The process's cards and streams together: what one card alone cannot know. What became of the queue that a
// failure word names; what a card that is gone will never signal on others; cycles of waits over cards.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "umd/runtime/asking_turns.h"
#include "umd/runtime/flight.h"
#include "umd/runtime/gang.h"
#include "umd/runtime/way_watch.h"
#include "umd/winsys/error.h"

namespace orrery::umd {

class Context;
class Stream;
struct SemaphorePoint;
struct SemaphoreSlot;
struct WaitCycle;
struct Waiter;

// Thread safe.
class Fleet {
  public:
    void add(Context& context);
    void remove(Context& context);
    void add(const std::shared_ptr<Stream>& stream);
    // Keeps what became of a stream that goes, for those who still wait for it, and what it has under way.
    void bury(Stream& stream);
    // Waits until nothing that streams which are gone wrote from or to this card is under way.
    Status wait_quiet(Context& context);
    // Before the context goes.
    void forget_flights(const Context& context);
    // What else is looked after while somebody of the process waits.
    class Watched {
      public:
        virtual ~Watched() = default;
        // Does not wait.
        virtual void look() = 0;
        // Why this semaphore has failed with a word that names a card which is not reached: if this knows
        // the link.
        virtual std::optional<Error> lost_way(std::uint64_t /*va*/, std::uint64_t /*word*/) const {
            return {};
        }
    };
    void add(const std::shared_ptr<Watched>& watched);
    // Somebody who waits has to look now and then.
    bool needs_looks() const {
        return several() || any_watched_.load(std::memory_order_acquire) || any_shared();
    }
    // A semaphore of this process may be another's too.
    void note_shared() { any_shared_.store(true, std::memory_order_release); }
    bool any_shared() const { return any_shared_.load(std::memory_order_acquire); }
    // Those that live; null: of all cards.
    std::vector<std::shared_ptr<Stream>> streams(const Context* of = nullptr) const;

    Gangs& gangs() { return gangs_; }

    // Of the cards in use.
    std::vector<Context*> contexts() const;
    // A card that the process sees, used or not.
    void know(std::uint64_t uid, int device);
    // -1: it sees none of them.
    int device_of(std::uint64_t uid) const;
    bool several() const { return contexts().size() > 1; }

    // What a failure word (orrery/fw/failure.h) stands for: code and text of the first cause, by name.
    // foreign: it stood where another process puts them, whose queues may have had the numbers of ours.
    // va: the semaphore in which it stands, 0: it is not known.
    Error cause(std::uint64_t word, bool foreign, std::uint64_t va) const;

    // Fails a semaphore of `there` in the name of who will not signal it. False: not now.
    bool fail_semaphore(Context& there, std::uint64_t va, std::uint64_t code, const std::string& who,
                        const Error& error);

    // Something will be sent from a card to another: WayWatch::prepare().
    void prepare_probes(Context& from, Context& to) { ways_.prepare(from, to); }

    // Its memory will be another's.
    void forget_semaphore(std::uint64_t va);

    // Somebody of this process may have signalled this semaphore, which is shared, without a note of it.
    bool may_have_signalled(std::uint64_t va) const;

    // For those who wait: streams of cards that are gone stop, and what they, or queues that cannot reach
    // another card any more, would have signalled there fails. Does it now and then only.
    void watch();
    // The cycle of waits over cards or processes that this stream cannot leave. Found twice, as what moves
    // has other values; searched for now and then only, for all who wait.
    std::optional<Error> deadlock(const Stream& stream);
    // The same of a thread that waits for a semaphore.
    std::optional<Error> deadlock(const SemaphoreSlot& slot, std::uint64_t value);

  private:
    struct Grave {
        std::uint64_t index = 0;
        Error error;
        std::string who;
        bool latest = true;  // no other stream has had the number since
    };
    using QueueKey = std::pair<std::uint32_t, std::uint32_t>;                   // node, queue
    using PacketKey = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // and packet

    // "; the link … went down", on the way from the card with this semaphore to one that is not reached.
    std::string lost_on_way(std::uint64_t va, std::uint32_t node) const;
    // What objects of this process know of a semaphore of theirs: Watched::lost_way().
    std::optional<Error> lost_way(std::uint64_t va, std::uint64_t word) const;
    // It is another process's queue's, as far as streams of ours have met it.
    bool came_from_outside(std::uint64_t word) const;
    // Of a semaphore of ours; null: of nobody's.
    Context* owner(std::uint64_t va) const;
    bool reached(const SemaphorePoint& point) const;
    // What a stream that is gone has under way.
    struct Orphans {
        Context* from = nullptr;
        std::string who;
        std::vector<FlightSignal> signals;
    };
    struct Cycle {
        std::string text;
        std::vector<std::pair<std::weak_ptr<Stream>, std::uint64_t>> stands;  // each at this packet
        bool twice = false;
    };
    void look_at_cards(const std::vector<std::shared_ptr<Stream>>& all);
    void look_at_flight(Stream& stream);
    void end_promises(Stream& stream);
    void look_at_orphans();
    void look_at_watched();
    // By who waits.
    using Cycles = std::map<const Stream*, Cycle>;
    Cycles search() const;
    std::optional<Error> own_deadlock(const Stream& waiting);
    // Over processes: asks the driver.
    std::optional<std::string> driver_deadlock(const AskingTurns::Who& who, Context& context,
                                               const Waiter& waiter);
    std::string describe_cycle(const WaitCycle& cycle) const;
    // Other processes may signal it.
    bool is_shared(std::uint64_t va) const;
    std::string describe_semaphore(std::uint64_t va) const;

    Gangs gangs_;
    mutable std::mutex mutex_;
    std::vector<Context*> contexts_;
    std::map<std::uint64_t, int> devices_;  // by uid
    std::vector<std::weak_ptr<Stream>> streams_;
    std::vector<std::weak_ptr<Watched>> watched_;  // under mutex_
    std::atomic<bool> any_watched_{false};
    std::map<QueueKey, Grave> graves_;  // the last one of each number
    std::map<PacketKey, Grave>
        told_;                       // under told_mutex_: failures that this process told in place of a queue
    mutable std::mutex told_mutex_;  // behind everything of a stream
    mutable std::set<std::uint64_t> foreign_words_;  // of other processes' queues; under told_mutex_
    std::set<std::uint64_t> failed_;  // semaphores that this process has failed; under told_mutex_
    std::vector<Orphans> orphans_;    // under mutex_
    bool sorting_orphans_ = false;    // they are not there meanwhile; under mutex_
    WayWatch ways_;
    std::atomic<bool> watching_{false};
    std::atomic<std::int64_t> watched_ns_{0};

    std::mutex search_mutex_;
    std::int64_t searched_ns_ = 0;
    Cycles cycles_;  // of the last search
    std::atomic<bool> any_shared_{false};

    std::mutex ask_mutex_;
    AskingTurns turns_;  // under ask_mutex_
};

}  // namespace orrery::umd
