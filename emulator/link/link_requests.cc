// Requests of this card and their answers, and what it answers itself.
#include <algorithm>
#include <bit>
#include <utility>

#include "emulator/link/shared_link.h"

namespace orrery::emu {

static_assert(PeerPort::kMostRead == link::kMaxReadBytes);

LinkAsk SharedLink::ask(std::uint32_t node, std::uint64_t offset, link::Transmitter::Request request,
                        const link::Requests::Request& asked, ModelTime at) {
    if (!up()) return {.fault = ORR_FAULT_PEER_DOWN};
    look_at_peer();
    request.tag = requests_.add(asked);
    if (request.tag == 0) {
        tell_silent(node);
        return {.fault = ORR_FAULT_PEER_BUSY};
    }
    const unsigned lane = transmitter_.lane_of(node);
    if (!has_turn(lane)) {
        requests_.take(request.tag, node);
        return {};
    }
    const ModelTime when = in_step_ ? events_.now() : std::min(at, events_.now());
    const link::Transmitter::Asked sent = transmitter_.ask(events_.to_system(when), node, offset, request);
    // Before all requests are ended, maybe: whoever asked does not know this one yet.
    if (!sent.room) requests_.take(request.tag, node);
    check_transmitter();
    if (sent.fault != ORR_FAULT_NONE || sent.room) call_next(lane);
    if (!sent.room) return {.fault = sent.fault};
    keep_time();
    return {.tag = request.tag};
}

// Why it is asked for nothing more.
void SharedLink::tell_silent(std::uint32_t node) {
    constexpr std::uint32_t kTellFrom = link::Requests::kSlots / 8;
    if (told_silent_[node]) return;
    const std::uint32_t abandoned = requests_.abandoned(node);
    if (abandoned < kTellFrom) return;
    told_silent_.set(node);
    errors_.note(
        "link {}: node {} has not answered {} requests that nobody waits for any more: until it does, more "
        "wait here",
        config_.port, node, abandoned);
}

LinkAsk SharedLink::read(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to, ModelTime at,
                         Asker& asker, std::uint16_t reduction) {
    const link::Requests::Request asked{.asker = &asker,
                                        .node = static_cast<std::uint16_t>(node),
                                        .epoch = static_cast<std::uint16_t>(epoch_of(node)),
                                        .to = to};
    return ask(node, offset,
               {.op = link::kOpRead, .bytes = static_cast<std::uint32_t>(to.size()), .reduction = reduction},
               asked, at);
}

LinkAsk SharedLink::atomic(std::uint32_t node, std::uint64_t offset, const LinkAtomic& atomic, ModelTime at,
                           Asker& asker) {
    if (offset % atomic.bytes != 0) return {.fault = ORR_FAULT_MISALIGNED};
    const link::Requests::Request asked{.asker = &asker,
                                        .node = static_cast<std::uint16_t>(node),
                                        .epoch = static_cast<std::uint16_t>(epoch_of(node)),
                                        .to = {}};
    return ask(node, offset, {.op = link::kOpAtomic, .bytes = atomic.bytes, .atomic = atomic}, asked, at);
}

bool SharedLink::answer_room(const link::Message& request) {
    // To a peer that is gone nothing goes, whatever room there is.
    if (!up()) return true;
    look_at_peer();
    const unsigned lane = transmitter_.back_lane_of(request.source);
    if (!has_turn(lane)) return false;
    return transmitter_.answer_room(request.source, request.op == link::kOpRead ? request.bytes : 0);
}

void SharedLink::give_answer(const link::Message& request, const link::Transmitter::Answer& answer) {
    if (!up()) return;
    look_at_peer();
    const unsigned lane = transmitter_.back_lane_of(request.source);
    const bool flushed = flush_answers(lane);
    if (!up()) return;
    if (!flushed || !transmitter_.answer_room(request.source, answer.data.size())) {
        if (request.tag != 0) owe_answer(lane, request, answer);
        return;
    }
    send_answer(request, answer);
    if (up()) call_next(lane);
}

void SharedLink::send_answer(const link::Message& request, const link::Transmitter::Answer& answer) {
    // One that comes late is answered at its time, but not by a card that has told others otherwise.
    const ModelTime now = events_.system_now();
    transmitter_.answer(in_step_ ? std::max(now, request.arrival_ps) : request.arrival_ps, request, answer);
    // In the middle of what the peer sent, which stays until that is looked through.
    if (transmitter_.is_broken() && !transmitter_.line().failed()) return;
    check_transmitter();
}

void SharedLink::owe_answer(unsigned lane, const link::Message& request,
                            const link::Transmitter::Answer& answer) {
    const std::uint64_t bytes = answer.data.size();
    Owed& to = owed_to_[request.source];
    // Who asks on and takes no answers gets no more, and nobody else notices.
    if (to.answers == kMostOwedAnswers) {
        receiver_.count_denied();
        return;
    }
    const bool lost = to.bytes + bytes > kMostOwedBytes - owed_bytes_;
    OwedAnswer owed{.request = request,
                    .status = lost ? link::kAnswerLost : answer.status,
                    .value = lost ? 0 : answer.value,
                    .data = {}};
    if (!lost) owed.data.assign(answer.data.begin(), answer.data.end());
    ++to.answers;
    to.bytes += owed.data.size();
    owed_bytes_ += owed.data.size();
    owed_answers_[lane].push_back(std::move(owed));
    may_wait_ = true;
    keep_time();
}

bool SharedLink::flush_answers(unsigned lane) {
    std::deque<OwedAnswer>& owed = owed_answers_[lane];
    while (up() && !owed.empty() &&
           transmitter_.answer_room(owed.front().request.source, owed.front().data.size())) {
        const OwedAnswer first = std::move(owed.front());
        owed.pop_front();
        owed_bytes_ -= first.data.size();
        const auto to = owed_to_.find(first.request.source);
        to->second.bytes -= first.data.size();
        if (--to->second.answers == 0) owed_to_.erase(to);
        send_answer(first.request, {.status = first.status, .data = first.data, .value = first.value});
        if (transmitter_.is_broken()) break;
    }
    return up() && owed.empty();
}

void SharedLink::forget_answers() {
    for (std::deque<OwedAnswer>& owed : owed_answers_)
        owed.clear();
    owed_to_.clear();
    owed_bytes_ = 0;
}

void SharedLink::cannot_pass(const link::Message& message, link::Status status) {
    if (message.op == link::kOpRead || message.op == link::kOpAtomic)
        give_answer(message, {.status = status});
}

void SharedLink::wait_to_answer() {
    if (!up()) return;
    waits_to_answer_ = true;
    wait_for_room(transmitter_.back_lane_of(receiver_.unanswered()->source), arrival_);
}

bool SharedLink::take_replies() {
    auto pumped = replies_.pump();
    if (!pumped) {
        refuse(pumped.error());
        return true;
    }
    events_.schedule(reply_, replies_.wanted());
    stop_ticking();
    return taken() || *pumped;
}

bool SharedLink::look_for_replies() {
    if (auto looked = replies_.look(); !looked)
        refuse(looked.error());
    else
        events_.schedule(reply_, replies_.wanted());
    return true;
}

// All that went by this port.
void SharedLink::end_requests() {
    told_silent_.reset();
    requests_.end(
        [](const link::Requests::Request&) { return true; },
        [](std::uint32_t tag, Asker& asker) { asker.answered(tag, {.fault = ORR_FAULT_PEER_DOWN}); });
}

void SharedLink::routes_changed() {
    look_again();
    // Of a way that is another now nothing comes any more.
    requests_.end(
        [this](const link::Requests::Request& request) {
            return !comes_here(request.node) || epoch_of(request.node) != request.epoch;
        },
        [](std::uint32_t tag, Asker& asker) { asker.answered(tag, {.fault = ORR_FAULT_PEER_DOWN}); });
    requests_.each_asker([](Asker& asker) { asker.ways_changed(); });
}

void SharedLink::refused(std::uint32_t node, std::uint32_t fault) {
    PeerPort::Refusals& refusals = refusals_[node];
    ++refusals.count;
    refusals.fault = fault;
    counts_.refused.add();
    counts_.refused_by.set(node | std::uint64_t{fault} << 16);
    // A peer that says so without end is worth a few lines.
    if (hooks_.refused && std::has_single_bit(refusals.count)) hooks_.refused(config_.port, node, fault);
}

}  // namespace orrery::emu
