// The card's counters, orrery/hw/counters.h. They count from power-on and are never cleared.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <orrery/hw/counters.h>

namespace orrery::emu {

// Thread safety: add(), take_back() and set() belong to the card thread; add_shared() and get() are for any
// thread. One counter may be used through both.
class Counters {
  public:
    // No locked instruction: the card thread is the only writer of its half.
    void add(orr_counter counter, std::uint64_t n = 1) {
        auto& word = own_[counter];
        word.store(word.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    // Of what was added before its time.
    void take_back(orr_counter counter, std::uint64_t n) { add(counter, 0 - n); }
    // Of those that only a snapshot knows.
    void set(orr_counter counter, std::uint64_t value) {
        own_[counter].store(value, std::memory_order_relaxed);
    }
    void add_shared(orr_counter counter, std::uint64_t n = 1) {
        shared_[counter].fetch_add(n, std::memory_order_relaxed);
    }
    // `number` may come from a guest: beyond the list reads as 0.
    std::uint64_t get(unsigned number) const {
        if (number >= ORR_COUNTER_COUNT) return 0;
        return own_[number].load(std::memory_order_relaxed) + shared_[number].load(std::memory_order_relaxed);
    }

  private:
    std::array<std::atomic<std::uint64_t>, ORR_COUNTER_COUNT> own_{};
    std::array<std::atomic<std::uint64_t>, ORR_COUNTER_COUNT> shared_{};
};

}  // namespace orrery::emu
