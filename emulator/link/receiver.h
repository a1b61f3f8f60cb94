// The receiving half of a link port: judges and executes what the peer has put into this card's inbox for it.
// What is to be passed on, the far channel, is the Forwarder's.
#pragma once

#include <array>
#include <deque>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "emulator/link/reader.h"
#include "emulator/link/shared_area.h"
#include "emulator/memory/vram.h"
#include "emulator/probes/counters.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu::link {

class Receiver {
  public:
    using Poke = std::function<void(std::uint64_t vram_offset)>;

    using Room = std::function<bool()>;
    using Arrived = std::function<void(std::uint64_t vram_offset, std::uint64_t bytes)>;
    using Noted = std::function<void(std::uint32_t node, bool passed, std::span<const std::byte> data)>;
    using Barrier = std::function<Status(const Message&)>;
    // Whether what a node sends comes by this port, and in which epoch.
    struct Ways {
        std::function<bool(std::uint32_t node)> come_here;
        std::function<std::uint32_t(std::uint32_t node)> epoch_of;
    };
    // What goes back to who sent a request. `room`: whether an answer to it finds some now; asked before a
    // read or atomic is carried out, but in a hurry. `give`: data and value as the operation has them; a
    // refused write is only told if there is room, and an answer without waits for some.
    struct Answers {
        std::function<bool(const Message& request)> room;
        std::function<void(const Message& request, Status status, std::span<const std::uint8_t> data,
                           std::uint64_t value)>
            give;
    };

    // `room`: whether a poke may come. `arrived` hears of what was written. Messages that have arrived
    // already go through at `bytes_per_second`. `barrier`: judges and takes what is for the card's barrier
    // unit.
    Receiver(EventQueue& events, Vram& vram, Counters& counters, Poke poke, Room room, Arrived arrived,
             Ways ways, Answers answers, std::uint64_t bytes_per_second, Counts& counts, Noted noted,
             Barrier barrier);

    // A new inbox for a new peer; the old one, and what nobody executed in it, is gone.
    std::expected<void, std::string> open();
    void close();
    // The peer's messages have CRCs.
    void check_frames(bool on);
    // Of an inbox that is open: told of each message that is taken, by whomever.
    void on_taken(const std::function<void(const Message&, unsigned lane)>& told);
    // Called for the 1st, 2nd, 4th, .. request whose key is wrong.
    void on_bad_key(std::function<void(std::uint32_t node)> told) { bad_key_ = std::move(told); }
    // It keeps step with this card: it hears of each credit this card's latency after it was given.
    void keep_step(ModelTime latency);
    bool is_open() const { return static_cast<bool>(inbox_); }
    int fd() const { return inbox_.fd(); }

    bool set_grant(std::uint32_t slot, const OwnGrant& grant);
    Grant grant(std::uint32_t slot) const { return slot < grants_.size() ? grants_[slot].grant : Grant{}; }
    // The card's own; what is for another is denied.
    void set_node(std::uint32_t node);

    // Of a switch, for whoever looks into the inbox; it is open.
    void show_reach(std::uint32_t node, const Reach& reach);
    void tell_reach() { store_release(inbox_->reach_version, load_relaxed(inbox_->reach_version) + 1); }
    void show_switches(std::span<const SwitchWords> all);
    std::uint64_t drains_wanted() const { return load_acquire(inbox_->drains_wanted); }
    std::uint64_t drains_forced() const { return load_relaxed(inbox_->drains_forced); }
    void show_drained(std::uint64_t drains) { store_release(inbox_->drains_done, drains); }

    // Executes what has arrived by the card's system time, bounded per call. kDid: it did something or has
    // more. The caller calls again at `wanted()` if that is not kNever.
    enum class Pumped : std::uint8_t {
        kNothing,
        kDid,
        kWrong,  // what the peer says; why() is a reason to take the link down
    };
    Pumped pump();
    const std::string& why() const { return near_.why(); }
    // The first message.
    Reader::Found first() { return near_.next(); }
    // Executes that, if it is a signal for which there is room, and arrives by now; nothing is held(). It is
    // all that pump() would do, unless there is more().
    bool take_signal(const Message& first);
    bool more() const { return near_.has_news(); }
    // One more that asked for what it does not get.
    void count_denied();
    // Executes nothing; wanted() is when the first message arrives.
    std::expected<void, std::string> look();
    // Executes what has been sent by now, before its time if need be; or only up to the last signal of the
    // semaphore at `offset`. Pokes without room are owed. False: not all, for too many are owed.
    std::expected<bool, std::string> hurry();
    std::expected<bool, std::string> hurry_to(std::uint64_t offset);
    // Pokes of messages that were executed in a hurry, and had to wait. They outlive the inbox.
    bool owes() const { return !owed_.empty(); }
    void give_owed();
    void forget_owed() { owed_.clear(); }
    // By the clock, when pump() has to be called again for what is waiting; kNever: nothing known to wait.
    ModelTime wanted() const { return wanted_; }
    // The next message is a signal for which there was no room, or pokes are owed. Nothing is wanted until
    // there is room; then the caller calls give_owed() and pump() again.
    bool held() const { return held_ || owes(); }
    // The next message is a request to whose answer there is no room.
    const Message* unanswered() const { return unanswered_ ? &*unanswered_ : nullptr; }

