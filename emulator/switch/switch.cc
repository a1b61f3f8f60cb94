#include "emulator/switch/switch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "emulator/link/cable.h"
#include "emulator/link/reach.h"
#include "emulator/link/switches.h"
#include "emulator/switch/switches.h"

namespace orrery::emu {

namespace {

// It has links, and nothing else that a rule could be of.
constexpr std::array kFaultPointsOfSwitch{FaultPoint::kLink, FaultPoint::kWire, FaultPoint::kTraining};

}  // namespace

std::expected<std::unique_ptr<Switch>, std::string> Switch::create(SwitchConfig config) {
    auto none = Vram::create(std::uint64_t{1} << 20);
    if (!none) return std::unexpected(none.error());
    std::unique_ptr<Switch> made(new Switch(std::move(config), *std::move(none)));
    if (auto built = made->build(); !built) return std::unexpected(built.error());
    return made;
}

Switch::Switch(SwitchConfig config, Vram none)
    : config_(std::move(config)),
      errors_(counters_, config_.log),
      none_(std::move(none)),
      fabric_({.uid = config_.uid,
               .level = config_.level,
               .latency_ns = config_.model.latency_ns,
               .forward_ns = config_.model.forward_ns}),
      reductions_([this] {
          if (!ended_.scheduled()) events_.schedule(ended_, time_for_news());
      }),
      drain_(Event::of<&Switch::on_drain>(this)),
      ended_(Event::of<&Switch::on_ended>(this)) {}

Switch::~Switch() = default;

std::expected<void, std::string> Switch::build() {
    if (config_.uid == 0 || config_.uid == UINT64_MAX)
        return std::unexpected("a switch's uid must be neither 0 nor all ones");
    if (config_.level > 0xff) return std::unexpected("a switch's level must be from 0 to 255");
    if (config_.links.size() < 2) return std::unexpected("a switch has 2 links or more (--link)");
    wake_fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_fd_) return std::unexpected(fmt::format("cannot make an eventfd: {}", std::strerror(errno)));
    if (auto built = build_faults(); !built) return built;
    if (!config_.lockstep.empty()) {
        auto joined =
            sync::Lockstep::join({.file = config_.lockstep,
                                  .uid = config_.uid,
                                  .lookahead = config_.model.latency_ns * kPsPerNs,
                                  .note = [this](const std::string& text) { errors_.note("{}", text); }});
        if (!joined) return std::unexpected(joined.error());
        lockstep_ = *std::move(joined);
    }
    for (const LinkConfig& link : config_.links)
        if (auto built = build_link(link); !built) return built;
    return {};
}

std::expected<void, std::string> Switch::build_faults() {
    if (!config_.faults && config_.control.empty()) return {};
    if (config_.faults) {
        if (auto known = config_.faults->only_of(kFaultPointsOfSwitch); !known)
            return std::unexpected("--faults: " + known.error());
    }
    Faults::Hooks hooks;
    hooks.points = kFaultPointsOfSwitch;
    hooks.die = config_.die ? config_.die : [] { ::kill(::getpid(), SIGKILL); };
    hooks.struck = [this](const Faults::Struck& fault) {
        errors_.note("fault plan: {} {:#x}, pass {}: {}", name_of(fault.point), fault.subject, fault.pass,
                     name_of(fault.action));
    };
    faults_ = std::make_unique<Faults>(config_.faults.value_or(FaultPlan{}), events_, std::move(hooks));
    if (config_.control.empty()) return {};
    auto control =
        FaultControl::create(config_.control.string(), *faults_, [this](std::uint64_t port, bool in) {
            return move_cable(port < kPorts ? links_[port].get() : nullptr, port, in);
        });
    if (!control) return std::unexpected(control.error());
    fault_control_ = *std::move(control);
    return {};
}

std::expected<void, std::string> Switch::build_link(LinkConfig link) {
    const SwitchModel& model = config_.model;
    if (link.port >= model.ports)
        return std::unexpected(
            fmt::format("link port {}: this switch has {} ports, from 0 on", link.port, model.ports));
    if (links_[link.port] != nullptr)
        return std::unexpected(fmt::format("link port {} is given twice", link.port));
    link.uid = config_.uid;
    link.lanes = model.lanes;
    link.gbps = model.gbps;
    link.latency_ns = model.latency_ns;
    link.forward_ns = model.forward_ns;
    link.retries = model.retries;
    link.retrain_ns = model.retrain_ns;
    link.faults = faults_.get();
    link.kind = &kSwitchLink;
    link.level = config_.level;
    const unsigned port = link.port;
    auto made = LinkPort::create(std::move(link), events_, none_, counters_, errors_, hooks_of(port));
    if (!made) return std::unexpected(made.error());
    links_[port] = *std::move(made);
    active_links_.push_back(links_[port].get());
    return {};
}

