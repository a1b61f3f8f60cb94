#include "emulator/link/reader.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>
#include <orrery/hw/mmu.h>

#include "emulator/link/frame.h"
#include "emulator/link/multicast.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu::link {

void Reader::open(Channel& channel, Takes takes) {
    close();
    channel_ = &channel;
    takes_ = takes;
}

const char* Reader::judge(const Message& message) const {
    if (message.index != taken_) return "a message is out of order";
    if (message.arrival_ps < message.send_ps || message.arrival_ps < message.head_ps ||
        message.arrival_ps < last_arrival_) {
        return "a message arrives before an earlier one";
    }
    if (message.arrival_ps >= kLatestSystemTime) return "a message comes from the end of time";
    if (message.source == 0 || message.source >= ORR_NODES || message.destination == 0 ||
        message.destination >= ORR_NODES) {
        return "a message names no node";
    }
    if (message.hops > kMostHops) return "a message has been passed on too often";
    if ((message.op == kOpAnswer) != (takes_ == Takes::kAnswers))
        return "a message comes by the other's channel";
    if (const char* wrong = judge_op(message); wrong != nullptr) return wrong;
    const std::uint64_t used = message.payload_end - payload_end_;  // wraps if it went back
    const std::uint64_t payload = payload_of(message);
    if (message.payload_at >= kPayloadBytes || (payload == 0 && message.payload_at != 0))
        return "a message's payload is out of range";
    if (used < payload || used > kPayloadBytes || (payload == 0 && used != 0))
        return "a message's payload credit is wrong";
    return nullptr;
}

const char* Reader::judge_reduction(const Message& message) {
    if (message.function == 0) return nullptr;
    if (loop_of(message.function) == nullptr) return "a read has an unknown reduction";
    if (((message.offset | message.bytes) & (element_bytes(message.function & 0xffu) - 1)) != 0)
        return "a reduction cuts an element";
    return nullptr;
}

const char* Reader::judge_op(const Message& message) const {
    const bool asks = message.op == kOpRead || message.op == kOpAtomic;
    if (asks != (message.tag != 0) && message.op != kOpAnswer) return "a message's tag is wrong";
    const bool reads = message.op == kOpRead || message.op == kOpAnswer;
    if ((message.op != kOpAtomic && !reads && message.function != 0) ||
        (message.op != kOpAtomic && message.op != kOpLeave && message.compare != 0) ||
        (message.op != kOpAnswer && message.status != 0) ||
        ((message.op == kOpAnswer || message.op == kOpNote) && message.key != 0))
        return "a message has a reserved field set";
    switch (message.op) {
        case kOpWrite:
            if (message.bytes == 0 || message.bytes > kMaxWriteBytes) return "a write has a bad length";
            if (message.value != 0) return "a write has a reserved field set";
            return nullptr;
        case kOpNote:
            if (message.bytes != ORR_NOTE_BYTES || message.offset != 0 || message.value != 0)
                return "a note has a field set that it has no use for";
            return nullptr;
        case kOpSignal:
            if (message.bytes != 0 || message.payload_at != 0) return "a signal has a payload";
            if (message.offset % sizeof(orr_semaphore) != 0) return "a signal is misaligned";
            return nullptr;
        case kOpArrive:
        case kOpLeave:
            if (message.bytes != 0 || message.payload_at != 0) return "a barrier's word has a payload";
            if (message.offset >= ORR_BARRIER_SLOTS) return "a barrier's word is for no slot";
            if (((message.value & ORR_SEM_FAILED) != 0) != (message.op == kOpLeave))
                return "a barrier's word is none of its operation's";
            return nullptr;
        case kOpMember:
            if (message.bytes != 0 || message.payload_at != 0) return "a multicast's member has a payload";
            if (message.hops != 0) return "a multicast's member has a reserved field set";
            if (message.offset % ORR_PAGE_SIZE != 0) return "a multicast's member is misaligned";
            if ((message.value & 0xffff) >= ORR_NODES || message.value >> 32 != 0 ||
                ((message.value & 0xffff) == 0 && (message.value != 0 || message.offset != 0)))
                return "a multicast's member is no node";
            return nullptr;
        case kOpRead:
            if (message.bytes > kMaxReadBytes) return "a read has a bad length";
            if (message.value != 0) return "a read has a reserved field set";
            return judge_reduction(message);
        case kOpAtomic:
            if (message.bytes != 4 && message.bytes != 8) return "an atomic has a bad length";
            if (message.offset % message.bytes != 0) return "an atomic is misaligned";
            if (message.function == 0 || message.function >= ORR_ATOMIC_FUNCTIONS)
                return "an atomic has an unknown function";
            if (message.compare != 0 && message.function != ORR_ATOMIC_COMPARE_SWAP)
                return "an atomic has a reserved field set";
            return nullptr;
        case kOpAnswer:
            if (message.bytes > kMaxReadBytes) return "an answer has a bad length";
            if (message.status >= kStatuses || (message.status != kDone && message.bytes != 0))
                return "an answer has a bad status";
            if (message.function != 0 && loop_of(message.function) == nullptr)
                return "an answer is of an unknown reduction";
            return nullptr;
        default:
            return "a message has an unknown operation";
    }
}

