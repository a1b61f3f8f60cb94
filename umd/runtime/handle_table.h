// Handles that user code holds. A handle is a number in a pointer's clothes: kind, slot and generation, so
// that a stale, foreign or made-up one is found without touching the memory that it seems to point to.
//
// Looking up takes no lock and gives a counted reference: an object that another thread takes out of the
// table lives until the last reference goes. Generation, liveness and count are one word, so that nothing
// comes between looking at one and changing another.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace orrery::umd {

// What a handle is of. Numbers are part of handles and nothing else.
enum class HandleKind : std::uint8_t {
    kStream = 1,
    kEvent,
    kSemaphore,
    kModule,
    kFunction,
    kGraph,
    kGraphExec,
    kGraphNode,
    kTaskGraph,
    kTaskData,
    kTaskKernel,
    kLibrary,
    kGroup,
    kProfSubscription,
    kProfDomain,
};

// The bits of a handle: 4 that no address has on top, 8 of kind, 52 of what it is.
constexpr std::uintptr_t handle_mark(HandleKind kind) {
    return std::uintptr_t{0x5} << 60 | std::uintptr_t{static_cast<std::uint8_t>(kind)} << 52;
}
constexpr std::uintptr_t kHandleBits = (std::uintptr_t{1} << 52) - 1;

template <typename T, HandleKind Kind>
class HandleTable {
    struct Slot;

  public:
    // Keeps the object alive; null if there is none. Movable.
    class Ref {
      public:
        Ref() = default;
        Ref(Ref&& other) noexcept
            : table_(std::exchange(other.table_, nullptr)),
              slot_(std::exchange(other.slot_, nullptr)),
              index_(other.index_) {}
        Ref& operator=(Ref&& other) noexcept {
            Ref(std::move(other)).swap(*this);
            return *this;
        }
        ~Ref() {
            if (slot_ != nullptr) table_->release(*slot_, index_);
        }
        void swap(Ref& other) noexcept {
            std::swap(table_, other.table_);
            std::swap(slot_, other.slot_);
            std::swap(index_, other.index_);
        }
        explicit operator bool() const { return slot_ != nullptr; }
        T* operator->() const { return slot_->object.get(); }
        T& operator*() const { return *slot_->object; }
        // For those who keep it longer than a call.
        std::shared_ptr<T> share() const { return slot_ == nullptr ? nullptr : slot_->object; }

      private:
        friend class HandleTable;
        Ref(HandleTable* table, Slot* slot, std::uint32_t index)
            : table_(table), slot_(slot), index_(index) {}
        HandleTable* table_ = nullptr;
        Slot* slot_ = nullptr;
        std::uint32_t index_ = 0;
    };

    // Null when too many objects are alive.
    void* insert(std::shared_ptr<T> object) {
        const std::lock_guard lock(mutex_);
        std::uint32_t index = 0;
        if (!free_.empty()) {
            index = free_.back();
            free_.pop_back();
        } else {
            if (used_ == kChunk * kChunks) return nullptr;
            index = used_++;
            auto& chunk = chunks_[index / kChunk];
            if (chunk.load(std::memory_order_relaxed) == nullptr) {
                owned_.push_back(std::make_unique<Chunk>());
                chunk.store(owned_.back().get(), std::memory_order_release);
            }
        }
        Slot& slot = (*chunks_[index / kChunk].load(std::memory_order_relaxed))[index % kChunk];
        slot.object = std::move(object);
        const std::uint64_t generation = (slot.word.load(std::memory_order_relaxed) >> 32) + 1;
        slot.word.store(generation << 32 | kLive, std::memory_order_release);
        return encode(index, static_cast<std::uint32_t>(generation));
    }

