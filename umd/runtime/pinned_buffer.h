// Pinned host memory of the runtime's own, bound on one card at the CPU's address.
#pragma once

#include <cstddef>
#include <utility>

#include "umd/runtime/memory.h"

namespace orrery::umd {

class PinnedBuffer {
  public:
    PinnedBuffer() = default;
    // Zeroed, page-aligned.
    static Result<PinnedBuffer> create(Memory& memory, int device, std::uint64_t bytes) {
        auto block = memory.create_block(device, bytes, BoKind::kSystem);
        if (!block) return std::unexpected(block.error());
        return PinnedBuffer(memory, *block);
    }
    PinnedBuffer(PinnedBuffer&& other) noexcept
        : memory_(other.memory_), block_(std::exchange(other.block_, nullptr)) {}
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(block_, other.block_);
        return *this;
    }
    ~PinnedBuffer() {
        if (block_ != nullptr) memory_->free_block(block_);
    }

    bool empty() const { return block_ == nullptr; }
    std::uint64_t va() const { return block_->va; }
    std::uint64_t size() const { return block_->size; }
    std::byte* data() const { return reinterpret_cast<std::byte*>(block_->va); }

  private:
    PinnedBuffer(Memory& memory, Block* block) : memory_(&memory), block_(block) {}

    Memory* memory_ = nullptr;
    Block* block_ = nullptr;
};

}  // namespace orrery::umd
