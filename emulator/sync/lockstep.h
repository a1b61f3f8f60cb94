// A card's part in a conservative lockstep: no card acts at a time before which another may still send it
// something, so every message finds the clock of its receiver before its arrival, in every run.
//
// Members share a file (area.h). Each *promises* the time before which it does nothing, neither by itself nor
// for what it was sent, and is *granted* the time before which nobody can send it anything; it acts in
// between without asking anybody. A member that has something to do only when it is sent something promises
// "never", and holds nobody back.
//
// What keeps promises true: before a member acts earlier than it promised, it promises less (promise(),
// intrude()); and a message's sender, before it promises to go beyond the time at which it sent it, has the
// receiver promise no more than its arrival (it *accounts* the message).
//
// One thread, the card's. Times are system times.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/api/horizon.h"
#include "emulator/api/model_time.h"
#include "emulator/base/unique_fd.h"
#include "emulator/sync/area.h"

namespace orrery::emu::sync {

struct LockstepConfig {
    std::filesystem::path file;
    std::uint64_t uid = 0;             // as PeerPort's sessions know it; of no other member
    ModelTime lookahead = 0;           // what it sends arrives no earlier than so much later; not 0
    std::uint32_t silent_looks = 200;  // of look_for_life() in which a member shows no life: it has stopped
    std::function<void(const std::string&)> note;  // what an operator should know; may be empty
};

class Lockstep {
  public:
    // The error is one line.
    static std::expected<std::unique_ptr<Lockstep>, std::string> join(LockstepConfig config);
    // Leaves.
    ~Lockstep();
    Lockstep(const Lockstep&) = delete;
    Lockstep& operator=(const Lockstep&) = delete;

    // False: the others go on without this member, which had stopped or could not get at the area. Nothing
    // else here has an effect then, and nothing is granted or held back.
    bool active() const { return active_; }
    // Whether that card is a member.
    bool has(std::uint64_t uid) const;

    // The member acts only before this time.
    ModelTime granted() const { return granted_; }
    // It has promised to do nothing before this time.
    ModelTime promised() const { return promised_; }
    // Another member has something to do beside waiting for a timer, as far as was known at the last promise.
    bool others_active() const { return others_active_; }
    // It has something to do, and is granted no more than up to that.
    bool waits_for_others() const { return promised_ != kNever && promised_ >= granted_; }

    // What to hand to promise(): read before looking for messages.
    std::uint64_t news() const { return slot().accounted.load(std::memory_order_acquire); }
    // Nothing is done before `next`, which may be now: by itself, or for what was found when `news` was read.
    // kNever: not at all without being sent something. `act`: it wants to go on from there; otherwise it is
    // granted nothing beyond `now`. `busy`: not only for a timer. False: news came, look for messages again.
    bool promise(ModelTime now, ModelTime next, std::uint64_t news, bool act, bool busy);
    // Something has come from elsewhere, now or as good as now: the earliest time at which it can act on it
    // without breaking its word, once it is granted that. It promises no more than that from here on.
    ModelTime intrude(ModelTime now);
    // It has sent a member a message, within what was granted. Less may be granted from here on.
    void sent(std::uint64_t uid, ModelTime arrival);

    // promise() with these would change nothing.
    bool has_promised(ModelTime next, bool act) const {
        return next == promised_ && (act == act_ || next == kNever) && sent_.empty() && !changed();
    }
    // Something has changed since the last promise that may grant more.
    bool changed() const;
    // Before blocking on fd(): false if it has changed.
    bool prepare_sleep();
    void after_sleep();
    int fd() const { return wake_.get(); }

    // In each round of the card's loop: the others see that it runs.
    void beat() {
        if (active_) slot().beats.store(++beats_, std::memory_order_relaxed);
    }
    // Now and then while nothing is granted, at least 50 ms apart: whoever holds this member back, and has
    // ended or stopped, is left behind.
    void look_for_life();

    // What a member may be ahead of the time at which it has nothing to fear, so that those that are woken
    // by their hosts find the others' clocks near.
    static constexpr ModelTime kWindow = 20'000'000;

  private:
    class Locked;
    std::expected<void, std::string> enter();
    Lockstep(LockstepConfig config, SharedArea area, unsigned slot, UniqueFd wake);
    Slot& slot() const { return area_->slots[self_]; }
    static std::filesystem::path wake_path(const std::filesystem::path& file, unsigned slot);
    void note(const std::string& text) const {
        if (config_.note) config_.note(text);
    }
    // Under the lock.
    void account();
    std::array<Promise, kMembers> promises() const;
    void grant(ModelTime now, bool act);
    void tell_others();
    ModelTime spoken_for() const;

    void give_up(const std::string& why);
    void wake(unsigned slot);

    LockstepConfig config_;
    SharedArea area_;
    unsigned self_;
    UniqueFd wake_;
    bool active_ = true;
    ModelTime granted_ = 0, promised_ = kNever;
    ModelTime least_lookahead_ = 0;
    bool act_ = false, others_active_ = false;
    bool woken_ = false;            // since the last promise
    unsigned limiting_ = kMembers;  // the slot that sets the horizon, and what it promised
    ModelTime limit_ = kNever;
    std::uint64_t news_ = 0;
    std::uint64_t beats_ = 0;
    struct Sent {
        std::uint64_t uid;
        ModelTime arrival;
    };
    std::vector<Sent> sent_;  // the first to each, since the last promise
    std::vector<unsigned> to_wake_;
    unsigned silent_ = kMembers;  // the slot that shows no life
    std::uint64_t silent_beats_ = 0;
    std::uint32_t silent_looks_ = 0;
    struct Waker {
        UniqueFd fd;
        std::uint32_t entries = 0;  // of the slot when it was opened
    };
    std::array<Waker, kMembers> wakers_;  // of the others, opened when they are needed
};

}  // namespace orrery::emu::sync
