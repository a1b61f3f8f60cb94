// What is left of a way between two cards on which something was lost: what of it has arrived, and what
// never will. That is no question of time: the driver says when both cards deny what is left of an earlier
// way, and what went by the one that is there comes before a probe that is sent behind it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace orrery::umd {

class Context;
class Stream;
struct FlightSignal;
struct SemaphoreSlot;

struct WayNow {
    std::optional<std::uint64_t> number;  // Context::way_to(); none: there is no way
    bool tells = false;                   // the driver says what is settled: 1.17, and it knows
    std::uint32_t version = 0;            // of the pair
    std::uint32_t settled = 0;            // nothing is on its way that went by versions before this one
};

// One look from a card to another. What it is asked about, the sender had done before the look was taken,
// and whether that is there is asked behind it.
struct WayLook {
    WayNow way;
    std::uint64_t next = 1;    // number of the next probe
    std::uint64_t passed = 0;  // up to this one they have come, by the way that is there
    bool wanted = false;       // somebody waits for the next one
    bool cannot = false;       // there is nothing to send one with

    // It is not there: will it never come? Where nobody can say, after a while.
    bool never_comes(FlightSignal& signal, std::int64_t now_ns);
};

// Thread safe.
class WayWatch {
  public:
    // What a probe is received with, which may have to wait for cards: before something is sent there.
    void prepare(Context& from, Context& to);
    // Also while the sender is lost: then the other one is asked.
    WayLook look(const Context& from, const Context& to);
    // If it is wanted, and none is under way.
    void send_probe(Context& from, Context& to, const WayLook& look);
    // One of the two goes.
    void forget(const Context& card);

  private:
    void send(Context& from, Context& to, std::uint64_t way);
    struct Probe {
        std::shared_ptr<SemaphoreSlot> slot;
        std::shared_ptr<Stream> stream;  // of its own: a link that goes down, or is full, stops it
        std::uint64_t sent = 0, passed = 0;
        std::uint64_t way = 0;  // as it was before it was sent
        bool cannot = false;
    };
    using Pair = std::pair<const Context*, const Context*>;
    std::mutex mutex_;
    std::map<Pair, Probe> probes_;
};

}  // namespace orrery::umd
