#include "umd/runtime/range_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace orrery::umd {
namespace {

TEST(RangeAllocator, EmptyGivesNothing) {
    RangeAllocator none;
    EXPECT_FALSE(none.allocate(1, 1));
    RangeAllocator some(0, 100);
    EXPECT_FALSE(some.allocate(0, 1));
    EXPECT_FALSE(some.allocate(101, 1));
    EXPECT_TRUE(some.allocate(100, 1));
    EXPECT_FALSE(some.allocate(1, 1));
}

TEST(RangeAllocator, AlignsAndMergesHoles) {
    RangeAllocator ranges(100, 1000);
    const auto a = ranges.allocate(10, 64);
    ASSERT_TRUE(a);
    EXPECT_EQ(*a, 128u);
    const auto b = ranges.allocate(10, 64);
    ASSERT_TRUE(b);
    EXPECT_EQ(*b, 192u);
    ranges.free(*a, 10);
    ranges.free(*b, 10);
    EXPECT_TRUE(ranges.unused());
    EXPECT_EQ(ranges.allocate(1000, 1), 100u);
}

TEST(RangeAllocator, RandomUseNeverOverlaps) {
    std::mt19937 random(7);
    RangeAllocator ranges(1 << 20, 1 << 16);
    std::map<std::uint64_t, std::uint64_t> live;
    std::uint64_t used = 0;
    for (int i = 0; i < 20000; ++i) {
        if (!live.empty() && random() % 2 == 0) {
            auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
            ranges.free(victim->first, victim->second);
            used -= victim->second;
            live.erase(victim);
        } else {
            const std::uint64_t size = 1 + random() % 2000, alignment = 1ull << (random() % 9);
            const auto start = ranges.allocate(size, alignment);
            if (!start) continue;
            EXPECT_EQ(*start % alignment, 0u);
            EXPECT_GE(*start, 1u << 20);
            EXPECT_LE(*start + size, (1u << 20) + (1u << 16));
            const auto after = live.lower_bound(*start);
            if (after != live.end()) EXPECT_LE(*start + size, after->first);
            if (after != live.begin()) EXPECT_LE(std::prev(after)->first + std::prev(after)->second, *start);
            live[*start] = size;
            used += size;
        }
        ASSERT_EQ(ranges.free_bytes() + used, 1u << 16);
    }
}

}  // namespace
}  // namespace orrery::umd
