// What a guest does with registers that can do it no good: accesses where no register is, and reading in a
// circle what cannot change.
#pragma once

#include <cstdint>
#include <map>

namespace orrery::emu {

// Of one side of the card: one thread.
class AccessWatch {
  public:
    // `spins`: so many reads in a row, of one register and with one value, are a circle.
    explicit AccessWatch(std::uint64_t spins) : spins_(spins) {}

    // A register was read. true: it is a circle, and this is the first time to say so, or the doubled one.
    bool read(std::uint64_t offset, std::uint64_t value) {
        if (offset != offset_ || value != value_) {
            offset_ = offset;
            value_ = value;
            row_ = 1;
            next_ = spins_;
            return false;
        }
        if (++row_ != next_) return false;
        next_ *= 2;
        return true;
    }
    // Anything else happened to the registers.
    void other() { row_ = 0; }
    std::uint64_t row() const { return row_; }

    // An access to `offset`, where nothing is: how many there were now. Of more offsets than kOffsets the
    // rest share one number.
    std::uint64_t unknown(std::uint64_t offset) {
        if (const auto found = unknown_.find(offset); found != unknown_.end()) return ++found->second;
        if (unknown_.size() >= kOffsets) return ++others_;
        return unknown_[offset] = 1;
    }
    // With which of these numbers it is worth a line.
    static bool shown(std::uint64_t number) { return (number & (number - 1)) == 0; }

    static constexpr std::size_t kOffsets = 256;

  private:
    std::uint64_t spins_;
    std::uint64_t offset_ = ~std::uint64_t{0};
    std::uint64_t value_ = 0;
    std::uint64_t row_ = 0;
    std::uint64_t next_ = 0;
    std::map<std::uint64_t, std::uint64_t> unknown_;
    std::uint64_t others_ = 0;
};

}  // namespace orrery::emu
