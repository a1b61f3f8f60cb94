#include "emulator/link/reader.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <orrery/hw/link.h>

#include "emulator/link/frame.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu::link {

void Reader::open(Channel& channel) {
    close();
    channel_ = &channel;
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

const char* Reader::receive(const Message& message) {
    if (received_ > taken_) return nullptr;
    if (message.damaged > kMostDamaged) return "a message is damaged on its way without end";
    for (std::uint32_t n = 0; n < message.damaged; ++n) {
        if (damaged_passes(message, *channel_, n)) return "a damaged message has a good CRC";
        counts_->crc_errors.add();
    }
    if (frame_crc(message, *channel_) != message.crc) {
        counts_->crc_errors.add();
        return "a message fails its CRC";
    }
    received_ = taken_ + 1;
    return nullptr;
}

Message Reader::peek(std::uint64_t index) const {
    Message message;  // a copy: the peer may change its own under our eyes
    std::memcpy(&message, &channel_->ring[index % kRingEntries], sizeof message);
    return message;
}

std::expected<Message, std::string> Reader::look_at(std::uint64_t produced) {
    if (produced - taken_ > kRingEntries) {
        return std::unexpected(fmt::format("the peer's producer index {} is not within {} of {}", produced,
                                           kRingEntries, taken_));
    }
    const Message message = peek(taken_);
    const char* wrong = frames_ ? receive(message) : nullptr;
    if (wrong == nullptr) wrong = judge(message);
    if (wrong != nullptr) {
        return std::unexpected(fmt::format("{} (message {})", wrong, taken_));
    }
    return message;
}

void Reader::take(const Message& message) {
    ++taken_;
    payload_end_ = message.payload_end;
    last_arrival_ = message.arrival_ps;
    // The payload's credit first: who sees the message's credit may count on it.
    store_release(channel_->payload_consumed, payload_end_);
    store_release(channel_->consumed, taken_);
}

void Reader::needs_time(bool needs) {
    if (std::exchange(needs_time_, needs) != needs) store_release(channel_->held, std::uint64_t{needs});
}

}  // namespace orrery::emu::link
