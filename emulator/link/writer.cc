#include "emulator/link/writer.h"

#include <cstring>

#include <fmt/format.h>

#include "emulator/link/frame.h"
#include "emulator/link/shared_area.h"

namespace orrery::emu::link {

void Writer::open(Channel& channel, bool frames, bool& broken) {
    close();
    channel_ = &channel;
    frames_ = frames;
    any_broken_ = &broken;
}

bool Writer::is_sound(std::uint64_t consumed, std::uint64_t payload) {
    if (consumed - consumed_ <= produced_ - consumed_ &&
        payload - payload_consumed_ <= payload_used_ - payload_consumed_)
        return true;
    if (!broken_) {
        broken_ =
            fmt::format("the peer returned credits that it was not given ({} of {} messages, {} of {} bytes)",
                        consumed, produced_, payload, payload_used_);
        *any_broken_ = true;
    }
    return false;
}

bool Writer::refresh() {
    const std::uint64_t consumed = load_acquire(channel_->consumed);
    if (clock_ == nullptr) {
        const std::uint64_t payload = load_acquire(channel_->payload_consumed);
        if (!is_sound(consumed, payload)) return false;
        news_ |= consumed_ != consumed || payload_consumed_ != payload;
        consumed_ = consumed;
        payload_consumed_ = payload;
        return true;
    }
    if (!is_sound(consumed, payload_consumed_)) return false;
    while (consumed_ != consumed && given_at() <= clock_->system_now()) {
        // As this card wrote it there, if the peer left it alone.
        const std::uint64_t payload = load_relaxed(channel_->ring[consumed_ % kRingEntries].payload_end);
        if (!is_sound(consumed, payload)) return false;
        ++consumed_;
        payload_consumed_ = payload;
        news_ = true;
    }
    return true;
}

ModelTime Writer::next_credit() const {
    if (news_) return 0;
    return given_at();
}

ModelTime Writer::given_at() const {
    if (load_acquire(channel_->consumed) == consumed_) return kNever;
    return load_relaxed(channel_->heard_ps[consumed_ % kRingEntries]);
}

bool Writer::all_taken() const {
    return load_relaxed(channel_->consumed) == produced_;
}

bool Writer::room_news() const {
    return news_ || load_relaxed(channel_->consumed) != consumed_ ||
           load_relaxed(channel_->payload_consumed) != payload_consumed_;
}

void Writer::add_payload(Message& message, const void* data) {
    message.payload_at = static_cast<std::uint32_t>(payload_used_ % kPayloadBytes);
    put_payload(*channel_, message.payload_at, data, message.bytes);
    payload_used_ += rounded(message.bytes);
}

void Writer::add_payload(Message& message, const Channel& from, std::uint64_t from_at) {
    message.payload_at = static_cast<std::uint32_t>(payload_used_ % kPayloadBytes);
    copy_payload(from, from_at, *channel_, message.payload_at, message.bytes);
    payload_used_ += rounded(message.bytes);
}

bool Writer::add_payload_again(Message& message) {
    if (!room(message.bytes)) return false;
    // From one place of the area to the next.
    add_payload(message, *channel_, message.payload_at);
    return true;
}

void Writer::take_back(const Message& message) {
    payload_used_ -= rounded(message.bytes);
}

void Writer::flip_payload(const Message& message, std::uint64_t bit) {
    channel_->payload[(message.payload_at + bit / 8) % kPayloadBytes] ^=
        static_cast<std::uint8_t>(1u << bit % 8);
}

void Writer::put(Message& message) {
    message.index = produced_;
    message.payload_end = payload_used_;
    message.crc = frames_ ? frame_crc(message, *channel_) : 0;
    std::memcpy(&channel_->ring[produced_ % kRingEntries], &message, sizeof message);
    put_made();
}

void Writer::forget_refusal() {
    if (refused_ && pending_.empty() && room(0)) refused_ = false;
}

}  // namespace orrery::emu::link
