// The sending half of a link port: model times, credits, and the ring into the peer's inbox.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "emulator/faults/faults.h"
#include "emulator/link/shared_area.h"
#include "emulator/memory/peer.h"
#include "emulator/model/resource.h"
#include "emulator/probes/counters.h"

namespace orrery::emu::link {

class Transmitter {
  public:
    // Payload bytes a second, and one way's latency. `wake` sends kWake to the peer, `sent` hears when each
    // message arrives there. `faults` may be null.
    Transmitter(std::uint64_t bytes_per_second, ModelTime latency, Counters& counters,
                std::function<void()> wake, std::function<void(ModelTime)> sent, Faults* faults,
                std::uint32_t port);

    void open(SharedArea outbox);
    // The card's time stands while something waits for room, so signals wait too instead of being refused.
    void keep_step(bool on) { in_step_ = on; }
    void close();
    bool is_open() const { return static_cast<bool>(outbox_); }

    // This card's, 0: it has none and sends nothing.
    void set_node(std::uint32_t node) { node_ = node; }
    // As LinkPort; the port must be open. A peer whose words make no sense shows in broken() afterwards.
    LinkSend write(ModelTime now, std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data);
    std::uint32_t signal(ModelTime now, std::uint32_t node, std::uint64_t offset, std::uint64_t value);
    std::uint32_t post(ModelTime now, std::uint32_t node, std::uint64_t offset,
                       std::span<const std::byte> data);
    std::uint64_t bytes_per_second() const { return wire_.bytes_per_second(); }
    // Why this link must go down, if it must.
    const std::optional<std::string>& broken() const { return broken_; }

    // The peer has given back credits that nobody has looked at.
    bool room_news();
    // Before blocking without room: the peer wakes this card with its next credits. Then look once more.
    void want_credit();
    // Stores that wait for room, or a signal that got none. flush(): sends what has room now.
    bool has_pending() const { return refused_ || !pending_.empty(); }
    void flush();
    // Changes whenever the peer's card looks at the link.
    std::uint64_t peer_alive() const;
    // Room comes as soon as the peer's process runs: what it has got first is due before `now` and a latency,
    // and does not wait for its control core.
    bool room_is_near(ModelTime now) const;
    // Bytes and messages that lie in the ring by themselves are charged at least this, so that the ring is
    // never full of what the receiver's clock cannot reach: two cards that write to each other cannot block
    // each other.
    ModelTime min_message_ps() const { return min_message_ps_; }

    static constexpr unsigned kMaxPending = 1024;

  private:
    struct Pending {
        Message message;
        std::uint64_t data;
    };
    bool refresh();
    bool ring_room();
    bool payload_room(std::uint64_t bytes);
    void add_payload(Message& message, const void* data);
    bool add_payload_again(Message& message);
    ModelTime depart(ModelTime now, std::uint64_t bytes);
    // Why not: ORR_FAULT_*.
    std::uint32_t refusal(std::uint32_t node, std::uint64_t offset, std::uint64_t bytes);
    Message message_to(std::uint32_t node, std::uint32_t op, ModelTime now, std::uint64_t offset) const;
    void publish(Message& message);
    void put(Message& message);
    bool faulty(Message& message);
    void break_link(std::string why);

    Resource wire_;  // in system time
    ModelTime latency_;
    ModelTime min_message_ps_;
    Counters& counters_;
    std::function<void()> wake_;
    std::function<void(ModelTime)> sent_;
    Faults* faults_;
    std::uint32_t port_;
    std::uint32_t node_ = 0;
    SharedArea outbox_;
    std::optional<std::string> broken_;
    std::uint64_t produced_ = 0;
    std::uint64_t consumed_ = 0;  // as the peer said last, checked
    std::uint64_t payload_used_ = 0;
    std::uint64_t payload_consumed_ = 0;
    std::deque<Pending> pending_;
    bool refused_ = false;  // a signal, and there has been no room since
    bool in_step_ = false;
};

}  // namespace orrery::emu::link
