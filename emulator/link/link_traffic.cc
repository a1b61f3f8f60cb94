// What crosses a link, both ways: arrivals, sending, and room.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "emulator/link/shared_link.h"

namespace orrery::emu {

namespace {

constexpr unsigned kServiceEvery = 1024;  // rounds of poll()
constexpr unsigned kAliveEvery = 64;      // rounds of poll()
static_assert(kServiceEvery % kAliveEvery == 0);

}  // namespace

bool SharedLink::pump() {
    // Where it has been called it keeps its turn until it has used it.
    if (waits_to_answer_ && !has_called(arrival_)) stop_waiting_to_answer();
    const auto pumped = receiver_.pump();
    stop_waiting_to_answer();
    if (pumped == link::Receiver::Pumped::kWrong) {
        refuse(receiver_.why());
        return true;
    }
    look_at_answers();
    if (!receiver_.is_open()) return true;
    if (arrival_.scheduled() || receiver_.wanted() != kNever) events_.schedule(arrival_, receiver_.wanted());
    if (receiver_.unanswered() != nullptr) wait_to_answer();
    return taken() || pumped == link::Receiver::Pumped::kDid;
}

bool SharedLink::pass_on(link::Forwarder& forwarder) {
    auto passed = forwarder.run();
    if (!passed) {
        refuse(passed.error());
        return true;
    }
    look_at_answers();
    if (!receiver_.is_open()) return true;
    return taken() || *passed;
}

bool SharedLink::taken() {
    if (receiver_.has_given()) tell_of_room();
    const bool skipped = skip_idle_time();
    if (draining_ && all_taken()) stop_receiving();
    return skipped;
}

void SharedLink::tell_of_room() {
    if (receiver_.take_credit_wish()) wake_peer();
    if (up() && in_step_ && receiver_.take_wish_in_step() && hooks_.sent)
        hooks_.sent(peer_uid_, later(events_.system_now(), config_.latency_ns * kPsPerNs));
}

bool SharedLink::all_taken() const {
    return arrivals() == 0 && !receiver_.held() && !forwarder_.waits() && !back_forwarder_.waits() &&
           !receiver_.has_news() && !forwarder_.has_news() && !back_forwarder_.has_news();
}

bool SharedLink::has_left_over() const {
    if (forwarder_.has_news() || back_forwarder_.has_news() || all_taken()) return true;
    return !arrival_.scheduled() && !receiver_.held() && receiver_.has_news();
}

bool SharedLink::skip_idle_time() {
    const ModelTime when = next_arrival();
    if (in_step_ || when == kNever || when <= events_.now() || !hooks_.may_skip || !hooks_.may_skip(when))
        return false;
    const ModelTime arrival = events_.to_system(when);
    clock_jumped(when - events_.now());
    jump_to(arrival);
    return true;
}

void SharedLink::clock_jumped(ModelTime gap) {
    for (Event* event : {&arrival_, &passing_, &reply_, &passing_back_}) {
        if (!event->scheduled()) continue;
        const ModelTime left = event->time() - events_.now();
        events_.schedule(*event, events_.now() + (left > gap ? left - gap : 0));
    }
}

void SharedLink::hurry() {
    if (!receiver_.is_open()) return;
    if (auto done = receiver_.hurry(); !done) return refuse(done.error());
    look_at_answers();
    if (!receiver_.is_open()) return;
    receiver_.give_owed();
    pump();
}

bool SharedLink::settle(std::uint64_t offset) {
    if (!up() && !draining_) return true;
    const auto done = receiver_.hurry_to(offset);
    if (!done) {
        refuse(done.error());
        return true;
    }
    stop_waiting_to_answer();
    look_at_answers();
    if (!receiver_.is_open()) return true;
    events_.cancel(arrival_);
    events_.schedule(arrival_, events_.now());
    if (receiver_.owes()) events_.schedule(owed_pokes_, events_.now());
    return *done;
}

void SharedLink::poke_room() {
    if (receiver_.owes()) events_.schedule(owed_pokes_, events_.now());
    if ((up() || draining_) && receiver_.held() && !waits_to_answer_)
        events_.schedule(arrival_, events_.now());
}

// Where the clock may go to it, and nothing else is due there, it is carried out without a place among the
// events: it would have the first.
bool SharedLink::take_first() {
    const auto [first, wrong] = receiver_.first();
    if (wrong) {
        refuse(receiver_.why());
        return true;
    }
    if (first == nullptr) return pump();
    if (first->arrival_ps > events_.system_now()) {
        const ModelTime when = events_.from_system(first->arrival_ps);
        if (!hooks_.may_skip || !hooks_.may_skip(when)) {
            events_.schedule(arrival_, when);
            return false;
        }
        jump_to(first->arrival_ps);
        if (!events_.none_is_due()) {
            events_.schedule(arrival_, events_.now());
            return true;
        }
        events_.count_as_fired(arrival_);
    }
    if (!receiver_.take_signal(*first)) return pump();
    look_at_answers();
    // Who waits for this room looks by itself, or sleeps and is woken when nothing more comes.
    if (up() && receiver_.more()) pump();
    return true;
}

bool SharedLink::poll() {
    ++rounds_;
    bool waits = congested();
    if (rounds_ % kAliveEvery != 0 && !waits && is_quiet() && !receiver_.has_other_news()) {
        if (!receiver_.has_news()) {
            if (!in_step_ && receiver_.has_given()) tell_of_room();
            return false;
        }
        if (!in_step_) return take_first();
    }
    // Once the peer is up it sends.
    if (rounds_ % kServiceEvery == 0 || state_ == ORR_LINK_TRAINING) {
        service();
        waits = congested();
    }
    if (draining_) {
        for (link::Forwarder* forwarder : {&forwarder_, &back_forwarder_})
            if (forwarder->has_news()) return pass_on(*forwarder);
        return has_left_over() && pump();
    }
    if (!up()) return false;
    if (rounds_ % kAliveEvery == 0) receiver_.show_alive();
    if (is_switch_ || peer_is_switch_) look_at_shown();
    if (waits) {
        poll_room();
        if (!up()) return true;
    }
    bool did = poll_passing(forwarder_);
    if (up()) did |= poll_passing(back_forwarder_);
    if (up()) did |= poll_replies();
    if (!up()) return true;
    // The core may have gone to sleep since the message was seen.
    if (arrivals() != 0) did |= skip_idle_time();
    if (arrival_.scheduled() || receiver_.held() || !receiver_.has_news()) return did;
    return in_step_ ? look() : pump();
}

void SharedLink::poll_room() {
    if (in_step_) return look_for_room();
    if (room_news() && !room_.scheduled()) {
        if (const ModelTime when = act_at(); when > events_.now()) {
            events_.schedule(room_, when);
        } else {
            on_room(when);
            if (!up()) return;
        }
    }
    for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
        if (has_come(waiting_[lane])) call_next(lane);
    }
}

