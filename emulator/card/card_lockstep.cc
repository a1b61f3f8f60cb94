// The card's round when it keeps step with others (emulator/sync).
//
// What the card does must not depend on how far it was granted to go at a time. So what is due at a moment
// comes before what the control core does from that moment on, however often a round ended there; and what
// arrives from other cards comes before all else of its moment, however early it was seen.
#include <algorithm>

#include "emulator/card/card.h"

namespace orrery::emu {

std::expected<void, std::string> Card::build_lockstep() {
    if (config_.lockstep.empty()) return {};
    if (config_.links.empty())
        return std::unexpected("--lockstep: this card has no links (--link), so no card to keep step with");
    auto joined =
        sync::Lockstep::join({.file = config_.lockstep,
                              .uid = config_.uid,
                              .lookahead = config_.sku.link_latency_ns * kPsPerNs,
                              .note = [this](const std::string& text) { errors_.note("{}", text); }});
    if (!joined) return std::unexpected(joined.error());
    lockstep_ = *std::move(joined);
    return {};
}

bool Card::waits_for_others() const {
    return keeps_step() && lockstep_->waits_for_others();
}

ModelTime Card::time_for_news() {
    const ModelTime now = events_.system_now();
    if (!keeps_step() || lockstep_->promised() <= now) return events_.now();
    return events_.from_system(lockstep_->intrude(now));
}

bool Card::host_waits() {
    if (host_arrival_.scheduled()) return true;
    if (lockstep_->promised() <= events_.system_now()) return false;
    // What comes after this look is for the next round.
    if (commands_.empty() && !doorbells_->changed()) return true;
    const ModelTime at = time_for_news();
    if (at > events_.now()) events_.schedule(host_arrival_, at);
    return at > events_.now();
}

void Card::on_host(ModelTime) {
    drain_commands();
    if (!held()) doorbells_->poll();
}

bool Card::step_in_lockstep(bool skip_idle) {
    sync::Lockstep& step = *lockstep_;
    step.beat();
    const bool stands = hung() || held();
    // Time does not come to where the host would be heard.
    if (stands) events_.cancel(host_arrival_);
    if (recording_waits()) return drain_commands(!stands && host_waits());
    const std::uint64_t news = step.news();
    bool busy = false;
    if (!stands && host_waits()) {
        busy = drain_commands(true);
        busy |= poll_links();
    } else {
        busy = take_arrivals();
    }
    const ModelTime now = events_.system_now();
    if (hung() || held()) {
        // Time stands here. Others wait for that, unless it never goes on.
        const ModelTime next = hung() ? kNever : now;
        if (!step.has_promised(next, false)) step.promise(now, next, news, false, !hung());
        return busy;
    }
    const bool runs = core_->runnable();
    const bool due = events_.unfinished() || events_.next_time() <= events_.now();
    const ModelTime next = runs || due ? now : events_.to_system(events_.next_time());
    const bool timer_only = core_->waits_for_timer_only();
    const bool act = skip_idle || !timer_only || step.others_active();
    if (next < step.promised() || next >= step.granted()) {
        if (step.has_promised(next, act)) return busy;
        if (!step.promise(now, next, news, act, next != kNever && !timer_only)) return true;
        if (next >= step.granted()) return busy;
    }
    if (!due && runs) {
        events_.schedule(horizon_, events_.from_system(step.granted()));
        vector_unit_->join();
        core_->run_chunk();
        events_.cancel(horizon_);
        busy = true;
    }
    for (unsigned goes = 0; goes < kBurst && !held(); ++goes) {
        if (!commands_.empty() && !host_arrival_.scheduled()) break;
        ModelTime limit = events_.from_system(step.granted()) - 1;
        // A core that could run goes before time that has not come yet.
        if (core_->runnable()) limit = std::min(limit, events_.now());
        if (!events_.run_next(limit)) break;
        busy = true;
    }
    if (busy) publish();
    return busy;
}

}  // namespace orrery::emu
