// A link port of a card or a switch, whatever is behind it: the interface, its kinds, and what they are made
// with. Kinds are `local` and `switch` (shared_port.h); another one is a LinkKind, and whoever has ports
// needs to know nothing of it.
//
// The peer never sees this card's VRAM. It sends messages (write, semaphore signal), and this port executes
// them, in order, each at its arrival on this card's clock, if the port's grant table allows it. A message
// that makes no sense takes the link down with a reason; a peer that dies takes it down too; the port then
// waits for a new peer. docs/links.md has the protocol and its limits.
//
// Not thread safe: everything on the card thread; hooks are called there too, from inside the calls below.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/faults/faults.h"
#include "emulator/link/counts.h"
#include "emulator/link/switch_words.h"
#include "emulator/memory/peer.h"
#include "emulator/memory/vram.h"
#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

namespace link {
struct Message;
struct Multicast;
struct Passed;
struct Passing;
struct Reach;
class Reductions;
enum Status : std::uint16_t;
}  // namespace link

class LinkPort;
struct LinkConfig;
struct LinkHooks;

// What makes ports of one kind: as LinkPort::create().
struct LinkKind {
    std::string_view name;
    std::expected<std::unique_ptr<LinkPort>, std::string> (*create)(LinkConfig config, EventQueue& events,
                                                                    Vram& vram, Counters& counters,
                                                                    Errors& errors, LinkHooks hooks);
};
extern const LinkKind kLocalLink;   // of a card, to a card or switch on this host
extern const LinkKind kSwitchLink;  // of a switch, likewise

struct LinkConfig {
    const LinkKind* kind = &kLocalLink;
    std::uint32_t port = 0;          // below ORR_LINK_MAX_PORTS, or link::kMostSwitchPorts
    std::uint64_t uid = 0;           // this card's, neither 0 nor all ones
    bool listen = false;             // own the socket, or connect to it
    std::string path;                // of the UNIX socket
    std::uint32_t lanes = 4;         // that the port has, 1 .. 64
    std::uint32_t gbps = 400;        // payload rate of one direction over all of them, 1 .. 100,000
    std::uint32_t latency_ns = 500;  // one way
    std::uint32_t forward_ns = 0;    // from a message's head here to its head at the port that passes it on
    std::uint32_t retries =
        8;  // of a damaged frame, before the link trains anew; the second time it goes down
    std::uint32_t retrain_ns = 20'000;
    // A peer that does not look at its link once, while this card waits for room and has looked at it this
    // many ms worth of times, is taken for dead: long enough for a peer that is busy, not for one that is
    // stopped. Time in which this card does not run itself, a suspended host for one, does not count.
    std::uint32_t peer_silence_ms = 10'000;
    Faults* faults = nullptr;
    // Of a switch: those of a higher level are nearer to the top. Below 256.
    std::uint32_t level = 0;

    // From a command line: "PORT:listen:PATH" or "PORT:connect:PATH", maybe with a kind in front of the word
    // ("PORT:local:listen:PATH"). Fills port, listen and path; PORT is below `ports`.
    static std::expected<LinkConfig, std::string> parse(std::string_view text,
                                                        std::uint32_t ports = ORR_LINK_MAX_PORTS);
};

