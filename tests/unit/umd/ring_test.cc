// What comes and goes in order.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <random>

#include "umd/runtime/ring.h"

namespace orrery::umd {
namespace {

TEST(Ring, IsAsADeque) {
    Ring<std::unique_ptr<std::uint64_t>> ring;
    std::deque<std::uint64_t> expected;
    std::mt19937_64 random(1);
    std::uint64_t next = 0;
    for (const std::size_t most : {5u, 100u, 10'000u, 3u}) {
        for (int i = 0; i < 30'000; ++i) {
            if (expected.size() < most && random() % 2 == 0) {
                ring.push_back(std::make_unique<std::uint64_t>(next));
                expected.push_back(next++);
            } else if (!expected.empty()) {
                const auto first = std::move(ring.front());
                ASSERT_EQ(*first, expected.front());
                ring.pop_front();
                expected.pop_front();
            }
            ASSERT_EQ(ring.size(), expected.size());
            ASSERT_EQ(ring.empty(), expected.empty());
            if (expected.empty()) continue;
            const std::size_t place = random() % expected.size();
            ASSERT_EQ(*ring[place], expected[place]);
        }
    }
}

// Also when it is full and its first one is somewhere in its midst.
TEST(Ring, KeepsTheirOrderWhenItGrows) {
    Ring<std::uint64_t> ring;
    std::uint64_t begin = 0, end = 0;
    for (int round = 0; round < 40; ++round) {
        for (int i = 0; i < 300; ++i)
            ring.push_back(std::uint64_t{end++});
        for (int i = 0; i < 37; ++i, ++begin)
            ring.pop_front();
        ASSERT_EQ(ring.size(), end - begin);
        for (std::uint64_t n = begin; n < end; ++n)
            ASSERT_EQ(ring[n - begin], n);
    }
    for (; begin < end; ++begin) {
        ASSERT_EQ(ring.front(), begin);
        ring.pop_front();
    }
    ring.push_back(7);
    EXPECT_EQ(ring.front(), 7u);
    EXPECT_EQ(ring.size(), 1u);
}

}  // namespace
}  // namespace orrery::umd
