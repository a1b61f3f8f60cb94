// Contents of a memory at many moments, what did not change kept once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <orrery/hw/soc.h>

namespace orrery::emu {

// Of one SRAM.
class MemoryHistory {
  public:
    static constexpr std::size_t kPiece = 512;
    static constexpr std::size_t kPieces = ORR_SRAM_SIZE / kPiece;
    using Index = std::array<std::uint32_t, kPieces>;

    MemoryHistory();

    // What is in `memory` now; cheap if little changed since the last call.
    std::unique_ptr<Index> save(std::span<const std::uint8_t> memory);
    // The next save() finds what changed since this.
    void restore(const Index& index, std::span<std::uint8_t> memory);
    void forget(const Index& index);
    std::uint64_t bytes() const { return (slabs_.size() * kSlab - free_.size()) * kPiece; }

  private:
    static constexpr std::size_t kSlab = 2048;  // pieces
    std::uint8_t* piece(std::uint32_t number) const {
        return slabs_[number / kSlab].get() + number % kSlab * kPiece;
    }
    std::uint32_t add(const std::uint8_t* bytes);
    void drop(std::uint32_t number);

    std::vector<std::unique_ptr<std::uint8_t[]>> slabs_;
    std::vector<std::uint32_t> uses_;
    std::vector<std::uint32_t> free_;
    // As save() or restore() last saw it; its pieces are used by it too.
    std::vector<std::uint8_t> last_;
    Index last_index_{};
};

}  // namespace orrery::emu
