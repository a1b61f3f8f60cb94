// The receiving half of a link port: judges and executes what the peer has put into this card's inbox.
#pragma once

#include <array>
#include <expected>
#include <functional>
#include <string>

#include "emulator/link/grants.h"
#include "emulator/link/shared_area.h"
#include "emulator/memory/vram.h"
#include "emulator/probes/counters.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu::link {

class Receiver {
  public:
    using Poke = std::function<void(std::uint64_t vram_offset)>;

    using Room = std::function<bool()>;

    // `room`: whether a poke may come. Messages that have arrived already go through at `bytes_per_second`.
    Receiver(EventQueue& events, Vram& vram, Counters& counters, Poke poke, Room room,
             std::uint64_t bytes_per_second);

    // A new inbox for a new peer; the old one, and what nobody executed in it, is gone.
    std::expected<void, std::string> open();
    void close();
    bool is_open() const { return static_cast<bool>(inbox_); }
    int fd() const { return inbox_.fd(); }

    bool set_grant(std::uint32_t slot, const Grant& grant);

    // Executes what has arrived by the card's system time, bounded per call. true: it did something or has
    // more. An error is a reason to take the link down. The caller calls again at `wanted()` if that is not
    // kNever.
    std::expected<bool, std::string> pump();
    // Executes what has been sent by now, before its time if need be, as far as there is room for pokes.
    std::expected<void, std::string> hurry();
    // By the clock, when pump() has to be called again for what is waiting; kNever: nothing known to wait.
    ModelTime wanted() const { return wanted_; }
    // The next message is a signal for which there was no room. Nothing is wanted until there is; then the
    // caller calls pump() again.
    bool held() const { return held_; }

    // One load: is there a message that nobody has looked at?
    bool has_news() { return load_relaxed(inbox_->produced) != consumed_; }
    void show_alive() { store_release(inbox_->alive, ++alive_); }
    void set_need_wakeup(bool on);
    // After pump(): the peer blocks until it gets credits, and is to be woken.
    bool take_credit_wish();

    static constexpr unsigned kBatchMessages = 64;
    static constexpr std::uint64_t kBatchBytes = 512 << 10;

  private:
    std::expected<Message, std::string> look_at(std::uint64_t produced) const;
    void consume(const Message& message);
    const char* judge(const Message& message) const;
    void execute(const Message& message);

    EventQueue& events_;
    Vram& vram_;
    Counters& counters_;
    Poke poke_;
    Room room_;
    std::uint64_t bytes_per_second_;
    SharedArea inbox_;
    std::array<Grant, ORR_LINK_GRANT_SLOTS> grants_{};
    std::uint64_t consumed_ = 0;
    std::uint64_t payload_end_ = 0;
    std::uint64_t alive_ = 0;
    ModelTime last_arrival_ = 0;
    ModelTime wanted_ = kNever;
    bool held_ = false;
    ModelTime late_since_ = kNever;  // messages from here on are late by this port's own doing
};

}  // namespace orrery::emu::link
