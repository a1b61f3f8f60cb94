// What has been done to memory, by byte: for each eight bytes the last accesses that may still matter.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "emulator/base/access.h"

namespace orrery::emu {

inline constexpr std::uint64_t kGranule = 8;

// An access to bytes of one granule, in six bytes.
class Cell {
  public:
    static constexpr unsigned kPlaceBits = 12;

    Cell() = default;
    // `part`: 0 none; 1 the granule; 2, 3 its halves; 4 .. 7 quarters; 8 .. 15 bytes. `place`: number of a
    // pc.
    Cell(std::uint32_t segment, unsigned part, unsigned place, bool write, bool atomic) {
        const std::uint64_t all = std::uint64_t{segment} | std::uint64_t{part} << 29 |
                                  std::uint64_t{place} << 33 | std::uint64_t{write} << 45 |
                                  std::uint64_t{atomic} << 46;
        for (unsigned i = 0; i < 3; ++i)
            words_[i] = static_cast<std::uint16_t>(all >> 16 * i);
    }
    std::uint32_t segment() const { return static_cast<std::uint32_t>(all() & ((1u << 29) - 1)); }
    unsigned part() const { return all() >> 29 & 15; }
    unsigned place() const { return all() >> 33 & ((1u << kPlaceBits) - 1); }
    bool write() const { return (words_[2] >> 13 & 1) != 0; }
    bool atomic() const { return (words_[2] >> 14 & 1) != 0; }
    // Bit: this byte of the granule.
    std::uint8_t bytes() const { return bytes_of(part()); }
    static std::uint8_t bytes_of(unsigned part);

  private:
    std::uint64_t all() const {
        return words_[0] | std::uint64_t{words_[1]} << 16 | std::uint64_t{words_[2]} << 32;
    }
    std::array<std::uint16_t, 3> words_{};
};
static_assert(sizeof(Cell) == 6);

inline constexpr unsigned kCells = 5;

struct PageShadow {
    std::array<std::array<Cell, kCells>, kPageBytes / kGranule> cells{};
    std::bitset<kPageBytes> written;  // of stacks only
};
static_assert(sizeof(PageShadow) <= 4 * kPageBytes - 256, "room for what finds it");

class Shadow {
  public:
    PageShadow& page(std::uint64_t va) {
        const std::uint64_t number = va / kPageBytes;
        if (last_ == nullptr || number != last_number_) {
            auto& place = pages_[number];
            if (place == nullptr) place = std::make_unique<PageShadow>();
            last_ = place.get();
            last_number_ = number;
        }
        return *last_;
    }
    // Pages of [from, to).
    void forget(std::uint64_t from, std::uint64_t to) {
        last_ = nullptr;
        std::erase_if(pages_, [&](const auto& each) {
            return each.first >= from / kPageBytes && each.first < to / kPageBytes;
        });
    }
    std::uint64_t pages() const { return pages_.size(); }
    // With an allowance for what the host's library keeps for each.
    std::uint64_t bytes() const { return pages_.size() * (sizeof(PageShadow) + 64); }

  private:
    std::unordered_map<std::uint64_t, std::unique_ptr<PageShadow>> pages_;
    std::uint64_t last_number_ = 0;
    PageShadow* last_ = nullptr;
};

}  // namespace orrery::emu
