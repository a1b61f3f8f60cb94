// Work whose records were lost is said to be, and counted, each once.
#include <gtest/gtest.h>
#include <orrery/prof.h>
#include <orrery/prof_calls.h>

#include "tests/unit/prof/work_fixture.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

// What a neighbour has the card write over while nothing of this process is under way is none of its own.
TEST_F(Work, ThatIsAllToldIsNotLostWithOthers) {
    Watched watched;
    fill(64);
    synchronize();
    (void)watched.flushed();
    with_card([](FakeCard& card) { card.work_lost = true; });
    EXPECT_EQ(watched.flushed().size(), 1u);
    EXPECT_EQ(watched.lost(), 0);
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 2u);
    EXPECT_EQ(watched.lost(), 0);
}

TEST_F(Work, ThatIsLostIsSaidToBe) {
    Watched watched;
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    with_card([](FakeCard& card) { card.work_lost = true; });
    (void)watched.flushed();
    EXPECT_EQ(watched.lost(), 1);
    EXPECT_EQ(watched.lost_work(), 0u) << "it may have been a wait, or another process's";
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    synchronize();
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
}

// Of each packet that the library gave the card it knows whether it was told.
TEST_F(Work, ThatIsLostIsCounted) {
    Watched watched;
    orrStream_t second = nullptr;
    ASSERT_OK(orrStreamCreate(&second, 0));
    fill(64);
    synchronize();
    (void)watched.flushed();
    with_card([](FakeCard& card) { card.loses_work = true; });
    for (int n = 0; n < 5; ++n)
        fill(64);
    for (int n = 0; n < 2; ++n)
        ASSERT_OK(orrMemsetAsync(at(memory_, 1024), 1, 64, second));
    synchronize();
    ASSERT_OK(orrStreamSynchronize(second));
    with_card([](FakeCard& card) { card.loses_work = false; });
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 2u);
    EXPECT_EQ(watched.lost_work(), 7u);
    const int times = watched.lost();
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 3u);
    EXPECT_EQ(watched.lost_work(), 7u) << "each once";
    EXPECT_EQ(watched.lost(), times);
    ASSERT_OK(orrStreamDestroy(second));
}

// Also when a callback of a call has taken them from the card.
TEST_F(Work, ThatACallbackLosesIsCounted) {
    Watched watched(orrProfWantWork | orrProfWantCalls);
    with_card([](FakeCard& card) { card.loses_work = true; });
    fill(64);
    fill(64);
    synchronize();
    watched.at_leave = [&](const orrProfRecord& record) {
        if (record.call == orrProfCall_orrGetDeviceCount) EXPECT_OK(orrProfFlush());
    };
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    watched.at_leave = nullptr;
    (void)watched.flushed();
    EXPECT_EQ(watched.lost_work(), 2u);
}

}  // namespace
}  // namespace orrery::umd::test
