// The card's thread: how it spins, sleeps and wakes, and how the I/O thread waits for it.
#include "emulator/card/card_thread.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "emulator/card/card.h"
#include "emulator/card/core_target.h"
#include "emulator/card/kernel_target.h"

namespace orrery::emu {

namespace {

using Clock = std::chrono::steady_clock;

void pause_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

// Reading the clock costs as much as a few rounds without work.
constexpr unsigned kRoundsPerClock = 32;
// A look at the debugger's socket costs a microsecond or two.
constexpr unsigned kRoundsPerGdb = 64;
// The writer of a recording wakes the card; this is for when it did so just before the card slept.
constexpr int kRecordingWaitUs = 1000;
// How long a card spins that waits for other cards' clocks, and how often it looks whether they live.
constexpr std::uint32_t kSpinForOthersUs = 20;
constexpr std::chrono::milliseconds kLookForLife{50};
// How long the I/O thread spins before it starts to sleep between looks.
constexpr unsigned kSpins = 2000;

// Idle model time is skipped. One case would then race away: firmware that polls the host by its timer, with
// nothing else going on. Such a timer takes about as long on the host as on the card, so that the host can
// act meanwhile. While an engine waits for a peer, which has only the host's time, it takes just as long,
// and kStands times that while the peer's process stands: a limit is for a peer that had the time. It ends
// nevertheless, as what else the firmware does by its timer goes on.
class IdleTimer {
  public:
    // Whether the clock may be moved to the timer now. `look`: at the peers, if that matters.
    template <class Look>
    bool may_skip(const ControlCore& core, ModelTime now, Look look) {
        if (!core.waits_for_timer_only()) {
            armed_ = false;
            return true;
        }
        const Clock::time_point host_now = Clock::now();
        const AwaitedPeers peers = look(host_now);
        const bool awaited = peers != AwaitedPeers::kNone;
        const int cost = peers == AwaitedPeers::kStand ? kStands : 1;
        // Another timer is looked at anew, and so is one that somebody waits beside now, or no longer.
        if (!armed_ || timer_ != core.timer() || awaited_ != awaited) {
            armed_ = true;
            timer_ = core.timer();
            awaited_ = awaited;
            const ModelTime left = core.timer() > now ? core.timer() - now : 0;
            const std::chrono::nanoseconds ns(left / kPsPerNs);
            left_ = awaited ? ns : std::min(ns, kLongest);
        } else {
            // More than a sleep lasts is time in which this card stood, and they perhaps with it.
            const std::chrono::nanoseconds gap = host_now - looked_;
            left_ -= (awaited ? std::min(gap, kMostGap) : gap) / std::max(cost, cost_);
        }
        looked_ = host_now;
        cost_ = cost;
        if (left_.count() > 0) return false;
        armed_ = false;
        return true;
    }
    // How long a sleep may last; -1: for ever.
    int left_us() const {
        if (!armed_) return -1;
        const auto end = looked_ + left_ * cost_;
        const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - Clock::now()).count();
        return static_cast<int>(std::clamp<std::int64_t>(left, 0, kMostUs));
    }

  private:
    static constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(10);
    static constexpr int kStands = 16;
    static constexpr std::int64_t kMostUs = 20'000;  // then the peers are looked at again
    static constexpr std::chrono::nanoseconds kMostGap = std::chrono::milliseconds(25);
    bool armed_ = false;
    bool awaited_ = false;
    ModelTime timer_ = 0;
    std::chrono::nanoseconds left_{};  // that the host has to pass, where it costs 1
    int cost_ = 1;                     // since `looked_`
    Clock::time_point looked_{};
};

// A recording is written twice a second at least, whatever the card does; a flight recorder's memory costs
// less than a disk, and is for what happened just before a card died.
class FlushTimer {
  public:
    FlushTimer(bool on, bool flight)
        : on_(on),
          period_(flight ? kFlightPeriod : kPeriod),
          last_(on ? Clock::now() : Clock::time_point{}) {}

