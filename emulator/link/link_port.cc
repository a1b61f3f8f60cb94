#include "emulator/link/link_port.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "emulator/link/forwarder.h"
#include "emulator/link/receiver.h"
#include "emulator/link/socket.h"
#include "emulator/link/transmitter.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr unsigned kServiceEvery = 1024;   // rounds of poll()
constexpr unsigned kAliveEvery = 64;       // rounds of poll()
constexpr unsigned kHandshakeTicks = 40;   // 2 s
constexpr unsigned kServiceMessages = 64;  // socket messages in one service()

}  // namespace

std::expected<LinkConfig, std::string> LinkConfig::parse(std::string_view text) {
    const auto usage = [&] {
        return std::unexpected(
            fmt::format("link \"{}\": write PORT:listen:PATH or PORT:connect:PATH, PORT from 0 to {}", text,
                        ORR_LINK_MAX_PORTS - 1));
    };
    LinkConfig config;
    const auto first = text.find(':');
    if (first == std::string_view::npos) return usage();
    const auto second = text.find(':', first + 1);
    if (second == std::string_view::npos || second + 1 == text.size()) return usage();
    const std::string_view number = text.substr(0, first);
    const std::string_view role = text.substr(first + 1, second - first - 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), config.port);
    if (error != std::errc{} || end != number.data() + number.size() || config.port >= ORR_LINK_MAX_PORTS) {
        return usage();
    }
    if (role != "listen" && role != "connect") return usage();
    config.listen = role == "listen";
    config.path = text.substr(second + 1);
    return config;
}

class LinkPort::Impl {
  public:
    Impl(LinkConfig config, link::Socket socket, EventQueue& events, Vram& vram, Counters& counters,
         Errors& errors, LinkHooks hooks)
        : config_(std::move(config)),
          socket_(std::move(socket)),
          events_(events),
          errors_(errors),
          hooks_(std::move(hooks)),
          receiver_(
              events, vram, counters, [this](std::uint64_t offset) { hooks_.poke(offset); },
              [this] { return !hooks_.poke_room || hooks_.poke_room(); },
              [this](std::uint64_t offset, std::uint64_t bytes) {
                  if (hooks_.arrived) hooks_.arrived(offset, bytes);
              },
              [this](std::uint32_t node, std::uint32_t epoch) {
                  return comes_here(node) && epoch_of(node) == epoch;
              },
              std::uint64_t{config_.gbps} * 125'000'000),
          transmitter_(std::uint64_t{config_.gbps} * 125'000'000, config_.latency_ns * kPsPerNs, counters,
                       {.wake = [this] { wake_peer(); },
                        .sent =
                            [this](ModelTime arrival) {
                                if (in_step_ && hooks_.sent) hooks_.sent(peer_uid_, arrival);
                            },
                        .epoch_of = [this](std::uint32_t node) { return epoch_of(node); }},
                       config_.faults, config_.port),
          arrival_(Event::of<&Impl::on_arrival>(this)),
          passing_(Event::of<&Impl::on_passing>(this)),
          forwarder_(
              events, counters, receiver_.far(), passing_,
              {.comes_here = [this](std::uint32_t node) { return comes_here(node); },
               .onward = [this](std::uint32_t node) { return hooks_.onward ? hooks_.onward(node) : nullptr; },
               .drained =
                   [this](std::uint32_t drains) {
                       if (hooks_.drained) hooks_.drained(config_.port, drains);
                   }},
              config_.forward_ns * kPsPerNs, std::uint64_t{config_.gbps} * 125'000'000),
          owed_pokes_(Event::of<&Impl::on_owed_pokes>(this)),
          room_(Event::of<&Impl::on_room>(this)) {}

    bool up() const { return state_ == ORR_LINK_UP; }
    bool comes_here(std::uint32_t node) const { return !hooks_.comes_here || hooks_.comes_here(node); }
    std::uint32_t epoch_of(std::uint32_t node) const { return hooks_.epoch_of ? hooks_.epoch_of(node) : 0; }

    void set_state(std::uint32_t state) {
        if (state == state_) return;
        state_ = state;
        hooks_.changed(config_.port, state);
    }

