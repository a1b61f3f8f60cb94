// Options of waits and declared signallers: what the C API takes and what it refuses.
#include <cstring>

#include <orrery/graph.h>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class WaitOptions : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrStreamCreate(&stream_));
        ASSERT_OK(orrSemaphoreCreate(&semaphore_));
        ASSERT_OK(orrEventCreate(&event_));
        options_.size = sizeof(options_);
    }
    void TearDown() override {
        ASSERT_OK(orrSemaphoreSignal(semaphore_, 1));
        EXPECT_OK(orrStreamDestroy(stream_));
        EXPECT_OK(orrSemaphoreDestroy(semaphore_));
        EXPECT_OK(orrEventDestroy(event_));
    }
    orrError_t wait(const orrWaitOptions* options) {
        return orrStreamWaitSemaphoreWithOptions(stream_, semaphore_, 1, options);
    }

    FakeSystem system_;
    orrStream_t stream_{};
    orrSemaphore_t semaphore_{};
    orrEvent_t event_{};
    orrWaitOptions options_{};
};

TEST_F(WaitOptions, NoneAndEmptyOnesAreAsWithout) {
    ASSERT_OK(wait(nullptr));
    ASSERT_OK(wait(&options_));
    ASSERT_OK(orrStreamWaitEventWithOptions(stream_, event_, nullptr));
    EXPECT_EQ(orrStreamQuery(stream_), orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(semaphore_, 1));
    EXPECT_OK(orrStreamSynchronize(stream_));
}

TEST_F(WaitOptions, WhatIsNotKnownIsRefused) {
    options_.size = sizeof(options_) - 1;
    EXPECT_FAIL(wait(&options_), orrErrorInvalidValue, "sizeof(orrWaitOptions)");
    options_.size = ~std::size_t{0};
    EXPECT_FAIL(wait(&options_), orrErrorInvalidValue, "sizeof(orrWaitOptions)");
    options_.size = sizeof(options_);
    options_.flags = 1;
    EXPECT_FAIL(wait(&options_), orrErrorNotSupported, "zero");
    options_.flags = 0;
    options_.reserved = 1;
    EXPECT_FAIL(wait(&options_), orrErrorNotSupported, "zero");
    options_.reserved = 0;
    options_.limit_ns = 1'000'000'000'000'001;
    EXPECT_FAIL(wait(&options_), orrErrorInvalidValue, "at most");
    EXPECT_FAIL(orrStreamWaitEventWithOptions(stream_, event_, &options_), orrErrorInvalidValue, "at most");
    EXPECT_OK(orrStreamQuery(stream_)) << "nothing was submitted";
}

TEST_F(WaitOptions, LargerStructOfALaterHeaderIsTakenIfItAsksForNothingNew) {
    struct Later {
        orrWaitOptions known;
        std::uint64_t more;
    } later{};
    later.known.size = sizeof(later);
    ASSERT_OK(wait(&later.known));
    later.more = 1;
    EXPECT_FAIL(wait(&later.known), orrErrorNotSupported, "does not know");
}

TEST_F(WaitOptions, LimitIsNoPartOfAGraph) {
    orrGraph_t graph = nullptr;
    options_.limit_ns = 1000;
    ASSERT_OK(orrStreamBeginCapture(stream_));
    ASSERT_OK(orrEventRecord(event_, stream_));
    EXPECT_FAIL(orrStreamWaitEventWithOptions(stream_, event_, &options_), orrErrorStreamCapture, "limit");
    EXPECT_EQ(orrStreamEndCapture(stream_, &graph), orrErrorStreamCapture);
}

TEST_F(WaitOptions, DriverWithoutSignallersIsTold) {
    system_.card().knows_signallers = false;
    EXPECT_FAIL(orrSemaphoreAddSignaller(semaphore_, stream_), orrErrorNotSupported, "driver");
    ASSERT_OK(wait(nullptr)) << "nothing else is changed by it";
}

TEST(Signallers, OfAnotherCardNeedPeerAccess) {
    FakeSystem system(2);
    orrSemaphore_t semaphore = nullptr;
    orrStream_t far = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrStreamCreate(&far));
    EXPECT_FAIL(orrSemaphoreAddSignaller(semaphore, far), orrErrorPeerAccess, "orrDeviceEnablePeerAccess(0)");
    ASSERT_OK(orrDeviceEnablePeerAccess(0));
    EXPECT_OK(orrSemaphoreAddSignaller(semaphore, far));
    EXPECT_OK(orrStreamDestroy(far));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrSetDevice(0));
}

// Numbers of queues are used again: what became of an earlier one is no cause.
TEST(Signallers, OfAnEarlierLifeAreNotTheCause) {
    FakeSystem system;
    orrStream_t waiter = nullptr;
    ASSERT_OK(orrStreamCreate(&waiter));
    orrSemaphore_t gate = nullptr, semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate));
    ASSERT_OK(orrSemaphoreCreate(&semaphore));
    orrStream_t first = nullptr, second = nullptr;
    ASSERT_OK(orrStreamCreate(&first));
    ASSERT_OK(orrStreamWaitSemaphore(first, gate, 1));
    ASSERT_OK(orrStreamAbort(first));
    ASSERT_OK(orrStreamDestroy(first));
    ASSERT_OK(orrStreamCreate(&second));
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, second));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphore, 1));
    ASSERT_OK(orrStreamDestroy(second));
    EXPECT_FAIL(orrStreamSynchronize(waiter), orrErrorAbandoned, "nobody is left");
    EXPECT_OK(orrStreamDestroy(waiter));
    EXPECT_OK(orrSemaphoreDestroy(gate));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

}  // namespace
}  // namespace orrery::umd::test