LinkHooks Switch::hooks_of(unsigned port) {
    LinkHooks hooks;
    hooks.poke = [](std::uint64_t) {};
    hooks.comes_here = [this, port](std::uint32_t node) {
        // What a card sent before it left still goes on.
        return fabric_.comes_by(port, node) || (node != 0 && believed_[port] == node && !links_[port]->up());
    };
    hooks.onward = [this](std::uint32_t node) -> LinkPort* {
        const unsigned onward = fabric_.port_of(node);
        return onward < kPorts ? links_[onward].get() : nullptr;
    };
    hooks.may_pass = [this, port](const link::Message& message) {
        look_at_life(port);
        return flows_.may_pass(message, fabric_.port_of(message.destination),
                               !links_[port]->peer_is_switch());
    };
    hooks.is_stuck = [this, port](const LinkPort* onward, unsigned lane) {
        return is_stuck(port, onward, lane);
    };
    hooks.reductions = &reductions_;
    hooks.lost = [this, port](const link::Message& message) {
        if (!flows_.lost(message, !links_[port]->peer_is_switch())) return;
        reductions_.lose_pair(message.source, message.destination);
        fabric_.lost(message.destination);
        stale_ = true;
    };
    hooks.multicast = [this, port](std::uint32_t number) {
        look_at_life(port);
        return multicasts_[port].find(number);
    };
    hooks.member = [this, port](const link::Message& message) {
        if (links_[port]->peer_is_switch()) return false;
        look_at_life(port);
        if (message.value == 0) reductions_.lose_number(port, message.destination);
        if (multicasts_[port].change(message)) return true;
        errors_.guest(
            "link {}: node {} cannot have node {} in multicast {}: it is there, or there is no room", port,
            message.source, message.value & 0xffff, message.destination);
        return false;
    };
    hooks.peer_shows = [this](std::uint32_t) { stale_ = true; };
    hooks.drained = [this](std::uint32_t at, std::uint32_t drains) { here_done_[at] += drains; };
    hooks.peer_drained = [this](std::uint32_t at, std::uint32_t drains) { above_done_[at] += drains; };
    hooks.changed = [this](std::uint32_t at, std::uint32_t state) { port_changed(at, state); };
    hooks.jumped = [this, port](ModelTime gap) { jumped(gap, port); };
    hooks.in_step = [this, port](std::uint64_t peer) {
        if (lockstep_ == nullptr) return false;
        const bool has = keeps_step() && lockstep_->has(peer);
        errors_.note("link {}: {:#x} {}", port, peer,
                     has ? "keeps step with this switch" : "does not keep step: its messages may be late");
        return has;
    };
    hooks.may_jump = [this] { return !keeps_step(); };
    hooks.act_at = [this] { return time_for_news(); };
    hooks.sent = [this](std::uint64_t peer, ModelTime arrival) { lockstep_->sent(peer, arrival); };
    return hooks;
}

void Switch::jumped(ModelTime gap, unsigned port) {
    for (LinkPort* link : active_links_)
        if (link != links_[port].get()) link->clock_jumped(gap);
}

// Also if its node is the same again and nobody has looked between: its life is read behind each message, so
// it is never older than that.
void Switch::look_at_life(unsigned port) {
    const LinkPort& link = *links_[port];
    if (!link.up() || link.peer_is_switch()) return;
    const std::uint64_t life = link.peer_lives();
    if (std::exchange(lives_[port], life) == life) return;
    forget_multicasts(port);
    if (nodes_[port] != 0) flows_.forget(nodes_[port]);
}

void Switch::forget_multicasts(unsigned port) {
    multicasts_[port].clear();
    reductions_.forget(port);
}

// Who asked has nothing else to wait for.
void Switch::on_ended(ModelTime) {
    while (const auto ended = reductions_.next_ended())
        links_[ended->port]->answer(ended->request, ended->status);
}