    // What a peer sent before it left was on the wire: it still arrives, each message in its time.
    void peer_left(std::string reason = "the peer left") {
        const bool was_up = up();
        drop_peer(std::move(reason));
        draining_ = was_up;
        if (!draining_) stop_receiving();
        set_state(ORR_LINK_DOWN);
    }

    void unplug() {
        peer_left("the cable was pulled out");
        socket_.unplug();
    }

    void go_down(std::string reason) {
        drop_peer(std::move(reason));
        stop_receiving();
        set_state(ORR_LINK_DOWN);
    }

    void stop_receiving() {
        draining_ = false;
        events_.cancel(arrival_);
        forwarder_.close();
        receiver_.close();
    }

    void drop_peer(std::string reason) {
        ++session_;
        // A peer that tries again and again is worth one line.
        if (up() || reason != down_reason_) errors_.note("link {}: down: {}", config_.port, reason);
        down_reason_ = std::move(reason);
        socket_.hang_up();
        transmitter_.close();
        heard_hello_ = heard_ready_ = false;
        silent_ticks_ = 0;
        forwards_ = false;
        for (unsigned lane = 0; lane < waiting_.size(); ++lane)
            wake_waiters(lane);
    }

    // What the peer did wrong counts as an error of a guest: whoever runs that card.
    void refuse(std::string reason) {
        errors_.guest("link {}: the peer broke the protocol: {}", config_.port, reason);
        go_down(std::move(reason));
    }

    void greet() {
        stop_receiving();
        auto opened = receiver_.open();
        if (!opened) {
            errors_.report(ErrorKind::kHostError, "link {}: {}", config_.port, opened.error());
            go_down(opened.error());
            return;
        }
        const link::Hello hello{.kind = link::kHello,
                                .version = link::kVersion,
                                .magic = link::kHelloMagic,
                                .uid = config_.uid,
                                .port = config_.port,
                                .reserved = 0,
                                .inbox_bytes = sizeof(link::Inbox),
                                .clock_ps = events_.system_now()};
        ticks_ = 0;
        socket_.keep_ticking(true);
        set_state(ORR_LINK_TRAINING);
        if (!socket_.send(&hello, sizeof hello, receiver_.fd()))
            go_down("the peer left during the handshake");
    }

    void take_hello(link::Socket::Received& received) {
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
        if (hello.uid == 0 || hello.uid == UINT64_MAX || hello.port >= ORR_LINK_MAX_PORTS ||
            hello.reserved != 0 || hello.inbox_bytes != sizeof(link::Inbox) ||
            hello.clock_ps >= kLatestSystemTime) {
            return refuse("a hello has a bad field");
        }
        auto outbox = link::SharedArea::adopt(received.fd.release());
        if (!outbox) return refuse(outbox.error());
        transmitter_.open(std::move(*outbox));
        peer_clock_ = hello.clock_ps;
        peer_uid_ = hello.uid;
        peer_port_ = hello.port;
        heard_hello_ = true;
        const std::uint32_t ready = link::kReady;
        if (!socket_.send(&ready, sizeof ready)) return go_down("the peer left during the handshake");
        come_up();
    }

    void come_up() {
        if (!heard_hello_ || !heard_ready_) return;
        socket_.keep_ticking(false);
        errors_.note("link {}: up, with card {:#x} port {}", config_.port, peer_uid_, peer_port_);
        in_step_ = hooks_.in_step && hooks_.in_step(peer_uid_);
        transmitter_.keep_step(in_step_);
        // In the order of the ports.
        const auto rank = static_cast<Event::Rank>(Event::kFirst + 1 + config_.port);
        arrival_.set_rank(in_step_ ? rank : Event::kLast);
        passing_.set_rank(in_step_ ? static_cast<Event::Rank>(rank + ORR_LINK_MAX_PORTS) : Event::kLast);
        if (!hooks_.may_jump || hooks_.may_jump()) jump_to(peer_clock_);
        set_state(ORR_LINK_UP);
    }

    void jump_to(ModelTime system_time) {
        const ModelTime before = events_.skipped();
        if (events_.jump_to(system_time) && hooks_.jumped) hooks_.jumped(events_.skipped() - before);
    }

