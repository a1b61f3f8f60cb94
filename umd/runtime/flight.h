// A stream's signals to other cards, until they are there. A card is done with a signal when it is on the
// link; the other card executes it when its own clock gets there, which may be much later, or never.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "umd/runtime/deadlock_search.h"
#include "umd/runtime/semaphore.h"
#include "umd/runtime/way_watch.h"

namespace orrery::umd {

struct FlightSignal {
    std::uint64_t index = 0;              // of the stream, behind the packet
    std::shared_ptr<SemaphoreSlot> slot;  // so nobody else gets it meanwhile
    std::uint64_t value = 0;
    bool landing = false;   // says that the writes before it have arrived, so the stream is done only then
    bool lost = false;      // it will never arrive
    bool looked = false;    // was there at the last look already
    std::uint64_t way = 0;  // Context::way_to() before it was sent
    std::int64_t doubted_ns = 0;  // since then its card or link is known to have failed
    // The pair's version when its card was known to be done with it: it went by that one or an earlier one.
    std::optional<std::uint32_t> latest{};
    std::uint64_t probe = 0;  // the first that was sent behind it (way_watch.h)

    // It is there, or never will be.
    bool over() const;
    // Its link is up, and was never down meanwhile.
    bool comes_by(std::optional<std::uint64_t> way_now) const {
        return way_now && (*way_now == 0 || way == 0 || *way_now == way);
    }
    // Its card or link has failed: has it had `patience` since this was first asked?
    bool given_up(std::int64_t now_ns, std::int64_t patience_ns);
};

// Thread safe.
class Flight {
  public:
    // What the queue had not `executed` after the way was asked for goes by this way. Of one that had stopped
    // by then it is all packets: it has failed the rest, and those failures went by the way before.
    void set_way(const Context& there, std::uint64_t way, std::uint64_t executed, std::int64_t now_ns);
    // It was asked for since then.
    bool knows_way(const Context& there, std::int64_t since_ns) const;
    // Before the packet can be done.
    void add(FlightSignal signal);
    // No write is on its way to another card, as far as anybody has noted.
    bool none_lands() const noexcept { return !any_landing_.load(std::memory_order_acquire); }
    // All landings up to `index` have arrived. `executed`: packets that the queue has done.
    bool landed(std::uint64_t index, std::uint64_t executed) const {
        return none_lands() || all_landed(index, executed);
    }
    // No write is on its way any more: all landings have arrived or never will.
    bool quiet() const;
    // What the queue has done and what is not there.
    std::vector<FlightSignal> under_way(std::uint64_t executed) const;
    // Where what is under way or queued goes, of what was so at the last call already.
    std::set<Context*> destinations();
    std::vector<SemaphorePoint> points(std::uint64_t executed) const;
    // This semaphore has one under way.
    bool under_way_to(std::uint64_t va, std::uint64_t executed) const;
    // For what is under way to this card when a link may have failed, as it may be there already, or only
    // wait for the card's clock. What comes by the way that is there is not meant. Gives what will never
    // come: it is lost. `executed`: before the look.
    std::vector<FlightSignal> doubt(const Context& there, std::uint64_t executed, std::int64_t now_ns,
                                    WayLook& look);
    // The same for a card that is lost.
    std::vector<FlightSignal> lose(const Context& there, std::uint64_t executed);
    // Gives up all; what is not there yet.
    std::vector<FlightSignal> take();

  private:
    static constexpr std::size_t kTidyAt = 64;
    bool all_landed(std::uint64_t index, std::uint64_t executed) const;
    template <typename Judge>
    std::vector<FlightSignal> lose_if(const Context& there, std::uint64_t executed, Judge is_lost);
    std::vector<FlightSignal> tidy(std::uint64_t executed) const;

    mutable std::mutex mutex_;
    mutable std::vector<FlightSignal> signals_;
    struct Way {
        std::uint64_t way = 0;
        std::int64_t asked_ns = 0;
    };
    std::map<const Context*, Way> ways_;
    mutable std::atomic<bool> any_landing_{false};
    std::size_t tidy_at_ = kTidyAt;
};

}  // namespace orrery::umd
