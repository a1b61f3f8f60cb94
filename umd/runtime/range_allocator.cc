#include "umd/runtime/range_allocator.h"

#include <iterator>

namespace orrery::umd {

RangeAllocator::RangeAllocator(std::uint64_t start, std::uint64_t size) : size_(size) {
    if (size != 0) holes_.emplace(start, size);
}

std::optional<std::uint64_t> RangeAllocator::allocate(std::uint64_t size, std::uint64_t alignment) {
    if (size == 0) return std::nullopt;
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
        const auto [start, length] = *hole;
        const std::uint64_t skip = (alignment - start % alignment) % alignment;
        if (length < skip || length - skip < size) continue;
        const std::uint64_t taken = start + skip;
        const std::uint64_t after = length - skip - size;
        if (skip == 0) {
            holes_.erase(hole);
        } else {
            hole->second = skip;
        }
        if (after != 0) holes_.emplace(taken + size, after);
        return taken;
    }
    return std::nullopt;
}

void RangeAllocator::free(std::uint64_t start, std::uint64_t size) {
    auto next = holes_.lower_bound(start);
    if (next != holes_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == start) {
            start = before->first;
            size += before->second;
            holes_.erase(before);
        }
    }
    if (next != holes_.end() && start + size == next->first) {
        size += next->second;
        holes_.erase(next);
    }
    holes_[start] = size;
}

std::uint64_t RangeAllocator::free_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [start, size] : holes_)
        sum += size;
    return sum;
}

}  // namespace orrery::umd
