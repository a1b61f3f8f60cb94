// A link by memory that both ends share: what kinds `local` and `switch` are made of. link_training.cc has
// peers that come and go, link_traffic.cc what crosses the link, link_requests.cc requests and their answers.
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/link/followed.h"
#include "emulator/link/forwarder.h"
#include "emulator/link/link_port.h"
#include "emulator/link/receiver.h"
#include "emulator/link/replies.h"
#include "emulator/link/requests.h"
#include "emulator/link/socket.h"
#include "emulator/link/transmitter.h"

namespace orrery::emu {

class SharedLink {
  public:
    // For room, who came first in front.
    struct Waiting {
        std::vector<Event*> events;
        bool called = false;       // the first
        ModelTime called_for = 0;  // when
        Event* came = nullptr;     // the last that was; only to compare
    };

    SharedLink(LinkConfig config, link::Socket socket, EventQueue& events, Vram& vram, Counters& counters,
               Errors& errors, LinkHooks hooks);

    bool up() const { return state_ >= ORR_LINK_UP; }
    bool comes_here(std::uint32_t node) const { return !hooks_.comes_here || hooks_.comes_here(node); }
    std::uint32_t epoch_of(std::uint32_t node) const { return hooks_.epoch_of ? hooks_.epoch_of(node) : 0; }
    std::uint64_t key_of(std::uint32_t node) const { return hooks_.key_of ? hooks_.key_of(node) : 0; }

    void set_state(std::uint32_t state);
    // Its state while it is up.
    std::uint32_t state_by_width() const {
        return transmitter_.line().width() < config_.lanes ? ORR_LINK_DEGRADED : ORR_LINK_UP;
    }
    // The width has changed, maybe.
    void check_width();

    // What a peer sent before it left was on the wire: it still arrives, each message in its time.
    void peer_left(std::string reason = "the peer left");
    void unplug();
    void go_down(std::string reason);
    void stop_receiving();
    void drop_peer(std::string reason);

    // What the peer did wrong counts as an error of a guest: whoever runs that card.
    void refuse(std::string reason);
    void greet();
    void take_hello(link::Socket::Received& received);
    void come_up();
    void jump_to(ModelTime system_time);
    void take_message(link::Socket::Received& received);
    void service();
    void wake_peer();
    bool pump();
    bool pass_on(link::Forwarder& forwarder);
    bool take_replies();
    link::Forwarder::Hooks forwarding(bool requests);

    // Room has come back to the peer, or its last message was taken.
    bool taken();
    void tell_of_room();
    bool all_taken() const;

    // Of a peer that left: something that no event and no room brings on.
    bool has_left_over() const;

    // The clock goes to the next message at once if the card has nothing to do until then.
    bool skip_idle_time();
    std::array<const Event*, 4> coming() const { return {&arrival_, &passing_, &reply_, &passing_back_}; }
    unsigned arrivals() const {
        unsigned count = 0;
        for (const Event* event : coming())
            count += event->scheduled() ? 1 : 0;
        return count;
    }
    ModelTime next_arrival() const {
        ModelTime first = kNever;
        for (const Event* event : coming())
            if (event->scheduled()) first = std::min(first, event->time());
        return first;
    }

    // What is held for want of room for its poke was seen, and its time has come.
    bool has_unseen() const {
        return (up() || draining_) && !arrival_.scheduled() && !receiver_.held() && receiver_.has_news();
    }

    // Messages come by the system's time.
    void clock_jumped(ModelTime gap);

    // What the peer sent while it might goes by the grants as they are now.
    void hurry();

    // Maybe inside an access of the control core: pokes, and what else has come, are for afterwards.
    bool settle(std::uint64_t offset);
    void poke_room();
    void on_arrival(ModelTime) {
        if (up() || draining_) pump();
    }
    void on_reply(ModelTime) {
        if (up()) take_replies();
    }
    void on_passing_back(ModelTime) {
        if (up() || draining_) pass_on(back_forwarder_);
    }

    // What waited for room may be left of a peer that is gone.
    void on_passing(ModelTime) {
        if (up() || draining_) pass_on(forwarder_);
    }

    void on_owed_pokes(ModelTime) { receiver_.give_owed(); }

    // What a peer shows of itself.
    void look_at_shown();
    void drain_peer(bool force);
    void end_peer_drains();
    void tell_peer_drained(std::uint64_t drains);

