#include "emulator/link/transmitter.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "emulator/link/grants.h"
#include "emulator/time/rate.h"

namespace orrery::emu::link {

namespace {

constexpr std::uint64_t kPayloadAlign = 64;

constexpr std::uint64_t rounded(std::uint64_t bytes) {
    return (bytes + kPayloadAlign - 1) / kPayloadAlign * kPayloadAlign;
}

}  // namespace

Transmitter::Transmitter(std::uint64_t bytes_per_second, ModelTime latency, Counters& counters,
                         std::function<void()> wake, std::function<void(ModelTime)> sent, Faults* faults,
                         std::uint32_t port)
    : wire_(bytes_per_second),
      latency_(latency),
      min_message_ps_(
          std::max(duration_ps(sizeof(Message), bytes_per_second), 2 * latency / kRingEntries + 1)),
      counters_(counters),
      wake_(std::move(wake)),
      sent_(std::move(sent)),
      faults_(faults),
      port_(port) {}

void Transmitter::open(SharedArea outbox) {
    close();
    outbox_ = std::move(outbox);
}

void Transmitter::close() {
    outbox_.reset();
    broken_.reset();
    produced_ = consumed_ = payload_used_ = payload_consumed_ = 0;
    pending_.clear();
    refused_ = in_step_ = false;
}

std::uint64_t Transmitter::peer_alive() const {
    return load_relaxed(outbox_->alive);
}

bool Transmitter::room_is_near(ModelTime now) const {
    const std::uint64_t consumed = load_acquire(outbox_->consumed);
    if (consumed == produced_) return true;
    return load_relaxed(outbox_->held) == 0 &&
           load_relaxed(outbox_->ring[consumed % kRingEntries].arrival_ps) < later(now, latency_);
}

void Transmitter::break_link(std::string why) {
    if (!broken_) broken_ = std::move(why);
}

// Takes over the peer's credits. False, and the link is broken, if they make no sense.
bool Transmitter::refresh() {
    const std::uint64_t consumed = load_acquire(outbox_->consumed);
    const std::uint64_t payload = load_acquire(outbox_->payload_consumed);
    if (consumed - consumed_ > produced_ - consumed_ ||
        payload - payload_consumed_ > payload_used_ - payload_consumed_) {
        break_link(
            fmt::format("the peer returned credits that it was not given ({} of {} messages, {} of {} bytes)",
                        consumed, produced_, payload, payload_used_));
        return false;
    }
    consumed_ = consumed;
    payload_consumed_ = payload;
    return true;
}

bool Transmitter::ring_room() {
    if (produced_ - consumed_ < kRingEntries) return true;
    return refresh() && produced_ - consumed_ < kRingEntries;
}

ModelTime Transmitter::depart(ModelTime now, std::uint64_t bytes) {
    return wire_.reserve(now, bytes, min_message_ps_);
}

std::uint32_t Transmitter::refusal(std::uint32_t node, std::uint64_t offset, std::uint64_t bytes) {
    std::uint32_t fault = ORR_FAULT_NONE;
    if (node_ == 0 || load_relaxed(outbox_->node) != node) {
        fault = ORR_FAULT_NO_ROUTE;
    } else if (!published(*outbox_.operator->(), node_, offset, bytes)) {
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
    return message;
}

void Transmitter::publish(Message& message) {
    if (faults_ == nullptr || !faulty(message)) put(message);
}

// Whether the message is lost. The time that was charged for it stays so.
bool Transmitter::faulty(Message& message) {
    const Fault fault = faults_->at(FaultPoint::kLink, port_);
    switch (fault.action) {
        case FaultAction::kDrop:
            // Its room must not be on the account of the message that comes next.
            if (message.op == kOpWrite) payload_used_ -= rounded(message.bytes);
            return true;
        case FaultAction::kFail:
            break_link("the fault plan cut it");
            return true;
        case FaultAction::kDelay:
            // Messages do not overtake each other: those behind it are late too.
            wire_.hold(fault.delay);
            message.arrival_ps = later(message.arrival_ps, fault.delay);
            return false;
        case FaultAction::kDuplicate:
            put(message);
            return !ring_room() || (message.op == kOpWrite && !add_payload_again(message));
        case FaultAction::kCorrupt:
            if (message.op == kOpWrite) {
                const std::uint64_t bit = Faults::bit_of(fault, std::uint64_t{message.bytes} * 8);
                outbox_->payload[(message.payload_at + bit / 8) % kPayloadBytes] ^=
                    static_cast<std::uint8_t>(1u << bit % 8);
            } else {
                // Not bit 63: that is a value's own way to say that something failed.
                message.value ^= std::uint64_t{1} << Faults::bit_of(fault, 63);
            }
            return false;
        default:
            return false;
    }
}

void Transmitter::put(Message& message) {
    message.index = produced_;
    message.payload_end = payload_used_;
    std::memcpy(&outbox_->ring[produced_ % kRingEntries], &message, sizeof message);
    store_release(outbox_->produced, ++produced_);
    sent_(message.arrival_ps);
    counters_.add(ORR_CTR_LINK_TX_MESSAGES);
    counters_.add(ORR_CTR_LINK_TX_BYTES, message.op == kOpWrite ? message.bytes : sizeof(orr_semaphore));
    // Pairs with the receiver's fence between need_wakeup and its last look at `produced`.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::atomic_ref need(outbox_->need_wakeup);
    if (need.load(std::memory_order_relaxed) != 0 && need.exchange(0, std::memory_order_relaxed) != 0)
        wake_();
}

bool Transmitter::room_news() {
    return load_relaxed(outbox_->consumed) != consumed_ ||
           load_relaxed(outbox_->payload_consumed) != payload_consumed_;
}

void Transmitter::want_credit() {
    std::atomic_ref(outbox_->need_credit).store(1, std::memory_order_relaxed);
    // Before the last look at the credits: pairs with the owner's fence between them and need_credit.
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Transmitter::payload_room(std::uint64_t bytes) {
    const auto enough = [&] { return kPayloadBytes - (payload_used_ - payload_consumed_) >= rounded(bytes); };
    return enough() || (refresh() && enough());
}

// Where there is room.
void Transmitter::add_payload(Message& message, const void* data) {
    message.payload_at = static_cast<std::uint32_t>(payload_used_ % kPayloadBytes);
    put_payload(*outbox_.operator->(), message.payload_at, data, message.bytes);
    payload_used_ += rounded(message.bytes);
}

// For a second message with the same bytes. False: no room.
bool Transmitter::add_payload_again(Message& message) {
    if (!payload_room(message.bytes)) return false;
    std::vector<std::uint8_t> bytes(message.bytes);
    get_payload(*outbox_.operator->(), message.payload_at, bytes.data(), bytes.size());
    add_payload(message, bytes.data());
    return true;
}

void Transmitter::flush() {
    while (!pending_.empty() && ring_room()) {
        Pending& first = pending_.front();
        if (first.message.op == kOpWrite) {
            if (!payload_room(first.message.bytes)) return;
            add_payload(first.message, &first.data);
        }
        publish(first.message);
        pending_.pop_front();
    }
    if (refused_ && pending_.empty() && ring_room()) refused_ = false;
}

LinkSend Transmitter::write(ModelTime now, std::uint32_t node, std::uint64_t offset,
                            std::span<const std::byte> data) {
    // How a write is cut into messages depends on its size alone, never on how fast the peer is.
    const std::uint64_t bytes = std::min(std::uint64_t{data.size()}, kMaxWriteBytes);
    if (bytes == 0) return {};
    if (const std::uint32_t fault = refusal(node, offset, bytes); fault != ORR_FAULT_NONE)
        return {.fault = fault};
    flush();
    const bool room = pending_.empty() && ring_room() && payload_room(bytes);
    if (broken_) return {.fault = ORR_FAULT_PEER_DOWN};
    if (!room) return {};
    Message message = message_to(node, kOpWrite, now, offset);
    message.bytes = static_cast<std::uint32_t>(bytes);
    add_payload(message, data.data());
    const ModelTime sent = depart(now, bytes);
    message.arrival_ps = later(sent, latency_);
    publish(message);
    return {.bytes = static_cast<std::size_t>(bytes), .sent_ps = sent};
}

std::uint32_t Transmitter::post(ModelTime now, std::uint32_t node, std::uint64_t offset,
                                std::span<const std::byte> data) {
    if (const std::uint32_t fault = refusal(node, offset, data.size()); fault != ORR_FAULT_NONE) return fault;
    flush();
    if (broken_ || pending_.size() == kMaxPending) return ORR_FAULT_PEER_DOWN;
    Message message = message_to(node, kOpWrite, now, offset);
    message.bytes = static_cast<std::uint32_t>(data.size());
    message.arrival_ps = later(depart(now, data.size()), latency_);
    pending_.push_back({message, 0});
    std::memcpy(&pending_.back().data, data.data(), data.size());
    flush();
    return broken_ ? ORR_FAULT_PEER_DOWN : ORR_FAULT_NONE;
}

std::uint32_t Transmitter::signal(ModelTime now, std::uint32_t node, std::uint64_t offset,
                                  std::uint64_t value) {
    if (offset % sizeof(orr_semaphore) != 0) return ORR_FAULT_MISALIGNED;
    if (const std::uint32_t fault = refusal(node, offset, sizeof(orr_semaphore)); fault != ORR_FAULT_NONE)
        return fault;
    flush();
    const bool room = pending_.empty() && ring_room();
    if (broken_) return ORR_FAULT_PEER_DOWN;
    if (!room && (!in_step_ || pending_.size() == kMaxPending)) {
        refused_ = true;
        return ORR_FAULT_PEER_BUSY;
    }
    Message message = message_to(node, kOpSignal, now, offset);
    message.value = value;
    message.arrival_ps = later(depart(now, sizeof(orr_semaphore)), latency_);
    if (!room) {
        pending_.push_back({message, 0});
        return ORR_FAULT_NONE;
    }
    publish(message);
    return ORR_FAULT_NONE;
}

}  // namespace orrery::emu::link
