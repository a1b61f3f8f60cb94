// First-fit allocation of ranges of numbers: virtual addresses, bytes of a slab. Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace orrery::umd {

class RangeAllocator {
  public:
    RangeAllocator() = default;
    RangeAllocator(std::uint64_t start, std::uint64_t size);

    // alignment: a power of two. Nothing if no hole is large enough.
    std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment);
    // Exactly what allocate() gave.
    void free(std::uint64_t start, std::uint64_t size);

    std::uint64_t free_bytes() const;
    bool unused() const { return free_bytes() == size_; }

  private:
    std::uint64_t size_ = 0;
    std::map<std::uint64_t, std::uint64_t> holes_;  // start -> size, never adjacent
};

}  // namespace orrery::umd