    bool poll();
    // Nothing is known to come, and no switch shows anything: where nobody waits for room either, poll() has
    // nothing to do but for what it sees now. What comes meanwhile waits for as long as this takes.
    bool is_quiet() const {
        return up() && arrivals() == 0 && !receiver_.held() && !is_switch_ && !peer_is_switch_;
    }
    // A message that nobody has looked at, of a link that is quiet.
    bool take_first();
    bool look();
    bool look_to_pass(link::Forwarder& forwarder);
    bool look_for_replies();
    bool poll_passing(link::Forwarder& forwarder);
    bool poll_replies();
    ModelTime act_at() const { return hooks_.act_at ? hooks_.act_at() : events_.now(); }

    void on_room(ModelTime);
    // Of somebody who waits.
    void poll_room();
    // In step: room comes at the time of its credits, and those who were called have come by a time.
    void look_for_room();
    void on_turns(ModelTime);

    // For somebody who waits.
    bool room_news() const;
    void check_transmitter() {
        if (transmitter_.is_broken() || transmitter_.line().width() != width_ ||
            transmitter_.forwards() != forwards_)
            look_at_transmitter();
    }
    void look_at_transmitter();
    void set_forward(bool on);

    // Before anything is sent: by which channel a node is reached stays the same until the next look.
    void look_at_peer() {
        if (transmitter_.look_at_peer()) look_again();
    }
    // Room is no longer all that those who wait here wait for.
    void look_again();

    // What waits for room behind others looks again when they do.
    link::Passed pass(const link::Passing& passing);
    void follow(const link::Message& request);
    void end_turn(unsigned lane, Event& event);
    unsigned lane_of(const link::Message& message) const { return transmitter_.lane_of(message); }

    // For the clock of the work that writes; `at` as PeerPort::write() has it.
    LinkSend write(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data, ModelTime at);
    std::uint32_t signal(std::uint32_t node, std::uint64_t offset, std::uint64_t value);
    LinkTold tell(std::uint32_t node, const BarrierWord& word);
    std::uint32_t note(std::uint32_t node, std::span<const std::byte> data);
    std::uint32_t member(std::uint32_t multicast, std::uint32_t node, std::uint64_t base);
    std::uint32_t post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data);

    // --- requests and answers ---
    LinkAsk ask(std::uint32_t node, std::uint64_t offset, link::Transmitter::Request request,
                const link::Requests::Request& asked, ModelTime at);
    void tell_silent(std::uint32_t node);
    LinkAsk read(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to, ModelTime at,
                 Asker& asker, std::uint16_t reduction = 0);
    LinkAsk atomic(std::uint32_t node, std::uint64_t offset, const LinkAtomic& atomic, ModelTime at,
                   Asker& asker);
    // Of this card, to requests that came by this port.
    bool answer_room(const link::Message& request);
    void give_answer(const link::Message& request, const link::Transmitter::Answer& answer);
    // One for which there is no room: what was carried out in a hurry, or cannot be passed on.
    void owe_answer(unsigned lane, const link::Message& request, const link::Transmitter::Answer& answer);
    void send_answer(const link::Message& request, const link::Transmitter::Answer& answer);
    // False: some are left. They go before all else in that lane.
    bool flush_answers(unsigned lane);
    void forget_answers();
    // Behind all that has been received at once: what answers to it have found takes the link down now.
    void look_at_answers() {
        if (up()) check_transmitter();
    }
    // What cannot be passed on.
    void cannot_pass(const link::Message& message, link::Status status);
    // A request to whose answer there is no room waits for that.
    void stop_waiting_to_answer() {
        if (std::exchange(waits_to_answer_, false)) forget(arrival_);
    }
    void wait_to_answer();
    void end_requests();
    void routes_changed();
    void refused(std::uint32_t node, std::uint32_t fault);

    // --- without room ---