void SharedLink::look_at_shown() {
    // In this order: behind each change of the life there is one of the node.
    const std::uint64_t lives = is_switch_ ? transmitter_.lives() : 0;
    const Shown shows{.node = is_switch_ ? transmitter_.shown_node() : 0,
                      .lives = lives,
                      .reach_version = peer_is_switch_ ? transmitter_.reach_version() : 0,
                      .switches_version = peer_is_switch_ ? transmitter_.switches_version() : 0,
                      .drains_wanted = is_switch_ ? receiver_.drains_wanted() : 0};
    if (shows != shown_) {
        shown_ = shows;
        if (hooks_.peer_shows) hooks_.peer_shows(config_.port);
    }
    if (peer_drains_done_ != peer_drains_ && transmitter_.drains_done() == peer_drains_) end_peer_drains();
}

void SharedLink::drain_peer(bool force) {
    if (!up() || !peer_is_switch_) {
        tell_peer_drained(1);
        return;
    }
    ++peer_drains_;
    transmitter_.want_drain(force);
    wake_peer();
}

void SharedLink::end_peer_drains() {
    const std::uint64_t left = peer_drains_ - std::exchange(peer_drains_done_, peer_drains_);
    if (left != 0) tell_peer_drained(left);
}

void SharedLink::tell_peer_drained(std::uint64_t drains) {
    const auto& hook = hooks_.peer_drained ? hooks_.peer_drained : hooks_.drained;
    if (hook) hook(config_.port, static_cast<std::uint32_t>(drains));
}

