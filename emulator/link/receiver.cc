#include "emulator/link/receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

#include "emulator/memory/semaphore.h"
#include "emulator/time/rate.h"

namespace orrery::emu::link {

Receiver::Receiver(EventQueue& events, Vram& vram, Counters& counters, Poke poke, Room room, Arrived arrived,
                   ComesHere comes_here, std::uint64_t bytes_per_second)
    : events_(events),
      vram_(vram),
      counters_(counters),
      poke_(std::move(poke)),
      room_(std::move(room)),
      arrived_(std::move(arrived)),
      comes_here_(std::move(comes_here)),
      bytes_per_second_(bytes_per_second) {}

std::expected<void, std::string> Receiver::open() {
    close();
    auto area = SharedArea::create();
    if (!area) return std::unexpected(area.error());
    inbox_ = std::move(*area);
    for (unsigned slot = 0; slot < ORR_LINK_GRANT_SLOTS; ++slot) {
        publish_grant(*inbox_.operator->(), slot, grants_[slot]);
    }
    store_release(inbox_->grants_end, grants_end_);
    store_release(inbox_->node, node_);
    return {};
}

void Receiver::close() {
    inbox_.reset();
    consumed_ = payload_end_ = 0;
    last_arrival_ = 0;
    wanted_ = kNever;
    held_ = needs_time_ = false;
    late_since_ = kNever;
    on_the_way_.clear();
    scanned_ = 0;
}

bool Receiver::set_grant(std::uint32_t slot, const Grant& grant) {
    if (slot >= ORR_LINK_GRANT_SLOTS || grant.node >= ORR_NODES) return false;
    if (grant.base % ORR_PAGE_SIZE != 0 || grant.size % ORR_PAGE_SIZE != 0) return false;
    if (!vram_.contains(grant.base, grant.size)) return false;
    grants_[slot] = grant;
    if (grant.size != 0) grants_end_ = std::max(grants_end_, slot + 1);
    while (grants_end_ > 0 && grants_[grants_end_ - 1].size == 0)
        --grants_end_;
    if (!inbox_) return true;
    publish_grant(*inbox_.operator->(), slot, grant);
    store_release(inbox_->grants_end, std::uint64_t{grants_end_});
    return true;
}

void Receiver::set_node(std::uint32_t node) {
    node_ = node;
    if (inbox_) store_release(inbox_->node, node_);
}

void Receiver::set_need_wakeup(bool on) {
    std::atomic_ref(inbox_->need_wakeup).store(on ? 1 : 0, std::memory_order_relaxed);
    // Before the last look at `produced`: pairs with the sender's fence between message and need_wakeup.
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Receiver::take_credit_wish() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::atomic_ref wish(inbox_->need_credit);
    return wish.load(std::memory_order_relaxed) != 0 && wish.exchange(0, std::memory_order_relaxed) != 0;
}

const char* Receiver::judge(const Message& message) const {
    if (message.index != consumed_) return "a message is out of order";
    if (message.arrival_ps < message.send_ps || message.arrival_ps < last_arrival_) {
        return "a message arrives before an earlier one";
    }
    if (message.arrival_ps >= kLatestSystemTime) return "a message comes from the end of time";
    if (message.source == 0 || message.source >= ORR_NODES || message.destination == 0 ||
        message.destination >= ORR_NODES) {
        return "a message names no node";
    }
    const std::uint64_t used = message.payload_end - payload_end_;  // wraps if it went back
    switch (message.op) {
        case kOpWrite:
            if (message.bytes == 0 || message.bytes > kMaxWriteBytes) return "a write has a bad length";
            if (message.payload_at >= kPayloadBytes) return "a write's payload is out of range";
            if (used < message.bytes || used > kPayloadBytes) return "a write's payload credit is wrong";
            if (message.value != 0) return "a write has a reserved field set";
            return nullptr;
        case kOpSignal:
            if (message.bytes != 0 || message.payload_at != 0) return "a signal has a payload";
            if (used != 0) return "a signal's payload credit is wrong";
            if (message.offset % sizeof(orr_semaphore) != 0) return "a signal is misaligned";
            return nullptr;
        default:
            return "a message has an unknown operation";
    }
}

bool Receiver::allowed(const Message& message, std::uint64_t bytes) const {
    return message.destination == node_ && comes_here_(message.source) &&
           covered(std::span(grants_).first(grants_end_), message.source, message.offset, bytes);
}

void Receiver::execute(const Message& message) {
    const std::uint64_t bytes = message.op == kOpWrite ? message.bytes : sizeof(orr_semaphore);
    counters_.add(ORR_CTR_LINK_RX_MESSAGES);
    counters_.add(ORR_CTR_LINK_RX_BYTES, bytes);
    if (message.arrival_ps < std::min(events_.system_now(), late_since_))
        counters_.add(ORR_CTR_LINK_STRAGGLERS);
    std::uint8_t* to = vram_.at(message.offset, bytes);
    if (to == nullptr || !allowed(message, bytes)) {
        counters_.add(ORR_CTR_LINK_DENIED);
        return;
    }
    arrived_(message.offset, bytes);
    if (message.op == kOpWrite) {
        get_payload(*inbox_.operator->(), message.payload_at, to, bytes);
        return;
    }
    // Signals are ordered behind all earlier writes: the release orders them for whoever sees the value.
    raise_semaphore(to, message.value, message.arrival_ps);
    poke(message.offset);
}

// In a hurry the caller may be in the middle of one of the control core's own accesses: it hears later.
void Receiver::poke(std::uint64_t offset) {
    if (hurrying_)
        owed_.push_back(offset);
    else
        poke_(offset);
}

void Receiver::give_owed() {
    for (; !owed_.empty() && room_(); owed_.pop_front())
        poke_(owed_.front());
}

// The next message, judged; there is one if the peer's producer index is right.
std::expected<Message, std::string> Receiver::look_at(std::uint64_t produced) const {
    if (produced - consumed_ > kRingEntries) {
        return std::unexpected(fmt::format("the peer's producer index {} is not within {} of {}", produced,
                                           kRingEntries, consumed_));
    }
    Message message;  // a copy: the peer may change its own under our eyes
    std::memcpy(&message, &inbox_->ring[consumed_ % kRingEntries], sizeof message);
    if (const char* wrong = judge(message)) {
        return std::unexpected(fmt::format("{} (message {})", wrong, consumed_));
    }
    return message;
}

void Receiver::consume(const Message& message) {
    execute(message);
    ++consumed_;
    payload_end_ = message.payload_end;
    last_arrival_ = message.arrival_ps;
    // The payload's credit first: who sees the message's credit may count on it.
    store_release(inbox_->payload_consumed, payload_end_);
    store_release(inbox_->consumed, consumed_);
}

void Receiver::needs_time(bool needs) {
    if (std::exchange(needs_time_, needs) != needs) store_release(inbox_->held, std::uint64_t{needs});
}

std::expected<void, std::string> Receiver::look() {
    wanted_ = kNever;
    const std::uint64_t produced = load_acquire(inbox_->produced);
    if (produced == consumed_) return {};
    const auto next = look_at(produced);
    if (!next) return std::unexpected(next.error());
    wanted_ = std::max(events_.now(), events_.from_system(next->arrival_ps));
    return {};
}

std::expected<bool, std::string> Receiver::pump() {
    wanted_ = kNever;
    held_ = false;
    needs_time(false);
    std::uint64_t bytes = 0;
    ModelTime time_on_wire = 0;
    for (unsigned done = 0;; ++done) {
        const std::uint64_t produced = load_acquire(inbox_->produced);
        if (produced == consumed_) {
            late_since_ = kNever;
            return done > 0;
        }
        const auto next = look_at(produced);
        if (!next) return std::unexpected(next.error());
        const Message& message = *next;
        if (message.arrival_ps > events_.system_now()) {
            wanted_ = events_.from_system(message.arrival_ps);
            late_since_ = kNever;
            return done > 0;
        }
        // What has come all at once takes the time that it would have taken on the wire: a peer that sends
        // without end cannot stop this card's clock.
        if (done == kBatchMessages || bytes >= kBatchBytes) {
            wanted_ = later(events_.now(), time_on_wire);
            needs_time(true);
            late_since_ = std::min(late_since_, events_.system_now());
            return true;
        }
        if (message.op == kOpSignal && (owes() || !room_())) {
            held_ = true;
            needs_time(true);
            late_since_ = std::min(late_since_, events_.system_now());
            return done > 0;
        }
        consume(message);
        bytes += message.bytes;
        time_on_wire += duration_ps(sizeof message + message.bytes, bytes_per_second_);
    }
}

std::expected<bool, std::string> Receiver::hurry_until(std::uint64_t index) {
    hurrying_ = true;
    std::expected<bool, std::string> done = true;
    while (consumed_ != index && done && *done) {
        if (const auto next = look_at(index); !next)
            done = std::unexpected(next.error());
        else if (next->op == kOpSignal && owed_.size() >= kMaxOwed)
            done = false;
        else
            consume(*next);
    }
    hurrying_ = false;
    return done;
}

std::expected<bool, std::string> Receiver::hurry() {
    return hurry_until(load_acquire(inbox_->produced));
}

std::expected<bool, std::string> Receiver::hurry_to(std::uint64_t offset) {
    const std::uint64_t produced = load_acquire(inbox_->produced);
    // A peer that lies about this is judged by pump().
    if (produced - consumed_ > kRingEntries) return true;
    // One that takes its index back has taken back what was seen, too.
    if (scanned_ < consumed_ || scanned_ > produced || on_the_way_.size() > 2 * kRingEntries) {
        on_the_way_.clear();
        scanned_ = consumed_;
    }
    for (; scanned_ != produced; ++scanned_) {
        Message message;
        std::memcpy(&message, &inbox_->ring[scanned_ % kRingEntries], sizeof message);
        if (message.op == kOpSignal) on_the_way_[message.offset] = scanned_ + 1;
    }
    const auto last = on_the_way_.find(offset);
    if (last == on_the_way_.end() || last->second <= consumed_) return true;
    return hurry_until(last->second);
}

}  // namespace orrery::emu::link
