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
        ORR_TRY(piece, memory.create_pinned(device, bytes));
        return PinnedBuffer(memory, *piece);
    }
    PinnedBuffer(PinnedBuffer&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), piece_(other.piece_) {}
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(piece_, other.piece_);
        return *this;
    }
    ~PinnedBuffer() {
        if (memory_ != nullptr) memory_->free_pinned(piece_);
    }

    // Lets another card use it too; nothing when called again.
    Status share(int device) { return memory_->share_pinned(piece_, device); }

    bool empty() const { return memory_ == nullptr; }
    std::uint64_t va() const { return piece_.va; }
    std::uint64_t size() const { return piece_.bytes; }
    std::byte* data() const { return reinterpret_cast<std::byte*>(piece_.va); }

  private:
    PinnedBuffer(Memory& memory, const Allocation& piece) : memory_(&memory), piece_(piece) {}

    Memory* memory_ = nullptr;
    Allocation piece_;
};

}  // namespace orrery::umd