bool SharedLink::look() {
    if (auto looked = receiver_.look(); !looked)
        refuse(looked.error());
    else
        events_.schedule(arrival_, receiver_.wanted());
    return true;
}

bool SharedLink::look_to_pass(link::Forwarder& forwarder) {
    if (auto looked = forwarder.look(); !looked) refuse(looked.error());
    return true;
}

bool SharedLink::poll_passing(link::Forwarder& forwarder) {
    if (!forwarder.has_news()) return false;
    return in_step_ ? look_to_pass(forwarder) : pass_on(forwarder);
}

bool SharedLink::poll_replies() {
    if (reply_.scheduled() || !replies_.has_news()) return false;
    return in_step_ ? look_for_replies() : take_replies();
}

void SharedLink::on_room(ModelTime) {
    for (unsigned lane = 0; lane < waiting_.size() && up(); ++lane) {
        if (!congested(lane) || !transmitter_.room_news(lane)) continue;
        if (in_step_) transmitter_.take_credits(lane);
        transmitter_.forget_news(lane);
        transmitter_.flush(lane);
        check_transmitter();
        if (up() && flush_answers(lane)) call_next(lane);
        look_at_answers();
    }
    count_congestion();
    look_for_room();
}

// Whoever waits has told the peer before it looks: so what it does not see here it is told of, by the time at
// which that counts.
void SharedLink::look_for_room() {
    if (!in_step_ || !up() || !congested()) return;
    transmitter_.want_credit_in_step();
    ModelTime first = kNever;
    for (unsigned lane = 0; lane < waiting_.size(); ++lane)
        if (congested(lane)) first = std::min(first, transmitter_.next_credit(lane));
    if (first == kNever) return;
    const ModelTime when = std::max(events_.now(), events_.from_system(first));
    if (!room_.scheduled() || room_.time() > when) events_.schedule(room_, when);
}

void SharedLink::on_turns(ModelTime) {
    for (unsigned lane = 0; lane < waiting_.size() && up(); ++lane) {
        const Waiting& waiting = waiting_[lane];
        if (has_come(waiting))
            call_next(lane);
        else if (waiting.called && !turns_.scheduled())
            events_.schedule(turns_, later(std::max(events_.now(), waiting.called_for), 1));
    }
}

bool SharedLink::room_news() const {
    for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
        if (congested(lane) && transmitter_.room_news(lane)) return true;
    }
    return false;
}

void SharedLink::look_at_transmitter() {
    // Not the peer's fault: what it sent still comes.
    if (const auto& failed = transmitter_.line().failed()) return peer_left(std::string(*failed));
    if (transmitter_.broken()) return refuse(std::string(*transmitter_.broken()));
    check_width();
    if (std::exchange(forwards_, transmitter_.forwards()) && !forwards_) {
        look_again();
        hooks_.changed(config_.port, state_);
    }
}

void SharedLink::set_forward(bool on) {
    transmitter_.set_forward(on && up());
    forwards_ = transmitter_.forwards();
    if (!forwards_) look_again();
}

void SharedLink::look_again() {
    for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
        if (!waiting_[lane].events.empty()) wake_waiters(lane);
    }
}

link::Passed SharedLink::pass(const link::Passing& passing) {
    if (!up()) return {};
    look_at_peer();
    const unsigned lane = transmitter_.lane_of(passing.message);
    if (!has_turn(lane, &passing.by)) return {.what = link::Passed::kNoRoom};
    const link::Passed passed =
        transmitter_.pass(events_.system_now(), passing, config_.forward_ns * kPsPerNs);
    check_transmitter();
    if (passed.what == link::Passed::kGone) {
        waiting_[lane].came = &passing.by;
        follow(passing.message);
    } else if (passed.what == link::Passed::kLost) {
        call_next(lane);
    }
    return passed;
}

void SharedLink::follow(const link::Message& request) {
    if (!up()) return;
    followed_.add(request);
    if (followed_.any()) socket_.keep_ticking(true);
}

void SharedLink::end_turn(unsigned lane, Event& event) {
    if (waiting_[lane].came != &event) return;
    waiting_[lane].came = nullptr;
    call_next(lane);
}