// Neither may call back into the port.
struct LinkHooks {
    // A peer signalled the semaphore at this VRAM offset: SOC_POKE_POP.
    std::function<void(std::uint64_t vram_offset)> poke;
    // Whether another one may come: without room the next signal, and what the peer sent behind it, stays in
    // the inbox until poke_room() is called. Empty: always.
    std::function<bool()> poke_room;
    // Whether what that node sends comes by this port; what comes by another is denied. Empty: yes.
    std::function<bool(std::uint32_t node)> comes_here;
    // The epoch that this card has for what it and that node send each other. Empty: 0.
    std::function<std::uint32_t(std::uint32_t node)> epoch_of;
    // The key that this card's requests to that node carry. Empty: 0.
    std::function<std::uint64_t(std::uint32_t node)> key_of;
    // The port of this card by which what comes here for that node is passed on; nullptr: none. Empty: none.
    std::function<LinkPort*(std::uint32_t node)> onward;
    // A node refused a write or signal of this card, for the 1st, 2nd, 4th, 8th, .. time: `fault` says why.
    // May be empty.
    std::function<void(std::uint32_t port, std::uint32_t node, std::uint32_t fault)> refused;
    // This port has refused a request for its wrong key, for the 1st, 2nd, 4th, 8th, .. time; who says that
    // he is that node sent it. May be empty.
    std::function<void(std::uint32_t port, std::uint32_t node)> bad_key;
    // A word for this card's barrier unit, in order with all that its sender sent; the unit judges it. Empty:
    // there is none, and it is denied.
    std::function<link::Status(const link::Message&)> barrier;
    // That node, or who says that he is it, has a note for this card's driver; `passed`: by way of others.
    // May be empty.
    std::function<void(std::uint32_t node, bool passed, std::span<const std::byte> data)> noted;
    // Of a switch: whether the peer of that port has taken nothing there since this port was to be drained.
    // Empty: no.
    std::function<bool(const LinkPort* onward, unsigned lane)> is_stuck;
    // Whether what comes here may be passed on, as far as others than the ports know. Empty: yes.
    std::function<bool(const link::Message&)> may_pass;
    // What came here by its sender's port was not passed on, and is lost. May be empty.
    std::function<void(const link::Message&)> lost;
    // Of a switch: what that number stands for in what the peer sends; nullptr: for a node. And what a
    // message does to it (kOpMember); false: nothing. Empty: it copies nothing for its peer.
    std::function<const link::Multicast*(std::uint32_t number)> multicast;
    std::function<bool(const link::Message&)> member;
    // Of a switch: reads of its cards' multicasts. nullptr: they have no route.
    link::Reductions* reductions = nullptr;
    // What the peer shows has changed: its node, reach(), switches, drains_wanted(). May be empty.
    std::function<void(std::uint32_t port)> peer_shows;
    // So many drain()s are done. May be empty.
    std::function<void(std::uint32_t port, std::uint32_t drains)> drained;
    // So many drain_peer()s of a switch are, or its link is down. Empty: `drained` is told.
    std::function<void(std::uint32_t port, std::uint32_t drains)> peer_drained;
    // What a peer sent has been written to VRAM. May be empty.
    std::function<void(std::uint64_t vram_offset, std::uint64_t bytes)> arrived;
    // The port's state or width changed, or forwards() has gone off by itself: ORR_IRQ_LINK.
    std::function<void(std::uint32_t port, std::uint32_t state)> changed;
    // The peer's clock was ahead, and the system time has jumped by this much. May be empty.
    std::function<void(ModelTime gap)> jumped;
    // The next message of this port arrives at `when` by the clock, and nothing before it. true: the card has
    // nothing to do until then but to wait for its own timer, and rather skips that time. Asked again in
    // every poll() until it arrives. Empty: never.
    std::function<bool(ModelTime when)> may_skip;
    // This card and that peer keep step (emulator/sync), asked when the link comes up: no clock jumps, what
    // arrives is executed at its arrival and before all else of that time, and room that the peer gives comes
    // back a latency after its time. Empty: none does.
    std::function<bool(std::uint64_t peer_uid)> in_step;
    // Whether a peer's clock may take this one along. Empty: yes.
    std::function<bool()> may_jump;
    // By the clock, when to act on what the host's time brought: room, or a link that is down. Empty: now.
    std::function<ModelTime()> act_at;
    // A message leaves for the peer by that channel, or one of the peer's has been taken here. Empty: nobody
    // records them.
    std::function<void(const link::Message&, unsigned channel, bool sent)> crossed;
    // Something was sent to the peer, a message or room for which it waits, that arrives at this system time.
    // May be empty.
    std::function<void(std::uint64_t peer_uid, ModelTime arrival)> sent;
};

class LinkPort : public PeerPort {
  public:
    // Of the kind that the configuration names. The references outlive the port. The port is down until a
    // peer comes. Errors: the configuration, or a socket that cannot be made.
    static std::expected<std::unique_ptr<LinkPort>, std::string> create(LinkConfig config, EventQueue& events,
                                                                        Vram& vram, Counters& counters,
                                                                        Errors& errors, LinkHooks hooks);

