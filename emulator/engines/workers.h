// Host threads of a card that move memory while the card's thread goes on. Engines hand them pieces, host
// pointers and all; model time is reckoned when a piece is posted, and nothing of it depends on when, or by
// whom, it is carried out. Pieces that touch the same bytes, one of them writing, keep their order, so
// engines alone leave the same memory with any number of threads.
//
// All but the threads themselves is the card thread's. It joins an engine's pieces before it tells of their
// end, and all pieces before a pointer may go stale (Mmu::before_change). What waits for a thread then is
// carried out by the card thread itself: a join lasts no longer than the kPieces pieces.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/memory/reduction.h"

namespace orrery::emu {

struct MemoryPiece {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;  // overlaps with `to` as memmove allows
    std::size_t bytes = 0;
    ReduceLoop reduce = nullptr;  // null: a copy
    bool past_caches = false;     // of a copy that is larger than they are

    // What went past the caches has to be fenced before others are told of it.
    void carry_out() const;
};

class Workers {
  public:
    // 0: everything is carried out at once.
    explicit Workers(unsigned threads);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    unsigned threads() const { return static_cast<unsigned>(threads_.size()); }

    // `lane`: whose it is. A small piece is carried out here, a large one of a long job soon; what `from`
    // points to must last until the lane has been joined.
    void move(std::uint32_t lane, const MemoryPiece& piece, bool long_job);
    // All pieces of the lane are done.
    void join(std::uint32_t lane);
    // All pieces that touch these bytes are done.
    void settle(const std::byte* from, std::size_t bytes);
    // All pieces are done: no thread holds a pointer.
    void quiesce();

    // From there on a job and its pieces are worth waking a thread (docs/engines.md, Host threads).
    static constexpr std::size_t kLongJob = 512 << 10;
    static constexpr std::size_t kLeastBytes = 32 << 10;
    // Pieces that are not done.
    static constexpr std::size_t kPieces = 8;

  private:
    enum class State : std::uint32_t { kFree, kPosted, kRunning };
    struct Slot {
        std::atomic<State> state = State::kFree;
        std::uint32_t lane = 0;
        MemoryPiece piece;
    };

    void carry_out_here(const MemoryPiece& piece);
    void fence();
    void work();
    bool run_one();
    void finish(Slot& slot);
    void finish_conflicts(const MemoryPiece& piece);
    void wake();

    std::array<Slot, kPieces> slots_;
    bool unfenced_ = false;  // the card's thread has moved something past the caches
    std::atomic<std::uint32_t> posted_ = 0;
    std::atomic<std::uint32_t> asleep_ = 0;
    std::atomic<bool> stop_ = false;
    std::mutex mutex_;
    std::condition_variable posted_something_;
    std::vector<std::thread> threads_;
};

}  // namespace orrery::emu
