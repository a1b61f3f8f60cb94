// The sender's side of a channel in the peer's inbox: room, and messages that go in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "emulator/link/grants.h"
#include "emulator/link/wire.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu::link {

class Writer {
  public:
    // A store or signal that waits for room.
    struct Pending {
        Message message;
        std::uint64_t data;
    };
    static constexpr unsigned kMaxPending = 1024;

    // `frames`: messages get CRCs. `broken` becomes true when broken() says why.
    void open(Channel& channel, bool frames, bool& broken);
    void close() { *this = {}; }
    bool is_open() const { return channel_ != nullptr; }
    // Credits count from the time on that the peer gave them, by this clock.
    void keep_step(const EventQueue* clock) { clock_ = clock; }

    // For a message with so many bytes of payload.
    bool room(std::uint64_t bytes) { return has_room(bytes) || (refresh() && has_room(bytes)); }
    // For one without, as known by now, and nothing waits.
    bool is_clear() const { return !waits() && produced_ - consumed_ < kRingEntries; }
    // The peer has taken all that was sent.
    bool all_taken() const;
    std::uint64_t taken() const { return load_relaxed(channel_->consumed); }
    // The peer has given back credits that nobody has looked at, or of which those who wait have not heard:
    // who sends beside them takes them over, too.
    bool room_news() const;
    void forget_news() { news_ = false; }
    // Takes over the peer's credits. False, and the channel is broken, if they make no sense.
    bool refresh();
    // Of one that keeps step: when the next of these counts; kNever: the peer has given none.
    ModelTime next_credit() const;

    // Where there is room: the payload, and then the message.
    void add_payload(Message& message, const void* data);
    void add_payload(Message& message, const Channel& from, std::uint64_t from_at);
    // For a second message with the same bytes. False: no room.
    bool add_payload_again(Message& message);
    // The message with this payload does not go.
    void take_back(const Message& message);
    void flip_payload(const Message& message, std::uint64_t bit);
    void put(Message& message);
    // Where the next one goes. What is made there is not read again: the peer may write there, too.
    Message& place() { return channel_->ring[produced_ % kRingEntries]; }
    std::uint64_t index() const { return produced_; }
    std::uint64_t payload_end() const { return payload_used_; }
    bool frames() const { return frames_; }
    void put_made() {
        store_release(channel_->produced, ++produced_);
        make_ready();
    }

    // What must go first, in order.
    std::deque<Pending>& pending() { return pending_; }
    bool waits() const { return refused_ || !pending_.empty(); }
    // A signal got no room.
    void refuse() { refused_ = true; }
    void forget_refusal();

    // The peer's credits make no sense.
    const std::optional<std::string>& broken() const { return broken_; }

  private:
    bool is_sound(std::uint64_t consumed, std::uint64_t payload);
    // Where the next message goes nobody has been for a whole turn of the ring: its lines come while nobody
    // waits for them.
    void make_ready() const {
        const auto* next = reinterpret_cast<const std::byte*>(&channel_->ring[produced_ % kRingEntries]);
        constexpr std::size_t kLine = 64;
        for (std::size_t at = 0; at < sizeof(Message); at += kLine)
            __builtin_prefetch(next + at, 1);
    }
    static constexpr std::uint64_t kPayloadAlign = 64;
    static constexpr std::uint64_t rounded(std::uint64_t bytes) {
        return (bytes + kPayloadAlign - 1) / kPayloadAlign * kPayloadAlign;
    }
    bool has_room(std::uint64_t bytes) const {
        return produced_ - consumed_ < kRingEntries &&
               kPayloadBytes - (payload_used_ - payload_consumed_) >= rounded(bytes);
    }
    ModelTime given_at() const;  // when the first credit that is not taken over counts

    Channel* channel_ = nullptr;
    bool frames_ = false;
    const EventQueue* clock_ = nullptr;
    std::uint64_t produced_ = 0;
    std::uint64_t consumed_ = 0;  // as the peer said last, checked
    std::uint64_t payload_used_ = 0;
    std::uint64_t payload_consumed_ = 0;
    std::deque<Pending> pending_;
    bool refused_ = false;  // a signal, and there has been no room since
    bool news_ = false;     // credits were taken over since forget_news()
    std::optional<std::string> broken_;
    bool* any_broken_ = nullptr;
};

}  // namespace orrery::emu::link
