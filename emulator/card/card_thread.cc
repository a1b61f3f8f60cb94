// The card's thread: how it spins, sleeps and wakes, and how the I/O thread waits for it.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "emulator/card/card.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery::emu {

namespace {

using Clock = std::chrono::steady_clock;

void pause_cpu() {
#if defined(__x86_64__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

// Reading the clock costs as much as a few rounds without work.
constexpr unsigned kRoundsPerClock = 32;
// How long the I/O thread spins before it starts to sleep between looks.
constexpr unsigned kSpins = 2000;

}  // namespace

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
    if (!running()) {
        drain_commands();
        return true;
    }
    Clock::time_point end{};
    for (unsigned spins = 0; !commands_.drained(); ++spins) {
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

void Card::run() {
    running_.store(true, std::memory_order_release);
    unsigned rounds = 0;
    bool spinning = false;
    Clock::time_point give_up{};
    while (!stop_.load(std::memory_order_relaxed)) {
        if (step()) {
            spinning = false;
            continue;
        }
        if (!spinning) {
            spinning = true;
            rounds = 0;
            give_up = Clock::now() + std::chrono::microseconds(config_.spin_us);
        }
        pause_cpu();
        if (++rounds % kRoundsPerClock != 0 && config_.spin_us != 0) continue;
        if (Clock::now() < give_up) continue;
        sleep();
        spinning = false;
    }
    running_.store(false, std::memory_order_release);
    drain_commands();
}

// Blocks until there is something to do. The order matters: say that we sleep, fence, look once more.
void Card::sleep() {
    doorbells_->set_need_wakeup(true);
    sleeping_.store(true, std::memory_order_relaxed);
    std::array<pollfd, 1 + ORR_LINK_MAX_PORTS> fds{};
    fds[0] = {wake_fd_.get(), POLLIN, 0};
    nfds_t count = 1;
    std::size_t prepared = 0;
    bool idle = true;
    for (LinkPort* link : active_links_) {
        ++prepared;
        if (!link->prepare_sleep()) {
            idle = false;
            break;
        }
        fds[count++] = {link->poll_fd(), POLLIN, 0};
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (idle && commands_.empty() && !doorbells_->changed() && !stop_.load(std::memory_order_acquire)) {
        ::poll(fds.data(), count, -1);
    }
    sleeping_.store(false, std::memory_order_relaxed);
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto got = ::read(wake_fd_.get(), &drained, sizeof drained);
    for (std::size_t i = 0; i < prepared; ++i)
        active_links_[i]->after_sleep();
    doorbells_->set_need_wakeup(false);
}

}  // namespace orrery::emu
