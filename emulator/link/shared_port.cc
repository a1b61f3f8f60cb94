#include "emulator/link/shared_port.h"

#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "emulator/link/reach.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr std::uint32_t kMostRetries = 16;
static_assert(2 * (kMostRetries + 1) <= link::kMostDamaged);

template <typename Port>
std::expected<std::unique_ptr<LinkPort>, std::string> make(LinkConfig config, EventQueue& events, Vram& vram,
                                                           Counters& counters, Errors& errors,
                                                           LinkHooks hooks) {
    const std::uint32_t ports =
        std::is_same_v<Port, SwitchPort> ? link::kMostSwitchPorts : ORR_LINK_MAX_PORTS;
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
    return std::make_unique<Port>(std::move(config), std::move(*socket), events, vram, counters, errors,
                                  std::move(hooks));
}

}  // namespace

const LinkKind kLocalLink{"local", &make<LocalPort>};
const LinkKind kSwitchLink{"switch", &make<SwitchPort>};

std::uint32_t SharedPort::state() const {
    return link_.state_;
}
std::uint32_t SharedPort::lanes() const {
    return link_.up() ? link_.transmitter_.line().width() : 0;
}
std::uint32_t SharedPort::mbps() const {
    return link_.up() ? static_cast<std::uint32_t>(link_.transmitter_.bytes_per_second() / 125'000) : 0;
}
std::uint64_t SharedPort::without_room_ps() const {
    return link_.without_room_ps();
}

const link::Counts& SharedPort::counts() const {
    return link_.counts_;
}
std::uint64_t SharedPort::peer_uid() const {
    return link_.up() ? link_.peer_uid_ : 0;
}
std::uint32_t SharedPort::peer_port() const {
    return link_.up() ? link_.peer_port_ : 0;
}
const LinkConfig& SharedPort::config() const {
    return link_.config_;
}
const std::string& SharedPort::down_reason() const {
    return link_.down_reason_;
}

void SharedPort::set_node(std::uint32_t node) {
    link_.node_ = node;
    link_.receiver_.set_node(node);
    link_.transmitter_.set_node(node);
    // A switch passes on what is for it from now on.
    if (link_.up() && link_.peer_is_switch_) link_.wake_peer();
}
bool SharedPort::set_grant(std::uint32_t slot, std::uint64_t base, std::uint64_t size, std::uint32_t node,
                           const GrantTerms& terms) {
    if (size == 0 || node == 0 || (terms.rights & ~std::uint64_t{ORR_LINK_RIGHTS}) != 0) return false;
    return link_.receiver_.set_grant(
        slot,
        {.grant = {.base = base, .size = size, .node = node, .rights = terms.rights}, .key = terms.key});
}
bool SharedPort::clear_grant(std::uint32_t slot) {
    // What other nodes sent keeps its time, and so does what comes by another port, or is for nothing.
    const link::Grant old = link_.receiver_.grant(slot);
    if (old.size != 0 && link_.comes_here(static_cast<std::uint32_t>(old.node))) link_.hurry();
    return link_.receiver_.set_grant(slot, {});
}
void SharedPort::set_forward(bool on) {
    link_.set_forward(on);
}
void SharedPort::routes_changed() {
    link_.routes_changed();
}
bool SharedPort::forwards() const {
    return link_.transmitter_.forwards();
}
bool SharedPort::peer_is_switch() const {
    return link_.up() && link_.peer_is_switch_;
}
std::uint32_t SharedPort::peer_level() const {
    return link_.up() ? link_.peer_level_ : 0;
}
std::uint32_t SharedPort::peer_node() const {
    const std::uint64_t node = link_.up() ? link_.transmitter_.shown_node() : 0;
    return node < ORR_NODES ? static_cast<std::uint32_t>(node) : 0;
}
std::uint64_t SharedPort::peer_reach_version() const {
    return link_.up() ? link_.transmitter_.reach_version() : 0;
}
link::Reach SharedPort::peer_reach(std::uint32_t node) const {
    return peer_is_switch() ? link_.transmitter_.reach(node) : link::Reach{};
}
std::uint64_t SharedPort::peer_switches_version() const {
    return link_.up() ? link_.transmitter_.switches_version() : 0;
}
std::optional<std::vector<link::SwitchWords>> SharedPort::peer_switches() const {
    if (!peer_is_switch()) return std::vector<link::SwitchWords>{};
    return link_.transmitter_.switches();
}
void SharedPort::poke_room() {
    link_.poke_room();
}
ModelTime SharedPort::next_arrival() const {
    return link_.next_arrival();
}
bool SharedPort::has_unseen() const {
    return link_.has_unseen();
}
unsigned SharedPort::arrivals() const {
    return link_.arrivals();
}
void SharedPort::clock_jumped(ModelTime gap) {
    link_.clock_jumped(gap);
}
void SharedPort::reset() {
    for (std::uint32_t slot = 0; slot < ORR_LINK_GRANT_SLOTS; ++slot)
        link_.receiver_.set_grant(slot, {});
    link_.receiver_.forget_owed();
    link_.forwarder_.forget_drains();
    link_.end_requests();
    link_.set_forward(false);
}
bool SharedPort::settle(std::uint64_t offset) {
    return link_.settle(offset);
}

void SharedPort::unplug() {
    link_.unplug();
}
void SharedPort::reset_link() {
    if (up()) link_.peer_left("the driver reset it");
}
std::expected<void, std::string> SharedPort::plug() {
    return link_.socket_.plug();
}

std::uint64_t SharedPort::bytes_per_second() const {
    return link_.transmitter_.bytes_per_second();
}

LinkSend SharedPort::write(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data,
                           ModelTime at) {
    return link_.write(node, offset, data, at);
}
std::uint32_t SharedPort::signal(std::uint32_t node, std::uint64_t offset, std::uint64_t value) {
    return link_.signal(node, offset, value);
}
std::uint32_t SharedPort::note(std::uint32_t node, std::span<const std::byte> data) {
    return link_.note(node, data);
}
std::uint32_t SharedPort::member(std::uint32_t multicast, std::uint32_t node, std::uint64_t base) {
    return link_.member(multicast, node, base);
}
std::uint32_t SharedPort::post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) {
    return link_.post(node, offset, data);
}
link::Passed SharedPort::pass(const link::Passing& passing) {
    return link_.pass(passing);
}
LinkAsk SharedPort::read(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to, ModelTime at,
                         Asker& asker) {
    return link_.read(node, offset, to, at, asker);
}
LinkAsk SharedPort::reduce(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to,
                           const LinkReduction& how, ModelTime at, Asker& asker) {
    return link_.read(node, offset, to, at, asker, link::reduction_of(how.type, how.function));
}
LinkAsk SharedPort::atomic(std::uint32_t node, std::uint64_t offset, const LinkAtomic& atomic, ModelTime at,
                           Asker& asker) {
    return link_.atomic(node, offset, atomic, at, asker);
}
LinkTold SharedPort::tell(std::uint32_t node, const BarrierWord& word) {
    return link_.tell(node, word);
}
void SharedPort::abandon(std::uint32_t tag) {
    link_.requests_.abandon(tag);
}
void SharedPort::put_aside(std::uint32_t tag, bool aside) {
    link_.requests_.put_aside(tag, aside);
    if (!aside) link_.keep_time();
}
PeerPort::Refusals SharedPort::refused_by(std::uint32_t node) const {
    const auto found = link_.refusals_.find(node);
    return found != link_.refusals_.end() ? found->second : Refusals{};
}
unsigned SharedPort::lane_of(const link::Message& message) const {
    return link_.lane_of(message);
}
void SharedPort::end_turn(unsigned lane, Event& event) {
    link_.end_turn(lane, event);
}
void SharedPort::wait_for_room(std::uint32_t node, Event& event) {
    link_.wait_for_room(link_.transmitter_.lane_of(node), event);
}
void SharedPort::wait_to_pass(const link::Message& message, Event& event) {
    link_.wait_for_room(link_.transmitter_.lane_of(message), event);
}
void SharedPort::forget(Event& event) {
    link_.forget(event);
}
std::uint64_t SharedPort::session() const {
    return link_.session_;
}
bool SharedPort::has_called(const Event& event) const {
    return link_.has_called(event);
}
bool SharedPort::congested() const {
    return link_.needs_peer();
}
bool SharedPort::peer_stands(std::chrono::steady_clock::time_point now) {
    return link_.peer_stands(now);
}

