#include "umd/runtime/mutex.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace orrery::umd {
namespace {

TEST(Mutex, KeepsThreadsApartAndWakesWhoSleeps) {
    constexpr int kThreads = 4, kRounds = 20'000;
    Mutex mutex;
    long count = 0;
    std::vector<std::thread> threads;
    {
        const std::lock_guard lock(mutex);  // they start with a wait, or find it free
        for (int i = 0; i < kThreads; ++i) {
            threads.emplace_back([&] {
                for (int round = 0; round < kRounds; ++round) {
                    const std::lock_guard inside(mutex);
                    const long found = count;
                    if (round % 64 == 0) std::this_thread::yield();
                    count = found + 1;
                }
            });
        }
    }
    for (auto& thread : threads)
        thread.join();
    EXPECT_EQ(count, long{kThreads} * kRounds);
}

TEST(Mutex, TryingDoesNotWait) {
    Mutex mutex;
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_lock());
    mutex.unlock();
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
}

}  // namespace
}  // namespace orrery::umd
