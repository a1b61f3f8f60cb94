// What engines and the semaphore unit see of a link port.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

#include "emulator/time/event_queue.h"

namespace orrery::emu {

// What became of (a part of) a write to the peer.
struct LinkSend {
    std::uint32_t fault = ORR_FAULT_NONE;  // ORR_FAULT_PEER_DOWN, _PEER_DENIED, _NO_ROUTE
    std::size_t bytes = 0;                 // taken, in front; 0 without a fault: no room now, try again
    ModelTime sent_ps = 0;                 // when the last byte has left the port; valid if bytes > 0
};

// What became of a request.
struct LinkAnswer {
    std::uint32_t fault =
        ORR_FAULT_NONE;       // ORR_FAULT_PEER_DENIED, _PEER_KEY, _NO_ROUTE, _PEER_DOWN, _PEER_BUSY
    std::uint64_t value = 0;  // of an atomic: the old one
    ModelTime began = 0;      // by the clock, when its first byte came
    ModelTime came = 0;       // and its last
};

// Who asks peers for something. Called from events or a look at the link, on the card thread.
class Asker {
  public:
    virtual ~Asker() = default;
    // Once for each request, unless it was abandoned.
    virtual void answered(std::uint32_t tag, const LinkAnswer& answer) = 0;
    // Routes have changed: the answer to one that went by another way may never come.
    virtual void ways_changed() = 0;
};

// A request that is on its way.
struct LinkAsk {
    std::uint32_t fault = ORR_FAULT_NONE;
    std::uint32_t tag = 0;  // no other port of the card has it; 0 without a fault: no room now, as LinkSend
};

// How the elements of several owners are combined: ORR_TYPE_*, ORR_REDUCE_*.
struct LinkReduction {
    std::uint32_t type = 0, function = 0;
};

// On one aligned word.
struct LinkAtomic {
    std::uint32_t function = 0;  // ORR_ATOMIC_*
    std::uint32_t bytes = 8;     // 4 or 8
    std::uint64_t operand = 0, compare = 0;
    bool operator==(const LinkAtomic&) const = default;
};

// What a barrier unit tells another one.
struct BarrierWord {
    bool fails = false;  // the barrier has failed here; else: arrived
    std::uint32_t slot = 0;
    std::uint64_t value = 0;
    std::uint64_t last = 0;  // with `fails`: the last round that ended well here
    std::uint64_t key = 0;
};
struct LinkTold {
    std::uint32_t fault = ORR_FAULT_NONE;
    bool sent = false;  // false without a fault: no room now, as LinkSend
};

// Card thread only.
class PeerPort {
  public:
    virtual ~PeerPort() = default;

    // What goes through in this direction, whoever sends it.
    virtual std::uint64_t bytes_per_second() const = 0;

    // Takes as much of `data` for the VRAM of `node` at `offset` as there is room for, at most 256 KiB. `at`:
    // the model time of the work that writes, if the clock has gone on since. A caller that gets no room
    // calls wait_for_room() and parks; the card goes on meanwhile.
    virtual LinkSend write(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data,
                           ModelTime at = kNever) = 0;
    // Asks for to.size() bytes of the VRAM of `node` from `offset` on, at most kMostRead; they are in `to`
    // when the answer comes, behind all that this card has sent there before. `at` as write() has it. Of no
    // bytes there is only the answer, whatever the owner grants.
    // ORR_FAULT_PEER_BUSY: too many are on their way, try again later.
    virtual LinkAsk read(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to, ModelTime at,
                         Asker& asker) = 0;
    // The same where `node` may be a multicast: the elements of its members, combined in their order.
    // `offset` and to.size() cut none. An answer with ORR_FAULT_PEER_BUSY: the switch has no room now, ask
    // again.
    virtual LinkAsk reduce(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to,
                           const LinkReduction& /*how*/, ModelTime at, Asker& asker) {
        return read(node, offset, to, at, asker);
    }
    virtual LinkAsk atomic(std::uint32_t node, std::uint64_t offset, const LinkAtomic& atomic, ModelTime at,
                           Asker& asker) = 0;
    // Nobody waits for that answer any more, and nothing is written to where it was to go.
    virtual void abandon(std::uint32_t tag) = 0;
    // Its asker is off its core and in no hurry, or back: until then it counts as one that nobody waits for.
    virtual void put_aside(std::uint32_t tag, bool aside) = 0;
    static constexpr std::size_t kMostRead = 32u << 10;
    static constexpr std::uint32_t kMostRequests = 512;  // on their way at once, whoever asks
    // What the owners said of this card's writes and signals that they refused.
    struct Refusals {
        std::uint64_t count = 0;
        std::uint32_t fault = ORR_FAULT_NONE;  // of the last
    };
    virtual Refusals refused_by(std::uint32_t node) const = 0;

