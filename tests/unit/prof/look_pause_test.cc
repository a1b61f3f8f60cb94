// How often the library looks for records: seldom, and no ring overflows for that.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "umd/runtime/look_pause.h"

namespace orrery::umd::test {
namespace {

constexpr std::size_t kRoom = 43'000, kRoomWithJobs = 6'000;

// The most records that wait for a look, at so many a millisecond, of others or this process's own, from when
// nothing was there until as many have come as overflow the ring many times.
std::size_t most_waiting(std::size_t each_ms, bool own) {
    constexpr std::size_t kUntilItRuns = 5;  // ms, of the thread that is woken
    LookPause pause;
    pause.found(0, false);
    std::size_t most = 0;
    for (std::size_t all = 0; all < 20 * kRoom;) {
        std::size_t waiting = each_ms * static_cast<std::size_t>(pause.length().count());
        if (own && pause.length() == LookPause::kLong)
            waiting = std::min(waiting, LookPause::kManyOwn + each_ms * kUntilItRuns);
        most = std::max(most, waiting);
        all += waiting;
        pause.found(waiting, false);
    }
    return most;
}

TEST(LookPause, IsLongForFew) {
    LookPause pause;
    EXPECT_EQ(pause.length(), LookPause::kShort) << "nobody knows yet";
    for (std::size_t records = 0; records < 5; ++records) {
        pause.found(records, false);
        EXPECT_EQ(pause.length(), LookPause::kLong) << records;
    }
}

TEST(LookPause, IsShortForManyUntilTheyAreFew) {
    LookPause pause;
    pause.found(0, false);
    const auto many = [&] {
        return LookPause::kManyEachMs * static_cast<std::size_t>(pause.length().count());
    };
    pause.found(many(), false);
    EXPECT_EQ(pause.length(), LookPause::kShort);
    pause.found(many(), false);
    EXPECT_EQ(pause.length(), LookPause::kShort) << "in a shorter time fewer are as many";
    pause.found(many() - 1, false);
    EXPECT_EQ(pause.length(), LookPause::kLong);
}

TEST(LookPause, IsShortForWhatNoRecordSays) {
    LookPause pause;
    pause.found(0, true);
    EXPECT_EQ(pause.length(), LookPause::kShort);
}

TEST(LookPause, IsShortForASecondAfterALookThatLost) {
    LookPause pause;
    pause.found(0, false);
    pause.lost();
    for (LookPause::Duration since{0}; since < std::chrono::seconds(1); since += pause.length()) {
        pause.found(0, false);
        ASSERT_EQ(pause.length(), LookPause::kShort)
            << since.count() << " ms: none of what was lost is found";
    }
    pause.found(0, false);
    EXPECT_EQ(pause.length(), LookPause::kLong);
}

// A burst that comes after a few is what meets the long pause. What this process submits ends that.
TEST(LookPause, LeavesRoomForTheFirstBurst) {
    for (std::size_t each_ms = 1; each_ms <= 1'000; ++each_ms)
        ASSERT_LE(most_waiting(each_ms, true), kRoom / 2) << each_ms << " a millisecond";
    for (std::size_t each_ms = 1; each_ms <= 200; ++each_ms)
        ASSERT_LE(most_waiting(each_ms, true), kRoomWithJobs * 2 / 3) << each_ms << " a millisecond";
}

// A neighbour's small kernels, some 40 a millisecond, do not fill the room, be it that this process does
// nothing, has a few, or looks half as late again.
TEST(LookPause, LeavesRoomForANeighbour) {
    EXPECT_LE(most_waiting(40, false) * 3 / 2, kRoomWithJobs);
    EXPECT_LE(40u * 3 / 2 * LookPause::kDoze.count(), kRoomWithJobs);
}

}  // namespace
}  // namespace orrery::umd::test
