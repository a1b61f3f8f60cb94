#include "emulator/trace/snapshots.h"

#include <cstring>

namespace orrery::emu {

MemoryHistory::MemoryHistory() : last_(ORR_SRAM_SIZE) {
    const std::uint32_t zero = add(last_.data());
    last_index_.fill(zero);
    uses_[zero] += kPieces;
}

std::uint32_t MemoryHistory::add(const std::uint8_t* bytes) {
    if (free_.empty()) {
        const auto first = static_cast<std::uint32_t>(slabs_.size() * kSlab);
        slabs_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(kSlab * kPiece));
        uses_.resize(uses_.size() + kSlab);
        for (std::uint32_t i = kSlab; i != 0; --i)
            free_.push_back(first + i - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    std::memcpy(piece(number), bytes, kPiece);
    return number;
}

void MemoryHistory::drop(std::uint32_t number) {
    if (--uses_[number] == 0) free_.push_back(number);
}

std::unique_ptr<MemoryHistory::Index> MemoryHistory::save(std::span<const std::uint8_t> memory) {
    constexpr std::size_t kRow = 4096 / kPiece;  // compared at once
    for (std::size_t row = 0; row < kPieces; row += kRow) {
        if (std::memcmp(memory.data() + row * kPiece, last_.data() + row * kPiece, kRow * kPiece) == 0)
            continue;
        for (std::size_t i = row; i < row + kRow; ++i) {
            const std::uint8_t* const now = memory.data() + i * kPiece;
            if (std::memcmp(now, last_.data() + i * kPiece, kPiece) == 0) continue;
            std::memcpy(last_.data() + i * kPiece, now, kPiece);
            drop(last_index_[i]);
            last_index_[i] = add(now);
            ++uses_[last_index_[i]];
        }
    }
    for (const std::uint32_t number : last_index_)
        ++uses_[number];
    return std::make_unique<Index>(last_index_);
}

void MemoryHistory::restore(const Index& index, std::span<std::uint8_t> memory) {
    for (std::size_t i = 0; i < kPieces; ++i) {
        if (last_index_[i] == index[i]) continue;
        ++uses_[index[i]];
        drop(last_index_[i]);
        last_index_[i] = index[i];
        std::memcpy(last_.data() + i * kPiece, piece(index[i]), kPiece);
    }
    std::memcpy(memory.data(), last_.data(), kPieces * kPiece);
}

void MemoryHistory::forget(const Index& index) {
    for (const std::uint32_t number : index)
        drop(number);
}

}  // namespace orrery::emu