    void take_message(link::Socket::Received& received) {
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

    void service() {
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
                    if (state_ == ORR_LINK_TRAINING && ++ticks_ >= kHandshakeTicks) {
                        refuse("the peer did not finish the handshake in 2 s");
                    }
                    if (up() && congested()) look_for_life();
                    break;
            }
        }
    }

    void wake_peer() {
        const std::uint32_t wake = link::kWake;
        socket_.send(&wake, sizeof wake);  // a dead peer shows in service()
    }

    bool pump() {
        auto pumped = receiver_.pump();
        if (!pumped) {
            refuse(pumped.error());
            return true;
        }
        events_.schedule(arrival_, receiver_.wanted());
        return taken() || *pumped;
    }

    bool pass_on() {
        auto passed = forwarder_.run();
        if (!passed) {
            refuse(passed.error());
            return true;
        }
        return taken() || *passed;
    }

    // Room has come back to the peer, or its last message was taken.
    bool taken() {
        if (receiver_.take_credit_wish()) wake_peer();
        const bool skipped = skip_idle_time();
        if (draining_ && all_taken()) stop_receiving();
        return skipped;
    }
    bool all_taken() const {
        return arrivals() == 0 && !receiver_.held() && !forwarder_.waits() && !receiver_.has_news() &&
               !forwarder_.has_news();
    }

    // Of a peer that left: something that no event and no room brings on.
    bool has_left_over() const {
        if (forwarder_.has_news() || all_taken()) return true;
        return !arrival_.scheduled() && !receiver_.held() && receiver_.has_news();
    }

    // The clock goes to the next message at once if the card has nothing to do until then.
    bool skip_idle_time() {
        const ModelTime when = next_arrival();
        if (in_step_ || when == kNever || when <= events_.now() || !hooks_.may_skip || !hooks_.may_skip(when))
            return false;
        const ModelTime arrival = events_.to_system(when);
        clock_jumped(when - events_.now());
        jump_to(arrival);
        return true;
    }

    unsigned arrivals() const { return (arrival_.scheduled() ? 1 : 0) + (passing_.scheduled() ? 1 : 0); }
    ModelTime next_arrival() const {
        const ModelTime near = arrival_.scheduled() ? arrival_.time() : kNever;
        return passing_.scheduled() ? std::min(near, passing_.time()) : near;
    }

    // Messages come by the system's time.
    void clock_jumped(ModelTime gap) {
        for (Event* event : {&arrival_, &passing_}) {
            if (!event->scheduled()) continue;
            const ModelTime left = event->time() - events_.now();
            events_.schedule(*event, events_.now() + (left > gap ? left - gap : 0));
        }
    }

    // What the peer sent while it might goes by the grants as they are now.
    void hurry() {
        if (!receiver_.is_open()) return;
        if (auto done = receiver_.hurry(); !done) return refuse(done.error());
        receiver_.give_owed();
        pump();
    }

    // Maybe inside an access of the control core: pokes, and what else has come, are for afterwards.
    bool settle(std::uint64_t offset) {
        if (!up() && !draining_) return true;
        const auto done = receiver_.hurry_to(offset);
        if (!done) {
            refuse(done.error());
            return true;
        }
        events_.cancel(arrival_);
        events_.schedule(arrival_, events_.now());
        if (receiver_.owes()) events_.schedule(owed_pokes_, events_.now());
        return *done;
    }

    void poke_room() {
        if (receiver_.owes()) events_.schedule(owed_pokes_, events_.now());
        if ((up() || draining_) && receiver_.held()) events_.schedule(arrival_, events_.now());
    }

    void on_arrival(ModelTime) {
        if (up() || draining_) pump();
    }

    // What waited for room may be left of a peer that is gone.
    void on_passing(ModelTime) {
        if (up() || draining_) pass_on();
    }

    void on_owed_pokes(ModelTime) { receiver_.give_owed(); }

    bool poll() {
        ++rounds_;
        // Once the peer is up it sends.
        if (rounds_ % kServiceEvery == 0 || state_ == ORR_LINK_TRAINING) service();
        if (draining_) {
            if (forwarder_.has_news()) return pass_on();
            return has_left_over() && pump();
        }
        if (!up()) return false;
        if (rounds_ % kAliveEvery == 0) receiver_.show_alive();
        if (room_news() && !room_.scheduled()) {
            if (const ModelTime when = act_at(); when > events_.now()) {
                events_.schedule(room_, when);
            } else {
                on_room(when);
                if (!up()) return true;
            }
        }
        bool did = false;
        if (forwarder_.has_news()) {
            did = in_step_ ? look_to_pass() : pass_on();
            if (!up()) return true;
        }
        // The core may have gone to sleep since the message was seen.
        if (arrivals() != 0) did |= skip_idle_time();
        if (arrival_.scheduled() || receiver_.held() || !receiver_.has_news()) return did;
        return in_step_ ? look() : pump();
    }

    bool look() {
        if (auto looked = receiver_.look(); !looked)
            refuse(looked.error());
        else
            events_.schedule(arrival_, receiver_.wanted());
        return true;
    }

    bool look_to_pass() {
        if (auto looked = forwarder_.look(); !looked) refuse(looked.error());
        return true;
    }

    ModelTime act_at() const { return hooks_.act_at ? hooks_.act_at() : events_.now(); }

    void on_room(ModelTime) {
        for (unsigned lane = 0; lane < waiting_.size() && up(); ++lane) {
            if (!congested(lane) || !transmitter_.room_news(lane)) continue;
            transmitter_.flush(lane);
            check_transmitter();
            wake_waiters(lane);
        }
    }

    // For somebody who waits.
    bool room_news() const {
        for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
            if (congested(lane) && transmitter_.room_news(lane)) return true;
        }
        return false;
    }

    void check_transmitter() {
        if (transmitter_.broken()) return refuse(std::string(*transmitter_.broken()));
        if (std::exchange(forwards_, transmitter_.forwards()) && !forwards_) {
            look_again();
            hooks_.changed(config_.port, state_);
        }
    }

    void set_forward(bool on) {
        transmitter_.set_forward(on && up());
        forwards_ = transmitter_.forwards();
        if (!forwards_) look_again();
    }

    // Room is no longer all that those who wait here wait for.
    void look_again() {
        for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
            if (!waiting_[lane].empty()) wake_waiters(lane);
        }
    }

    // What waits for room behind others looks again when they do.
    link::Passed pass(const link::Passing& passing) {
        if (!up()) return {};
        if (!waiting_[transmitter_.lane_of(passing.message.destination)].empty())
            return {.what = link::Passed::kNoRoom};
        const link::Passed passed =
            transmitter_.pass(events_.system_now(), passing, config_.forward_ns * kPsPerNs);
        check_transmitter();
        return passed;
    }

    // For the clock of the work that writes; `at` as PeerPort::write() has it.
    LinkSend write(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data, ModelTime at) {
        if (!up()) return {.fault = ORR_FAULT_PEER_DOWN};
        if (!waiting_[transmitter_.lane_of(node)].empty()) return {};
        // Who keeps step has told the others that it sends nothing in the past.
        const ModelTime when = in_step_ ? events_.now() : std::min(at, events_.now());
        LinkSend sent = transmitter_.write(events_.to_system(when), node, offset, data);
        sent.sent_ps = events_.from_system(sent.sent_ps);
        check_transmitter();
        return sent;
    }

    std::uint32_t signal(std::uint32_t node, std::uint64_t offset, std::uint64_t value) {
        if (!up()) return ORR_FAULT_PEER_DOWN;
        const std::uint32_t fault = transmitter_.signal(events_.system_now(), node, offset, value);
        check_transmitter();
        keep_time();
        return fault;
    }

    std::uint32_t post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) {
        if (!up()) return ORR_FAULT_PEER_DOWN;
        const std::uint32_t fault = transmitter_.post(events_.system_now(), node, offset, data);
        check_transmitter();
        keep_time();
        return fault;
    }

    // --- without room ---

    bool congested(unsigned lane) const { return !waiting_[lane].empty() || transmitter_.has_pending(lane); }
    bool congested() const {
        return congested(link::Transmitter::kNear) || congested(link::Transmitter::kFar);
    }
    bool holds_time() const {
        if (!up() || !in_step_) return false;
        for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
            if (congested(lane) && transmitter_.room_is_near(lane, events_.system_now())) return true;
        }
        return false;
    }
    // While somebody waits, the socket's ticks count how long the peer has been silent.
    void keep_time() {
        if (up() && congested()) socket_.keep_ticking(true);
    }

    void wait_for_room(std::uint32_t node, Event& event) {
        if (!up()) return events_.schedule(event, events_.now());
        waiting_[transmitter_.lane_of(node)].push_back(&event);
        keep_time();
    }

    void forget(Event& event) {
        for (auto& waiting : waiting_)
            std::erase(waiting, &event);
    }

    void wake_waiters(unsigned lane) {
        const ModelTime when = waiting_[lane].empty() ? events_.now() : act_at();
        for (Event* event : waiting_[lane])
            events_.schedule(*event, when);
        waiting_[lane].clear();
        silent_ticks_ = 0;
        if (up() && !congested()) socket_.keep_ticking(false);
    }

    void look_for_life() {
        const std::uint64_t alive = transmitter_.peer_alive();
        if (alive != last_alive_) {
            last_alive_ = alive;
            silent_ticks_ = 0;
        } else if (++silent_ticks_ * link::Socket::kTickMs > config_.peer_silence_ms) {
            refuse(fmt::format("the peer did not look at its link for {} ms", config_.peer_silence_ms));
        }
    }

    bool prepare_sleep() {
        // When what is on its way may come is for the others to say.
        if (!up()) return !draining_ || in_step_ || (arrivals() == 0 && !has_left_over());
        if (arrivals() != 0 && !in_step_) {
            // What it skips to is due at once.
            skip_idle_time();
            return false;
        }
        if (congested()) {
            transmitter_.want_credit();
            if (room_news()) return false;
        }
        receiver_.set_need_wakeup(true);
        const bool near = !arrival_.scheduled() && !receiver_.held() && receiver_.has_news();
        if (!near && !forwarder_.has_news()) return true;
        receiver_.set_need_wakeup(false);
        return false;
    }

    void after_sleep() {
        if (up()) receiver_.set_need_wakeup(false);
        service();
    }

    LinkConfig config_;
    link::Socket socket_;
    EventQueue& events_;
    Errors& errors_;
    LinkHooks hooks_;
    link::Receiver receiver_;
    link::Transmitter transmitter_;
    Event arrival_;
    Event passing_;  // of what is passed on
    link::Forwarder forwarder_;
    Event owed_pokes_;
    Event room_;  // of which there are news
    std::uint32_t state_ = ORR_LINK_DOWN;
    bool heard_hello_ = false;
    bool heard_ready_ = false;
    bool draining_ = false;  // the peer left, and its last messages still arrive
    bool in_step_ = false;
    unsigned ticks_ = 0;
    unsigned rounds_ = 0;
    std::uint64_t peer_uid_ = 0;
    std::uint32_t peer_port_ = 0;
    ModelTime peer_clock_ = 0;
    std::uint64_t session_ = 0;
    std::array<std::vector<Event*>, link::Transmitter::kLanes> waiting_;  // for room, who came first in front
    bool forwards_ = false;                                               // as hooks_.changed has been told
    std::uint32_t silent_ticks_ = 0;
    std::uint64_t last_alive_ = 0;
    std::string down_reason_;
};

