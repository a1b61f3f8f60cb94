// Handles that user code holds. A handle is a number in a pointer's clothes: slot, generation and kind, so
// that a stale, foreign or made-up one is found without touching the memory that it seems to point to.
// Looking up takes no lock; it gives a plain pointer, as an object must not be used while another thread
// destroys it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace orrery::umd {

// Kind: 1..15, another number for each kind of object.
template <typename T, unsigned Kind>
class HandleTable {
  public:
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
        // Generations are odd while the slot is in use.
        const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
        slot.generation.store(generation, std::memory_order_release);
        return encode(index, generation);
    }

    T* find(const void* handle) const {
        const Slot* slot = slot_of(handle);
        return slot == nullptr ? nullptr : slot->object.get();
    }
    std::shared_ptr<T> find_shared(const void* handle) const {
        const Slot* slot = slot_of(handle);
        return slot == nullptr ? nullptr : slot->object;
    }

    // Null if there is no such object.
    std::shared_ptr<T> remove(const void* handle) {
        const std::lock_guard lock(mutex_);
        auto* slot = const_cast<Slot*>(slot_of(handle));
        if (slot == nullptr) return nullptr;
        slot->generation.fetch_add(1, std::memory_order_release);
        free_.push_back(index_of(handle));
        return std::move(slot->object);
    }

    // Drops all objects; nobody uses the table meanwhile.
    void clear() {
        for (auto& chunk : owned_) {
            for (Slot& slot : *chunk) {
                if (slot.object == nullptr) continue;
                slot.generation.fetch_add(1, std::memory_order_release);
                slot.object.reset();
            }
        }
    }

  private:
    static constexpr std::uint32_t kChunk = 1024, kChunks = 256;
    struct Slot {
        std::atomic<std::uint32_t> generation{0};
        std::shared_ptr<T> object;
    };
    using Chunk = std::array<Slot, kChunk>;

    // 8 bits of kind above 24 bits of index above 32 bits of generation, never canonical as an address.
    static void* encode(std::uint32_t index, std::uint32_t generation) {
        return reinterpret_cast<void*>(std::uintptr_t{0x50 | Kind} << 56 | std::uintptr_t{index} << 32 |
                                       generation);
    }
    static std::uint32_t index_of(const void* handle) {
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) >> 32) & 0xffffff;
    }
    const Slot* slot_of(const void* handle) const {
        const auto bits = reinterpret_cast<std::uintptr_t>(handle);
        if (bits >> 56 != (0x50 | Kind)) return nullptr;
        const std::uint32_t index = index_of(handle);
        if (index >= kChunk * kChunks) return nullptr;
        const Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
        if (chunk == nullptr) return nullptr;
        const Slot& slot = (*chunk)[index % kChunk];
        const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
        return generation == static_cast<std::uint32_t>(bits) && generation % 2 == 1 ? &slot : nullptr;
    }

    std::mutex mutex_;
    std::array<std::atomic<Chunk*>, kChunks> chunks_{};
    std::vector<std::unique_ptr<Chunk>> owned_;
    std::vector<std::uint32_t> free_;
    std::uint32_t used_ = 0;
};

}  // namespace orrery::umd