    // --- registers ---
    virtual std::uint32_t state() const = 0;            // ORR_LINK_*
    bool up() const { return state() >= ORR_LINK_UP; }  // maybe with fewer lanes than it has
    virtual std::uint32_t lanes() const = 0;            // in use, sending; 0 unless up
    virtual std::uint32_t mbps() const = 0;             // payload rate of these; 0 unless up
    virtual std::uint64_t peer_uid() const = 0;         // 0 unless up
    virtual std::uint32_t peer_port() const = 0;        // 0 unless up
    virtual const LinkConfig& config() const = 0;
    // For any thread.
    virtual const link::Counts& counts() const = 0;
    // Time in which something waited for room at the other end, up to now; the sum over the channels.
    virtual std::uint64_t without_room_ps() const = 0;
    // Why the link went down last; empty if it never did.
    virtual const std::string& down_reason() const = 0;

    // The card's number, 0: none; see ORR_R_NODE.
    virtual void set_node(std::uint32_t node) = 0;
    // Grants to a node that comes by this port: true if slot, range (4 KiB aligned, inside VRAM, size not 0)
    // and node are valid. When a call returns, nothing that the peer does is judged by the older grant any
    // more; what it had sent before is done. They survive a link that goes down; reset() clears them all, and
    // forgets pokes that are owed.
    // `rights`: ORR_LINK_RIGHT_*; requests carry `key`, unless it is 0.
    struct GrantTerms {
        std::uint64_t rights = ORR_LINK_RIGHT_WRITE | ORR_LINK_RIGHT_SIGNAL;
        std::uint64_t key = 0;
    };
    virtual bool set_grant(std::uint32_t slot, std::uint64_t base, std::uint64_t size, std::uint32_t node,
                           const GrantTerms& terms) = 0;
    bool set_grant(std::uint32_t slot, std::uint64_t base, std::uint64_t size, std::uint32_t node) {
        return set_grant(slot, base, size, node, GrantTerms());
    }
    virtual bool clear_grant(std::uint32_t slot) = 0;
    virtual void reset() = 0;

    virtual std::uint32_t peer_node() const = 0;  // 0: none

    // --- to a switch: of a kind that joins none these say so ---
    virtual bool peer_is_switch() const { return false; }
    virtual std::uint32_t peer_level() const { return 0; }
    // What it says; changes with peer_reach_version().
    virtual std::uint64_t peer_reach_version() const { return 0; }
    virtual link::Reach peer_reach(std::uint32_t node) const;
    // The switches that it tells of, itself first; changes with peer_switches_version(). Nothing: it is
    // changing them, and so is the version.
    virtual std::uint64_t peer_switches_version() const { return 0; }
    virtual std::optional<std::vector<link::SwitchWords>> peer_switches() const {
        return std::vector<link::SwitchWords>{};
    }
    // What is for the number `multicast` from here on goes to that node, too, with `base` added to its
    // offset, and in the epoch that this card has for it; node 0: to nobody any more. ORR_FAULT_*: _NO_ROUTE
    // (no switch is there, or not forwards()), _PEER_BUSY (too many stores wait for room), _PEER_DOWN.
    virtual std::uint32_t member(std::uint32_t /*multicast*/, std::uint32_t /*node*/,
                                 std::uint64_t /*base*/) {
        return ORR_FAULT_NO_ROUTE;
    }

    // --- of a switch: it has no node and sends nothing of its own, and what it lost concerns single flows,
    // which its owner keeps from going on (LinkHooks::may_pass). A card's kinds do none of this. ---
    // Another one when its node has been set since, also to the same: all that it had made is for nobody.
    virtual std::uint64_t peer_lives() const { return 0; }
    // What its peer is told, from the next tell_reach() on. The link is up.
    virtual void show_reach(std::uint32_t /*node*/, const link::Reach& /*reach*/) {}
    virtual void tell_reach() {}
    // Of which switches it is told, as many as there is room for. The link is up.
    virtual void show_switches(std::span<const link::SwitchWords> /*all*/) {}
    // How often the peer has asked this switch for all to arrive that it sent, up to which of these it wants
    // nothing waited for, and how often it did.
    virtual std::uint64_t drains_wanted() const { return 0; }
    virtual std::uint64_t drains_forced() const { return 0; }
    virtual void show_drained(std::uint64_t /*drains*/) {}
    // The halves of drain(). `force`: what finds no room is lost instead of waited for.
    virtual void drain_here(bool /*force*/ = false) {}
    virtual void drain_peer(bool /*force*/ = false) {}
    // A request that came by this port has no other answer. Without room there is none.
    virtual void answer(const link::Message& /*request*/, link::Status /*status*/) {}
    // How many messages the peer has taken of each lane, as it says. 0 unless up.
    using Taken = std::array<std::uint64_t, 4>;
    virtual Taken taken() const { return {}; }

