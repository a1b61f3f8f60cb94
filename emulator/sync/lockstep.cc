#include "emulator/sync/lockstep.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace orrery::emu::sync {

namespace {

using Clock = std::chrono::steady_clock;

// An owner of the lock that is alive keeps it for less than a microsecond, if it has a CPU.
constexpr unsigned kSpins = 200;
constexpr auto kLockLimit = std::chrono::seconds(5);

constexpr ModelTime earlier(ModelTime time, ModelTime by) {
    return time > by ? time - by : 0;
}

}  // namespace

// The area's lock, for as long as this lives. Not held: the member has given up.
class Lockstep::Locked {
  public:
    // `enters`: it is no member yet.
    explicit Locked(Lockstep& of, bool enters = false) : of_(of) {
        if (!of.active_) return;
        std::optional<Clock::time_point> end;
        for (unsigned spins = 1;; ++spins) {
            std::uint32_t owner = 0;
            if (of.area_->lock.compare_exchange_weak(owner, of.self_ + 1, std::memory_order_acquire)) break;
            if (spins % kSpins != 0) continue;
            ::sched_yield();
            const Clock::time_point now = Clock::now();
            if (!end) end = now + kLockLimit;
            // Its owner may have ended with it. What it was about to write may be missing then: its own.
            const bool gone = owner != 0 && (owner > kMembers || !of.area_.held_by_another(owner - 1));
            if (gone &&
                of.area_->lock.compare_exchange_strong(owner, of.self_ + 1, std::memory_order_acquire))
                break;
            if (now > *end) {
                of.give_up("another member does not give back the lock");
                return;
            }
        }
        held_ = true;
        if (!enters && of.slot().state != kMember) {
            release();
            of.give_up("the others went on, as this card had stopped");
        }
    }
    ~Locked() { release(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    explicit operator bool() const { return held_; }

    // The others are woken without it.
    void release() {
        if (!held_) return;
        held_ = false;
        of_.area_->lock.store(0, std::memory_order_release);
        for (const unsigned slot : std::exchange(of_.to_wake_, {}))
            of_.wake(slot);
    }

  private:
    Lockstep& of_;
    bool held_ = false;
};

std::filesystem::path Lockstep::wake_path(const std::filesystem::path& file, unsigned slot) {
    return file.string() + fmt::format(".{}", slot);
}

Lockstep::Lockstep(LockstepConfig config, SharedArea area, unsigned slot, UniqueFd wake)
    : config_(std::move(config)), area_(std::move(area)), self_(slot), wake_(std::move(wake)) {}

std::expected<std::unique_ptr<Lockstep>, std::string> Lockstep::join(LockstepConfig config) {
    if (config.lookahead == 0)
        return std::unexpected(
            "lockstep needs links with a latency (link.latency_ns of the SKU): cards that hear each other at "
            "once would wait for each other all the time");
    auto area = SharedArea::open(config.file);
    if (!area) return std::unexpected(area.error());
    unsigned slot = 0;
    while (slot < kMembers && !area->hold(slot))
        ++slot;
    if (slot == kMembers)
        return std::unexpected(
            fmt::format("{}: {} cards are in this lockstep already: start this one with another file",
                        config.file.string(), kMembers));
    const auto path = wake_path(config.file, slot);
    ::unlink(path.c_str());
    if (::mkfifo(path.c_str(), 0600) != 0)
        return std::unexpected(fmt::format("{}: cannot be made: {}", path.string(), std::strerror(errno)));
    UniqueFd wake(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!wake)
        return std::unexpected(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
    std::unique_ptr<Lockstep> made(new Lockstep(std::move(config), *std::move(area), slot, std::move(wake)));
    if (auto entered = made->enter(); !entered) {
        made->active_ = false;
        return std::unexpected(entered.error());
    }
    return made;
}

std::expected<void, std::string> Lockstep::enter() {
    const Locked locked(*this, true);
    if (!locked) return std::unexpected(fmt::format("{}: the lock is not given back", config_.file.string()));
    // What processes left behind that have ended, also in this slot, counts no more.
    for (unsigned n = 0; n < kMembers; ++n) {
        Slot& other = area_->slots[n];
        if (n != self_ && (other.state == kFree || area_.held_by_another(n))) continue;
        other.state = kFree;
        other.next = kNever;
        other.grant = 0;
    }
    if (has(config_.uid))
        return std::unexpected(fmt::format(
            "{}: a card with uid {:#x} is in this lockstep already: give each VM a file of its own",
            config_.file.string(), config_.uid));
    Slot& own = slot();
    own.active = own.asleep = 0;
    own.uid = config_.uid;
    own.lookahead = config_.lookahead;
    ++own.entries;
    own.state.store(kMember, std::memory_order_release);
    return {};
}

Lockstep::~Lockstep() {
    const auto path = wake_path(config_.file, self_);
    if (const Locked locked(*this); locked) {
        account();
        slot().state = kFree;
        slot().next = kNever;
        tell_others();
    }
    ::unlink(path.c_str());
    area_.give_back(self_);
}

bool Lockstep::has(std::uint64_t uid) const {
    return std::ranges::any_of(area_->slots, [&](const Slot& other) {
        return other.state.load(std::memory_order_acquire) == kMember && other.uid == uid;
    });
}

// --- under the lock ---

// Whoever was sent something promises no more than its arrival.
void Lockstep::account() {
    for (const Sent& sent : std::exchange(sent_, {})) {
        for (unsigned n = 0; n < kMembers; ++n) {
            Slot& to = area_->slots[n];
            if (n == self_ || to.state != kMember || to.uid != sent.uid) continue;
            if (sent.arrival < to.next) {
                to.next = sent.arrival;
                if (to.asleep.exchange(0) != 0) to_wake_.push_back(n);
            }
            to.accounted.fetch_add(1, std::memory_order_release);
        }
    }
}

// By slot.
std::array<Promise, kMembers> Lockstep::promises() const {
    std::array<Promise, kMembers> all;
    for (unsigned n = 0; n < kMembers; ++n) {
        const Slot& one = area_->slots[n];
        if (one.state == kMember) all[n] = {one.next, one.lookahead};
    }
    return all;
}

// What it may do after what it and the others have promised.
void Lockstep::grant(ModelTime now, bool act) {
    const auto all = promises();
    limiting_ = static_cast<unsigned>(nearest(all, self_));
    limit_ = limiting_ == kMembers ? kNever : all[limiting_].next;
    least_lookahead_ = config_.lookahead;
    others_active_ = false;
    for (unsigned n = 0; n < kMembers; ++n) {
        const Slot& other = area_->slots[n];
        if (n == self_ || other.state != kMember) continue;
        others_active_ |= other.active != 0;
        least_lookahead_ = std::min(least_lookahead_, all[n].lookahead);
    }
    granted_ = now;
    if (act) granted_ = std::max(now, std::min(horizon(all, self_), later(promised_, kWindow)));
    slot().grant = granted_;
}

// Who sleeps until it may go on, and may.
void Lockstep::tell_others() {
    const auto all = promises();
    for (unsigned n = 0; n < kMembers; ++n) {
        Slot& other = area_->slots[n];
        if (n == self_ || other.state != kMember || other.asleep == 0) continue;
        if (all[n].next == kNever || horizon(all, n) <= all[n].next) continue;
        other.asleep = 0;
        to_wake_.push_back(n);
    }
}

// Up to this time others may have acted, or may yet, in the belief that this member sends them nothing.
ModelTime Lockstep::spoken_for() const {
    ModelTime last = 0;
    for (unsigned n = 0; n < kMembers; ++n) {
        const Slot& other = area_->slots[n];
        // What is beyond the end of time is a lie.
        if (const ModelTime grant = other.grant; n != self_ && other.state == kMember && grant < kNever / 4)
            last = std::max(last, grant);
    }
    return earlier(last, config_.lookahead);
}

// --- the member ---

bool Lockstep::promise(ModelTime now, ModelTime next, std::uint64_t news, bool act, bool busy) {
    const Locked locked(*this);
    if (!locked) return true;
    if (slot().accounted.load(std::memory_order_relaxed) != news) return false;
    news_ = news;
    woken_ = false;
    account();
    promised_ = next;
    act_ = act;
    slot().next = next;
    slot().active = busy ? 1 : 0;
    grant(now, act && next != kNever);
    tell_others();
    return true;
}

ModelTime Lockstep::intrude(ModelTime now) {
    const Locked locked(*this);
    if (!locked) return now;
    const ModelTime at = std::max(now, spoken_for());
    account();
    if (at < promised_) {
        promised_ = at;
        slot().next = at;
        slot().active = 1;
        grant(now, true);
        tell_others();
    }
    return at;
}

void Lockstep::sent(std::uint64_t uid, ModelTime arrival) {
    if (!active_) return;
    // Its answer takes a link, too.
    granted_ = std::min(granted_, later(arrival, least_lookahead_));
    const auto same = [&](const Sent& one) { return one.uid == uid; };
    if (const auto known = std::ranges::find_if(sent_, same); known != sent_.end())
        known->arrival = std::min(known->arrival, arrival);
    else
        sent_.push_back({uid, arrival});
}

bool Lockstep::changed() const {
    if (woken_ || slot().accounted.load(std::memory_order_acquire) != news_) return true;
    return limiting_ < kMembers && (area_->slots[limiting_].next.load(std::memory_order_acquire) != limit_ ||
                                    area_->slots[limiting_].state.load(std::memory_order_relaxed) != kMember);
}

bool Lockstep::prepare_sleep() {
    const Locked locked(*this);
    if (!locked) return false;
    if (changed()) return false;
    slot().asleep = 1;
    return true;
}

void Lockstep::after_sleep() {
    slot().asleep = 0;
    std::array<char, 64> drained;
    while (::read(wake_.get(), drained.data(), drained.size()) > 0)
        woken_ = true;
}

void Lockstep::wake(unsigned slot) {
    // Each member that takes a slot makes its pipe anew; one who cannot be told looks by itself, later.
    Waker& to = wakers_[slot];
    if (const std::uint32_t entries = area_->slots[slot].entries; !to.fd || to.entries != entries) {
        // For reading too: nobody who leaves makes a write fail with a signal.
        to.fd.reset(::open(wake_path(config_.file, slot).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        to.entries = entries;
    }
    const char one = 1;
    [[maybe_unused]] const auto written = to.fd ? ::write(to.fd.get(), &one, 1) : 0;
}

void Lockstep::give_up(const std::string& why) {
    if (!active_) return;
    active_ = false;
    granted_ = promised_ = kNever;
    slot().state = kLost;
    note(fmt::format("lockstep: this card goes on by itself: {}", why));
}

void Lockstep::look_for_life() {
    if (!active_ || limiting_ == kMembers) return;
    Slot& other = area_->slots[limiting_];
    const std::uint64_t beats = other.beats.load(std::memory_order_relaxed);
    const bool gone = !area_.held_by_another(limiting_);
    if (!gone && (silent_ != limiting_ || beats != silent_beats_)) {
        silent_ = limiting_;
        silent_beats_ = beats;
        silent_looks_ = 0;
        return;
    }
    if (!gone && ++silent_looks_ < config_.silent_looks) return;
    silent_looks_ = 0;
    if (const Locked locked(*this); locked && other.state == kMember && other.next == limit_) {
        other.state = kLost;
        tell_others();
        note(fmt::format("lockstep: card {:#x} {}: the others go on without it", other.uid.load(),
                         gone ? "has ended" : "has stopped"));
    }
}

}  // namespace orrery::emu::sync
