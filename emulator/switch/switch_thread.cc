// How a switch spins, sleeps and wakes, and how it keeps step with cards.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "emulator/switch/switch.h"

namespace orrery::emu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSpinForOthersUs = 20;
constexpr std::chrono::milliseconds kLookForLife{50};
constexpr unsigned kRoundsPerClock = 32, kRoundsPerControl = 256;

}  // namespace

bool Switch::waits_for_others() const {
    return keeps_step() && lockstep_->waits_for_others();
}

// As Card has it: what was promised is kept when something comes by the host's time.
ModelTime Switch::time_for_news() {
    const ModelTime now = events_.system_now();
    if (!keeps_step() || lockstep_->promised() <= now) return events_.now();
    return events_.from_system(lockstep_->intrude(now));
}

bool Switch::step_in_lockstep() {
    sync::Lockstep& step = *lockstep_;
    step.beat();
    const std::uint64_t news = step.news();
    bool busy = take_arrivals();
    const ModelTime now = events_.system_now();
    const bool due = events_.unfinished() || events_.next_time() <= events_.now();
    const ModelTime next = due ? now : events_.to_system(events_.next_time());
    if (next < step.promised() || next >= step.granted()) {
        if (step.has_promised(next, true)) return busy;
        if (!step.promise(now, next, news, true, next != kNever)) return true;
        if (next >= step.granted()) return busy;
    }
    for (unsigned goes = 0; goes < kBurst; ++goes) {
        if (!events_.run_next(events_.from_system(step.granted()) - 1)) break;
        busy = true;
    }
    return busy;
}

void Switch::request_stop() {
    stop_.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

void Switch::run() {
    bool spinning = false;
    unsigned rounds = 0, control_rounds = 0;
    Clock::time_point give_up{}, looked = Clock::now();
    while (!stop_.load(std::memory_order_acquire)) {
        if (fault_control_ && ++control_rounds % kRoundsPerControl == 0) fault_control_->service();
        if (step()) {
            spinning = false;
            continue;
        }
        if (!spinning) {
            spinning = true;
            rounds = 0;
            const std::uint32_t spin_us =
                waits_for_others() ? std::min(kSpinForOthersUs, config_.spin_us) : config_.spin_us;
            give_up = Clock::now() + std::chrono::microseconds(spin_us);
        }
        if (++rounds % kRoundsPerClock != 0 && config_.spin_us != 0) continue;
        const Clock::time_point host_now = Clock::now();
        if (host_now < give_up) continue;
        if (waits_for_others() && host_now - looked >= kLookForLife) {
            looked = host_now;
            lockstep_->look_for_life();
        }
        if (fault_control_ && fault_control_->service()) continue;
        sleep();
        spinning = false;
    }
}

// The order matters: say that it sleeps, fence, look once more.
void Switch::sleep() {
    std::array<pollfd, 3 + kPorts> fds{};
    fds[0] = {wake_fd_.get(), POLLIN, 0};
    nfds_t count = 1;
    if (fault_control_) fds[count++] = {fault_control_->fd(), POLLIN, 0};
    std::size_t prepared = 0;
    bool idle = true;
    // One that hangs does not look at its links: who waits there sees that it has stopped.
    const bool hung = faults_ != nullptr && faults_->hung();
    for (LinkPort* link : std::span(active_links_).first(hung ? 0 : active_links_.size())) {
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
    }
    if (idle && !stop_.load(std::memory_order_acquire)) {
        constexpr int kLookMs = static_cast<int>(kLookForLife.count());
        ::poll(fds.data(), count, waits_for_others() ? kLookMs : -1);
    }
    if (in_lockstep) lockstep_->after_sleep();
    for (std::size_t n = 0; n < prepared; ++n)
        active_links_[n]->after_sleep();
}

}  // namespace orrery::emu