    // Looks at the clock every few rounds only, or after idle().
    bool due() {
        if (!on_ || (!look_ && ++rounds_ % kRounds != 0)) return false;
        look_ = false;
        const Clock::time_point now = Clock::now();
        if (now - last_ < period_) return false;
        last_ = now;
        return true;
    }
    void idle() { look_ = on_; }
    // `dirty`: something is to be written.
    int shorten(int timeout_us, bool dirty) const {
        const int period_us = static_cast<int>(std::chrono::microseconds(period_).count());
        return dirty && (timeout_us < 0 || timeout_us > period_us) ? period_us : timeout_us;
    }

  private:
    static constexpr std::chrono::milliseconds kPeriod{500}, kFlightPeriod{50};
    static constexpr unsigned kRounds = 64;
    bool on_;
    std::chrono::milliseconds period_;
    bool look_ = false;
    unsigned rounds_ = 0;
    Clock::time_point last_;
};

}  // namespace

std::expected<void, std::string> Card::build_debuggers() {
    const auto listen = [this](std::optional<std::uint16_t> port, std::unique_ptr<gdb::Target> target,
                               const char* what, std::uint16_t& taken) -> std::expected<void, std::string> {
        if (!port) return {};
        const auto added = debuggers_.add(*port, std::move(target));
        if (!added) return std::unexpected(added.error());
        taken = *added;
        errors_.note("gdb may connect to 127.0.0.1:{}{}", taken, what);
        return {};
    };
    if (auto done = listen(config_.gdb, std::make_unique<CoreTarget>(*this), "", gdb_port_); !done)
        return done;
    return listen(
        config_.kernel_gdb,
        std::make_unique<KernelTarget>(vector_unit_->debugger(),
                                       [this](const std::string& text) { errors_.note("{}", text); }),
        " for kernels", kernel_gdb_port_);
}

bool Card::serve_debuggers() {
    const bool busy = debuggers_.service();
    const std::uint32_t held = (core_->debug_stopped() ? ORR_HELD_FIRMWARE : 0) |
                               (vector_unit_->debugger().stopped() ? ORR_HELD_KERNELS : 0);
    file_.held.store(held, std::memory_order_release);
    return busy;
}

void Card::wake() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!sleeping_.load(std::memory_order_relaxed)) return;
    const std::uint64_t one = 1;
    // Can only fail by being full, and then the card wakes all the same.
    [[maybe_unused]] const auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

void Card::request_stop() {
    stop_.store(true, std::memory_order_release);
    wake();
}

void Card::post(const Command& command) {
    while (!commands_.push(command)) {
        if (running()) {
            wake();
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        } else {
            drain_commands();
        }
    }
    wake();
}

