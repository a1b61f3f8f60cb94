#include "emulator/link/forwarder.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <orrery/hw/link.h>

#include "emulator/link/link_port.h"
#include "emulator/model/resource.h"
#include "emulator/time/rate.h"

namespace orrery::emu::link {

Forwarder::Forwarder(EventQueue& events, Counters& counters, Counts& counts, Reader& reader, Event& due,
                     Hooks hooks, ModelTime switching, std::uint64_t bytes_per_second)
    : events_(events),
      counters_(counters),
      counts_(counts),
      reader_(reader),
      due_(due),
      hooks_(std::move(hooks)),
      switching_(switching),
      bytes_per_second_(bytes_per_second),
      piece_(Resource(bytes_per_second).piece()) {}

void Forwarder::stop_waiting() {
    if (waits_at_ == nullptr) return;
    std::exchange(waits_at_, nullptr)->forget(due_);
    end_turn();
}

bool Forwarder::is_in_turn(const Message& message) const {
    return turn_at_ != nullptr && turn_at_ == hooks_.onward(message.destination) &&
           turn_at_->lane_of(message) == turn_lane_ &&
           std::ranges::find(served_, message.source) == served_.end();
}

void Forwarder::end_turn() {
    served_.clear();
    if (LinkPort* const at = std::exchange(turn_at_, nullptr)) at->end_turn(turn_lane_, due_);
}

void Forwarder::end_drains() {
    if (drains_ == 0 || in_a_hurry()) return;
    hooks_.drained(std::exchange(drains_, 0));
}

void Forwarder::close() {
    stop_waiting();
    events_.cancel(due_);
    end_turn();
    paces_.clear();
    copied_ = 0;
    all_through_ = 0;
    if (hooks_.reductions != nullptr) {
        hooks_.reductions->end(std::exchange(asks_, 0));
        hooks_.reductions->drop(std::exchange(whole_, 0));
    }
    drain_to_ = 0;
    force_to_ = 0;
    seen_ = 0;
    late_since_ = kNever;
    end_drains();
}

void Forwarder::drain(bool force) {
    ++drains_;
    drain_to_ = reader_.is_open() ? reader_.produced() : 0;
    if (force) {
        force_to_ = drain_to_;
        stop_waiting();
    }
    if (in_a_hurry() && waits_at_ == nullptr) events_.schedule(due_, events_.now());
    end_drains();
}

std::expected<void, std::string> Forwarder::look() {
    const auto [next, wrong] = reader_.next();
    if (wrong) return std::unexpected(reader_.why());
    if (next == nullptr) return {};
    const ModelTime at = std::max(next->arrival_ps, next_of(*next));
    note_arrival(*next, at);
    events_.schedule(due_, events_.from_system(at));
    return {};
}

// What stands behind a message that had to wait here comes to this port's notice later than it came: it is
// late only if it should have been there before that one began to wait.
void Forwarder::note_arrival(const Message& first, ModelTime at) {
    const ModelTime now = events_.system_now();
    if (std::exchange(seen_, reader_.taken() + 1) != reader_.taken() + 1 &&
        first.arrival_ps < std::min(now, late_since_))
        counters_.add(ORR_CTR_LINK_STRAGGLERS);
    if (first.arrival_ps > now) late_since_ = kNever;
    const ModelTime since = std::max(first.arrival_ps, now);
    if (at > since) late_since_ = std::min(late_since_, since);
}

std::expected<bool, std::string> Forwarder::run() {
    // Where it has been called it keeps its turn until it has used it.
    LinkPort* const called_at = waits_at_ != nullptr && waits_at_->has_called(due_) ? waits_at_ : nullptr;
    if (called_at != nullptr) waits_at_ = nullptr;
    stop_waiting();
    events_.cancel(due_);
    auto passed = run_called();
    if (called_at != nullptr && waits_at_ != called_at) called_at->forget(due_);
    return passed;
}

std::expected<bool, std::string> Forwarder::run_called() {
    ModelTime time_on_wire = 0;
    unsigned done = 0;
    bool some = false;  // of the last
    for (;; ++done) {
        const auto [next, wrong] = reader_.next();
        if (wrong) return std::unexpected(reader_.why());
        if (next == nullptr) {
            drain_to_ = force_to_ = 0;
            late_since_ = kNever;
            break;
        }
        const Message& first = *next;
        const ModelTime now = events_.system_now();
        // What has come all at once takes the time that it would have taken on the wire, as in Receiver.
        const ModelTime least = done < kBatchMessages ? 0 : later(now, time_on_wire);
        const ModelTime at = in_a_hurry() ? least : std::max({first.arrival_ps, next_of(first), least});
        note_arrival(first, at);
        if (at > now) {
            events_.schedule(due_, events_.from_system(at));
            break;
        }
        if (!is_in_turn(first)) end_turn();
        Message goes = first;
        if (const ModelTime latest = later(now, kMostAhead); goes.arrival_ps > latest) {
            goes.arrival_ps = latest;
            goes.head_ps = std::min(goes.head_ps, latest);
        }
        const std::uint32_t copied = copied_;
        if (!pass(goes)) {
            some = copied_ != copied;
            late_since_ = std::min(late_since_, now);
            break;
        }
        reader_.take();
        if (first.op == kOpAnswer && hooks_.answered) hooks_.answered(first);
        time_on_wire += duration_ps(kLeastBytes + first.bytes, bytes_per_second_);
    }
    if (waits_at_ == nullptr) end_turn();
    end_drains();
    return done > 0 || some;
}

ModelTime Forwarder::next_of(const Message& message) const {
    const auto pace = std::ranges::find(paces_, message.source, &Pace::node);
    if (pace == paces_.end()) return 0;
    ModelTime next = 0;
    std::uint64_t left = pace->bytes;
    for (const Pace::Given& given : pace->given) {
        if (left + charge(message) <= piece_) break;
        left -= given.bytes;
        next = std::max(next, given.next);
    }
    return next;
}

// So that they are not without number.
std::uint64_t Forwarder::charge(const Message& message) const {
    constexpr std::uint64_t kMostOfAPiece = 64;
    return std::max(wire_bytes_of(message), piece_ / kMostOfAPiece);
}

void Forwarder::set_pace(const Message& message, ModelTime through) {
    const ModelTime now = events_.system_now();
    // Who is through: they are looked through for each message, and there may be hundreds of nodes.
    std::erase_if(paces_, [now](const Pace& pace) {
        return std::ranges::all_of(pace.given | std::views::reverse,
                                   [now](const Pace::Given& given) { return given.next <= now; });
    });
    auto pace = std::ranges::find(paces_, message.source, &Pace::node);
    if (through <= switching_ && pace == paces_.end()) return;
    if (pace == paces_.end()) pace = paces_.insert(pace, {.node = message.source});
    for (; !pace->given.empty() && pace->given.front().next <= now; pace->given.pop_front())
        pace->bytes -= pace->given.front().bytes;
    if (through <= switching_) return;
    pace->given.push_back({.next = through - switching_, .bytes = charge(message)});
    pace->bytes += charge(message);
}

void Forwarder::count_arrival(const Message& message) {
    counters_.add(ORR_CTR_LINK_RX_MESSAGES);
    const std::uint64_t bytes = wire_bytes_of(message);
    counters_.add(ORR_CTR_LINK_RX_BYTES, bytes);
    counts_.rx_messages.add();
    counts_.rx_bytes.add(bytes);
}

void Forwarder::count_loss(const Message& message, Status status) {
    if (message.op != kOpNote && hooks_.lost && hooks_.comes_here(message.source)) hooks_.lost(message);
    refuse(message, status);
}

void Forwarder::refuse(const Message& message, Status status) {
    const bool comes_here = hooks_.comes_here(message.source);
    counters_.add(comes_here ? ORR_CTR_LINK_DROPPED : ORR_CTR_LINK_DENIED);
    if (comes_here) hooks_.cannot(message, status);
}

bool Forwarder::waits_for(const Message& message, const LinkPort* onward) const {
    const bool forced = in_a_hurry() && reader_.taken() < force_to_;
    return !forced || !hooks_.is_stuck || !hooks_.is_stuck(onward, onward->lane_of(message));
}

Passed Forwarder::give(const Message& message, LinkPort* onward) {
    // Never back to where it came from.
    if (!hooks_.comes_here(message.source) || onward == nullptr || message.hops >= kMostHops ||
        hooks_.comes_here(message.destination))
        return {};
    // Drivers ask again, so a note is of no epoch, and nothing of their pair is lost with it.
    if (message.op != kOpNote && hooks_.may_pass && !hooks_.may_pass(message)) return {};
    return onward->pass({.message = message, .from = reader_.channel(), .by = due_});
}

void Forwarder::wait_at(LinkPort* onward, const Message& message) {
    waits_at_ = onward;
    onward->wait_to_pass(message, due_);
}

bool Forwarder::pass(const Message& message) {
    if (message.op == kOpMember) {
        take_member(message);
        return true;
    }
    const Multicast* const all = hooks_.multicast ? hooks_.multicast(message.destination) : nullptr;
    if (all != nullptr && is_for_all(message)) return pass_to_all(message, *all);
    if (all != nullptr && hooks_.reductions != nullptr && message.op == kOpRead && message.function != 0 &&
        (message.function & kPart) == 0)
        return ask_all(message, *all);
    if (hooks_.reductions != nullptr && message.op == kOpAnswer && (message.function & kPart) != 0)
        if (const auto passed = pass_part(message)) return *passed;
    // Some had it, maybe, when the members were forgotten: the next one begins anew.
    copied_ = 0;
    all_through_ = 0;
    asks_ = 0;
    LinkPort* const onward = all != nullptr ? nullptr : hooks_.onward(message.destination);
    const Passed passed = give(message, onward);
    if (passed.what == Passed::kNoRoom && waits_for(message, onward)) {
        wait_at(onward, message);
        return false;
    }
    count_arrival(message);
    if (passed.what == Passed::kGone)
        gone(message, onward, passed.through);
    else if (all != nullptr)
        refuse(message, kNoRoute);  // a read that is not to be combined: nothing that others sent is lost
    else
        count_loss(message, onward == nullptr ? kNoRoute : kAnswerLost);
    return true;
}

// By the turn that its sender has there.
void Forwarder::gone(const Message& message, LinkPort* onward, ModelTime through) {
    counters_.add(ORR_CTR_LINK_FORWARDED);
    set_pace(message, through);
    turn_at_ = onward;
    turn_lane_ = onward->lane_of(message);
    served_.push_back(message.source);
}

// It goes no further than here.
void Forwarder::take_member(const Message& message) {
    count_arrival(message);
    if (!hooks_.comes_here(message.source)) {
        counters_.add(ORR_CTR_LINK_DENIED);
    } else if (!hooks_.member || !hooks_.member(message)) {
        counters_.add(ORR_CTR_LINK_DROPPED);
        // What follows for it would not be copied: so it is a loss of that pair, of which software hears.
        Message pair = message;
        pair.destination = static_cast<std::uint16_t>(message.value & 0xffff);
        pair.epoch = static_cast<std::uint16_t>(message.value >> 16);
        if (pair.destination != 0 && hooks_.lost) hooks_.lost(pair);
    }
}

bool Forwarder::copy_to_all(const Message& message, const Multicast& all, const auto& prepare,
                            const auto& lose) {
    bool waits = false;
    for (unsigned n = 0; n < all.members.size(); ++n) {
        if ((copied_ >> n & 1) != 0) continue;
        Message copy = all.copy(message, n);
        LinkPort* const onward = hooks_.onward(copy.destination);
        const Passed passed = prepare(copy) ? give(copy, onward) : Passed{};
        if (passed.what == Passed::kNoRoom && waits_for(copy, onward)) {
            // At one port at a time: what waits is one event, and tries all again.
            if (!std::exchange(waits, true)) wait_at(onward, copy);
            continue;
        }
        copied_ |= std::uint32_t{1} << n;
        if (passed.what == Passed::kGone) {
            counters_.add(ORR_CTR_LINK_FORWARDED);
            all_through_ = std::max(all_through_, passed.through);
            onward->end_turn(onward->lane_of(copy), due_);
        } else {
            lose(copy, n, onward);
        }
    }
    if (waits) return false;
    count_arrival(message);
    set_pace(message, std::exchange(all_through_, 0));
    copied_ = 0;
    return true;
}

bool Forwarder::pass_to_all(const Message& message, const Multicast& all) {
    return copy_to_all(
        message, all, [&](const Message&) { return all.takes(message); },
        [&](const Message& copy, unsigned, const LinkPort*) { count_loss(copy, kAnswerLost); });
}

// Who has been asked may have answered before all have. It waits for room as a write to all does, and for no
// answer.
bool Forwarder::ask_all(const Message& message, const Multicast& all) {
    Reductions& reductions = *hooks_.reductions;
    if (asks_ == 0) {
        if (hooks_.comes_here(message.source) && all.takes(message))
            asks_ = reductions.begin(hooks_.port, message, all);
        if (asks_ == 0) {
            count_arrival(message);
            refuse(message, all.takes(message) ? kBusy : kAnswerLost);
            return true;
        }
    }
    const bool asked = copy_to_all(
        message, all,
        [&](Message& copy) {
            copy.tag = asks_;
            copy.function |= kPart;
            return true;
        },
        [&](const Message& copy, unsigned n, const LinkPort* onward) {
            counters_.add(ORR_CTR_LINK_DROPPED);
            reductions.lose(asks_, n, onward == nullptr ? kNoRoute : kAnswerLost);
            if (hooks_.lost) hooks_.lost(copy);
        });
    if (asked) asks_ = 0;
    return asked;
}

std::optional<bool> Forwarder::pass_part(const Message& part) {
    Reductions& reductions = *hooks_.reductions;
    if (!hooks_.comes_here(part.source)) return std::nullopt;
    // Behind one of its that was lost none is taken.
    const bool good = !hooks_.may_pass || hooks_.may_pass(part);
    switch (reductions.take(part, reader_.channel(), good)) {
        case Reductions::Took::kNone:
            return std::nullopt;
        case Reductions::Took::kPart:
            count_arrival(part);
            return true;
        case Reductions::Took::kAll:
            break;
    }
    const Reductions::Whole whole = reductions.whole(part.tag);
    LinkPort* const onward = hooks_.onward(part.destination);
    Passed passed;
    if (onward != nullptr)
        passed = onward->pass(
            {.message = whole.answer, .from = reader_.channel(), .by = due_, .data = whole.data});
    if (passed.what == Passed::kNoRoom && waits_for(whole.answer, onward)) {
        whole_ = part.tag;
        wait_at(onward, whole.answer);
        return false;
    }
    count_arrival(part);
    if (passed.what == Passed::kGone)
        gone(whole.answer, onward, passed.through);
    else
        count_loss(part, kAnswerLost);
    reductions.end(part.tag);
    whole_ = 0;
    return true;
}

}  // namespace orrery::emu::link