    bool congested(unsigned lane) const {
        return !waiting_[lane].events.empty() || transmitter_.has_pending(lane) ||
               !owed_answers_[lane].empty();
    }
    // A bit each. Where nothing has begun to wait since nothing did there is nothing to look for.
    bool may_be_congested() const { return may_wait_ || transmitter_.may_have_pending(); }
    unsigned congested_lanes() const;
    bool congested() const { return may_be_congested() && congested_lanes() != 0; }
    // Whenever something may have begun or stopped waiting for room: the time of it.
    void count_congestion() {
        if (!may_be_congested() && counted_ == 0) return;
        if (const unsigned lanes = congested_lanes(); lanes != counted_) note_congestion(lanes);
    }
    void note_congestion(unsigned lanes);
    std::uint64_t without_room_ps() const;
    // Something waits for what the peer's process does.
    bool needs_peer() const { return congested() || requests_.waits(); }
    // The same, be it somebody behind another port.
    bool watches_peer() const { return needs_peer() || followed_.any(); }
    // Of what it does; who has taken all may sleep.
    bool peer_owes() const { return congested() || (requests_.waits() && !transmitter_.all_taken()); }
    bool peer_stands(std::chrono::steady_clock::time_point now);
    // While somebody waits, the socket's ticks count how long the peer has been silent.
    void keep_time() {
        if (may_be_congested() || counted_ != 0 || requests_.waits()) keep_time_of_waiting();
    }
    void keep_time_of_waiting();
    void wait_for_room(unsigned lane, Event& event);
    void forget(Event& event);
    // All of them, whether there is room or not.
    void wake_waiters(unsigned lane);
    // Who waits longest is called, and the next one when that one has sent, or has come and not sent: others
    // would take the little room that there is, again and again, from one who needs much.
    void call_next(unsigned lane);
    // Whether whoever sends now may: nobody waits, or it is the one that was called.
    // who: that may have kept it.
    bool has_turn(unsigned lane, const Event* who = nullptr);
    bool has_come(const Waiting& waiting) const;
    bool has_called(const Event& event) const;
    // Nobody is left who waits, maybe.
    void stop_ticking();
    void look_for_life();
    void on_tick();
    bool prepare_sleep();
    void after_sleep();
    LinkConfig config_;
    const bool is_switch_;  // this end
    link::Counts counts_;
    std::array<ModelTime, link::Transmitter::kLanes> congested_since_;  // kNever: it is not
    unsigned counted_ = 0;                                              // that are, a bit each
    link::Socket socket_;
    EventQueue& events_;
    Errors& errors_;
    LinkHooks hooks_;
    link::Receiver receiver_;
    link::Transmitter transmitter_;
    Event arrival_;
    Event passing_;  // of what is passed on
    Event reply_, passing_back_;
    link::Requests requests_;
    link::Followed followed_;
    std::bitset<ORR_NODES> told_silent_;
    link::Replies replies_;
    link::Forwarder forwarder_, back_forwarder_;
    std::uint32_t node_ = 0;
    bool waits_to_answer_ = false;
    struct OwedAnswer {
        link::Message request;
        link::Status status;
        std::uint64_t value;
        std::vector<std::uint8_t> data;
    };
    // Of these a node has no more than are free: so one alone as many as a card may have asked for, and what
    // it leaves is for others.
    static constexpr std::uint64_t kMostOwedBytes =
        std::uint64_t{2} * link::Requests::kSlots * link::kMaxReadBytes;
    // Of one node: what it may have asked for in this life of its link and the one before.
    static constexpr std::uint32_t kMostOwedAnswers = 2 * link::Requests::kSlots;
    std::array<std::deque<OwedAnswer>, link::Transmitter::kLanes> owed_answers_;
    std::uint64_t owed_bytes_ = 0;
    struct Owed {
        std::uint64_t bytes = 0;
        std::uint32_t answers = 0;
    };
    std::unordered_map<std::uint32_t, Owed> owed_to_;  // of these, by node; no node of which there are none
    std::unordered_map<std::uint32_t, PeerPort::Refusals> refusals_;  // by node
    Event owed_pokes_;
    Event room_;   // of which there are news
    Event turns_;  // in step: who was called has come
    std::uint32_t state_ = ORR_LINK_DOWN;
    bool heard_hello_ = false;
    bool heard_ready_ = false;
    bool draining_ = false;  // the peer left, and its last messages still arrive
    bool in_step_ = false;
    unsigned ticks_ = 0;
    unsigned rounds_ = 0;
    std::uint64_t peer_uid_ = 0;
    std::uint32_t peer_port_ = 0;
    bool peer_is_switch_ = false;
    std::uint32_t peer_level_ = 0;
    struct Shown {
        std::uint64_t node = 0, lives = 0, reach_version = 0, switches_version = 0, drains_wanted = 0;
        bool operator==(const Shown&) const = default;
    };
    Shown shown_;                         // by the peer, as hooks_.peer_shows was told
    std::uint64_t peer_drains_ = 0;       // that the peer was asked for since the link came up
    std::uint64_t peer_drains_done_ = 0;  // of which hooks_.drained was told
    std::uint32_t offered_ = 0;           // lanes
    std::uint32_t width_ = 0;             // of the line, as hooks_.changed has been told
    ModelTime peer_clock_ = 0;
    std::uint64_t session_ = 0;
    std::array<Waiting, link::Transmitter::kLanes> waiting_;
    bool may_wait_ = false;  // who is in there, or in owed_answers_
    bool forwards_ = false;  // as hooks_.changed has been told
    std::uint32_t silent_ticks_ = 0;
    std::uint64_t last_alive_ = 0;
    struct Look {  // of the peer at its link
        std::uint64_t alive = 0;
        std::chrono::steady_clock::time_point seen{};
    };
    Look last_look_;
    std::string down_reason_;
};

}  // namespace orrery::emu