// What was on its way by a port that goes down is lost, and what follows must not get there by another.
void Switch::port_changed(unsigned port, std::uint32_t state) {
    stale_ = true;
    const bool is_up = state >= ORR_LINK_UP;
    // What was sent before it went down still goes to all.
    const bool was_up = std::exchange(were_up_[port], is_up);
    if (!was_up && is_up) forget_multicasts(port);
    if (is_up) return;
    losses_[port] += was_up ? 1 : 0;
    switches_shown_[port].reset();
    reductions_.lose_if([&](std::uint32_t node) { return fabric_.port_of(node) == port; });
    flows_.lose_port(port, [this](std::uint32_t node) { fabric_.lost(node); });
    shown_[port].reset();
}

// --- what it knows ---

bool Switch::refresh() {
    if (!std::exchange(stale_, false)) return false;
    std::array<Fabric::Port, kPorts> ports{};
    for (unsigned p = 0; p < kPorts; ++p) {
        const LinkPort* link = links_[p].get();
        if (link == nullptr || !link->up()) continue;
        ports[p] = {.up = true,
                    .is_switch = link->peer_is_switch(),
                    .level = link->peer_level(),
                    .uid = link->peer_uid(),
                    .node = link->peer_is_switch() ? 0 : link->peer_node(),
                    .mbps = link->mbps()};
        // A card whose driver begins anew gives it a node again, maybe the same.
        look_at_life(p);
        if (const std::uint32_t before = std::exchange(nodes_[p], ports[p].node);
            before != 0 && before != ports[p].node)
            flows_.forget(before);
    }
    fabric_.update(
        ports,
        [this](unsigned port, std::uint32_t node) { return link::route_of(links_[port]->peer_reach(node)); },
        [this](std::uint32_t node) {
            flows_.lose_node(node);
            reductions_.lose_if([node](std::uint32_t member) { return member == node; });
        },
        [this](unsigned port) {
            errors_.guest(
                "link {}: the card there says that it is node {}, as another card does: nothing is "
                "passed on for it",
                port, links_[port]->peer_node());
        });
    for (unsigned p = 0; p < kPorts; ++p)
        if (ports[p].up) believed_[p] = fabric_.comes_by(p, ports[p].node) ? ports[p].node : 0;
    // Who hears that something was lost may ask which link it was.
    publish_switches();
    publish();
    return true;
}

void Switch::publish() {
    for (unsigned p = 0; p < kPorts; ++p) {
        LinkPort* link = links_[p].get();
        if (link == nullptr || !link->up()) continue;
        bool changed = false;
        if (shown_[p] == nullptr) {
            shown_[p] = std::make_unique<Shown>();
            changed = true;
        }
        for (std::uint32_t node = 1; node < ORR_NODES; ++node) {
            const link::Reach reach = link::reach_of(fabric_.shown(p, node));
            if (reach == (*shown_[p])[node]) continue;
            (*shown_[p])[node] = reach;
            link->show_reach(node, reach);
            changed = true;
        }
        if (changed) link->tell_reach();
    }
}

link::SwitchWords Switch::about_itself() const {
    std::vector<link::AtPort> ports(config_.model.ports);
    for (unsigned p = 0; p < ports.size() && p < kPorts; ++p) {
        const LinkPort* link = links_[p].get();
        if (link == nullptr) continue;
        ports[p].state = link->state();
        ports[p].losses = losses_[p];
        ports[p].latency_ns = link->config().latency_ns;
        if (!link->up()) continue;
        ports[p].to_switch = link->peer_is_switch();
        ports[p].lanes = link->lanes();
        ports[p].mbps = link->mbps();
        ports[p].peer = link->peer_uid();
        ports[p].peer_port = link->peer_port();
    }
    return link::words_of(config_.uid, config_.level, ports);
}

void Switch::publish_switches() {
    for (unsigned p = 0; p < kPorts; ++p) {
        const LinkPort* link = links_[p].get();
        if (link == nullptr || !link->up() || !link->peer_is_switch()) {
            heard_[p] = {};
            continue;
        }
        // One that changes what it tells is called again when it has; until then that of before stands.
        auto all = link->peer_switches();
        if (!all && heard_[p].uid == link->peer_uid()) continue;
        heard_[p] = {.uid = link->peer_uid(),
                     .above = link->peer_level() > config_.level,
                     .all = std::move(all).value_or(std::vector<link::SwitchWords>{})};
    }
    const link::SwitchWords own = about_itself();
    for (unsigned p = 0; p < kPorts; ++p) {
        LinkPort* link = links_[p].get();
        if (link == nullptr || !link->up()) continue;
        std::vector<link::SwitchWords> told = switches_told(own, heard_, p);
        if (switches_shown_[p] == told) continue;
        link->show_switches(told);
        switches_shown_[p] = std::move(told);
    }
}