bool SharedPort::poll() {
    return link_.poll();
}
void SharedPort::service() {
    link_.service();
}
bool SharedPort::prepare_sleep() {
    return link_.prepare_sleep();
}
void SharedPort::after_sleep() {
    link_.after_sleep();
}
int SharedPort::poll_fd() const {
    return link_.socket_.poll_fd();
}

// --- local ---

void LocalPort::drain(bool force) {
    if (peer_is_switch())
        link_.drain_peer(force);
    else
        link_.forwarder_.drain();
}

// --- switch ---

std::uint64_t SwitchPort::peer_lives() const {
    return link_.up() ? link_.transmitter_.lives() : 0;
}
void SwitchPort::show_reach(std::uint32_t node, const link::Reach& reach) {
    link_.receiver_.show_reach(node, reach);
}
void SwitchPort::tell_reach() {
    link_.receiver_.tell_reach();
    link_.wake_peer();
}
void SwitchPort::show_switches(std::span<const link::SwitchWords> all) {
    link_.receiver_.show_switches(all);
    link_.wake_peer();
}
std::uint64_t SwitchPort::drains_wanted() const {
    return link_.up() ? link_.receiver_.drains_wanted() : 0;
}
std::uint64_t SwitchPort::drains_forced() const {
    return link_.up() ? link_.receiver_.drains_forced() : 0;
}
void SwitchPort::show_drained(std::uint64_t drains) {
    if (!link_.up()) return;
    link_.receiver_.show_drained(drains);
    link_.wake_peer();
}
void SwitchPort::answer(const link::Message& request, link::Status status) {
    link_.cannot_pass(request, status);
}
LinkPort::Taken SwitchPort::taken() const {
    static_assert(std::tuple_size_v<Taken> == link::Transmitter::kLanes);
    Taken taken{};
    for (unsigned lane = 0; lane < taken.size() && link_.up(); ++lane)
        taken[lane] = link_.transmitter_.taken(lane);
    return taken;
}
void SwitchPort::drain(bool force) {
    drain_here(force);
}
void SwitchPort::drain_here(bool force) {
    link_.forwarder_.drain(force);
}
void SwitchPort::drain_peer(bool force) {
    link_.drain_peer(force);
}

}  // namespace orrery::emu