    Ref find(const void* handle) {
        const auto [slot, index] = slot_of(handle);
        if (slot == nullptr) return {};
        std::uint64_t word = slot->word.load(std::memory_order_relaxed);
        while (is(word, handle)) {
            if (slot->word.compare_exchange_weak(word, word + 1, std::memory_order_acquire,
                                                 std::memory_order_relaxed))
                return Ref(this, slot, index);
        }
        return {};
    }
    // There is such an object, now.
    bool is_live(const void* handle) const {
        const auto [slot, index] = slot_of(handle);
        return slot != nullptr && is(slot->word.load(std::memory_order_acquire), handle);
    }
    std::shared_ptr<T> find_shared(const void* handle) { return find(handle).share(); }

    // Takes it out: nobody finds it any more. Null if there is no such object, so one of many that remove it
    // at once gets it.
    std::shared_ptr<T> remove(const void* handle) {
        const auto [slot, index] = slot_of(handle);
        if (slot == nullptr) return nullptr;
        std::uint64_t word = slot->word.load(std::memory_order_relaxed);
        while (is(word, handle)) {
            if (!slot->word.compare_exchange_weak(word, (word & ~kLive) + 1, std::memory_order_acquire,
                                                  std::memory_order_relaxed))
                continue;
            return Ref(this, slot, index).share();
        }
        return nullptr;
    }

    // Drops all objects; nobody uses the table meanwhile.
    void clear() {
        for (std::uint32_t index = 0; index < used_; ++index) {
            Slot& slot = (*owned_[index / kChunk])[index % kChunk];
            const std::uint64_t word = slot.word.load(std::memory_order_acquire);
            if ((word & kLive) != 0) (void)remove(encode(index, static_cast<std::uint32_t>(word >> 32)));
        }
    }

  private:
    static constexpr std::uint32_t kChunk = 1024, kChunks = 1024;
    static constexpr std::uint64_t kLive = std::uint64_t{1} << 31;
    static constexpr std::uint64_t kCount = kLive - 1;
    struct Slot {
        std::atomic<std::uint64_t> word{0};  // 32 bits of generation, 1 of liveness, 31 of references
        std::shared_ptr<T> object;           // changes only while it is neither live nor referred to
    };
    using Chunk = std::array<Slot, kChunk>;

    // 20 bits of index above 32 of generation.
    static void* encode(std::uint32_t index, std::uint32_t generation) {
        return reinterpret_cast<void*>(handle_mark(Kind) | std::uintptr_t{index} << 32 | generation);
    }
    static bool is(std::uint64_t word, const void* handle) {
        return word >> 32 == (reinterpret_cast<std::uintptr_t>(handle) & 0xffffffff) && (word & kLive) != 0;
    }
    std::pair<Slot*, std::uint32_t> slot_of(const void* handle) const {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        if ((bits & ~kHandleBits) != handle_mark(Kind)) return {};
        const auto index = static_cast<std::uint32_t>((bits & kHandleBits) >> 32);
        Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
        if (chunk == nullptr) return {};
        return {&(*chunk)[index % kChunk], index};
    }
    void release(Slot& slot, std::uint32_t index) {
        const std::uint64_t left = slot.word.fetch_sub(1, std::memory_order_acq_rel) - 1;
        if ((left & (kLive | kCount)) == 0) [[unlikely]]
            drop(slot, index);
    }
    [[gnu::cold, gnu::noinline]] void drop(Slot& slot, std::uint32_t index) {
        // Goes after the lock: what it holds may come back here.
        const std::shared_ptr<T> gone = std::move(slot.object);
        // A slot whose generations are used up would make old handles valid again.
        if (slot.word.load(std::memory_order_relaxed) >> 32 == 0xffffffff) return;
        const std::lock_guard lock(mutex_);
        free_.push_back(index);
    }

    std::mutex mutex_;
    std::array<std::atomic<Chunk*>, kChunks> chunks_{};
    std::vector<std::unique_ptr<Chunk>> owned_;
    std::vector<std::uint32_t> free_;
    std::uint32_t used_ = 0;
};

}  // namespace orrery::umd
