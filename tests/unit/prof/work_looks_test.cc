// Work of cards is told in time, however seldom the library looks for its records.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/prof/work_fixture.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/context.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/work_log.h"

namespace orrery::umd::test {
namespace {

// As many as the card has room for, at once: the look that is due next has them all.
TEST_F(Work, ThatComesAtOnceAfterAnIdleTimeIsNotLost) {
    constexpr std::size_t kRoom = 43'000;
    with_card([](FakeCard& card) { card.work_room = kRoom; });
    Watched watched;
    fill(64);
    watched.wait_for(1);  // looks go on
    with_card([](FakeCard& card) {
        drm_orr_work_record other{};
        other.queue = 77;
        other.kind = ORR_WORK_JOB;
        for (std::size_t i = 0; i < kRoom - 100; ++i)
            card.add_work(other, false);
    });
    for (int i = 0; i < 100; ++i)
        fill(64);
    watched.wait_for(101);
    EXPECT_EQ(watched.lost(), 0);
}

// Its records are not found here, and the looks come as often as they need.
TEST_F(Work, BesideANeighbourThatFillsTheRingIsTold) {
    Watched watched;
    fill(64);
    watched.wait_for(1);
    // There is always something under way, so it never dozes: who wakes it has a look of his own.
    orrStream_t second = nullptr;
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrStreamCreate(&second, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(second, semaphore, 1, nullptr));
    fill(64);
    watched.wait_for(2);
    // Less than from one look to the next where few come.
    with_card([](FakeCard& card) { card.work_lives = LookPause::kLong * 3 / 4; });
    for (int i = 0; i < 5'000 && watched.count() < 20; ++i) {
        fill(64);
        synchronize();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(watched.count(), 20u);
    with_card([](FakeCard& card) { card.work_lives = {}; });
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    ASSERT_OK(orrStreamSynchronize(second));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrStreamDestroy(second));
}

// Seldom as the library looks where few come, much that this process itself submits is not left to fill the
// ring until then: the next look comes sooner than the pause is long.
TEST_F(Work, ThatIsMuchIsLookedForAtOnce) {
    using Clock = std::chrono::steady_clock;
    Watched watched;
    // There is always something under way, so it never dozes.
    orrStream_t second = nullptr;
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrStreamCreate(&second, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(second, semaphore, 1, nullptr));
    std::mutex mutex;
    std::vector<Clock::time_point> looks;
    with_card([&](FakeCard& card) {
        card.on_work_read = [&] {
            const std::lock_guard lock(mutex);
            looks.push_back(Clock::now());
        };
    });
    const auto wait_for_look = [&](std::size_t number) {
        for (int tries = 0; tries < 300'000; ++tries) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            const std::lock_guard lock(mutex);
            if (looks.size() > number) return looks[number];
        }
        ADD_FAILURE() << "nobody looks any more";
        return Clock::time_point{};
    };
    const auto seen = [&] {
        const std::lock_guard lock(mutex);
        return looks.size();
    };
    // A host that has other things to do may keep this thread, or that one, from running in time.
    bool sooner = false;
    for (int tries = 0; tries < 20 && !sooner && !HasFailure(); ++tries) {
        std::size_t last = seen();
        while (wait_for_look(last + 1) - wait_for_look(last) < LookPause::kLong && !HasFailure())
            ++last;
        const auto before = wait_for_look(last + 1);
        for (std::size_t i = 0; i < LookPause::kManyOwn; ++i)
            fill(64);
        const auto next = wait_for_look(last + 2);
        sooner = next - before < LookPause::kLong;
        synchronize();
    }
    EXPECT_TRUE(sooner);
    with_card([](FakeCard& card) { card.on_work_read = nullptr; });
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    ASSERT_OK(orrStreamSynchronize(second));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrStreamDestroy(second));
}

// It is submitted and ends when the card's records have just been read.
TEST_F(Work, ThatEndsBehindALookIsToldByTheNextOne) {
    Watched watched;
    fill(64);
    watched.wait_for(1);
    WorkLog& log = (*Runtime::usable()->context(0))->work_log();
    for (std::size_t i = 2; i < 6; ++i) {
        std::atomic<bool> done = false;
        with_card([&](FakeCard& card) {
            card.on_work_read = [&, once = std::make_shared<std::atomic<bool>>(false)] {
                if (once->exchange(true)) return;
                fill(64);
                synchronize();
                done = true;
            };
        });
        while (!done)
            std::this_thread::yield();
        for (; watched.count() < i; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
            const bool dozes = log.dozes();
            EXPECT_FALSE(dozes && watched.count() < i) << "with something to tell";
        }
        with_card([](FakeCard& card) { card.on_work_read = nullptr; });
    }
}

// While nothing is under way nobody looks, and who submits work says so.
TEST_F(Work, ThatComesAfterADozeIsToldToo) {
    Watched watched;
    fill(64);
    watched.wait_for(1);
    WorkLog& log = (*Runtime::usable()->context(0))->work_log();
    for (std::size_t i = 1; i < 4; ++i) {
        while (!log.dozes())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(log.is_on());
        orrSemaphore_t semaphore = nullptr;
        ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
        // The card cannot be done with this until the host says so.
        ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
        // But for the moment in which it sees that there is something.
        while (log.dozes())
            std::this_thread::yield();
        fill(64);
        ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
        watched.wait_for(1 + 2 * i);  // the wait, too
        ASSERT_OK(orrSemaphoreDestroy(semaphore));
    }
}

TEST_F(Work, IsToldWithoutAFlushToo) {
    Watched watched;
    fill(64);
    const auto all = watched.wait_for(1);
    EXPECT_NE(all[0].record.correlation, 0u) << "also where calls are not told";
}

}  // namespace
}  // namespace orrery::umd::test