std::expected<std::unique_ptr<LinkPort>, std::string> LinkPort::create(LinkConfig config, EventQueue& events,
                                                                       Vram& vram, Counters& counters,
                                                                       Errors& errors, LinkHooks hooks) {
    if (config.port >= ORR_LINK_MAX_PORTS || config.uid == 0 || config.uid == UINT64_MAX ||
        config.gbps == 0 || config.gbps > 100'000) {
        return std::unexpected(fmt::format(
            "link {}: port must be below {}, uid neither 0 nor all ones, rate 1 to 100,000 Gbit/s",
            config.port, ORR_LINK_MAX_PORTS));
    }
    // Half of what can be on the way must take longer than the latency; see Transmitter::min_message_ps.
    const ModelTime window = duration_ps(link::kPayloadBytes / 2, std::uint64_t{config.gbps} * 125'000'000);
    if (config.latency_ns * kPsPerNs > window) {
        return std::unexpected(fmt::format(
            "link {}: a latency of {} ns at {} Gbit/s needs more buffer than a port has; at most {} ns",
            config.port, config.latency_ns, config.gbps, window / kPsPerNs));
    }
    auto socket = link::Socket::create(config.listen, config.path);
    if (!socket) return std::unexpected(fmt::format("link {}: {}", config.port, socket.error()));
    return std::unique_ptr<LinkPort>(new LinkPort(std::make_unique<Impl>(
        std::move(config), std::move(*socket), events, vram, counters, errors, std::move(hooks))));
}

