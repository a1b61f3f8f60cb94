// What comes by a link port for other nodes than this card's is passed on by the port that leads there, in
// order, whatever the card's control core does. Cut-through: it begins to leave a fixed time after its head
// came, so a long message takes its time on the wire once. It is handled at the arrival of its end.
//
// Of what one node sends no more than a piece, as engines send them (Resource::piece()), or one message, has
// been given to another port at a time that is not through within the switching time: so the nodes behind a
// port, each of them, and the card's own engines share a wire evenly, and who is further away gets no less.
// Without room it stays where it is, and the sender's credits hold it back.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/api/model_time.h"
#include "emulator/link/multicast.h"
#include "emulator/link/reader.h"
#include "emulator/link/reductions.h"
#include "emulator/link/wire.h"
#include "emulator/probes/counters.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {
class LinkPort;
}

namespace orrery::emu::link {

// A message on its way through the card, and the channel where its payload is.
struct Passing {
    const Message& message;
    const Channel& from;
    // Who passes it on: where others wait for room too it is its turn until LinkPort::end_turn().
    Event& by;
    // Its payload, if it does not stand there.
    std::span<const std::uint8_t> data{};
};
struct Passed {
    enum What : std::uint8_t { kGone, kNoRoom, kLost };
    What what = kLost;
    ModelTime through = 0;  // kGone: when its end has left, in system time
};

class Forwarder {
  public:
    struct Hooks {
        // Whether what that node sends comes by this port.
        std::function<bool(std::uint32_t node)> comes_here;
        // The port by which it goes on; nullptr: none.
        std::function<LinkPort*(std::uint32_t node)> onward;
        // As LinkHooks have them.
        std::function<bool(const LinkPort* onward, unsigned lane)> is_stuck;
        std::function<bool(const Message&)> may_pass;
        std::function<void(const Message&)> lost;
        std::function<const Multicast*(std::uint32_t number)> multicast;
        std::function<bool(const Message&)> member;
        // Of a switch: what is begun by this port, and ends by any. nullptr: nothing is combined.
        Reductions* reductions = nullptr;
        unsigned port = 0;
        // So many of the drains are done.
        std::function<void(std::uint32_t)> drained;
        // That one goes no further.
        std::function<void(const Message& message, Status status)> cannot;
        // That answer has been taken, whatever became of it. May be empty.
        std::function<void(const Message& answer)> answered;
    };

    // `due` is scheduled when run() has to be called. What is dropped takes the time that its bytes take at
    // `bytes_per_second`.
    Forwarder(EventQueue& events, Counters& counters, Counts& counts, Reader& reader, Event& due, Hooks hooks,
              ModelTime switching, std::uint64_t bytes_per_second);

    // Passes on what has come by now; bounded. True: it did something. An error is a reason to take the
    // link down.
    std::expected<bool, std::string> run();
    // Passes nothing on; `due` is scheduled for what comes first.
    std::expected<void, std::string> look();
    // There is a message of which nobody knows.
    bool has_news() const { return !due_.scheduled() && waits_at_ == nullptr && reader_.has_news(); }
    // There is one, but none that is on its way: it waits for room.
    bool waits() const { return waits_at_ != nullptr; }

    // What has come by now is passed on at once, as soon as there is room; then it is told as drained.
    // `force`: what finds no room where somebody is stuck is lost. Only where others hear of a loss
    // (Hooks::lost).
    void drain(bool force = false);
    // The inbox goes. What is left of it is lost.
    void close();
    void forget_drains() { drains_ = 0; }

    static constexpr unsigned kBatchMessages = 64;
    // What is drained arrives no later than that from now on: a peer that names any time must not have a wire
    // of others booked until then.
    static constexpr ModelTime kMostAhead = 1'000'000 * kPsPerNs;

  private:
    std::expected<bool, std::string> run_called();
    // False: it waits for room, and everything behind it.
    bool pass(const Message& message);
    // To each member, as one message for it alone. One whose port has no room holds back what is behind the
    // message, and no other member.
    bool pass_to_all(const Message& message, const Multicast& all);
    // That, and asking: `prepare` makes a member's own of a copy, or says that it is lost; `lose` is told of
    // lost ones.
    bool copy_to_all(const Message& message, const Multicast& all, const auto& prepare, const auto& lose);
    void take_member(const Message& message);
    // A read of a multicast: each member is asked.
    bool ask_all(const Message& message, const Multicast& all);
    // A member's answer to that; nothing: it is none. The last one makes way for the one that is combined.
    std::optional<bool> pass_part(const Message& part);
    void gone(const Message& message, LinkPort* onward, ModelTime through);
    // One message to one node.
    Passed give(const Message& message, LinkPort* onward);
    void wait_at(LinkPort* onward, const Message& message);
    void count_arrival(const Message& message);
    // Of the first one, which goes on `at` (system time) at the earliest: counts it as a straggler if its own
    // time had passed when it was first seen.
    void note_arrival(const Message& first, ModelTime at);
    void count_loss(const Message& message, Status status);
    void refuse(const Message& message, Status status);  // who asked is told, others hear nothing
    // It belongs to the turn that this one has at a port.
    bool is_in_turn(const Message& message) const;
    void end_turn();
    ModelTime next_of(const Message& message) const;
    void set_pace(const Message& message, ModelTime through);
    bool in_a_hurry() const { return drains_ != 0 && reader_.taken() < drain_to_; }
    // For room there.
    bool waits_for(const Message& message, const LinkPort* onward) const;
    void end_drains();
    void stop_waiting();

    EventQueue& events_;
    Counters& counters_;
    Counts& counts_;
    Reader& reader_;
    Event& due_;
    Hooks hooks_;
    ModelTime switching_;
    std::uint64_t bytes_per_second_;
    std::uint64_t piece_;
    // What has been given of a node, in order, and is not through.
    struct Pace {
        struct Given {
            ModelTime next;  // from when on it counts no more, in system time
            std::uint64_t bytes;
        };
        std::uint32_t node;
        std::uint64_t bytes = 0;  // of all these
        std::deque<Given> given{};
    };
    std::uint64_t charge(const Message& message) const;
    std::vector<Pace> paces_;
    LinkPort* waits_at_ = nullptr;
    std::uint32_t copied_ = 0;   // members that have the first message already, a bit each
    ModelTime all_through_ = 0;  // when the last of these copies has left
    std::uint32_t asks_ = 0;     // the tag with which the first message asks members
    std::uint32_t whole_ = 0;    // that of the answer that waits for room in the place of the first message
    // Where senders wait for room one turn has a message of each node.
    LinkPort* turn_at_ = nullptr;
    unsigned turn_lane_ = 0;
    std::vector<std::uint32_t> served_;
    std::uint32_t drains_ = 0;       // that are not done
    std::uint64_t drain_to_ = 0;     // Reader::taken() at which they are
    std::uint64_t force_to_ = 0;     // and of what is forced
    std::uint64_t seen_ = 0;         // number of the message that was looked at last, from 1
    ModelTime late_since_ = kNever;  // messages from here on are late by this port's own doing
};

}  // namespace orrery::emu::link
