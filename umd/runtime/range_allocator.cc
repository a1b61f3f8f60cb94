#include "umd/runtime/range_allocator.h"

#include <iterator>

namespace orrery::umd {

RangeAllocator::RangeAllocator(std::uint64_t start, std::uint64_t size) : size_(size), free_(size) {
    if (size != 0) add(start, size);
}

void RangeAllocator::add(std::uint64_t start, std::uint64_t size) {
    holes_.emplace(start, size);
    by_size_.emplace(size, start);
}

void RangeAllocator::remove(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    holes_.erase(hole);
}

std::optional<std::uint64_t> RangeAllocator::allocate(std::uint64_t size, std::uint64_t alignment) {
    if (size == 0) return std::nullopt;
    // The smallest that fits; one that is larger by the alignment always does.
    for (auto fit = by_size_.lower_bound({size, 0}); fit != by_size_.end(); ++fit) {
        const auto [length, start] = *fit;
        const std::uint64_t skip = (alignment - start % alignment) % alignment;
        if (length < skip || length - skip < size) continue;
        const std::uint64_t taken = start + skip;
        const std::uint64_t after = length - skip - size;
        remove(holes_.find(start));
        if (skip != 0) add(start, skip);
        if (after != 0) add(taken + size, after);
        free_ -= size;
        return taken;
    }
    return std::nullopt;
}

void RangeAllocator::free(std::uint64_t start, std::uint64_t size) {
    free_ += size;
    auto next = holes_.lower_bound(start);
    if (next != holes_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == start) {
            start = before->first;
            size += before->second;
            remove(before);
        }
    }
    if (next != holes_.end() && start + size == next->first) {
        size += next->second;
        remove(next);
    }
    add(start, size);
}

}  // namespace orrery::umd
