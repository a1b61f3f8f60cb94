// The owner's side of a channel: judges the peer's messages, and gives back their room.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <utility>

#include "emulator/link/counts.h"
#include "emulator/link/grants.h"
#include "emulator/link/wire.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu::link {

class Reader {
  public:
    explicit Reader(Counts& counts) : counts_(&counts) {}
    // What is in the channel: requests, or answers to this card's or to another's.
    enum class Takes : std::uint8_t { kRequests, kAnswers };
    void open(Channel& channel, Takes takes = Takes::kRequests);
    // Told of each message that is taken, until close(); may be empty.
    void on_taken(std::function<void(const Message&)> told) { told_ = std::move(told); }
    void close() { *this = Reader(*counts_); }
    // The peer's messages have CRCs.
    void check_frames(bool on) { frames_ = on; }
    // The peer hears that a message was taken `latency` later.
    void keep_step(const EventQueue* clock, ModelTime latency) {
        clock_ = clock;
        latency_ = latency;
    }
    bool is_open() const { return channel_ != nullptr; }
    const Channel& channel() const { return *channel_; }

    // One load: is there a message that has not been taken?
    bool has_news() const { return is_open() && load_relaxed(channel_->produced) != taken_; }
    std::uint64_t produced() const { return load_acquire(channel_->produced); }
    // The next message, judged; nullptr: the peer says that there is none. It is this card's own copy, and
    // stays as it was judged, whatever the peer writes there later, until the look behind its take(). Others
    // may have begun with it, so a peer that takes it back then is wrong.
    std::expected<const Message*, std::string> next() {
        const std::uint64_t now_produced = produced();
        if (now_produced != taken_) return look_at(now_produced);
        if (judged_) return std::unexpected("a message was taken back when it had been seen");
        return nullptr;
    }
    // The same, where the peer's `produced` says that there is one.
    std::expected<const Message*, std::string> look_at(std::uint64_t produced) {
        if (judged_ && produced - taken_ <= kRingEntries) return &head_;
        return judge_next(produced);
    }
    std::uint64_t taken() const { return taken_; }
    // How much of the payload area all messages until now have used, one after the other.
    std::uint64_t payload_end() const { return payload_end_; }
    // When the next message is due by this card's clock; kNever: there is none.
    std::expected<ModelTime, std::string> next_due(const EventQueue& events);
    // The one that was looked at last is done.
    void take();
    // A later one, as the peer has it there now.
    Message peek(std::uint64_t index) const;

  private:
    std::expected<const Message*, std::string> judge_next(std::uint64_t produced);
    const char* judge(const Message& message) const;
    const char* judge_op(const Message& message) const;
    static const char* judge_reduction(const Message& message);
    // It comes from the wire: damaged some times, maybe, and then as it is. Why it cannot be taken.
    const char* receive(const Message& message);

    Counts* counts_;
    Channel* channel_ = nullptr;
    std::uint64_t taken_ = 0;
    std::uint64_t payload_end_ = 0;
    std::uint64_t last_arrival_ = 0;
    const EventQueue* clock_ = nullptr;
    ModelTime latency_ = 0;
    bool frames_ = false;
    Takes takes_ = Takes::kRequests;
    // What a judgment goes by changes with take(), open() and close() alone.
    bool judged_ = false;
    Message head_{};  // if judged_: the next message
    std::function<void(const Message&)> told_;
};

}  // namespace orrery::emu::link
