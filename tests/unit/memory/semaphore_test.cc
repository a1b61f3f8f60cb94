// A semaphore that several units raise and close at once.
#include "emulator/memory/semaphore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace orrery::emu {
namespace {

struct Semaphore {
    alignas(16) orr_semaphore words{};
    std::uint8_t* at() { return reinterpret_cast<std::uint8_t*>(&words); }
    orr_semaphore look() { return look_at_semaphore(at()); }
};

TEST(Semaphore, OnlyGrowsAndTheFirstFailureStays) {
    Semaphore semaphore;
    EXPECT_TRUE(raise_semaphore(semaphore.at(), 7, 100));
    EXPECT_FALSE(raise_semaphore(semaphore.at(), 7, 200));
    EXPECT_FALSE(raise_semaphore(semaphore.at(), 6, 200));
    EXPECT_EQ(semaphore.look().time_ps, 100u);
    EXPECT_TRUE(raise_semaphore(semaphore.at(), ORR_SEM_FAILED | 2, 300));
    EXPECT_FALSE(raise_semaphore(semaphore.at(), ORR_SEM_FAILED | 3, 400));
    EXPECT_EQ(semaphore.look().value, ORR_SEM_FAILED | 2);
    EXPECT_EQ(semaphore.look().time_ps, 300u);
    close_semaphore(semaphore.at());
    EXPECT_EQ(semaphore.look().time_ps, ORR_SEM_CLOSED | 300);
}

// Value v has time 3v: whoever writes it. Each unit skips some, so that they overtake each other.
TEST(Semaphore, OfSeveralUnitsKeepsTheTimeOfItsValueAndStaysClosed) {
    constexpr std::uint64_t kRounds = 40, kValues = 20'000;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
        Semaphore semaphore;
        std::vector<std::jthread> units;
        for (std::uint64_t unit = 0; unit < 2; ++unit) {
            units.emplace_back([&semaphore, unit] {
                for (std::uint64_t value = 1 + unit; value <= kValues; value += 1 + unit)
                    raise_semaphore(semaphore.at(), value, 3 * value);
            });
        }
        units.emplace_back([&semaphore, round] {
            while (semaphore.look().value < kValues * round / kRounds)
                std::this_thread::yield();
            close_semaphore(semaphore.at());
        });
        std::uint64_t least = 0;
        while (least < kValues) {
            const orr_semaphore seen = semaphore.look();
            ASSERT_GE(seen.value, least);
            ASSERT_GE(seen.time_ps & ~ORR_SEM_CLOSED, 3 * seen.value);
            least = seen.value;
        }
        units.clear();
        EXPECT_EQ(semaphore.look().value, kValues);
        EXPECT_EQ(semaphore.look().time_ps, ORR_SEM_CLOSED | 3 * kValues);
    }
}

}  // namespace
}  // namespace orrery::emu