LinkSend SharedLink::write(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data,
                           ModelTime at) {
    if (!up()) return {.fault = ORR_FAULT_PEER_DOWN};
    look_at_peer();
    const unsigned lane = transmitter_.lane_of(node);
    if (!has_turn(lane)) return {};
    // Who keeps step has told the others that it sends nothing in the past.
    const ModelTime when = in_step_ ? events_.now() : std::min(at, events_.now());
    LinkSend sent = transmitter_.write(events_.to_system(when), node, offset, data);
    sent.sent_ps = events_.from_system(sent.sent_ps);
    check_transmitter();
    if (sent.bytes != 0 || sent.fault != ORR_FAULT_NONE) call_next(lane);
    return sent;
}

std::uint32_t SharedLink::signal(std::uint32_t node, std::uint64_t offset, std::uint64_t value) {
    if (!up()) return ORR_FAULT_PEER_DOWN;
    look_at_peer();
    const std::uint32_t fault = transmitter_.signal(events_.system_now(), node, offset, value);
    check_transmitter();
    keep_time();
    return fault;
}

LinkTold SharedLink::tell(std::uint32_t node, const BarrierWord& word) {
    if (!up()) return {.fault = ORR_FAULT_PEER_DOWN};
    look_at_peer();
    const unsigned lane = transmitter_.lane_of(node);
    if (!has_turn(lane)) return {};
    const LinkTold told = transmitter_.tell(events_.system_now(), node, word);
    check_transmitter();
    if (told.sent || told.fault != ORR_FAULT_NONE) call_next(lane);
    return told;
}

std::uint32_t SharedLink::note(std::uint32_t node, std::span<const std::byte> data) {
    if (!up()) return ORR_FAULT_PEER_DOWN;
    look_at_peer();
    const std::uint32_t fault = transmitter_.note(events_.system_now(), node, data);
    check_transmitter();
    return fault;
}

std::uint32_t SharedLink::member(std::uint32_t multicast, std::uint32_t node, std::uint64_t base) {
    if (!up()) return ORR_FAULT_PEER_DOWN;
    look_at_peer();
    const std::uint64_t who = node == 0 ? 0 : node | std::uint64_t{epoch_of(node) & 0xffffu} << 16;
    const std::uint32_t fault = transmitter_.member(events_.system_now(), multicast, base, who);
    check_transmitter();
    keep_time();
    return fault;
}

std::uint32_t SharedLink::post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) {
    if (!up()) return ORR_FAULT_PEER_DOWN;
    look_at_peer();
    const std::uint32_t fault = transmitter_.post(events_.system_now(), node, offset, data);
    check_transmitter();
    keep_time();
    return fault;
}

void SharedLink::note_congestion(unsigned lanes) {
    counted_ = lanes;
    if (lanes == 0) {
        may_wait_ = false;
        transmitter_.have_none_pending();
    }
    for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
        ModelTime& since = congested_since_[lane];
        if ((lanes >> lane & 1) == (since != kNever ? 1u : 0u)) continue;
        if (since != kNever) counts_.credit_ps.add(events_.now() - since);
        since = since == kNever ? events_.now() : kNever;
    }
}

std::uint64_t SharedLink::without_room_ps() const {
    std::uint64_t sum = counts_.credit_ps.get();
    for (const ModelTime since : congested_since_)
        if (since != kNever) sum += events_.now() - since;
    return sum;
}

unsigned SharedLink::congested_lanes() const {
    if (!may_be_congested()) return 0;
    unsigned lanes = 0;
    for (unsigned lane = 0; lane < link::Transmitter::kLanes; ++lane)
        lanes |= (congested(lane) ? 1u : 0u) << lane;
    return lanes;
}

void SharedLink::keep_time_of_waiting() {
    count_congestion();
    if (!needs_peer()) return;
    if (up()) socket_.keep_ticking(true);
    look_for_room();
}