    // To the barrier unit of `node`.
    virtual LinkTold tell(std::uint32_t node, const BarrierWord& word) = 0;

    // Schedules `event` for now once there may be room for `node`, or the link is down. Who waits longest is
    // first; who comes to write meanwhile gets no room. forget(): no longer, before the event is used for
    // anything else.
    virtual void wait_for_room(std::uint32_t node, Event& event) = 0;
    virtual void forget(Event& event) = 0;
    // Changes when the link goes down: what began before that must not go on with another peer.
    virtual std::uint64_t session() const = 0;

    // These return ORR_FAULT_*. A semaphore signal behind all earlier writes; `offset` is 16-byte aligned.
    // ORR_FAULT_PEER_BUSY: no room, and nothing was sent; try again. So what was sent is in the peer's hands.
    virtual std::uint32_t signal(std::uint32_t node, std::uint64_t offset, std::uint64_t value) = 0;
    // A store of at most 8 bytes. What finds no room waits in the port, in order; more than 1,024 are refused
    // with ORR_FAULT_PEER_DOWN.
    virtual std::uint32_t post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) = 0;

    // The other direction: what the peer has sent up to its last signal of this card's semaphore at `offset`
    // is carried out, before its time if need be. False: not all; too much waits for the control core.
    virtual bool settle(std::uint64_t offset) = 0;
};

// What the semaphore unit sees of the card's barrier unit. Card thread only.
class Arrivals {
  public:
    virtual ~Arrivals() = default;
    // A signal of the page of that slot: this card is at round `value`, or has failed if it has
    // ORR_SEM_FAILED. Maybe inside an instruction of the control core. Gives ORR_FAULT_*.
    virtual std::uint32_t arrive(std::uint64_t slot, std::uint64_t value) = 0;
};

// A card's ports, and what software said of the nodes behind them (ORR_R_ROUTE).
class Peers {
  public:
    void attach(unsigned port, PeerPort* to) { ports_[port] = to; }
    // All ports, by number; nullptr: no such port.
    const std::array<PeerPort*, ORR_LINK_MAX_PORTS>& ports() const { return ports_; }

    // `route` as the register has it. False, and nothing happens: it makes no sense.
    bool set_route(std::uint64_t node, std::uint64_t route) {
        if (node == 0 || node >= ORR_NODES || !is_route(route, ORR_LINK_MAX_PORTS)) return false;
        routes_[node] = static_cast<std::uint32_t>(route);
        return true;
    }
    static bool is_route(std::uint64_t route, std::uint64_t ports) {
        constexpr std::uint64_t kAll = ORR_ROUTE_PORT | ORR_ROUTE_VALID | ORR_ROUTE_HOLD |
                                       std::uint64_t{0xffff} << ORR_ROUTE_EPOCH_SHIFT;
        return route == 0 ||
               ((route & ~kAll) == 0 && (route & ORR_ROUTE_VALID) != 0 && (route & ORR_ROUTE_PORT) < ports);
    }
    void forget_routes() {
        routes_ = {};
        keys_ = {};
    }
    // What requests to `node` carry.
    void set_key(std::uint32_t node, std::uint64_t key) { keys_[node] = key; }
    std::uint64_t key_of(std::uint32_t node) const { return keys_[node]; }
    // As the register has it; `node` is below ORR_NODES here and below.
    std::uint32_t route(std::uint32_t node) const { return routes_[node]; }
    bool knows(std::uint32_t node) const { return routes_[node] != 0; }
    // The port that leads to `node`, ORR_LINK_MAX_PORTS: none.
    unsigned port_of(std::uint32_t node) const {
        return knows(node) ? routes_[node] & ORR_ROUTE_PORT : ORR_LINK_MAX_PORTS;
    }
    std::uint32_t epoch_of(std::uint32_t node) const { return routes_[node] >> ORR_ROUTE_EPOCH_SHIFT; }
    // The port by which this card may send to `node`; nullptr: there is none.
    PeerPort* towards(std::uint32_t node) const {
        return knows(node) && (routes_[node] & ORR_ROUTE_HOLD) == 0 ? ports_[port_of(node)] : nullptr;
    }
    // Why there is none.
    std::uint32_t fault_of(std::uint32_t node) const {
        return knows(node) ? ORR_FAULT_PEER_DOWN : ORR_FAULT_NO_ROUTE;
    }

  private:
    std::array<PeerPort*, ORR_LINK_MAX_PORTS> ports_{};
    std::array<std::uint32_t, ORR_NODES> routes_{};
    std::array<std::uint64_t, ORR_NODES> keys_{};
};

}  // namespace orrery::emu
