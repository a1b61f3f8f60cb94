// Best-fit allocation of ranges of numbers: virtual addresses, bytes of a slab. Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace orrery::umd {

class RangeAllocator {
  public:
    RangeAllocator() = default;
    RangeAllocator(std::uint64_t start, std::uint64_t size);

    // alignment: a power of two. Nothing if no hole is large enough.
    std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment);
    // Exactly what allocate() gave.
    void free(std::uint64_t start, std::uint64_t size);

    std::uint64_t free_bytes() const { return free_; }
    bool unused() const { return free_ == size_; }

  private:
    using Holes = std::map<std::uint64_t, std::uint64_t>;
    void add(std::uint64_t start, std::uint64_t size);
    void remove(Holes::iterator hole);

    std::uint64_t size_ = 0, free_ = 0;
    Holes holes_;                                                // start -> size, never adjacent
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // {size, start} of each
};

}  // namespace orrery::umd
