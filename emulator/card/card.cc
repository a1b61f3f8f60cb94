// What a card does all the time: what its firmware does to the host's side, links, and the round.
#include "emulator/card/card.h"

#include <algorithm>

#include <orrery/hw/pci.h>

#include "emulator/link/reach.h"

namespace orrery::emu {

// --- what the firmware does to the host's side ---

void Card::raise(unsigned vector) {
    const ModelTime latency = config_.sku.pcie_msi_ps;
    if (latency == 0) return interrupt_arrives(vector);
    interrupts_.push_back({later(events_.now(), latency), vector});
    if (!interrupt_event_.scheduled()) events_.schedule(interrupt_event_, interrupts_.front().arrival);
}

void Card::on_interrupt(ModelTime now) {
    while (!interrupts_.empty() && interrupts_.front().arrival <= now) {
        const unsigned vector = interrupts_.front().vector;
        interrupts_.pop_front();
        interrupt_arrives(vector);
    }
    if (!interrupts_.empty()) events_.schedule(interrupt_event_, interrupts_.front().arrival);
}

void Card::interrupt_arrives(unsigned vector) {
    file_.irq_status.fetch_or(1u << vector, std::memory_order_acq_rel);
    if ((file_.irq_mask.load(std::memory_order_acquire) >> vector & 1u) != 0) return;
    if (faults_ != nullptr) {
        const Fault fault = faults_->at(FaultPoint::kMsi, vector);
        if (fault.action == FaultAction::kDrop) return;
        if (fault.action == FaultAction::kDelay)
            return faults_->later(fault.delay, [this, vector] { send_interrupt(vector); });
        if (fault.action == FaultAction::kDuplicate) send_interrupt(vector);
    }
    send_interrupt(vector);
}

void Card::send_interrupt(unsigned vector) {
    counters_.add(ORR_CTR_HOST_INTERRUPTS);
    if (config_.raise) config_.raise(vector);
}

void Card::host_interrupt(std::uint64_t vector) {
    if (vector >= ORR_IRQ_VECTORS) {
        errors_.guest("the firmware raised host interrupt {}, of which there are {}", vector,
                      ORR_IRQ_VECTORS);
        return;
    }
    raise(static_cast<unsigned>(vector));
}

void Card::progress(std::uint32_t code) {
    file_.progress.store(code, std::memory_order_release);
    if ((code & ORR_PROGRESS_READY) != 0 &&
        file_.state.load(std::memory_order_relaxed) == ORR_STATE_BOOTING) {
        file_.state.store(ORR_STATE_RUNNING, std::memory_order_release);
    }
}

void Card::heartbeat(std::uint64_t value) {
    file_.heartbeat.store(value, std::memory_order_relaxed);
}

void Card::halt(std::uint64_t code) {
    core_->halt(ORR_HALT_REQUESTED | (code & 0xffffffffu));
}

// --- links ---

bool Card::poll_links() {
    vector_unit_->join();
    bool busy = false;
    for (LinkPort* link : active_links_)
        busy |= link->poll();
    return busy;
}

AwaitedPeers Card::awaited_peers(std::chrono::steady_clock::time_point now) {
    AwaitedPeers peers = AwaitedPeers::kNone;
    for (LinkPort* link : active_links_) {
        if (!link->congested()) continue;
        if (!keeps_step() && link->peer_stands(now)) return AwaitedPeers::kStand;
        peers = AwaitedPeers::kAlive;
    }
    return peers;
}

// For what comes to this port.
void Card::jumped(ModelTime gap, unsigned port) {
    for (LinkPort* link : active_links_) {
        if (link != links_[port].get()) link->clock_jumped(gap);
    }
    core_->note(ORR_OTRACE_NOTE_JUMP, {gap});
    publish();
}

void Card::publish_link(unsigned port) {
    const LinkPort* link = links_[port].get();
    if (link == nullptr) return;
    RegisterFile::Link& out = file_.links[port];
    out.lanes.store(link->lanes(), std::memory_order_relaxed);
    out.mbps.store(link->mbps(), std::memory_order_relaxed);
    out.peer_uid.store(link->peer_uid(), std::memory_order_relaxed);
    out.peer_port.store(link->peer_port(), std::memory_order_relaxed);
    const bool was_up = out.state.load(std::memory_order_relaxed) >= ORR_LINK_UP;
    if (was_up && link->state() < ORR_LINK_UP) out.losses.fetch_add(1, std::memory_order_relaxed);
    if (was_up != link->up()) {
        shown_[port] = {};
        publish_reach(port);
        publish_switches(port);
    }
    out.peer_switch.store(link->peer_is_switch() ? ORR_LINK_IS_SWITCH | ORR_LINK_TELLS_SWITCHES |
                                                       link->peer_level() << ORR_LINK_LEVEL_SHIFT
                                                 : 0,
                          std::memory_order_relaxed);
    out.control.store(link->forwards() ? ORR_LINK_FORWARD : 0, std::memory_order_relaxed);
    out.state.store(link->state(), std::memory_order_release);
}

// What a switch says, where the host can read it while the link goes.
void Card::publish_reach(unsigned port) {
    const LinkPort* link = links_[port].get();
    for (std::uint32_t node = 1; node < ORR_NODES; ++node) {
        const link::Reach reach = link->peer_reach(node);
        RegisterFile::Reach& out = file_.reach[port][node];
        if (out.how.load(std::memory_order_relaxed) == reach.how) continue;
        out.fabric.store(reach.fabric, std::memory_order_relaxed);
        out.mbps.store(static_cast<std::uint32_t>(reach.mbps), std::memory_order_relaxed);
        out.how.store(reach.how, std::memory_order_release);
    }
    file_.links[port].reach_version.fetch_add(1, std::memory_order_release);
}

// As a seqlock: who has a word of a change reads an odd version behind it, or another one.
void Card::publish_switches(unsigned port) {
    const auto all = links_[port]->peer_switches();
    if (!all) return;  // what was told before stands until the switch has told all
    RegisterFile::Switches& out = file_.switches[port];
    const std::uint32_t changing = out.version.load(std::memory_order_relaxed) + 1;
    out.version.store(changing, std::memory_order_relaxed);
    for (std::size_t n = 0; n < out.places.size(); ++n) {
        if (n >= all->size()) {
            out.places[n][ORR_SWITCH_UID / 8].store(0, std::memory_order_release);
            continue;
        }
        for (std::size_t w = 0; w < out.places[n].size(); ++w)
            out.places[n][w].store((*all)[n][w], std::memory_order_release);
    }
    out.version.store(changing + 1, std::memory_order_release);
}

void Card::peer_shows(unsigned port) {
    const LinkPort& link = *links_[port];
    const Shown now{.reach = link.peer_reach_version(), .switches = link.peer_switches_version()};
    const Shown before = std::exchange(shown_[port], now);
    if (before.switches != now.switches) publish_switches(port);
    if (before.reach == now.reach) return;
    publish_reach(port);
    raise(ORR_IRQ_LINK);
}

// --- the round ---

bool Card::waits_for_timer_or_peers() const {
    std::size_t arrivals = 0;
    for (const LinkPort* link : active_links_)
        arrivals += link->arrivals();
    return core_->waits_for_timer_beside(arrivals);
}

bool Card::run_events(bool skip_idle, ModelTime limit) {
    if (!events_.unfinished()) burst_ = kBurst;
    bool any = false;
    unsigned goes = 0;
    while (commands_.empty() && !held()) {
        // Which events fire between two chunks of the control core does not depend on how many goes they
        // take.
        if (events_.unfinished() ? goes++ == kBurst : burst_-- == 0) break;
        // A core that could run goes before time that has not come yet.
        // Nor does what was seen to be idle before an event say that the time after it is, too: a copy that
        // has got an answer, asked again and waits is not to be overtaken by its own limit.
        const bool wait = core_->runnable() ||
                          (skip_idle ? any && core_->waits_for_timer_only() : waits_for_timer_or_peers());
        if (!events_.run_next(wait ? std::min(limit, events_.now()) : limit)) break;
        any = true;
    }
    return any;
}

void Card::publish() {
    file_.model_time.store(events_.system_now(), std::memory_order_release);
    if (core_->state() == ControlCore::State::kHalted && !core_halt_seen_) {
        core_halt_seen_ = true;
        const ControlCore::Halt& halt = core_->halted();
        file_.halt_cause.store(halt.cause, std::memory_order_relaxed);
        file_.halt_pc.store(halt.pc, std::memory_order_relaxed);
        file_.halt_tval.store(halt.tval, std::memory_order_relaxed);
        file_.state.store(ORR_STATE_HALTED, std::memory_order_release);
        errors_.note("the control core halted: cause {:#x}, pc {:#x}", halt.cause, halt.pc);
        raise(ORR_IRQ_FAULT);
    }
}

bool Card::take_arrivals() {
    bool busy = drain_commands();
    if (hung()) return busy;
    // Who rings while time stands is heard when it goes on: till then nothing would end what is on its way.
    if (!held()) busy |= doorbells_->poll();
    if (!active_links_.empty()) busy |= poll_links();
    return busy;
}

bool Card::step(bool skip_idle, ModelTime limit) {
    if (recording_waits()) return drain_commands();
    const bool had_others = !core_->waits_for_timer_only();
    const std::uint64_t fired = events_.fired();
    bool busy = take_arrivals();
    if (hung()) return busy;
    // What `skip_idle` allows concerns a core that slept already, not one that lies down in this step, and
    // what was to come then: if that has arrived, and only the timer is left, whoever waits is looked at
    // anew. So it is if an event has been carried out already, in a look at a link.
    const bool alone_now = (had_others || events_.fired() != fired) && core_->waits_for_timer_only();
    const bool slept = waits_for_timer_or_peers() && !alone_now;
    busy |= alone_now;
    if (!held() && !events_.unfinished() && core_->runnable()) {
        vector_unit_->join();
        core_->run_chunk();
        busy = true;
    }
    busy |= run_events(skip_idle && slept, limit);
    if (busy) publish();
    return busy;
}

}  // namespace orrery::emu
