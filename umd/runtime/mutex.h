// A mutex for what is locked at each submission: taken and given back in place, without a call. In a guest
// whose CPU is emulated each call costs as much as a dozen instructions.
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::umd {

// As std::mutex; who finds it locked sleeps in the kernel.
class Mutex {
  public:
    Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

    void lock() noexcept {
        if (!try_lock()) [[unlikely]]
            lock_late();
    }
    bool try_lock() noexcept {
        std::uint32_t found = kFree;
        return state_.compare_exchange_strong(found, kLocked, std::memory_order_acquire,
                                              std::memory_order_relaxed);
    }
    void unlock() noexcept {
        if (state_.exchange(kFree, std::memory_order_release) == kWanted) [[unlikely]]
            wake_one();
    }

  private:
    static constexpr std::uint32_t kFree = 0, kLocked = 1, kWanted = 2;  // kWanted: locked, and others sleep
    void lock_late() noexcept;
    void wake_one() noexcept;

    std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace orrery::umd
