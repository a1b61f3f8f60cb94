#include "emulator/link/receiver.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

#include "emulator/link/reach.h"
#include "emulator/link/switches.h"
#include "emulator/memory/atomic.h"
#include "emulator/memory/semaphore.h"
#include "emulator/time/rate.h"

namespace orrery::emu::link {

Receiver::Receiver(EventQueue& events, Vram& vram, Counters& counters, Poke poke, Room room, Arrived arrived,
                   Ways ways, Answers answers, std::uint64_t bytes_per_second, Counts& counts, Noted noted,
                   Barrier barrier)
    : events_(events),
      vram_(vram),
      counters_(counters),
      poke_(std::move(poke)),
      room_(std::move(room)),
      arrived_(std::move(arrived)),
      ways_(std::move(ways)),
      answers_(std::move(answers)),
      noted_(std::move(noted)),
      barrier_(std::move(barrier)),
      bytes_per_second_(bytes_per_second),
      least_ps_(duration_ps(kLeastBytes, bytes_per_second)),
      counts_(counts),
      near_(counts),
      far_(counts),
      near_back_(counts),
      far_back_(counts) {}

std::expected<void, std::string> Receiver::open() {
    close();
    auto area = SharedArea::create();
    if (!area) return std::unexpected(area.error());
    inbox_ = std::move(*area);
    for (unsigned slot = 0; slot < ORR_LINK_GRANT_SLOTS; ++slot) {
        publish_grant(*inbox_.operator->(), slot, grants_[slot].grant);
    }
    store_release(inbox_->grants_end, grants_end_);
    store_release(inbox_->node, node_);
    store_release(inbox_->lives, lives_);
    near_.open(inbox_->near);
    far_.open(inbox_->far);
    near_back_.open(inbox_->near_back, Reader::Takes::kAnswers);
    far_back_.open(inbox_->far_back, Reader::Takes::kAnswers);
    return {};
}

void Receiver::check_frames(bool on) {
    for (Reader* reader : {&near_, &far_, &near_back_, &far_back_})
        reader->check_frames(on);
}

void Receiver::keep_step(ModelTime latency) {
    for (Reader* reader : {&near_, &far_, &near_back_, &far_back_})
        reader->keep_step(&events_, latency);
}

void Receiver::close() {
    for (Reader* reader : {&near_, &far_, &near_back_, &far_back_})
        reader->close();
    unanswered_.reset();
    given_ = 0;
    inbox_.reset();
    wanted_ = kNever;
    held_ = false;
    late_since_ = kNever;
    on_the_way_.clear();
    scanned_ = 0;
}

void Receiver::on_taken(const std::function<void(const Message&, unsigned lane)>& told) {
    unsigned lane = 0;
    for (Reader* reader : {&near_, &far_, &near_back_, &far_back_})
        reader->on_taken([told, lane = lane++](const Message& message) { told(message, lane); });
}

bool Receiver::set_grant(std::uint32_t slot, const OwnGrant& own) {
    const Grant& grant = own.grant;
    if (slot >= ORR_LINK_GRANT_SLOTS || grant.node >= ORR_NODES) return false;
    if (grant.base % ORR_PAGE_SIZE != 0 || grant.size % ORR_PAGE_SIZE != 0) return false;
    if (!vram_.contains(grant.base, grant.size)) return false;
    grants_[slot] = own;
    if (grant.size != 0) grants_end_ = std::max(grants_end_, slot + 1);
    while (grants_end_ > 0 && grants_[grants_end_ - 1].grant.size == 0)
        --grants_end_;
    if (!inbox_) return true;
    publish_grant(*inbox_.operator->(), slot, grant);
    store_release(inbox_->grants_end, std::uint64_t{grants_end_});
    store_release(inbox_->grants_version, load_relaxed(inbox_->grants_version) + 1);
    return true;
}

void Receiver::set_node(std::uint32_t node) {
    node_ = node;
    ++lives_;
    if (!inbox_) return;
    store_release(inbox_->node, node_);
    store_release(inbox_->lives, lives_);
}

void Receiver::show_reach(std::uint32_t node, const Reach& reach) {
    store_reach(inbox_->reach[node], reach);
}

void Receiver::show_switches(std::span<const SwitchWords> all) {
    store_switches(*inbox_.operator->(), all);
}

void Receiver::set_need_wakeup(bool on) {
    // Before the last look at `produced`, behind which the sender swaps it, too.
    swap_word(inbox_->need_wakeup, on ? 1 : 0);
}

bool Receiver::take_credit_wish() {
    given_ = given();
    return swap_word(inbox_->need_credit, 0) != 0;
}

bool Receiver::take_wish_in_step() {
    return swap_word(inbox_->credit_in_step, 0) != 0;
}

void Receiver::count_denied() {
    counters_.add(ORR_CTR_LINK_DENIED);
    counts_.denied.add();
}

// `tell`: who sent it is asked for an answer, or may be told.
void Receiver::refuse(const Message& message, Status status, bool tell) {
    count_denied();
    if (status == kBadKey) {
        counts_.bad_keys.add();
        counts_.bad_key_by.set(message.source);
        if (bad_key_ && std::has_single_bit(counts_.bad_keys.get())) bad_key_(message.source);
    }
    if (tell) answers_.give(message, status, {}, 0);
}

// There may be no route yet: the hook says whether that node may come by this port.
void Receiver::take_note(const Message& message) {
    std::array<std::byte, ORR_NOTE_BYTES> data{};
    get_payload(near_.channel(), message.payload_at, reinterpret_cast<std::uint8_t*>(data.data()),
                data.size());
    if (message.destination == node_)
        noted_(message.source, message.hops != 0, data);
    else
        counters_.add(ORR_CTR_LINK_DENIED);
}

void Receiver::count(const Message& message, std::uint64_t bytes) {
    counters_.add(ORR_CTR_LINK_RX_MESSAGES);
    counters_.add(ORR_CTR_LINK_RX_BYTES, bytes);
    counts_.rx_messages.add();
    counts_.rx_bytes.add(bytes);
    if (message.arrival_ps < std::min(events_.system_now(), late_since_))
        counters_.add(ORR_CTR_LINK_STRAGGLERS);
}

void Receiver::raise(const Message& signal) {
    constexpr std::uint64_t kBytes = sizeof(orr_semaphore);
    count(signal, kBytes);
    if (!is_for_here(signal)) return refuse(signal, kDenied, false);
    std::uint8_t* at = vram_.at(signal.offset, kBytes);
    if (at == nullptr) return refuse(signal, kDenied, true);
    if (const Status status = judge_grants(signal, ORR_LINK_RIGHT_SIGNAL, kBytes); status != kDone)
        return refuse(signal, status, true);
    arrived_(signal.offset, kBytes);
    // Signals are ordered behind all earlier writes: the release orders them for whoever sees the value.
    raise_semaphore(at, signal.value, signal.arrival_ps);
    poke(signal.offset);
}

// All but signals.
void Receiver::execute(const Message& message) {
    const std::uint64_t bytes = message.bytes;
    count(message, wire_bytes_of(message));
    if (message.op == kOpNote) return take_note(message);
    // Who is not behind this port gets no answer by it either.
    if (!is_for_here(message)) return refuse(message, kDenied, false);
    // No card copies anything for others.
    if (message.op == kOpMember) return refuse(message, kDenied, false);
    if (is_barrier(message.op)) {
        // No unit takes an answer: who was there and has ended is no news to a member.
        if (const Status status = barrier_(message); status != kDone) refuse(message, status, false);
        return;
    }
    if (message.op == kOpRead && bytes == 0) return answers_.give(message, kDone, {}, 0);
    std::uint8_t* at = vram_.at(message.offset, bytes);
    if (at == nullptr) return refuse(message, kDenied, true);
    if (const Status status = judge_grants(message, rights_for(message.op), bytes); status != kDone)
        return refuse(message, status, true);
    carry_out(message, at);
}

void Receiver::carry_out(const Message& message, std::uint8_t* at) {
    const std::uint64_t bytes = message.bytes;
    switch (message.op) {
        case kOpWrite:
            arrived_(message.offset, bytes);
            get_payload(near_.channel(), message.payload_at, at, bytes);
            return;
        case kOpRead:
            answers_.give(message, kDone, {at, bytes}, 0);
            return;
        default:  // kOpAtomic
            arrived_(message.offset, bytes);
            answers_.give(message, kDone, {},
                          atomic_on(at, {.function = message.function,
                                         .bytes = message.bytes,
                                         .operand = message.value,
                                         .compare = message.compare}));
    }
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
    if (message.op == kOpSignal)
        raise(message);
    else
        execute(message);
    near_.take();
}

std::expected<void, std::string> Receiver::look() {
    const auto due = near_.next_due(events_);
    wanted_ = due.value_or(kNever);
    if (!due) return std::unexpected(due.error());
    return {};
}

ModelTime Receiver::takes(const Message& message) const {
    const std::uint64_t payload = payload_of(message);
    return payload == 0 ? least_ps_ : duration_ps(kLeastBytes + payload, bytes_per_second_);
}

bool Receiver::take_signal(const Message& first) {
    if (first.op != kOpSignal || !room_()) return false;
    raise(first);
    near_.take();
    wanted_ = kNever;
    late_since_ = kNever;
    return true;
}

Receiver::Pumped Receiver::pump() {
    wanted_ = kNever;
    held_ = false;
    unanswered_.reset();
    std::uint64_t bytes = 0;
    ModelTime time_on_wire = 0;
    for (unsigned done = 0;; ++done) {
        const auto [next, wrong] = near_.next();
        if (wrong) return Pumped::kWrong;
        if (next == nullptr) {
            late_since_ = kNever;
            return done > 0 ? Pumped::kDid : Pumped::kNothing;
        }
        const Message& message = *next;
        if (message.arrival_ps > events_.system_now()) {
            wanted_ = events_.from_system(message.arrival_ps);
            late_since_ = kNever;
            return done > 0 ? Pumped::kDid : Pumped::kNothing;
        }
        // What has come all at once takes the time that it would have taken on the wire: a peer that sends
        // without end cannot stop this card's clock.
        if (done == kBatchMessages || bytes >= kBatchBytes) {
            wanted_ = later(events_.now(), time_on_wire);
            late_since_ = std::min(late_since_, events_.system_now());
            return Pumped::kDid;
        }
        const bool answerless = wants_answer(message) && !answers_.room(message);
        if (answerless) unanswered_ = message;
        if (answerless || (message.op == kOpSignal && (owes() || !room_()))) {
            held_ = true;
            late_since_ = std::min(late_since_, events_.system_now());
            return done > 0 ? Pumped::kDid : Pumped::kNothing;
        }
        consume(message);
        bytes += payload_of(message);
        time_on_wire += takes(message);
    }
}

std::expected<bool, std::string> Receiver::hurry_until(std::uint64_t index) {
    hurrying_ = true;
    std::expected<bool, std::string> done = true;
    // All of this has come already, so it has room at once. More is work without end, all in one call.
    const std::uint64_t began = near_.payload_end();
    while (near_.taken() != index && done && *done) {
        const auto [next, wrong] = near_.look_at(index);
        if (wrong)
            done = std::unexpected(near_.why());
        else if (has_payload(next->op) && next->payload_end - began > kPayloadBytes)
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
