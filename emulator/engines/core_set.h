// A set of vector cores, in the order of their numbers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace orrery::emu {

class CoreSet {
  public:
    static constexpr std::uint32_t kMost = 256;

    void add(std::uint32_t core) {
        words_[core / 64] |= std::uint64_t{1} << core % 64;
        ++size_;
    }
    void remove(std::uint32_t core) {
        words_[core / 64] &= ~(std::uint64_t{1} << core % 64);
        --size_;
    }
    std::uint32_t size() const { return size_; }
    // Of a set that is not empty.
    std::uint32_t lowest() const {
        std::uint32_t word = 0;
        while (words_[word] == 0)
            ++word;
        return word * 64 + static_cast<std::uint32_t>(std::countr_zero(words_[word]));
    }
    // Calls see(core), lowest first; it may remove that core.
    template <class See>
    void for_each(See see) const {
        for (std::uint32_t word = 0; word < words_.size(); ++word) {
            for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
                see(word * 64 + static_cast<std::uint32_t>(std::countr_zero(left)));
        }
    }

  private:
    std::array<std::uint64_t, kMost / 64> words_{};
    std::uint32_t size_ = 0;
};

}  // namespace orrery::emu
