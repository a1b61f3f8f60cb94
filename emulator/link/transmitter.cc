#include "emulator/link/transmitter.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "emulator/link/frame.h"
#include "emulator/link/grants.h"
#include "emulator/link/reach.h"
#include "emulator/link/switches.h"

namespace orrery::emu::link {

Transmitter::Transmitter(const Line::Config& line, Counters& counters, Counts& counts, Hooks hooks,
                         Faults* faults)
    : line_(line, faults, counts),
      latency_(line.latency),
      counters_(counters),
      counts_(counts),
      hooks_(std::move(hooks)),
      faults_(faults),
      port_(line.port) {}

void Transmitter::open(SharedArea outbox) {
    close();
    outbox_ = std::move(outbox);
    grants_.forget();
    peer_node_ = 0;
    forward_ = is_switch_;
    lanes_[kNear].open(outbox_->near, line_.frames(), is_broken_);
    lanes_[kFar].open(outbox_->far, line_.frames(), is_broken_);
    lanes_[kNearBack].open(outbox_->near_back, line_.frames(), is_broken_);
    lanes_[kFarBack].open(outbox_->far_back, line_.frames(), is_broken_);
}

void Transmitter::close() {
    set_forward(false);
    for (Writer& lane : lanes_)
        lane.close();
    outbox_.reset();
    broken_.reset();
    is_broken_ = false;
    in_step_ = false;
}

void Transmitter::set_forward(bool on) {
    forward_ = on && is_open();
    if (forward_) return;
    for (Writer* far : {&lanes_[kFar], &lanes_[kFarBack]}) {
        counters_.add(ORR_CTR_LINK_DROPPED, far->pending().size());
        far->pending().clear();
    }
}

std::uint64_t Transmitter::peer_alive() const {
    return load_relaxed(outbox_->alive);
}

void Transmitter::break_link(std::string why) {
    if (!broken_) broken_ = std::move(why);
    is_broken_ = true;
}

const std::optional<std::string>& Transmitter::broken() const {
    for (const Writer& lane : lanes_) {
        if (lane.broken()) return lane.broken();
    }
    if (line_.failed()) return line_.failed();
    return broken_;
}

void Transmitter::keep_step(const EventQueue& clock) {
    in_step_ = true;
    for (Writer& lane : lanes_)
        lane.keep_step(&clock);
}

Reach Transmitter::reach(std::uint32_t node) const {
    return load_reach(outbox_->reach[node]);
}

std::optional<std::vector<SwitchWords>> Transmitter::switches() const {
    return load_switches(*outbox_.operator->());
}

std::uint32_t Transmitter::refusal(std::uint32_t op, std::uint32_t node, std::uint64_t offset,
                                   std::uint64_t bytes) {
    std::uint32_t fault = ORR_FAULT_NONE;
    if (!has_way(node)) {
        fault = ORR_FAULT_NO_ROUTE;
    } else if (bytes != 0 && lane_of(node) != kFar &&
               !grants_.cover(*outbox_.operator->(),
                              {.node = node_, .rights = rights_for(op), .offset = offset, .bytes = bytes})) {
        fault = ORR_FAULT_PEER_DENIED;
    }
    if (fault != ORR_FAULT_NONE) counters_.add(ORR_CTR_LINK_DENIED);
    return fault;
}

Message Transmitter::message_to(std::uint32_t node, std::uint32_t op, ModelTime now,
                                std::uint64_t offset) const {
    Message message{};
    message.op = op;
    message.send_ps = now;
    message.offset = offset;
    message.source = static_cast<std::uint16_t>(node_);
    message.destination = static_cast<std::uint16_t>(node);
    message.epoch = static_cast<std::uint16_t>(hooks_.epoch_of(node));
    message.key = hooks_.key_of(node);
    return message;
}

// Whether it must not go behind one that is lost.
bool Transmitter::gated(const Message& message, const Writer& to) const {
    return message.hops != 0 || &to == &lanes_[kFar] || &to == &lanes_[kFarBack];
}

bool Transmitter::publish(Writer& to, Message& message) {
    const Fate fate = faults_ == nullptr ? Fate::kGoes : faulty(to, message);
    if (fate == Fate::kGoes) put(to, message);
    if (fate == Fate::kLost && gated(message, to) && !is_switch_) set_forward(false);
    return fate != Fate::kLost;
}

// The time that was charged for a message that is lost stays so.
Transmitter::Fate Transmitter::faulty(Writer& to, Message& message) {
    const Fault fault = faults_->at(FaultPoint::kLink, port_);
    switch (fault.action) {
        case FaultAction::kDrop:
            // Its room must not be on the account of the message that comes next.
            if (payload_of(message) != 0) to.take_back(message);
            return Fate::kLost;
        case FaultAction::kFail:
            break_link("the fault plan cut it");
            return Fate::kLost;
        case FaultAction::kDelay:
            // Messages do not overtake each other: those behind it are late too.
            line_.delay(fault.delay);
            message.arrival_ps = later(message.arrival_ps, fault.delay);
            message.head_ps = later(message.head_ps, fault.delay);
            return Fate::kGoes;
        case FaultAction::kDuplicate: {
            // Twice it would be another one.
            if (message.op == kOpAtomic) return Fate::kGoes;
            put(to, message);
            message.damaged = 0;
            const bool again = to.room(0) && (payload_of(message) == 0 || to.add_payload_again(message));
            return again ? Fate::kGoes : Fate::kGone;
        }
        case FaultAction::kCorrupt:
            if (payload_of(message) != 0) {
                to.flip_payload(message, Faults::bit_of(fault, std::uint64_t{message.bytes} * 8));
            } else if (message.op != kOpRead && message.op != kOpMember) {
                // Not bit 63: that is a value's own way to say that something failed.
                message.value ^= std::uint64_t{1} << Faults::bit_of(fault, 63);
            }
            return Fate::kGoes;
        case FaultAction::kForge:
            // Answers and notes have none.
            if (message.op != kOpAnswer && message.op != kOpNote)
                message.key ^= std::uint64_t{1} << Faults::bit_of(fault, 64);
            return Fate::kGoes;
        case FaultAction::kStale:
            if (message.op == kOpAnswer || message.op == kOpNote || message.key == 0) return Fate::kGoes;
            if (first_key_ == 0) first_key_ = message.key;
            message.key = first_key_;
            return Fate::kGoes;
        default:
            return Fate::kGoes;
    }
}

void Transmitter::put(Writer& to, Message& message) {
    to.put(message);
    if (in_step_) hooks_.sent(message.arrival_ps);
    if (hooks_.left) hooks_.left(message, static_cast<unsigned>(&to - lanes_.data()));
    count_and_wake(wire_bytes_of(message));
}

void Transmitter::count_and_wake(std::uint64_t bytes) {
    counters_.add(ORR_CTR_LINK_TX_MESSAGES);
    counters_.add(ORR_CTR_LINK_TX_BYTES, bytes);
    counts_.tx_messages.add();
    counts_.tx_bytes.add(bytes);
    // Behind the message, and before the owner's last look for one.
    if (swap_word(outbox_->need_wakeup, 0) != 0) hooks_.wake();
}

void Transmitter::want_credit() {
    // Before the last look at the credits, behind which the owner swaps it, too.
    swap_word(outbox_->need_credit, 1);
}

void Transmitter::want_credit_in_step() {
    swap_word(outbox_->credit_in_step, 1);
}

void Transmitter::flush(Writer& to) {
    while (!to.pending().empty() && to.room(payload_of(to.pending().front().message))) {
        Writer::Pending first = to.pending().front();
        to.pending().pop_front();
        if (has_payload(first.message.op)) to.add_payload(first.message, &first.data);
        publish(to, first.message);
    }
    to.forget_refusal();
}

void Transmitter::put_off(Writer& to, const Message& message, std::span<const std::byte> data) {
    may_have_pending_ = true;
    to.pending().push_back({message, 0});
    if (!data.empty()) std::memcpy(&to.pending().back().data, data.data(), data.size());
}

LinkSend Transmitter::write(ModelTime now, std::uint32_t node, std::uint64_t offset,
                            std::span<const std::byte> data) {
    // How a write is cut into messages depends on its size alone, never on how fast the peer is.
    const std::uint64_t bytes = std::min(std::uint64_t{data.size()}, kMaxWriteBytes);
    if (bytes == 0) return {};
    if (const std::uint32_t fault = refusal(kOpWrite, node, offset, bytes); fault != ORR_FAULT_NONE)
        return {.fault = fault};
    const Lane lane = lane_of(node);
    Writer& to = lanes_.at(lane);
    flush(lane);
    const bool room = to.pending().empty() && to.room(bytes);
    if (is_broken()) return {.fault = ORR_FAULT_PEER_DOWN};
    if (!room) return {};
    Message message = message_to(node, kOpWrite, now, offset);
    message.bytes = static_cast<std::uint32_t>(bytes);
    to.add_payload(message, data.data());
    const ModelTime sent = line_.send(message, now, bytes);
    if (is_broken()) return {.fault = ORR_FAULT_PEER_DOWN};
    publish(to, message);
    return {.bytes = static_cast<std::size_t>(bytes), .sent_ps = sent};
}

std::uint32_t Transmitter::post(ModelTime now, std::uint32_t node, std::uint64_t offset,
                                std::span<const std::byte> data) {
    if (const std::uint32_t fault = refusal(kOpWrite, node, offset, data.size()); fault != ORR_FAULT_NONE)
        return fault;
    const Lane lane = lane_of(node);
    Writer& to = lanes_.at(lane);
    flush(lane);
    if (is_broken() || to.pending().size() == Writer::kMaxPending) return ORR_FAULT_PEER_DOWN;
    Message message = message_to(node, kOpWrite, now, offset);
    message.bytes = static_cast<std::uint32_t>(data.size());
    line_.send(message, now, data.size());
    if (is_broken()) return ORR_FAULT_PEER_DOWN;
    put_off(to, message, data);
    flush(lane);
    return is_broken() ? ORR_FAULT_PEER_DOWN : ORR_FAULT_NONE;
}

// It is made in its place at once: to copy what has just been written in pieces takes as long as all of this.
void Transmitter::put_signal(Writer& to, ModelTime now, std::uint32_t node, std::uint64_t offset,
                             std::uint64_t value) {
    const std::uint64_t epoch = hooks_.epoch_of(node), key = hooks_.key_of(node);
    const std::uint64_t index = to.index(), payload_end = to.payload_end();
    const Line::Arrival arrival = line_.send_signal(now);
    const auto made = [&](std::uint32_t crc) {
        return Message{.op = kOpSignal,
                       .bytes = 0,
                       .index = index,
                       .send_ps = now,
                       .arrival_ps = arrival.end,
                       .offset = offset,
                       .value = value,
                       .payload_at = 0,
                       .source = static_cast<std::uint16_t>(node_),
                       .destination = static_cast<std::uint16_t>(node),
                       .payload_end = payload_end,
                       .head_ps = arrival.head,
                       .key = key,
                       .compare = 0,
                       .tag = 0,
                       .function = 0,
                       .status = 0,
                       .epoch = static_cast<std::uint16_t>(epoch),
                       .hops = 0,
                       .crc = crc,
                       .damaged = 0,
                       .noise = 0};
    };
    const std::uint32_t crc = to.frames() ? header_crc(made(0)) : 0;
    ::new (&to.place()) Message(made(crc));
    to.put_made();
    if (in_step_) hooks_.sent(arrival.end);
    if (hooks_.left) hooks_.left(made(crc), static_cast<unsigned>(&to - lanes_.data()));
    count_and_wake(sizeof(orr_semaphore));
}

std::uint32_t Transmitter::signal(ModelTime now, std::uint32_t node, std::uint64_t offset,
                                  std::uint64_t value) {
    if (offset % sizeof(orr_semaphore) != 0) return ORR_FAULT_MISALIGNED;
    if (const std::uint32_t fault = refusal(kOpSignal, node, offset, sizeof(orr_semaphore));
        fault != ORR_FAULT_NONE)
        return fault;
    const Lane lane = lane_of(node);
    Writer& to = lanes_[lane];
    if (!is_plain(to)) [[unlikely]]
        return signal_behind(to, lane, now, node, offset, value);
    put_signal(to, now, node, offset, value);
    return ORR_FAULT_NONE;
}

// What waits.
std::uint32_t Transmitter::signal_behind(Writer& to, Lane lane, ModelTime now, std::uint32_t node,
                                         std::uint64_t offset, std::uint64_t value) {
    flush(lane);
    const bool room = to.pending().empty() && to.room(0);
    if (is_broken()) return ORR_FAULT_PEER_DOWN;
    if (!room && (!in_step_ || to.pending().size() == Writer::kMaxPending)) {
        to.refuse();
        may_have_pending_ = true;
        return ORR_FAULT_PEER_BUSY;
    }
    Message message = message_to(node, kOpSignal, now, offset);
    message.value = value;
    line_.send(message, now, sizeof(orr_semaphore));
    if (is_broken()) return ORR_FAULT_PEER_DOWN;
    if (!room) {
        put_off(to, message);
        return ORR_FAULT_NONE;
    }
    publish(to, message);
    return ORR_FAULT_NONE;
}

Transmitter::Asked Transmitter::ask(ModelTime now, std::uint32_t node, std::uint64_t offset,
                                    const Request& request) {
    if (const std::uint32_t fault = refusal(request.op, node, offset, request.bytes); fault != ORR_FAULT_NONE)
        return {.fault = fault};
    Message message = message_to(node, request.op, now, offset);
    message.bytes = request.bytes;
    message.tag = request.tag;
    message.value = request.atomic.operand;
    message.compare = request.atomic.compare;
    message.function = static_cast<std::uint16_t>(request.atomic.function | request.reduction);
    return send_now(message, now);
}

Transmitter::Asked Transmitter::send_now(Message& message, ModelTime now) {
    const Lane lane = lane_of(message.destination);
    Writer& to = lanes_.at(lane);
    flush(lane);
    const bool room = to.pending().empty() && to.room(0);
    if (is_broken()) return {.fault = ORR_FAULT_PEER_DOWN};
    if (!room) return {};
    line_.send(message, now, wire_bytes_of(message));
    if (is_broken() || !publish(to, message)) return {.fault = ORR_FAULT_PEER_DOWN};
    return {.room = true};
}

LinkTold Transmitter::tell(ModelTime now, std::uint32_t node, const BarrierWord& word) {
    if (!has_way(node)) {
        counters_.add(ORR_CTR_LINK_DENIED);
        return {.fault = ORR_FAULT_NO_ROUTE};
    }
    Message message = message_to(node, word.fails ? kOpLeave : kOpArrive, now, word.slot);
    message.value = word.value;
    message.compare = word.last;
    message.key = word.key;
    const Asked sent = send_now(message, now);
    return {.fault = sent.fault, .sent = sent.room};
}

bool Transmitter::answer_room(std::uint32_t node, std::uint64_t bytes) {
    const Lane lane = back_lane_of(node);
    flush(lane);
    return lanes_.at(lane).pending().empty() && lanes_.at(lane).room(bytes);
}

void Transmitter::answer(ModelTime at, const Message& request, const Answer& answer) {
    // Nothing goes behind a gap: who asked hears of that when its way ends.
    const Lane lane = back_lane_of(request.source);
    if (lane == kFarBack && !forward_) return;
    Writer& to = lanes_.at(lane);
    Message message{};
    message.op = kOpAnswer;
    message.send_ps = at;
    message.source = request.destination;
    message.destination = request.source;
    message.epoch = request.epoch;
    message.tag = request.tag;
    message.function = request.op == kOpRead && (request.function & kPart) != 0 ? request.function : 0;
    message.status = answer.status;
    message.value = answer.value;
    message.bytes = static_cast<std::uint32_t>(answer.data.size());
    if (message.bytes != 0) to.add_payload(message, answer.data.data());
    line_.send(message, at, wire_bytes_of(message));
    if (is_broken() || publish(to, message) || is_broken() || lane == kFarBack || !to.room(0)) return;
    // A plan that loses answers does not lose this.
    message.bytes = message.payload_at = 0;
    message.value = 0;
    message.status = kAnswerLost;
    put(to, message);
}

std::uint32_t Transmitter::note(ModelTime now, std::uint32_t node, std::span<const std::byte> data) {
    if (node == 0 && !to_switch_)
        node = static_cast<std::uint32_t>(std::min<std::uint64_t>(peer_node_, ORR_NODES));
    if (node == 0 || node >= ORR_NODES || !has_way(node)) return ORR_FAULT_NO_ROUTE;
    const Lane lane = lane_of(node);
    Writer& to = lanes_.at(lane);
    flush(lane);
    const bool room = to.pending().empty() && to.room(data.size());
    if (is_broken()) return ORR_FAULT_PEER_DOWN;
    if (!room) return ORR_FAULT_PEER_BUSY;
    Message message = message_to(node, kOpNote, now, 0);
    message.epoch = 0;
    message.key = 0;
    message.bytes = static_cast<std::uint32_t>(data.size());
    to.add_payload(message, data.data());
    line_.send(message, now, data.size());
    if (is_broken()) return ORR_FAULT_PEER_DOWN;
    publish(to, message);
    return is_broken() ? ORR_FAULT_PEER_DOWN : ORR_FAULT_NONE;
}

std::uint32_t Transmitter::member(ModelTime now, std::uint32_t multicast, std::uint64_t base,
                                  std::uint64_t who) {
    if (!to_switch_ || !has_way(multicast)) return ORR_FAULT_NO_ROUTE;
    Writer& to = lanes_[kFar];
    flush(kFar);
    const bool room = to.pending().empty() && to.room(0);
    if (is_broken()) return ORR_FAULT_PEER_DOWN;
    if (!room && to.pending().size() == Writer::kMaxPending) return ORR_FAULT_PEER_BUSY;
    Message message = message_to(multicast, kOpMember, now, base);
    message.value = who;
    // That its copies carry.
    message.key = hooks_.key_of(static_cast<std::uint32_t>(who & 0xffff));
    line_.send(message, now, wire_bytes_of(message));
    if (is_broken()) return ORR_FAULT_PEER_DOWN;
    if (!room) {
        put_off(to, message);
        return ORR_FAULT_NONE;
    }
    return publish(to, message) && !is_broken() ? ORR_FAULT_NONE : ORR_FAULT_PEER_DOWN;
}

Passed Transmitter::pass(ModelTime now, const Passing& passing, ModelTime switching) {
    if (!forward_) return {.what = Passed::kLost};
    const Lane lane = lane_of(passing.message);
    // A switch has no card pass on for another.
    if (is_switch_ && !to_switch_ && (lane == kFar || lane == kFarBack)) return {.what = Passed::kLost};
    Writer& to = lanes_.at(lane);
    flush(lane);
    Message message = passing.message;
    // The next card would refuse it, and this one with it.
    if (later(later(message.arrival_ps, switching), latency_) >= kLatestSystemTime)
        return {.what = Passed::kLost};
    const bool room = to.pending().empty() && to.room(payload_of(message));
    if (is_broken() || !forward_) return {.what = Passed::kLost};
    if (!room) return {.what = Passed::kNoRoom};
    if (!passing.data.empty())
        to.add_payload(message, passing.data.data());
    else if (payload_of(message) != 0)
        to.add_payload(message, passing.from, message.payload_at);
    ++message.hops;
    message.crc = message.damaged = 0;
    message.noise = 0;
    message.send_ps = message.arrival_ps;
    const std::uint64_t bytes = wire_bytes_of(message);
    const ModelTime takes = line_.takes(bytes);
    // Not before its end can be through; a picosecond earlier, so that what one leaves of it goes to the
    // next.
    const ModelTime end = later(message.arrival_ps, switching);
    ModelTime begin = std::max(later(message.head_ps, switching), end > takes ? end - takes : 0);
    begin -= begin > 0 ? 1 : 0;
    // Who keeps step has told the others that it sends nothing in the past.
    const bool late = in_step_ && now > message.send_ps;
    if (late) begin = std::max(begin, now);
    const ModelTime through = line_.send(message, begin, bytes, end);
    if (is_broken() || !publish(to, message)) return {.what = Passed::kLost};
    return {.what = Passed::kGone, .through = through};
}

}  // namespace orrery::emu::link