LinkPort::LinkPort(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LinkPort::~LinkPort() = default;

std::uint32_t LinkPort::state() const {
    return impl_->state_;
}
std::uint32_t LinkPort::lanes() const {
    return impl_->up() ? impl_->config_.lanes : 0;
}
std::uint64_t LinkPort::peer_uid() const {
    return impl_->up() ? impl_->peer_uid_ : 0;
}
std::uint32_t LinkPort::peer_port() const {
    return impl_->up() ? impl_->peer_port_ : 0;
}
const LinkConfig& LinkPort::config() const {
    return impl_->config_;
}
const std::string& LinkPort::down_reason() const {
    return impl_->down_reason_;
}

void LinkPort::set_node(std::uint32_t node) {
    impl_->receiver_.set_node(node);
    impl_->transmitter_.set_node(node);
}
bool LinkPort::set_grant(std::uint32_t slot, std::uint64_t base, std::uint64_t size, std::uint32_t node) {
    return size != 0 && node != 0 && impl_->receiver_.set_grant(slot, {base, size, node});
}
bool LinkPort::clear_grant(std::uint32_t slot) {
    // What other nodes sent keeps its time, and so does what comes by another port, or is for nothing.
    const link::Grant old = impl_->receiver_.grant(slot);
    if (old.size != 0 && impl_->comes_here(static_cast<std::uint32_t>(old.node))) impl_->hurry();
    return impl_->receiver_.set_grant(slot, {0, 0, 0});
}
void LinkPort::set_forward(bool on) {
    impl_->set_forward(on);
}
void LinkPort::routes_changed() {
    impl_->look_again();
}
bool LinkPort::forwards() const {
    return impl_->transmitter_.forwards();
}
void LinkPort::drain() {
    impl_->forwarder_.drain();
}
void LinkPort::poke_room() {
    impl_->poke_room();
}
ModelTime LinkPort::next_arrival() const {
    return impl_->next_arrival();
}
unsigned LinkPort::arrivals() const {
    return impl_->arrivals();
}
void LinkPort::clock_jumped(ModelTime gap) {
    impl_->clock_jumped(gap);
}
void LinkPort::reset() {
    for (std::uint32_t slot = 0; slot < ORR_LINK_GRANT_SLOTS; ++slot)
        impl_->receiver_.set_grant(slot, {0, 0, 0});
    impl_->receiver_.forget_owed();
    impl_->forwarder_.forget_drains();
    impl_->set_forward(false);
}
bool LinkPort::settle(std::uint64_t offset) {
    return impl_->settle(offset);
}

void LinkPort::unplug() {
    impl_->unplug();
}
std::expected<void, std::string> LinkPort::plug() {
    return impl_->socket_.plug();
}

std::uint64_t LinkPort::bytes_per_second() const {
    return impl_->transmitter_.bytes_per_second();
}

LinkSend LinkPort::write(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data,
                         ModelTime at) {
    return impl_->write(node, offset, data, at);
}
std::uint32_t LinkPort::signal(std::uint32_t node, std::uint64_t offset, std::uint64_t value) {
    return impl_->signal(node, offset, value);
}
std::uint32_t LinkPort::post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) {
    return impl_->post(node, offset, data);
}
link::Passed LinkPort::pass(const link::Passing& passing) {
    return impl_->pass(passing);
}
void LinkPort::wait_for_room(std::uint32_t node, Event& event) {
    impl_->wait_for_room(node, event);
}
void LinkPort::forget(Event& event) {
    impl_->forget(event);
}
std::uint64_t LinkPort::session() const {
    return impl_->session_;
}
bool LinkPort::congested() const {
    return impl_->congested();
}
bool LinkPort::holds_time() const {
    return impl_->holds_time();
}

bool LinkPort::poll() {
    return impl_->poll();
}
void LinkPort::service() {
    impl_->service();
}
bool LinkPort::prepare_sleep() {
    return impl_->prepare_sleep();
}
void LinkPort::after_sleep() {
    impl_->after_sleep();
}
int LinkPort::poll_fd() const {
    return impl_->socket_.poll_fd();
}

}  // namespace orrery::emu