    // One load: is there a message that nobody has looked at?
    bool has_news() const { return near_.has_news(); }
    // The same of the other channels.
    bool has_other_news() const { return far_.has_news() || near_back_.has_news() || far_back_.has_news(); }
    Reader& far() { return far_; }
    Reader& near_back() { return near_back_; }
    Reader& far_back() { return far_back_; }
    void show_alive() { store_release(inbox_->alive, ++alive_); }
    void set_need_wakeup(bool on);
    // Since the wishes were looked at last something was taken, so the peer has got credits. A wish that came
    // since then comes from a peer that has seen those before.
    bool has_given() const { return given() != given_; }
    // Then: the peer blocks until it gets credits, and is to be woken.
    bool take_credit_wish();
    // Likewise: it is to be told of the time.
    bool take_wish_in_step();

    static constexpr unsigned kBatchMessages = 64;
    static constexpr std::uint64_t kBatchBytes = 512 << 10;
    static constexpr std::size_t kMaxOwed = std::size_t{4} * kRingEntries;

  private:
    std::uint64_t given() const {
        return near_.taken() + far_.taken() + near_back_.taken() + far_back_.taken();
    }
    std::expected<bool, std::string> hurry_until(std::uint64_t index);
    void consume(const Message& message);
    void raise(const Message& signal);
    void poke(std::uint64_t offset);
    void count(const Message& message, std::uint64_t bytes);
    bool is_for_here(const Message& message) const {
        return message.destination == node_ && ways_.come_here(message.source) &&
               ways_.epoch_of(message.source) == message.epoch;
    }
    // What the grants say of so many bytes.
    Status judge_grants(const Message& message, std::uint64_t rights, std::uint64_t bytes) {
        return judge(std::span<const OwnGrant>(grants_).first(grants_end_),
                     {.node = message.source,
                      .rights = rights,
                      .key = message.key,
                      .offset = message.offset,
                      .bytes = bytes},
                     last_grant_);
    }
    void take_note(const Message& message);
    static bool wants_answer(const Message& message) {
        return message.op == kOpRead || message.op == kOpAtomic;
    }
    void execute(const Message& message);
    void refuse(const Message& message, Status status, bool tell);
    void carry_out(const Message& message, std::uint8_t* at);
    ModelTime takes(const Message& message) const;

    EventQueue& events_;
    Vram& vram_;
    Counters& counters_;
    Poke poke_;
    Room room_;
    Arrived arrived_;
    Ways ways_;
    Answers answers_;
    Noted noted_;
    Barrier barrier_;
    std::function<void(std::uint32_t node)> bad_key_;
    std::uint64_t bytes_per_second_;
    ModelTime least_ps_;  // that a message takes there
    Counts& counts_;
    SharedArea inbox_;
    std::array<OwnGrant, ORR_LINK_GRANT_SLOTS> grants_{};
    std::uint32_t grants_end_ = 0;  // slots from there on are not in use
    std::size_t last_grant_ = 0;    // judge() has it
    std::uint32_t node_ = 0;
    std::uint64_t lives_ = 0;  // how often it has been set
    Reader near_, far_, near_back_, far_back_;
    std::optional<Message> unanswered_;
    std::uint64_t given_ = 0;  // messages whose credits the peer was told of if it wished so
    std::uint64_t alive_ = 0;
    ModelTime wanted_ = kNever;
    bool held_ = false;
    bool hurrying_ = false;
    std::deque<std::uint64_t> owed_;  // pokes
    // Signals in the ring below scanned_: index + 1 of the last for each semaphore. As the peer had it there
    // then; what is carried out is what next() judged.
    std::unordered_map<std::uint64_t, std::uint64_t> on_the_way_;
    std::uint64_t scanned_ = 0;
    ModelTime late_since_ = kNever;  // messages from here on are late by this port's own doing
};

}  // namespace orrery::emu::link