const char* Reader::receive(const Message& message) {
    if (message.damaged > kMostDamaged) return "a message is damaged on its way without end";
    for (std::uint32_t n = 0; n < message.damaged; ++n) {
        if (damaged_passes(message, *channel_, n)) return "a damaged message has a good CRC";
        counts_->crc_errors.add();
    }
    if (frame_crc(message, *channel_) != message.crc) {
        counts_->crc_errors.add();
        return "a message fails its CRC";
    }
    return nullptr;
}

Message Reader::peek(std::uint64_t index) const {
    Message message;  // a copy: the peer may change its own under our eyes
    std::memcpy(&message, &channel_->ring[index % kRingEntries], sizeof message);
    return message;
}

Reader::Found Reader::refuse(std::string why) {
    why_ = std::move(why);
    return {.message = nullptr, .wrong = true};
}

Reader::Found Reader::taken_back() {
    return refuse("a message was taken back when it had been seen");
}

// As judge() and judge_op() have it, a field after the other; two branches in place of forty.
bool Reader::is_sound_signal(const Message& message) const {
    const std::uint64_t differs = (message.op ^ kOpSignal) | (message.index ^ taken_) |
                                  (message.payload_end ^ payload_end_) |
                                  message.offset % sizeof(orr_semaphore);
    const std::uint64_t unused = message.bytes | message.payload_at | message.tag |
                                 std::uint64_t{message.function} | message.status | message.compare;
    const std::uint64_t since = std::max({message.send_ps, message.head_ps, last_arrival_});
    return (differs | unused) == 0 && message.arrival_ps >= since && message.arrival_ps < kLatestSystemTime &&
           message.source - 1u < ORR_NODES - 1u && message.destination - 1u < ORR_NODES - 1u &&
           message.hops <= kMostHops && takes_ == Takes::kRequests;
}

Reader::Found Reader::judge_next(std::uint64_t produced) {
    judged_ = false;
    if (produced - taken_ > kRingEntries) {
        return refuse(fmt::format("the peer's producer index {} is not within {} of {}", produced,
                                  kRingEntries, taken_));
    }
    // A copy: the peer may change its own under our eyes.
    std::memcpy(&head_, &channel_->ring[taken_ % kRingEntries], sizeof head_);
    const char* wrong = frames_ ? receive(head_) : nullptr;
    if (wrong == nullptr && !is_sound_signal(head_)) wrong = judge(head_);
    if (wrong != nullptr) return refuse(fmt::format("{} (message {})", wrong, taken_));
    judged_ = true;
    return {&head_};
}

std::expected<ModelTime, std::string> Reader::next_due(const EventQueue& events) {
    const auto [first, wrong] = next();
    if (wrong) return std::unexpected(why_);
    if (first == nullptr) return kNever;
    return std::max(events.now(), events.from_system(first->arrival_ps));
}

}  // namespace orrery::emu::link
