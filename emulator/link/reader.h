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
    struct [[nodiscard]] Found {
        const Message* message = nullptr;
        bool wrong = false;  // what the peer says; why() has the reason
    };
    Found next() {
        const std::uint64_t now_produced = produced();
        if (now_produced != taken_) return look_at(now_produced);
        if (judged_) [[unlikely]]
            return taken_back();
        return {};
    }
    // The same, where the peer's `produced` says that there is one.
    Found look_at(std::uint64_t produced) {
        if (judged_ && produced - taken_ <= kRingEntries) return {&head_};
        return judge_next(produced);
    }
    const std::string& why() const { return why_; }
    std::uint64_t taken() const { return taken_; }
    // How much of the payload area all messages until now have used, one after the other.
    std::uint64_t payload_end() const { return payload_end_; }
    // When the next message is due by this card's clock; kNever: there is none.
    std::expected<ModelTime, std::string> next_due(const EventQueue& events);
    // The one that was looked at last is done.
    void take() {
        if (clock_ != nullptr)
            store_relaxed(channel_->heard_ps[taken_ % kRingEntries], later(clock_->system_now(), latency_));
        ++taken_;
        judged_ = false;
        payload_end_ = head_.payload_end;
        last_arrival_ = head_.arrival_ps;
        // The payload's credit first: who sees the message's credit may count on it.
        store_release(channel_->payload_consumed, payload_end_);
        store_release(channel_->consumed, taken_);
        if (told_) told_(head_);
    }
    // A later one, as the peer has it there now.
    Message peek(std::uint64_t index) const;

  private:
    Found judge_next(std::uint64_t produced);
    Found refuse(std::string why);
    Found taken_back();
    // A signal with which judge() finds nothing wrong. It is said of nearly all of them, and at once.
    bool is_sound_signal(const Message& message) const;
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
    std::string why_;
    std::function<void(const Message&)> told_;
};

}  // namespace orrery::emu::link
