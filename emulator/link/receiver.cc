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
                   ComesHere comes_here, std::uint64_t bytes_per_second, Counts& counts)
    : events_(events),
      vram_(vram),
      counters_(counters),
      poke_(std::move(poke)),
      room_(std::move(room)),
      arrived_(std::move(arrived)),
      comes_here_(std::move(comes_here)),
      bytes_per_second_(bytes_per_second),
      counts_(counts),
      near_(counts),
      far_(counts) {}

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
    near_.open(inbox_->near);
    far_.open(inbox_->far);
    return {};
}

void Receiver::check_frames(bool on) {
    near_.check_frames(on);
    far_.check_frames(on);
}

void Receiver::close() {
    near_.close();
    far_.close();
    inbox_.reset();
    wanted_ = kNever;
    held_ = false;
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
    store_release(inbox_->grants_version, load_relaxed(inbox_->grants_version) + 1);
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

bool Receiver::allowed(const Message& message, std::uint64_t bytes) const {
    return message.destination == node_ && comes_here_(message.source, message.epoch) &&
           covered(std::span(grants_).first(grants_end_), message.source, message.offset, bytes);
}

void Receiver::execute(const Message& message) {
    const std::uint64_t bytes = message.op == kOpWrite ? message.bytes : sizeof(orr_semaphore);
    counters_.add(ORR_CTR_LINK_RX_MESSAGES);
    counters_.add(ORR_CTR_LINK_RX_BYTES, bytes);
    counts_.rx_messages.add();
    counts_.rx_bytes.add(bytes);
    if (message.arrival_ps < std::min(events_.system_now(), late_since_))
        counters_.add(ORR_CTR_LINK_STRAGGLERS);
    std::uint8_t* to = vram_.at(message.offset, bytes);
    if (to == nullptr || !allowed(message, bytes)) {
        counters_.add(ORR_CTR_LINK_DENIED);
        return;
    }
    arrived_(message.offset, bytes);
    if (message.op == kOpWrite) {
        get_payload(near_.channel(), message.payload_at, to, bytes);
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

void Receiver::consume(const Message& message) {
    execute(message);
    near_.take(message);
}

std::expected<void, std::string> Receiver::look() {
    wanted_ = kNever;
    const std::uint64_t produced = near_.produced();
    if (produced == near_.taken()) return {};
    const auto next = near_.look_at(produced);
    if (!next) return std::unexpected(next.error());
    wanted_ = std::max(events_.now(), events_.from_system(next->arrival_ps));
    return {};
}

std::expected<bool, std::string> Receiver::pump() {
    wanted_ = kNever;
    held_ = false;
    near_.needs_time(false);
    std::uint64_t bytes = 0;
    ModelTime time_on_wire = 0;
    for (unsigned done = 0;; ++done) {
        const std::uint64_t produced = near_.produced();
        if (produced == near_.taken()) {
            late_since_ = kNever;
            return done > 0;
        }
        const auto next = near_.look_at(produced);
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
            near_.needs_time(true);
            late_since_ = std::min(late_since_, events_.system_now());
            return true;
        }
        if (message.op == kOpSignal && (owes() || !room_())) {
            held_ = true;
            near_.needs_time(true);
            late_since_ = std::min(late_since_, events_.system_now());
            return done > 0;
        }
        consume(message);
        bytes += message.bytes;
        time_on_wire += duration_ps(kLeastBytes + message.bytes, bytes_per_second_);
    }
}

std::expected<bool, std::string> Receiver::hurry_until(std::uint64_t index) {
    hurrying_ = true;
    std::expected<bool, std::string> done = true;
    // All of this has come already, so it has room at once. More is work without end, all in one call.
    const std::uint64_t began = near_.payload_end();
    while (near_.taken() != index && done && *done) {
        if (const auto next = near_.look_at(index); !next)
            done = std::unexpected(next.error());
        else if (next->op == kOpWrite && next->payload_end - began > kPayloadBytes)
            done = std::unexpected(
                fmt::format("messages say more payload than there is room for (message {})", near_.taken()));
        else if (next->op == kOpSignal && owed_.size() >= kMaxOwed)
            done = false;
        else
            consume(*next);
    }
    hurrying_ = false;
    return done;
}

std::expected<bool, std::string> Receiver::hurry() {
    return hurry_until(near_.produced());
}

std::expected<bool, std::string> Receiver::hurry_to(std::uint64_t offset) {
    const std::uint64_t produced = near_.produced();
    // A peer that lies about this is judged by pump().
    if (produced - near_.taken() > kRingEntries) return true;
    // One that takes its index back has taken back what was seen, too.
    if (scanned_ < near_.taken() || scanned_ > produced || on_the_way_.size() > 2 * kRingEntries) {
        on_the_way_.clear();
        scanned_ = near_.taken();
    }
    for (; scanned_ != produced; ++scanned_) {
        const Message message = near_.peek(scanned_);
        if (message.op == kOpSignal) on_the_way_[message.offset] = scanned_ + 1;
    }
    const auto last = on_the_way_.find(offset);
    if (last == on_the_way_.end() || last->second <= near_.taken()) return true;
    return hurry_until(last->second);
}

}  // namespace orrery::emu::link
