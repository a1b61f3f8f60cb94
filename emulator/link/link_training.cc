// Peers of a link port that come and go: handshake, training, and how a link goes down.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "emulator/link/shared_link.h"

namespace orrery::emu {

namespace {

constexpr unsigned kHandshakeTicks = 40;   // 2 s
constexpr unsigned kServiceMessages = 64;  // socket messages in one service()

// A hook as it is called for each message, without a look whether there is one.
template <class Hook>
Hook hook_or(const Hook& hook, Hook none) {
    return hook ? hook : none;
}

}  // namespace

SharedLink::SharedLink(LinkConfig config, link::Socket socket, EventQueue& events, Vram& vram,
                       Counters& counters, Errors& errors, LinkHooks hooks)
    : config_(std::move(config)),
      is_switch_(config_.kind == &kSwitchLink),
      socket_(std::move(socket)),
      events_(events),
      errors_(errors),
      hooks_(std::move(hooks)),
      receiver_(
          events, vram, counters, hooks_.poke, hook_or(hooks_.poke_room, {[] { return true; }}),
          hook_or(hooks_.arrived, {[](std::uint64_t, std::uint64_t) {}}),
          {.come_here = hook_or(hooks_.comes_here, {[](std::uint32_t) { return true; }}),
           .epoch_of = hook_or(hooks_.epoch_of, {[](std::uint32_t) { return 0u; }})},
          {.room = [this](const link::Message& request) { return answer_room(request); },
           .give =
               [this](const link::Message& request, link::Status status, std::span<const std::uint8_t> data,
                      std::uint64_t value) {
                   give_answer(request, {.status = status, .data = data, .value = value});
               }},
          std::uint64_t{config_.gbps} * 125'000'000, counts_,
          [this](std::uint32_t node, bool passed, std::span<const std::byte> data) {
              if (hooks_.noted) hooks_.noted(node, passed, data);
          },
          [this](const link::Message& message) {
              return hooks_.barrier ? hooks_.barrier(message) : link::kDenied;
          }),
      transmitter_({.port = config_.port,
                    .lanes = config_.lanes,
                    .bytes_per_second = std::uint64_t{config_.gbps} * 125'000'000,
                    .latency = config_.latency_ns * kPsPerNs,
                    .retries = config_.retries,
                    .retrain = config_.retrain_ns * kPsPerNs},
                   counters, counts_,
                   {.wake = [this] { wake_peer(); },
                    .sent =
                        [this](ModelTime arrival) {
                            if (hooks_.sent) hooks_.sent(peer_uid_, arrival);
                        },
                    .epoch_of = hook_or(hooks_.epoch_of, {[](std::uint32_t) { return 0u; }}),
                    .key_of = hook_or(hooks_.key_of, {[](std::uint32_t) { return std::uint64_t{0}; }}),
                    .left = hooks_.crossed ? [this](const link::Message& message,
                                                    unsigned lane) { hooks_.crossed(message, lane, true); }
                                           : std::function<void(const link::Message&, unsigned)>()},
                   config_.faults),
      arrival_(Event::of<&SharedLink::on_arrival>(this)),
      passing_(Event::of<&SharedLink::on_passing>(this)),
      reply_(Event::of<&SharedLink::on_reply>(this)),
      passing_back_(Event::of<&SharedLink::on_passing_back>(this)),
      requests_(config_.port),
      replies_(
          events, counters, counts_, receiver_.near_back(), requests_,
          {.comes_here = [this](std::uint32_t node,
                                std::uint32_t epoch) { return comes_here(node) && epoch_of(node) == epoch; },
           .node = [this] { return node_; },
           .refused = [this](std::uint32_t node, std::uint32_t fault) { refused(node, fault); }},
          std::uint64_t{config_.gbps} * 125'000'000),
      forwarder_(events, counters, counts_, receiver_.far(), passing_, forwarding(true),
                 config_.forward_ns * kPsPerNs, std::uint64_t{config_.gbps} * 125'000'000),
      back_forwarder_(events, counters, counts_, receiver_.far_back(), passing_back_, forwarding(false),
                      config_.forward_ns * kPsPerNs, std::uint64_t{config_.gbps} * 125'000'000),
      owed_pokes_(Event::of<&SharedLink::on_owed_pokes>(this)),
      room_(Event::of<&SharedLink::on_room>(this)),
      turns_(Event::of<&SharedLink::on_turns>(this)) {
    congested_since_.fill(kNever);
    receiver_.on_bad_key([this](std::uint32_t node) {
        if (hooks_.bad_key) hooks_.bad_key(config_.port, node);
    });
}

link::Forwarder::Hooks SharedLink::forwarding(bool requests) {
    return {
        .comes_here = [this](std::uint32_t node) { return comes_here(node); },
        .onward = [this](std::uint32_t node) { return hooks_.onward ? hooks_.onward(node) : nullptr; },
        .is_stuck = hooks_.is_stuck,
        .may_pass = hooks_.may_pass,
        .lost = hooks_.lost,
        .multicast = requests ? hooks_.multicast : nullptr,
        .member = requests ? hooks_.member : nullptr,
        .reductions = hooks_.reductions,
        .port = config_.port,
        .drained =
            [this, requests](std::uint32_t drains) {
                if (requests && hooks_.drained) hooks_.drained(config_.port, drains);
            },
        .cannot = [this](const link::Message& message, link::Status status) { cannot_pass(message, status); },
        .answered = [this](const link::Message& answer) { followed_.answered(answer); }};
}

void SharedLink::set_state(std::uint32_t state) {
    if (state == state_) return;
    state_ = state;
    counts_.changes.add();
    hooks_.changed(config_.port, state);
}

void SharedLink::check_width() {
    const std::uint32_t width = transmitter_.line().width();
    if (std::exchange(width_, width) == width) return;
    errors_.note("link {}: {} of {} lanes are left", config_.port, width, config_.lanes);
    // Also from few lanes to fewer.
    state_ = state_by_width();
    counts_.changes.add();
    hooks_.changed(config_.port, state_);
}

void SharedLink::peer_left(std::string reason) {
    const bool was_up = up();
    drop_peer(std::move(reason));
    draining_ = was_up;
    if (!draining_) stop_receiving();
    set_state(ORR_LINK_DOWN);
}

void SharedLink::unplug() {
    peer_left("the cable was pulled out");
    socket_.unplug();
}

void SharedLink::go_down(std::string reason) {
    drop_peer(std::move(reason));
    stop_receiving();
    set_state(ORR_LINK_DOWN);
}

void SharedLink::stop_receiving() {
    draining_ = false;
    stop_waiting_to_answer();
    events_.cancel(arrival_);
    events_.cancel(reply_);
    replies_.close();
    forwarder_.close();
    back_forwarder_.close();
    receiver_.close();
}

void SharedLink::drop_peer(std::string reason) {
    ++session_;
    // A peer that tries again and again is worth one line.
    if (up() || reason != down_reason_) errors_.note("link {}: down: {}", config_.port, reason);
    down_reason_ = std::move(reason);
    socket_.hang_up();
    transmitter_.close();
    end_peer_drains();
    heard_hello_ = heard_ready_ = false;
    silent_ticks_ = 0;
    forwards_ = false;
    for (unsigned lane = 0; lane < waiting_.size(); ++lane)
        wake_waiters(lane);
    events_.cancel(room_);
    events_.cancel(turns_);
    waits_to_answer_ = false;
    forget_answers();
    followed_.clear();
    count_congestion();
    end_requests();
}

void SharedLink::refuse(std::string reason) {
    errors_.guest("link {}: the peer broke the protocol: {}", config_.port, reason);
    go_down(std::move(reason));
}

void SharedLink::greet() {
    stop_receiving();
    auto opened = receiver_.open();
    if (!opened) {
        errors_.report(ErrorKind::kHostError, "link {}: {}", config_.port, opened.error());
        go_down(opened.error());
        return;
    }
    if (hooks_.crossed)
        receiver_.on_taken(
            [this](const link::Message& message, unsigned lane) { hooks_.crossed(message, lane, false); });
    offered_ = transmitter_.line().offer();
    const link::Hello hello{.kind = link::kHello,
                            .version = link::kVersion,
                            .magic = link::kHelloMagic,
                            .uid = config_.uid,
                            .port = config_.port,
                            .lanes = offered_,
                            .lane_mbps = transmitter_.line().lane_mbps(),
                            .flags = (transmitter_.line().frames() ? link::kFrames : 0) |
                                     (is_switch_ ? link::kSwitch : 0) | config_.level << link::kLevelShift,
                            .inbox_bytes = sizeof(link::Inbox),
                            .clock_ps = events_.system_now()};
    ticks_ = 0;
    socket_.keep_ticking(true);
    set_state(ORR_LINK_TRAINING);
    if (!socket_.send(&hello, sizeof hello, receiver_.fd())) go_down("the peer left during the handshake");
}

void SharedLink::take_hello(link::Socket::Received& received) {
    link::Hello hello{};
    if (heard_hello_ || received.bytes != sizeof hello || received.fds != 1) {
        return refuse("a hello has a bad form");
    }
    std::memcpy(&hello, received.data.data(), sizeof hello);
    if (hello.magic != link::kHelloMagic) return refuse("the peer is not an Orrery card");
    if (hello.version != link::kVersion) {
        return refuse(
            fmt::format("the peer speaks link version {}, this card {}: use the same build for both",
                        hello.version, link::kVersion));
    }
    constexpr std::uint32_t kKnown = link::kFrames | link::kSwitch | 0xffu << link::kLevelShift;
    const bool is_switch = (hello.flags & link::kSwitch) != 0;
    const std::uint32_t level = hello.flags >> link::kLevelShift & 0xff;
    const std::uint32_t ports = is_switch ? link::kMostSwitchPorts : ORR_LINK_MAX_PORTS;
    if (hello.uid == 0 || hello.uid == UINT64_MAX || hello.port >= ports || hello.lanes == 0 ||
        hello.lanes > link::kMostLanes || hello.lane_mbps == 0 || (hello.flags & ~kKnown) != 0 ||
        (!is_switch && level != 0) || hello.inbox_bytes != sizeof(link::Inbox) ||
        hello.clock_ps >= kLatestSystemTime) {
        return refuse("a hello has a bad field");
    }
    if (is_switch && is_switch_ && level == config_.level)
        return refuse(fmt::format("both switches are of level {}: one must be above the other", level));
    auto outbox = link::SharedArea::adopt(received.fd.release());
    if (!outbox) return refuse(outbox.error());
    transmitter_.line().train(std::min(offered_, hello.lanes), hello.lane_mbps);
    width_ = transmitter_.line().width();
    receiver_.check_frames((hello.flags & link::kFrames) != 0);
    transmitter_.set_kinds(is_switch_, is_switch);
    transmitter_.open(std::move(*outbox));
    peer_clock_ = hello.clock_ps;
    peer_uid_ = hello.uid;
    peer_port_ = hello.port;
    peer_is_switch_ = is_switch;
    peer_level_ = level;
    shown_ = {};
    peer_drains_ = peer_drains_done_ = 0;
    heard_hello_ = true;
    const std::uint32_t ready = link::kReady;
    if (!socket_.send(&ready, sizeof ready)) return go_down("the peer left during the handshake");
    come_up();
}

void SharedLink::come_up() {
    if (!heard_hello_ || !heard_ready_) return;
    socket_.keep_ticking(false);
    errors_.note("link {}: up, with {} {:#x} port {}", config_.port, peer_is_switch_ ? "switch" : "card",
                 peer_uid_, peer_port_);
    in_step_ = hooks_.in_step && hooks_.in_step(peer_uid_);
    if (in_step_) {
        transmitter_.keep_step(events_);
        receiver_.keep_step(config_.latency_ns * kPsPerNs);
    }
    // In the order of the ports; room that comes back is there for all that happens at its moment.
    unsigned rank = Event::kFirst + 1 + config_.port;
    for (Event* event : {&room_, &arrival_, &passing_, &reply_, &passing_back_}) {
        event->set_rank(in_step_ ? static_cast<Event::Rank>(rank) : Event::kLast);
        rank += link::kMostSwitchPorts;
    }
    if (!hooks_.may_jump || hooks_.may_jump()) jump_to(peer_clock_);
    set_state(state_by_width());
}

void SharedLink::jump_to(ModelTime system_time) {
    const ModelTime before = events_.skipped();
    if (events_.jump_to(system_time) && hooks_.jumped) hooks_.jumped(events_.skipped() - before);
}

void SharedLink::take_message(link::Socket::Received& received) {
    std::uint32_t kind = 0;
    if (received.bytes < sizeof kind) return refuse("a handshake message is too short");
    std::memcpy(&kind, received.data.data(), sizeof kind);
    if (kind == link::kHello) return take_hello(received);
    if (received.bytes != sizeof kind || received.fds != 0)
        return refuse("a handshake message has a bad form");
    if (kind == link::kWake) return;
    if (kind != link::kReady || heard_ready_) return refuse("a handshake message has a bad kind");
    heard_ready_ = true;
    come_up();
}

void SharedLink::service() {
    for (unsigned i = 0; i < kServiceMessages; ++i) {
        link::Socket::Received received;
        switch (socket_.next(received)) {
            case link::SocketEvent::kNone:
                return;
            case link::SocketEvent::kConnected:
                greet();
                break;
            case link::SocketEvent::kMessage:
                take_message(received);
                break;
            case link::SocketEvent::kClosed:
                peer_left();
                break;
            case link::SocketEvent::kTick:
                // Its process may have had no CPU, which is nobody's error.
                if (state_ == ORR_LINK_TRAINING && ++ticks_ >= kHandshakeTicks)
                    go_down("the peer did not finish the handshake in 2 s");
                if (up()) on_tick();
                break;
        }
    }
}

void SharedLink::wake_peer() {
    const std::uint32_t wake = link::kWake;
    socket_.send(&wake, sizeof wake);  // a dead peer shows in service()
}

bool SharedLink::peer_stands(std::chrono::steady_clock::time_point now) {
    if (!up() || !peer_owes()) return false;
    const std::uint64_t alive = transmitter_.peer_alive();
    if (alive != last_look_.alive) last_look_ = {alive, now};
    return now - last_look_.seen > LinkPort::kStandsAfter;
}

void SharedLink::on_tick() {
    if (!watches_peer()) return stop_ticking();
    look_for_life();
    // One that has taken all may sleep for as long as it likes, or may have been stopped before it answered:
    // it shows which if it is woken.
    if (up() && silent_ticks_ != 0) wake_peer();
}

void SharedLink::look_for_life() {
    const std::uint64_t alive = transmitter_.peer_alive();
    if (alive != last_alive_) {
        last_alive_ = alive;
        silent_ticks_ = 0;
        followed_.alive();
    } else if (++silent_ticks_ * link::Socket::kTickMs > config_.peer_silence_ms) {
        refuse(fmt::format("the peer did not look at its link for {} ms", config_.peer_silence_ms));
    }
}

}  // namespace orrery::emu