    // ORR_R_LINK_CONTROL's ORR_LINK_FORWARD; stays off while the link is not up. What waits here for room,
    // and may not leave any more or by another port, is dropped or goes there.
    virtual void set_forward(bool on) = 0;
    virtual void routes_changed() = 0;
    virtual bool forwards() const = 0;
    // ORR_R_LINK_DRAIN, of a card: where the peer is a switch all that it has from here is drained, else what
    // came here and is to be passed on. LinkHooks::drained may be called from here. `force`: at that switch
    // what finds no room is lost instead of waited for; a card between others does not do that.
    virtual void drain(bool force = false) = 0;

    // ORR_R_NOTE_SEND: ORR_FAULT_*.
    virtual std::uint32_t note(std::uint32_t node, std::span<const std::byte> data) = 0;

    // Pulls the cable: the link goes down, what is on the wire still arrives, and the port finds no peer
    // until the cable is plugged in again. Errors: the socket cannot be made.
    virtual void unplug() = 0;
    virtual std::expected<void, std::string> plug() = 0;

    // ORR_R_LINK_RESET: takes a link that is up down, as a peer that leaves does, and lets it train anew.
    virtual void reset_link() = 0;

    // The hook of that name would say yes again: goes on with what was left in the inbox.
    virtual void poke_room() = 0;

    // When the next message arrives by the card's clock, for which there is an event; kNever: none is known.
    virtual ModelTime next_arrival() const = 0;
    // Something lies there that no poll() has seen, so that nobody knows when it arrives.
    virtual bool has_unseen() const = 0;
    // How many such events there are: one for what is for this card, one for what it passes on.
    virtual unsigned arrivals() const = 0;
    // The system time has jumped by so much, and not for this port's own message: the next one is nearer.
    virtual void clock_jumped(ModelTime gap) = 0;

    // --- towards the peer, with what PeerPort has ---
    // For another port of this card, which has got it from its peer.
    virtual link::Passed pass(const link::Passing& passing) = 0;
    // As wait_for_room(), for what passes.
    virtual void wait_to_pass(const link::Message& message, Event& event) = 0;
    // Which of the channels, each with room of its own, it goes by.
    virtual unsigned lane_of(const link::Message& message) const = 0;
    // That was all of its turn; the next that waits for room is called.
    virtual void end_turn(unsigned lane, Event& event) = 0;
    // That event, which waited for room, has been scheduled because it is its turn.
    virtual bool has_called(const Event& event) const = 0;
    // Somebody waits for room, or for an answer.
    virtual bool congested() const = 0;
    // The peer owes room, or has not taken a request, and its process has not looked at the link for a while
    // (kStandsAfter; one that sleeps looks at each tick of its socket): it has no CPU, or is stopped. Such
    // time is not time in which it could have answered. Who asks for the first time, or after a long while,
    // may be told so of a peer that slept until then; its next look mends that.
    virtual bool peer_stands(std::chrono::steady_clock::time_point now) = 0;
    static constexpr std::chrono::milliseconds kStandsAfter{120};

    // --- the card's main loop ---
    // Takes what has arrived. Cheap when nothing has (one load). Call it in every round of the card loop,
    // also while spinning. true: it did something. What is to arrive later is an event in the queue.
    virtual bool poll() = 0;
    // Peers that come and go (system calls). poll() calls it now and then.
    virtual void service() = 0;
    // Before blocking: false if there is something to do, so do not block. true: poll_fd() becomes readable
    // when the port wants attention. after_sleep() takes it back, and services.
    virtual bool prepare_sleep() = 0;
    virtual void after_sleep() = 0;
    virtual int poll_fd() const = 0;
};

}  // namespace orrery::emu
