// Semaphores in memory, 16 bytes each out of larger blocks: in the card's own memory, so that a linked card
// can signal them, or in pinned host memory, where a CPU looks at them without leaving the cache (events).
#pragma once

#include <orrery/hw/link.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "umd/runtime/memory.h"
#include "umd/winsys/error.h"

namespace orrery::umd {

class Context;
class SemaphorePool;
class Stream;

// The value as it is, also that of one that has failed.
std::uint64_t load_semaphore(const orr_semaphore& semaphore);

struct SemaphoreSlot {
    Context* context = nullptr;
    Block* block = nullptr;
    Block* barrier = nullptr;  // of a member of a group: the page of the barrier unit, if it is by that
    orr_semaphore* cpu = nullptr;
    std::uint64_t va = 0;
    std::uint64_t last = 0;            // highest value that somebody was told to signal; its owner guards it
    std::uint64_t wanted = 0;          // highest value that a stream of the user's waits for
    bool lost = false;                 // a signal may come late or never: not to be given out again
    std::atomic<bool> claimed{false};  // see claim()
    bool shared = false;               // other processes may have it: see shared_semaphore.h
    bool elsewhere = false;            // another machine's: nobody here knows its value, `cpu` is a stand-in
    std::atomic<bool> abroad{false};   // other machines may have it
    SemaphorePool* pool = nullptr;     // null: of none

    std::uint64_t value() const;
    // It has failed: see orrery/fw/failure.h.
    bool failed() const;
    // Nobody is left who may signal it; waits for more than its value stop.
    bool closed() const;
    // Somebody signalled this, or more. Never, once it has failed.
    bool reached(std::uint64_t least) const;
    std::uint64_t time_ps() const;
    // Its value, and whether that may still grow; the cause if it has failed.
    struct State {
        std::uint64_t value;
        bool closed;
    };
    Result<State> look() const;
    Status check() const;  // whether it has failed
    Status abandoned(std::uint64_t value) const;
    // Somebody of this process may be, or have been, told to signal it.
    bool ours() const { return claimed.load(); }
    // From any thread, before anybody is told to signal it: what becomes of that is not another process's.
    void claim() { claimed.store(true); }
    // From any thread: somebody was told to signal it.
    void promise(std::uint64_t value);
    // From any thread: a stream waits for it.
    void want(std::uint64_t value);
    // The calling thread waits; at most limit_ns of the host's time, and not once it is destroyed.
    Status wait(std::uint64_t value, std::uint64_t limit_ns, const std::atomic<bool>& destroyed) const;
};

// Thread safe. The pool outlives its slots.
class SemaphorePool {
  public:
    SemaphorePool(Context& context, BoKind kind) : context_(context), kind_(kind) {}
    ~SemaphorePool();
    SemaphorePool(const SemaphorePool&) = delete;
    SemaphorePool& operator=(const SemaphorePool&) = delete;

    // Its value is slot->last, which is 0 with `fresh`. It comes back when the last reference goes; but one
    // whose signal was lost never does, as somebody may still wait for it, or it may still arrive.
    Result<std::shared_ptr<SemaphoreSlot>> take(bool fresh);
    // For a slot that `stream` signals before it reaches `index`: it is not given out again before that, and
    // never if the stream has stopped.
    void retire(std::shared_ptr<SemaphoreSlot> slot, std::shared_ptr<Stream> stream, std::uint64_t index);
    // Forgets retired slots and the streams they hold.
    void drop_retired();
    // The slot of the pool at this address, or null.
    orr_semaphore* find(std::uint64_t va) const;

  private:
    static constexpr std::uint64_t kBlockBytes = 16 << 10;

    struct Retired {
        std::shared_ptr<SemaphoreSlot> slot;
        std::shared_ptr<Stream> stream;
        std::uint64_t index;
    };
    Status grow();
    void take_back_retired();
    void give_back(std::unique_ptr<SemaphoreSlot> slot);

    Context& context_;
    const BoKind kind_;
    mutable std::mutex mutex_;
    std::vector<std::pair<Block*, orr_semaphore*>> blocks_;  // and where the CPU sees them
    std::vector<std::unique_ptr<SemaphoreSlot>> free_;
    std::vector<std::unique_ptr<SemaphoreSlot>> lost_;
    std::vector<Retired> retired_;
};

// What orrSemaphore_t stands for. When it goes, nobody can be told to signal it any more: what waits for more
// than was promised is told so. Thread safe.
class Semaphore {
  public:
    explicit Semaphore(std::shared_ptr<SemaphoreSlot> of) : slot(std::move(of)) {}
    // Its memory may be another's next, so no queue stays declared.
    ~Semaphore();
    Semaphore(const Semaphore&) = delete;
    Semaphore& operator=(const Semaphore&) = delete;

    // The stream may signal it: when the last one that was added has stopped, is destroyed or removed, the
    // card closes it.
    Status add_signaller(const std::shared_ptr<Stream>& stream);
    Status remove_signaller(const std::shared_ptr<Stream>& stream);

    // The calling thread waits; at most limit_ns of the host's time.
    Status wait(std::uint64_t value, std::uint64_t limit_ns) {
        return slot->wait(value, limit_ns, destroyed_);
    }
    // Its handle is gone: who waits is told.
    void end_waits() { destroyed_.store(true, std::memory_order_release); }

    // For other machines, whose cards then are who may signal it.
    Result<FabricKey> export_fabric();

    const std::shared_ptr<SemaphoreSlot> slot;

  private:
    std::mutex mutex_;
    std::vector<std::weak_ptr<Stream>> signallers_;
    bool declared_ = false;  // that somebody signals it
    std::atomic<bool> destroyed_{false};
};

}  // namespace orrery::umd