void SharedLink::wait_for_room(unsigned lane, Event& event) {
    if (!up()) return events_.schedule(event, events_.now());
    // The first one has just looked.
    if (!congested(lane)) transmitter_.forget_news(lane);
    may_wait_ = true;
    Waiting& waiting = waiting_[lane];
    // Who was called and has not got enough is first again.
    if (std::exchange(waiting.came, nullptr) == &event && !waiting.called)
        waiting.events.insert(waiting.events.begin(), &event);
    else
        waiting.events.push_back(&event);
    keep_time();
}

void SharedLink::forget(Event& event) {
    for (unsigned lane = 0; lane < waiting_.size(); ++lane) {
        Waiting& waiting = waiting_[lane];
        // A turn that it has not ended ends here.
        const bool came = waiting.came == &event;
        if (came) waiting.came = nullptr;
        const bool first = !waiting.events.empty() && waiting.events.front() == &event;
        std::erase(waiting.events, &event);
        const bool called = first && std::exchange(waiting.called, false);
        if (came || called) call_next(lane);
    }
    stop_ticking();
}

bool SharedLink::has_called(const Event& event) const {
    return std::ranges::any_of(
        waiting_, [&](const Waiting& waiting) { return waiting.called && waiting.events.front() == &event; });
}

// Its event has fired, even if it has been scheduled for something else since.
bool SharedLink::has_come(const Waiting& waiting) const {
    return waiting.called && (!waiting.events.front()->scheduled() || events_.now() > waiting.called_for);
}

void SharedLink::call_next(unsigned lane) {
    Waiting& waiting = waiting_[lane];
    // It came, and had nothing to send here any more.
    if (has_come(waiting)) {
        waiting.events.erase(waiting.events.begin());
        waiting.called = false;
    }
    if (!waiting.called && !waiting.events.empty()) {
        waiting.called = true;
        waiting.called_for = act_at();
        events_.schedule(*waiting.events.front(), waiting.called_for);
        silent_ticks_ = 0;
        if (in_step_ && !turns_.scheduled()) events_.schedule(turns_, later(waiting.called_for, 1));
    }
    stop_ticking();
}

bool SharedLink::has_turn(unsigned lane, const Event* who) {
    if (!flush_answers(lane)) return false;
    Waiting& waiting = waiting_[lane];
    if (who != nullptr && waiting.came == who && !waiting.called) return true;
    waiting.came = nullptr;
    if (waiting.events.empty()) return true;
    if (!has_come(waiting)) return false;
    if (waiting.events.front()->scheduled()) {
        call_next(lane);
        return waiting.events.empty();
    }
    waiting.came = waiting.events.front();
    waiting.events.erase(waiting.events.begin());
    waiting.called = false;
    return true;
}

void SharedLink::stop_ticking() {
    count_congestion();
    if (watches_peer()) return;
    silent_ticks_ = 0;
    if (up()) socket_.keep_ticking(false);
}

void SharedLink::wake_waiters(unsigned lane) {
    Waiting& waiting = waiting_[lane];
    const ModelTime when = waiting.events.empty() ? events_.now() : act_at();
    for (Event* event : waiting.events)
        events_.schedule(*event, when);
    waiting = {};
    silent_ticks_ = 0;
    stop_ticking();
}

bool SharedLink::prepare_sleep() {
    // When what is on its way may come is for the others to say.
    if (!up()) return !draining_ || in_step_ || (arrivals() == 0 && !has_left_over());
    if (arrivals() != 0 && !in_step_) {
        // What it skips to is due at once.
        skip_idle_time();
        return false;
    }
    if (congested()) {
        transmitter_.want_credit();
        const ModelTime known = room_.scheduled() ? room_.time() : kNever;
        look_for_room();
        if (in_step_ ? room_.scheduled() && room_.time() != known : room_news()) return false;
    }
    if (!in_step_ && receiver_.has_given()) tell_of_room();
    receiver_.set_need_wakeup(true);
    const bool near = !arrival_.scheduled() && !receiver_.held() && receiver_.has_news();
    const bool back = back_forwarder_.has_news() || (!reply_.scheduled() && replies_.has_news());
    if (!near && !back && !forwarder_.has_news()) return true;
    receiver_.set_need_wakeup(false);
    return false;
}

void SharedLink::after_sleep() {
    if (up()) {
        receiver_.set_need_wakeup(false);
        receiver_.show_alive();
    }
    service();
}

}  // namespace orrery::emu