// --- drains ---

void Switch::look_for_drains() {
    for (unsigned p = 0; p < kPorts; ++p) {
        const LinkPort* link = links_[p].get();
        if (link == nullptr) continue;
        if (!link->up()) {
            drains_known_[p] = 0;
            std::erase_if(drains_, [p](const Drain& drain) { return drain.port == p; });
            continue;
        }
        const std::uint64_t wanted = link->drains_wanted();
        if (wanted == drains_known_[p]) continue;
        drains_known_[p] = wanted;
        const bool forced = link->drains_forced() == wanted;
        const bool others = std::ranges::find(drains_, p, &Drain::port) != drains_.end();
        if (!forced && !others) {
            taken_[p] = std::make_unique<Taken>();
            for (unsigned q = 0; q < kPorts; ++q)
                if (links_[q] != nullptr) (*taken_[p])[q] = links_[q]->taken();
        }
        if (forced) std::erase_if(drains_, [p](const Drain& drain) { return drain.port == p; });
        drains_.push_back(
            {.port = p, .wanted = wanted, .forced = forced, .stage = Drain::kHere, .until = {}});
        if (!drain_.scheduled()) events_.schedule(drain_, time_for_news());
    }
    if (drain_.scheduled()) return;
    for (const Drain& drain : drains_) {
        if (!is_done(drain)) continue;
        events_.schedule(drain_, time_for_news());
        return;
    }
}

bool Switch::is_stuck(unsigned drained, const LinkPort* onward, unsigned lane) const {
    if (taken_[drained] == nullptr) return false;
    for (unsigned q = 0; q < kPorts; ++q)
        if (links_[q].get() == onward) return links_[q]->taken().at(lane) == (*taken_[drained])[q].at(lane);
    return false;
}

bool Switch::is_done(const Drain& drain) const {
    const auto& done = drain.stage == Drain::kAbove ? above_done_ : here_done_;
    for (unsigned p = 0; p < kPorts; ++p)
        if (done[p] < drain.until[p]) return false;
    return true;
}

void Switch::begin(Drain& drain, Drain::Stage stage) {
    drain.stage = stage;
    drain.until = {};
    for (unsigned p = 0; p < kPorts; ++p) {
        LinkPort* link = links_[p].get();
        if (link == nullptr) continue;
        const bool above = link->peer_is_switch() && link->peer_level() > config_.level;
        if (stage != Drain::kAbove) {
            if (drain.forced && p != drain.port && !above) continue;
            drain.until[p] = ++here_asked_[p];
            link->drain_here(drain.forced && p == drain.port);
        } else if (above) {
            drain.until[p] = ++above_asked_[p];
            link->drain_peer();
        }
    }
}

void Switch::on_drain(ModelTime) {
    // A peer asks for one after the other, so there are few.
    for (std::size_t n = 0; n < drains_.size();) {
        Drain& drain = drains_[n];
        LinkPort* const link = links_[drain.port].get();
        const bool is_new = drain.until == decltype(drain.until){};
        if (is_new && drain.stage == Drain::kHere) begin(drain, Drain::kHere);
        while (is_done(drain) && drain.stage != Drain::kAgain) {
            const bool from_above = link->peer_is_switch() && link->peer_level() > config_.level;
            begin(drain, drain.stage == Drain::kHere && !from_above ? Drain::kAbove : Drain::kAgain);
        }
        if (!is_done(drain)) {
            ++n;
            continue;
        }
        link->show_drained(drain.wanted);
        drains_.erase(drains_.begin() + static_cast<std::ptrdiff_t>(n));
    }
}

// --- the round ---

bool Switch::take_arrivals() {
    bool busy = false;
    for (LinkPort* link : active_links_)
        busy |= link->poll();
    busy |= refresh();
    look_for_drains();
    return busy;
}

bool Switch::step() {
    if (faults_ != nullptr && faults_->hung()) return false;
    if (keeps_step()) return step_in_lockstep();
    bool busy = take_arrivals();
    // It has nothing to do but what is on its way: time until then is no time.
    for (unsigned goes = 0; goes < kBurst && events_.run_next(kNever - 1); ++goes)
        busy = true;
    return busy;
}

}  // namespace orrery::emu
