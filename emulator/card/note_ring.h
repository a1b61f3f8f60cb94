// Notes of neighbours' drivers for this card's (ORR_R_NOTE_IN): put by the card thread, taken by the I/O
// thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <orrery/hw/bar0.h>

namespace orrery::emu {

struct Note {
    std::uint32_t from = 0;  // as ORR_R_NOTE_FROM
    std::array<std::uint32_t, ORR_NOTE_BYTES / 4> words{};
};

class NoteRing {
  public:
    // Card thread. False: there is no room, or the sender has its share of it; it is counted.
    bool put(std::uint32_t from, std::span<const std::byte> data) {
        const std::uint32_t tail = put_.load(std::memory_order_relaxed);
        const std::uint32_t head = taken_.load(std::memory_order_acquire);
        std::uint32_t own = 0;
        for (std::uint32_t at = head; at != tail; ++at)
            own += (notes_[at % ORR_NOTE_SLOTS].from | ORR_NOTE_PASSED) == (from | ORR_NOTE_PASSED);
        if (tail - head >= ORR_NOTE_SLOTS || own >= ORR_NOTES_OF_ONE) {
            dropped_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        Note& note = notes_[tail % ORR_NOTE_SLOTS];
        note = {.from = from, .words = {}};
        std::memcpy(note.words.data(), data.data(), std::min<std::size_t>(data.size(), ORR_NOTE_BYTES));
        put_.store(tail + 1, std::memory_order_release);
        return true;
    }

    // I/O thread.
    std::uint32_t waiting() const {
        return put_.load(std::memory_order_acquire) - taken_.load(std::memory_order_relaxed);
    }
    // Zeros if there is none.
    Note first() const {
        return waiting() != 0 ? notes_[taken_.load(std::memory_order_relaxed) % ORR_NOTE_SLOTS] : Note{};
    }
    void take() {
        if (waiting() != 0)
            taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    void clear() { taken_.store(put_.load(std::memory_order_acquire), std::memory_order_release); }
    std::uint32_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  private:
    std::array<Note, ORR_NOTE_SLOTS> notes_{};
    std::atomic<std::uint32_t> put_{0}, taken_{0}, dropped_{0};
};

}  // namespace orrery::emu
