#include "emulator/engines/workers.h"

#include <csignal>
#include <cstring>

#include "emulator/engines/past_caches.h"

namespace orrery::emu {

namespace {

// A thread looks so often for the next piece before it sleeps: some 10 us, as pieces of one copy come one
// after the other.
constexpr unsigned kLooks = 500;

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
    const auto x = reinterpret_cast<std::uintptr_t>(a);
    const auto y = reinterpret_cast<std::uintptr_t>(b);
    return x < y + b_bytes && y < x + a_bytes;
}

// In whichever order they come, memory is the same afterwards.
bool independent(const MemoryPiece& a, const MemoryPiece& b) {
    return !overlap(a.to, a.bytes, b.to, b.bytes) && !overlap(a.to, a.bytes, b.from, b.bytes) &&
           !overlap(a.from, a.bytes, b.to, b.bytes);
}

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

}  // namespace

void MemoryPiece::carry_out() const {
    if (reduce != nullptr)
        reduce(to, from, bytes);
    else if (past_caches)
        copy_past_caches(to, from, bytes);
    else
        std::memmove(to, from, bytes);
}

Workers::Workers(unsigned threads) {
    // Signals are for the threads that expect them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned n = 0; n < threads; ++n)
        threads_.emplace_back([this] { work(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Workers::~Workers() {
    quiesce();
    {
        const std::scoped_lock lock(mutex_);
        stop_ = true;
    }
    posted_something_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

void Workers::move(std::uint32_t lane, const MemoryPiece& piece, bool long_job) {
    if (threads_.empty()) return carry_out_here(piece);
    finish_conflicts(piece);
    if (!long_job || piece.bytes < kLeastBytes) return carry_out_here(piece);
    fence();
    for (Slot& slot : slots_) {
        if (slot.state.load(std::memory_order_acquire) != State::kFree) continue;
        slot.lane = lane;
        slot.piece = piece;
        posted_.fetch_add(1);
        slot.state.store(State::kPosted, std::memory_order_release);
        if (asleep_.load() != 0) wake();
        return;
    }
    // The threads have as much as they may: the card's thread is one more.
    carry_out_here(piece);
}

void Workers::carry_out_here(const MemoryPiece& piece) {
    piece.carry_out();
    unfenced_ = unfenced_ || piece.past_caches;
}

void Workers::fence() {
    if (unfenced_) fence_past_caches();
    unfenced_ = false;
}

void Workers::wake() {
    {
        const std::scoped_lock lock(mutex_);
    }
    posted_something_.notify_one();
}

void Workers::work() {
    for (;;) {
        for (unsigned look = 0; look < kLooks; ++look) {
            if (posted_.load(std::memory_order_relaxed) != 0 && run_one())
                look = 0;
            else
                pause();
        }
        std::unique_lock lock(mutex_);
        asleep_.fetch_add(1);
        posted_something_.wait(lock, [this] { return stop_ || posted_.load() != 0; });
        asleep_.fetch_sub(1);
        if (stop_) return;
    }
}

bool Workers::run_one() {
    for (Slot& slot : slots_) {
        State expected = State::kPosted;
        if (!slot.state.compare_exchange_strong(expected, State::kRunning, std::memory_order_acquire))
            continue;
        posted_.fetch_sub(1);
        slot.piece.carry_out();
        if (slot.piece.past_caches) fence_past_caches();
        slot.state.store(State::kFree, std::memory_order_release);
        slot.state.notify_one();
        return true;
    }
    return false;
}

// On the card thread.
void Workers::finish(Slot& slot) {
    State state = State::kPosted;
    if (slot.state.compare_exchange_strong(state, State::kRunning, std::memory_order_acquire)) {
        posted_.fetch_sub(1);
        carry_out_here(slot.piece);
        slot.state.store(State::kFree, std::memory_order_release);
        return;
    }
    while ((state = slot.state.load(std::memory_order_acquire)) != State::kFree)
        slot.state.wait(state, std::memory_order_acquire);
}

void Workers::finish_conflicts(const MemoryPiece& piece) {
    for (Slot& slot : slots_) {
        if (slot.state.load(std::memory_order_acquire) != State::kFree && !independent(slot.piece, piece))
            finish(slot);
    }
}

void Workers::join(std::uint32_t lane) {
    for (Slot& slot : slots_) {
        if (slot.state.load(std::memory_order_acquire) != State::kFree && slot.lane == lane) finish(slot);
    }
    fence();
}

void Workers::settle(const std::byte* from, std::size_t bytes) {
    for (Slot& slot : slots_) {
        if (slot.state.load(std::memory_order_acquire) != State::kFree &&
            overlap(slot.piece.to, slot.piece.bytes, from, bytes))
            finish(slot);
    }
}

void Workers::quiesce() {
    for (Slot& slot : slots_)
        finish(slot);
    fence();
}

}  // namespace orrery::emu
