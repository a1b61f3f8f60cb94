// The sending half of a link port: model times, credits, and the way into the peer's inbox. The port's wire
// is one; what is for the peer and what it passes on have a channel each, and neither waits for the other's
// room.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "emulator/faults/faults.h"
#include "emulator/link/counts.h"
#include "emulator/link/forwarder.h"
#include "emulator/link/line.h"
#include "emulator/link/shared_area.h"
#include "emulator/link/writer.h"
#include "emulator/memory/peer.h"
#include "emulator/probes/counters.h"

namespace orrery::emu::link {

class Transmitter {
  public:
    struct Hooks {
        std::function<void()> wake;           // sends kWake to the peer
        std::function<void(ModelTime)> sent;  // of one that keeps step: when each message arrives there
        std::function<std::uint32_t(std::uint32_t node)> epoch_of;  // of the way to a node
        std::function<std::uint64_t(std::uint32_t node)> key_of;    // that requests to it carry
        std::function<void(const Message&, unsigned lane)> left;    // each message; may be empty
    };
    // Requests, and answers that wait for none of these.
    enum Lane : std::uint8_t { kNear, kFar, kNearBack, kFarBack, kLanes };

    // `faults` may be null.
    Transmitter(const Line::Config& line, Counters& counters, Counts& counts, Hooks hooks, Faults* faults);

    // The line has been trained.
    void open(SharedArea outbox);
    Line& line() { return line_; }
    const Line& line() const { return line_; }
    // Room comes at a time of this clock's, so signals wait for it too instead of being refused.
    void keep_step(const EventQueue& clock);
    // This is a switch's: nothing here stops because of what was lost; and the peer is one.
    void set_kinds(bool is_switch, bool to_switch) {
        is_switch_ = is_switch;
        to_switch_ = to_switch;
    }
    void close();
    bool is_open() const { return static_cast<bool>(outbox_); }

    // This card's, 0: it has none and sends nothing.
    void set_node(std::uint32_t node) { node_ = node; }
    // Whether messages may leave of which this card is not the first, or the peer not the last. Goes off by
    // itself when one of them is lost.
    void set_forward(bool on);
    bool forwards() const { return forward_; }

    // As LinkPort; the port must be open. A peer whose words make no sense shows in broken() afterwards.
    LinkSend write(ModelTime now, std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data);
    std::uint32_t signal(ModelTime now, std::uint32_t node, std::uint64_t offset, std::uint64_t value);
    std::uint32_t post(ModelTime now, std::uint32_t node, std::uint64_t offset,
                       std::span<const std::byte> data);
    // A read or atomic, with its tag. `room`: none means that nothing was sent.
    struct Asked {
        std::uint32_t fault = ORR_FAULT_NONE;
        bool room = false;
    };
    struct Request {
        std::uint32_t op = 0, bytes = 0, tag = 0;
        LinkAtomic atomic{};
        std::uint16_t reduction = 0;  // of a read
    };
    Asked ask(ModelTime now, std::uint32_t node, std::uint64_t offset, const Request& request);
    LinkTold tell(ModelTime now, std::uint32_t node, const BarrierWord& word);
    // Whether an answer of so many bytes to that node has room.
    bool answer_room(std::uint32_t node, std::uint64_t bytes);
    struct Answer {
        Status status = kDone;
        std::span<const std::uint8_t> data{};
        std::uint64_t value = 0;
    };
    // Where there is room.
    void answer(ModelTime at, const Message& request, const Answer& answer);
    // ORR_NOTE_BYTES for a node's driver, 0: the neighbour's. Without room: ORR_FAULT_PEER_BUSY.
    std::uint32_t note(ModelTime now, std::uint32_t node, std::span<const std::byte> data);
    // One more member of a multicast of this card's, as kOpMember has it; waits for room as a store does, and
    // where too many wait: ORR_FAULT_PEER_BUSY.
    std::uint32_t member(ModelTime now, std::uint32_t multicast, std::uint64_t base, std::uint64_t who);
    // What another card sent: begins to leave `switching` after its head came here, and ends no sooner than
    // that after its end came.
    Passed pass(ModelTime now, const Passing& passing, ModelTime switching);
    std::uint64_t bytes_per_second() const { return line_.bytes_per_second(); }
    // Whether this link must go down, and why.
    bool is_broken() const { return is_broken_ || line_.failed(); }
    const std::optional<std::string>& broken() const;

