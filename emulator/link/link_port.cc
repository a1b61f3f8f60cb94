#include "emulator/link/link_port.h"

#include <charconv>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "emulator/link/link_impl.h"
#include "emulator/link/reach.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr std::uint32_t kMostRetries = 16;
static_assert(2 * (kMostRetries + 1) <= link::kMostDamaged);

}  // namespace

std::expected<LinkConfig, std::string> LinkConfig::parse(std::string_view text, std::uint32_t ports) {
    const auto usage = [&] {
        return std::unexpected(fmt::format(
            "link \"{}\": write PORT:listen:PATH or PORT:connect:PATH, PORT from 0 to {}", text, ports - 1));
    };
    LinkConfig config;
    const auto first = text.find(':');
    if (first == std::string_view::npos) return usage();
    const auto second = text.find(':', first + 1);
    if (second == std::string_view::npos || second + 1 == text.size()) return usage();
    const std::string_view number = text.substr(0, first);
    const std::string_view role = text.substr(first + 1, second - first - 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), config.port);
    if (error != std::errc{} || end != number.data() + number.size() || config.port >= ports) {
        return usage();
    }
    if (role != "listen" && role != "connect") return usage();
    config.listen = role == "listen";
    config.path = text.substr(second + 1);
    return config;
}

std::expected<std::unique_ptr<LinkPort>, std::string> LinkPort::create(LinkConfig config, EventQueue& events,
                                                                       Vram& vram, Counters& counters,
                                                                       Errors& errors, LinkHooks hooks) {
    const std::uint32_t ports = config.is_switch ? link::kMostSwitchPorts : ORR_LINK_MAX_PORTS;
    if (config.port >= ports || config.level > 0xff || config.uid == 0 || config.uid == UINT64_MAX ||
        config.gbps == 0 || config.gbps > 100'000 || config.lanes == 0 || config.lanes > link::kMostLanes ||
        config.retries > kMostRetries) {
        return std::unexpected(
            fmt::format("link {}: port must be below {}, uid neither 0 nor all ones, rate 1 to 100,000 "
                        "Gbit/s, lanes 1 to {}, "
                        "retries at most {}",
                        config.port, ports, link::kMostLanes, kMostRetries));
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
bool LinkPort::up() const {
    return impl_->up();
}
std::uint32_t LinkPort::lanes() const {
    return impl_->up() ? impl_->transmitter_.line().width() : 0;
}
std::uint32_t LinkPort::mbps() const {
    return impl_->up() ? static_cast<std::uint32_t>(impl_->transmitter_.bytes_per_second() / 125'000) : 0;
}
std::uint64_t LinkPort::without_room_ps() const {
    return impl_->without_room_ps();
}

const link::Counts& LinkPort::counts() const {
    return impl_->counts_;
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
    impl_->node_ = node;
    impl_->receiver_.set_node(node);
    impl_->transmitter_.set_node(node);
    // A switch passes on what is for it from now on.
    if (impl_->up() && impl_->peer_is_switch_) impl_->wake_peer();
}
bool LinkPort::set_grant(std::uint32_t slot, std::uint64_t base, std::uint64_t size, std::uint32_t node,
                         const GrantTerms& terms) {
    if (size == 0 || node == 0 || (terms.rights & ~std::uint64_t{ORR_LINK_RIGHTS}) != 0) return false;
    return impl_->receiver_.set_grant(
        slot,
        {.grant = {.base = base, .size = size, .node = node, .rights = terms.rights}, .key = terms.key});
}
bool LinkPort::clear_grant(std::uint32_t slot) {
    // What other nodes sent keeps its time, and so does what comes by another port, or is for nothing.
    const link::Grant old = impl_->receiver_.grant(slot);
    if (old.size != 0 && impl_->comes_here(static_cast<std::uint32_t>(old.node))) impl_->hurry();
    return impl_->receiver_.set_grant(slot, {});
}
void LinkPort::set_forward(bool on) {
    impl_->set_forward(on);
}
void LinkPort::routes_changed() {
    impl_->routes_changed();
}
bool LinkPort::forwards() const {
    return impl_->transmitter_.forwards();
}
void LinkPort::drain(bool force) {
    if (impl_->up() && impl_->peer_is_switch_ && !impl_->config_.is_switch)
        drain_peer(force);
    else
        drain_here();
}
void LinkPort::drain_here(bool force) {
    impl_->forwarder_.drain(force && impl_->config_.is_switch);
}
void LinkPort::drain_peer(bool force) {
    impl_->drain_peer(force);
}
bool LinkPort::peer_is_switch() const {
    return impl_->up() && impl_->peer_is_switch_;
}
std::uint32_t LinkPort::peer_level() const {
    return impl_->up() ? impl_->peer_level_ : 0;
}
std::uint32_t LinkPort::peer_node() const {
    const std::uint64_t node = impl_->up() ? impl_->transmitter_.shown_node() : 0;
    return node < ORR_NODES ? static_cast<std::uint32_t>(node) : 0;
}
std::uint64_t LinkPort::peer_lives() const {
    return impl_->up() ? impl_->transmitter_.lives() : 0;
}
std::uint64_t LinkPort::peer_reach_version() const {
    return impl_->up() ? impl_->transmitter_.reach_version() : 0;
}
link::Reach LinkPort::peer_reach(std::uint32_t node) const {
    return peer_is_switch() ? impl_->transmitter_.reach(node) : link::Reach{};
}
void LinkPort::show_reach(std::uint32_t node, const link::Reach& reach) {
    impl_->receiver_.show_reach(node, reach);
}
void LinkPort::tell_reach() {
    impl_->receiver_.tell_reach();
    impl_->wake_peer();
}
std::uint64_t LinkPort::drains_wanted() const {
    return impl_->up() ? impl_->receiver_.drains_wanted() : 0;
}
std::uint64_t LinkPort::drains_forced() const {
    return impl_->up() ? impl_->receiver_.drains_forced() : 0;
}
void LinkPort::show_drained(std::uint64_t drains) {
    if (!impl_->up()) return;
    impl_->receiver_.show_drained(drains);
    impl_->wake_peer();
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
        impl_->receiver_.set_grant(slot, {});
    impl_->receiver_.forget_owed();
    impl_->forwarder_.forget_drains();
    impl_->end_requests();
    impl_->set_forward(false);
}
bool LinkPort::settle(std::uint64_t offset) {
    return impl_->settle(offset);
}

void LinkPort::unplug() {
    impl_->unplug();
}
void LinkPort::reset_link() {
    if (up()) impl_->peer_left("the driver reset it");
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
std::uint32_t LinkPort::note(std::uint32_t node, std::span<const std::byte> data) {
    return impl_->note(node, data);
}
std::uint32_t LinkPort::member(std::uint32_t multicast, std::uint32_t node, std::uint64_t base) {
    return impl_->member(multicast, node, base);
}
std::uint32_t LinkPort::post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) {
    return impl_->post(node, offset, data);
}
link::Passed LinkPort::pass(const link::Passing& passing) {
    return impl_->pass(passing);
}
LinkAsk LinkPort::read(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to, ModelTime at,
                       Asker& asker) {
    return impl_->read(node, offset, to, at, asker);
}
LinkAsk LinkPort::reduce(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to,
                         const LinkReduction& how, ModelTime at, Asker& asker) {
    return impl_->read(node, offset, to, at, asker, link::reduction_of(how.type, how.function));
}
void LinkPort::answer(const link::Message& request, link::Status status) {
    impl_->cannot_pass(request, status);
}
LinkAsk LinkPort::atomic(std::uint32_t node, std::uint64_t offset, const LinkAtomic& atomic, ModelTime at,
                         Asker& asker) {
    return impl_->atomic(node, offset, atomic, at, asker);
}
LinkTold LinkPort::tell(std::uint32_t node, const BarrierWord& word) {
    return impl_->tell(node, word);
}
void LinkPort::abandon(std::uint32_t tag) {
    impl_->requests_.abandon(tag);
}
void LinkPort::put_aside(std::uint32_t tag, bool aside) {
    impl_->requests_.put_aside(tag, aside);
    if (!aside) impl_->keep_time();
}
PeerPort::Refusals LinkPort::refused_by(std::uint32_t node) const {
    const auto found = impl_->refusals_.find(node);
    return found != impl_->refusals_.end() ? found->second : Refusals{};
}
unsigned LinkPort::lane_of(const link::Message& message) const {
    return impl_->lane_of(message);
}
void LinkPort::end_turn(unsigned lane, Event& event) {
    impl_->end_turn(lane, event);
}
void LinkPort::wait_for_room(std::uint32_t node, Event& event) {
    impl_->wait_for_room(impl_->transmitter_.lane_of(node), event);
}
void LinkPort::wait_to_pass(const link::Message& message, Event& event) {
    impl_->wait_for_room(impl_->transmitter_.lane_of(message), event);
}
void LinkPort::forget(Event& event) {
    impl_->forget(event);
}
std::uint64_t LinkPort::session() const {
    return impl_->session_;
}
LinkPort::Taken LinkPort::taken() const {
    static_assert(std::tuple_size_v<Taken> == link::Transmitter::kLanes);
    Taken taken{};
    for (unsigned lane = 0; lane < taken.size() && impl_->up(); ++lane)
        taken[lane] = impl_->transmitter_.taken(lane);
    return taken;
}
bool LinkPort::has_called(const Event& event) const {
    return impl_->has_called(event);
}
bool LinkPort::congested() const {
    return impl_->needs_peer();
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
