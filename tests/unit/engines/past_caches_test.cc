// Copies past the caches leave what memmove leaves, wherever they begin and end.
#include "emulator/engines/past_caches.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace orrery::emu::test {
namespace {

std::vector<std::byte> anything(std::size_t bytes) {
    std::mt19937_64 random(bytes);
    std::vector<std::byte> made(bytes);
    for (std::byte& one : made)
        one = static_cast<std::byte>(random());
    return made;
}

TEST(PastCaches, LeavesWhatMemmoveLeaves) {
    constexpr std::size_t kRoom = 4096;
    const std::vector<std::byte> from = anything(kRoom);
    std::mt19937_64 random(7);
    for (int round = 0; round < 20'000; ++round) {
        const std::size_t src = random() % 200, dst = random() % 200, bytes = random() % (kRoom - 200);
        std::vector<std::byte> seen(kRoom), wanted(kRoom);
        copy_past_caches(seen.data() + dst, from.data() + src, bytes);
        std::memmove(wanted.data() + dst, from.data() + src, bytes);
        ASSERT_EQ(seen, wanted) << src << " " << dst << " " << bytes;
    }
}

TEST(PastCaches, RangesMayOverlap) {
    constexpr std::size_t kBytes = 64 << 10;
    for (const std::size_t by : {1ul, 32ul, 64ul, 255ul, 256ul, 4096ul}) {
        std::vector<std::byte> up = anything(kBytes), wanted = up;
        copy_past_caches(up.data() + by, up.data(), kBytes - by);
        std::memmove(wanted.data() + by, wanted.data(), kBytes - by);
        ASSERT_EQ(up, wanted) << by;
        copy_past_caches(up.data(), up.data() + by, kBytes - by);
        std::memmove(wanted.data(), wanted.data() + by, kBytes - by);
        ASSERT_EQ(up, wanted) << by;
    }
}

}  // namespace
}  // namespace orrery::emu::test