    // The peer's number, which it writes when it likes: as it was at the last look. True: it is another one.
    bool look_at_peer() {
        const std::uint64_t node = load_relaxed(outbox_->node);
        if (node == peer_node_) return false;
        peer_node_ = node;
        return true;
    }
    // What the peer shows at this moment; it is open. drains_done(): of a switch.
    std::uint64_t shown_node() const { return load_relaxed(outbox_->node); }
    std::uint64_t lives() const { return load_acquire(outbox_->lives); }
    std::uint64_t reach_version() const { return load_acquire(outbox_->reach_version); }
    Reach reach(std::uint32_t node) const;
    std::uint64_t switches_version() const { return load_acquire(outbox_->switches_version); }
    std::optional<std::vector<SwitchWords>> switches() const;
    void want_drain(bool force) {
        const std::uint64_t wanted = load_relaxed(outbox_->drains_wanted) + 1;
        if (force) store_release(outbox_->drains_forced, wanted);
        store_release(outbox_->drains_wanted, wanted);
    }
    std::uint64_t drains_done() const { return load_acquire(outbox_->drains_done); }
    // By which channel a node is reached. All that goes to a switch is for somebody else.
    Lane lane_of(std::uint32_t node) const { return peer_node_ == node && !to_switch_ ? kNear : kFar; }
    Lane back_lane_of(std::uint32_t node) const {
        return peer_node_ == node && !to_switch_ ? kNearBack : kFarBack;
    }
    Lane lane_of(const Message& message) const {
        return message.op == kOpAnswer ? back_lane_of(message.destination) : lane_of(message.destination);
    }
    bool room_news(unsigned lane) const { return lanes_.at(lane).room_news(); }
    // Before blocking without room: the peer wakes this card with its next credits. Then look once more.
    void want_credit();
    // Likewise in step, in place of a wake: the peer tells this card the time of its next credits.
    void want_credit_in_step();
    // Then: takes over those that count by now; when the next one does, kNever: there is none.
    void take_credits(unsigned lane) { lanes_.at(lane).refresh(); }
    void forget_news(unsigned lane) { lanes_.at(lane).forget_news(); }
    ModelTime next_credit(unsigned lane) const { return lanes_.at(lane).next_credit(); }
    // Stores that wait for room, or a signal that got none. flush(): sends what has room now.
    bool has_pending(unsigned lane) const { return lanes_.at(lane).waits(); }
    // Whether any lane may have some: once nothing has been refused or put off since none had, there is
    // nothing to look for.
    bool may_have_pending() const { return may_have_pending_; }
    void have_none_pending() { may_have_pending_ = false; }
    void flush(unsigned lane) {
        if (has_pending(lane)) flush(lanes_.at(lane));
    }
    // The peer has taken all requests, so it is for others to answer.
    bool all_taken() const { return lanes_[kNear].all_taken() && lanes_[kFar].all_taken(); }
    // Messages of a lane that the peer says it has taken.
    std::uint64_t taken(unsigned lane) const { return lanes_.at(lane).taken(); }
    // Changes whenever the peer's card looks at the link.
    std::uint64_t peer_alive() const;

  private:
    bool has_way(std::uint32_t node) const {
        return node_ != 0 && (peer_node_ != 0 || to_switch_) && (forward_ || lane_of(node) != kFar);
    }
    // Why not: ORR_FAULT_*.
    std::uint32_t refusal(std::uint32_t op, std::uint32_t node, std::uint64_t offset, std::uint64_t bytes);
    Message message_to(std::uint32_t node, std::uint32_t op, ModelTime now, std::uint64_t offset) const;
    // One without payload, if there is room for it now.
    Asked send_now(Message& message, ModelTime now);
    bool gated(const Message& message, const Writer& to) const;
    // False: it is lost.
    bool publish(Writer& to, Message& message);
    void put(Writer& to, Message& message);
    // Where nothing waits, has no room, or may happen to it.
    bool is_plain(const Writer& to) const {
        return to.is_clear() && !is_broken() && line_.is_clean() &&
               (faults_ == nullptr || !faults_->is_armed(FaultPoint::kLink));
    }
    std::uint32_t signal_behind(Writer& to, Lane lane, ModelTime now, std::uint32_t node,
                                std::uint64_t offset, std::uint64_t value);
    void put_signal(Writer& to, ModelTime now, std::uint32_t node, std::uint64_t offset, std::uint64_t value);
    // Behind each message.
    void count_and_wake(std::uint64_t bytes);
    enum class Fate : std::uint8_t { kGoes, kGone, kLost };
    Fate faulty(Writer& to, Message& message);
    void flush(Writer& to);
    void put_off(Writer& to, const Message& message, std::span<const std::byte> data = {});
    void break_link(std::string why);

    Line line_;
    ModelTime latency_;
    Counters& counters_;
    Counts& counts_;
    Hooks hooks_;
    Faults* faults_;
    std::uint32_t port_;
    std::uint32_t node_ = 0;
    std::uint64_t peer_node_ = 0;
    std::uint64_t first_key_ = 0;  // of a fault plan's
    bool forward_ = false;
    bool is_switch_ = false;
    bool to_switch_ = false;
    SharedArea outbox_;
    PublishedGrants grants_;
    std::optional<std::string> broken_;
    bool is_broken_ = false;  // this, or a lane
    std::array<Writer, kLanes> lanes_;
    bool in_step_ = false;
    bool may_have_pending_ = false;
};

}  // namespace orrery::emu::link
