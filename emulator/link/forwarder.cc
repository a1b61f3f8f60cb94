#include "emulator/link/forwarder.h"

#include <algorithm>
#include <utility>

#include <orrery/hw/link.h>

#include "emulator/link/link_port.h"
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
      bytes_per_second_(bytes_per_second) {}

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
    drain_to_ = 0;
    end_drains();
}

void Forwarder::drain() {
    ++drains_;
    drain_to_ = reader_.is_open() ? reader_.produced() : 0;
    if (in_a_hurry() && waits_at_ == nullptr) events_.schedule(due_, events_.now());
    end_drains();
}

std::expected<void, std::string> Forwarder::look() {
    const std::uint64_t produced = reader_.produced();
    if (produced == reader_.taken()) return {};
    const auto next = reader_.look_at(produced);
    if (!next) return std::unexpected(next.error());
    events_.schedule(due_, events_.from_system(std::max(next->arrival_ps, next_of(next->source))));
    return {};
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
    reader_.needs_time(false);
    ModelTime time_on_wire = 0;
    unsigned done = 0;
    for (;; ++done) {
        const std::uint64_t produced = reader_.produced();
        if (produced == reader_.taken()) {
            drain_to_ = 0;  // also if the peer has taken back what it had said
            break;
        }
        const auto next = reader_.look_at(produced);
        if (!next) return std::unexpected(next.error());
        const ModelTime now = events_.system_now();
        // What has come all at once takes the time that it would have taken on the wire, as in Receiver.
        const ModelTime least = done < kBatchMessages ? 0 : later(now, time_on_wire);
        const ModelTime at =
            in_a_hurry() ? least : std::max({next->arrival_ps, next_of(next->source), least});
        if (at > now) {
            reader_.needs_time(next->arrival_ps <= now);
            events_.schedule(due_, events_.from_system(at));
            break;
        }
        if (!is_in_turn(*next)) end_turn();
        Message goes = *next;
        if (const ModelTime latest = later(now, kMostAhead); goes.arrival_ps > latest) {
            goes.arrival_ps = latest;
            goes.head_ps = std::min(goes.head_ps, latest);
        }
        if (!pass(goes)) {
            reader_.needs_time(true);
            break;
        }
        reader_.take(*next);
        time_on_wire += duration_ps(kLeastBytes + next->bytes, bytes_per_second_);
    }
    if (waits_at_ == nullptr) end_turn();
    end_drains();
    return done > 0;
}

ModelTime Forwarder::next_of(std::uint32_t node) const {
    const auto pace = std::ranges::find(paces_, node, &Pace::node);
    return pace == paces_.end() ? 0 : pace->next;
}

void Forwarder::set_pace(std::uint32_t node, ModelTime through) {
    const ModelTime now = events_.system_now();
    std::erase_if(paces_, [&](const Pace& pace) { return pace.node == node || pace.next <= now; });
    if (through > switching_) paces_.push_back({node, through - switching_});
}

bool Forwarder::pass(const Message& message) {
    LinkPort* const onward = hooks_.onward(message.destination);
    const bool comes_here = hooks_.comes_here(message.source);
    Passed passed;
    // Never back to where it came from.
    if (comes_here && message.op != kOpNote && onward != nullptr && message.hops < kMostHops &&
        !hooks_.comes_here(message.destination) && (!hooks_.may_pass || hooks_.may_pass(message)))
        passed = onward->pass({.message = message, .from = reader_.channel(), .by = due_});
    if (passed.what == Passed::kNoRoom) {
        waits_at_ = onward;
        onward->wait_to_pass(message, due_);
        return false;
    }
    counters_.add(ORR_CTR_LINK_RX_MESSAGES);
    const std::uint64_t bytes = wire_bytes_of(message);
    counters_.add(ORR_CTR_LINK_RX_BYTES, bytes);
    counts_.rx_messages.add();
    counts_.rx_bytes.add(bytes);
    if (passed.what == Passed::kGone) {
        counters_.add(ORR_CTR_LINK_FORWARDED);
        set_pace(message.source, passed.through);
        turn_at_ = onward;
        turn_lane_ = onward->lane_of(message);
        served_.push_back(message.source);
    } else {
        if (comes_here && hooks_.lost) hooks_.lost(message);
        counters_.add(comes_here ? ORR_CTR_LINK_DROPPED : ORR_CTR_LINK_DENIED);
        if (comes_here) hooks_.cannot(message, onward == nullptr ? kNoRoute : kAnswerLost);
    }
    return true;
}

}  // namespace orrery::emu::link