bool Card::flush_within(std::uint32_t limit_us) {
    Clock::time_point end{};
    for (unsigned spins = 0; !commands_.drained(); ++spins) {
        if (!running()) {
            drain_commands();
            break;
        }
        if (spins < kSpins) {
            pause_cpu();
            continue;
        }
        const Clock::time_point now = Clock::now();
        if (spins == kSpins) end = now + std::chrono::microseconds(limit_us);
        if (now >= end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
}

void Card::flush() {
    // The card looks at its commands every 100 us or so, whatever the guest does: this ends.
    while (!flush_within(1'000'000))
        wake();
}

CardThread::CardThread(Card& card) : card_(card) {
    card.running_.store(true, std::memory_order_release);
    thread_ = std::thread([&card] { card.run(); });
}

void CardThread::stop() {
    if (!thread_.joinable()) return;
    card_.request_stop();
    thread_.join();
}

void Card::run() {
    IdleTimer idle_timer;
    unsigned rounds = 0;
    unsigned gdb_rounds = 0;
    unsigned control_rounds = 0;
    bool spinning = false;
    Clock::time_point give_up{}, looked = Clock::now();
    FlushTimer flush_timer(recorder_ != nullptr, recorder_ != nullptr && recorder_->is_flight());
    while (!stop_.load(std::memory_order_relaxed)) {
        if (flush_timer.due() || core_->recording_full()) flush_recording();
        if (debuggers_.any() && (held() || ++gdb_rounds % kRoundsPerGdb == 0)) serve_debuggers();
        if (fault_control_ && ++control_rounds % kRoundsPerGdb == 0) fault_control_->service();
        const bool skip_idle = idle_timer.may_skip(
            *core_, events_.now(), [this](Clock::time_point host_now) { return awaited_peers(host_now); });
        if (keeps_step() ? step_in_lockstep(skip_idle) : step(skip_idle)) {
            spinning = false;
            continue;
        }
        if (!spinning) {
            spinning = true;
            rounds = 0;
            // Those whom it waits for need a CPU.
            const std::uint32_t spin_us =
                waits_for_others() ? std::min(kSpinForOthersUs, config_.spin_us) : config_.spin_us;
            give_up = Clock::now() + std::chrono::microseconds(spin_us);
        }
        pause_cpu();
        if (++rounds % kRoundsPerClock != 0 && config_.spin_us != 0) continue;
        const Clock::time_point host_now = Clock::now();
        if (host_now < give_up) continue;
        if (waits_for_others() && host_now - looked >= kLookForLife) {
            looked = host_now;
            lockstep_->look_for_life();
        }
        flush_timer.idle();
        if (serve_debuggers()) continue;
        if (fault_control_ && fault_control_->service()) continue;
        // Who looks into a flight recorder's memory sees what crossed last, too. A file has a burst when it
        // is known to go on no more, whenever the card had nothing to do.
        if (recorder_ != nullptr && recorder_->is_flight()) link_log_.finish();
        sleep(flush_timer.shorten(idle_timer.left_us(), core_->recording_dirty()));
        spinning = false;
    }
    drain_commands();
    running_.store(false, std::memory_order_release);
}

// Blocks until there is something to do. The order matters: say that we sleep, fence, look once more.
void Card::sleep(int timeout_us) {
    doorbells_->set_need_wakeup(true);
    sleeping_.store(true, std::memory_order_relaxed);
    std::array<pollfd, 3 + Debuggers::kMost + ORR_LINK_MAX_PORTS> fds{};
    fds[0] = {wake_fd_.get(), POLLIN, 0};
    nfds_t count = 1;
    count += debuggers_.descriptors(&fds[count]);
    if (fault_control_) fds[count++] = {fault_control_->fd(), POLLIN, 0};
    std::size_t prepared = 0;
    bool idle = true;
    // One that hangs does not look at its links: who waits there sees that it has stopped.
    const std::size_t links = hung() ? 0 : active_links_.size();
    for (LinkPort* link : std::span(active_links_).first(links)) {
        ++prepared;
        if (!link->prepare_sleep()) {
            idle = false;
            break;
        }
        fds[count++] = {link->poll_fd(), POLLIN, 0};
    }
    bool in_lockstep = false;
    if (idle && keeps_step()) {
        in_lockstep = idle = lockstep_->prepare_sleep();
        fds[count++] = {lockstep_->fd(), POLLIN, 0};
        constexpr int kLookUs = static_cast<int>(std::chrono::microseconds(kLookForLife).count());
        if (waits_for_others() && (timeout_us < 0 || timeout_us > kLookUs)) timeout_us = kLookUs;
    }
    // What waits for the recording's file waits outside.
    if (recording_waits_) {
        idle = true;
        count = 1;
        timeout_us = kRecordingWaitUs;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // The host is heard when the others' clocks allow it.
    const bool host_waits = host_arrival_.scheduled();
    if (idle && (commands_.empty() || (host_waits && !is_quiet(commands_.front().kind))) &&
        (recording_waits_ || held() || host_waits || !doorbells_->changed()) &&
        !stop_.load(std::memory_order_acquire)) {
        const timespec limit{timeout_us / 1'000'000, timeout_us % 1'000'000 * 1'000L};
        ::ppoll(fds.data(), count, timeout_us < 0 ? nullptr : &limit, nullptr);
    }
    if (in_lockstep) lockstep_->after_sleep();
    sleeping_.store(false, std::memory_order_relaxed);
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto got = ::read(wake_fd_.get(), &drained, sizeof drained);
    for (std::size_t i = 0; i < prepared; ++i)
        active_links_[i]->after_sleep();
    doorbells_->set_need_wakeup(false);
}

}  // namespace orrery::emu
