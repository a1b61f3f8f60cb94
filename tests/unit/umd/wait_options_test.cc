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
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrSemaphoreCreate(&semaphore_, 0));
        ASSERT_OK(orrEventCreate(&event_, 0));
    }
    void TearDown() override {
        ASSERT_OK(orrSemaphoreSignal(semaphore_, 1));
        EXPECT_OK(orrStreamDestroy(stream_));
        EXPECT_OK(orrSemaphoreDestroy(semaphore_));
        EXPECT_OK(orrEventDestroy(event_));
    }
    orrError_t wait(const orrWaitOptions* options) {
        return orrStreamWaitSemaphore(stream_, semaphore_, 1, options);
    }

    FakeSystem system_;
    orrStream_t stream_{};
    orrSemaphore_t semaphore_{};
    orrEvent_t event_{};
    orrWaitOptions options_ = ORR_INIT(orrWaitOptions);
};

TEST_F(WaitOptions, NoneAndEmptyOnesAreAsWithout) {
    ASSERT_OK(wait(nullptr));
    ASSERT_OK(wait(&options_));
    ASSERT_OK(orrStreamWaitEvent(stream_, event_, nullptr));
    EXPECT_EQ(orrStreamQuery(stream_), orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(semaphore_, 1));
    EXPECT_OK(orrStreamSynchronize(stream_));
}

TEST_F(WaitOptions, WhatIsNotKnownIsRefused) {
    for (const std::size_t wrong : {std::size_t{0}, sizeof(options_) - 1, ~std::size_t{0}}) {
        options_.size = wrong;
        EXPECT_FAIL(wait(&options_), orrErrorInvalidValue, "ORR_INIT(orrWaitOptions)");
    }
    options_.size = sizeof(options_);
    options_.flags = 1;
    EXPECT_FAIL(wait(&options_), orrErrorInvalidValue, "flags 0x1");
    options_.flags = 0;
    options_.reserved = 1;
    EXPECT_FAIL(wait(&options_), orrErrorInvalidValue, "reserved");
    options_.reserved = 0;
    options_.limit_ns = 1'000'000'000'000'001;
    EXPECT_FAIL(wait(&options_), orrErrorInvalidValue, "at most");
    EXPECT_FAIL(orrStreamWaitEvent(stream_, event_, &options_), orrErrorInvalidValue, "at most");
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
    EXPECT_FAIL(wait(&later.known), orrErrorNotSupported, "newer library");
}

TEST_F(WaitOptions, LimitIsNoPartOfAGraph) {
    orrGraph_t graph = nullptr;
    options_.limit_ns = 1000;
    ASSERT_OK(orrStreamBeginCapture(stream_, 0));
    ASSERT_OK(orrEventRecord(event_, stream_));
    EXPECT_FAIL(orrStreamWaitEvent(stream_, event_, &options_), orrErrorStreamCapture, "limit");
    EXPECT_EQ(orrStreamEndCapture(&graph, stream_), orrErrorStreamCapture);
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
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrStreamCreate(&far, 0));
    EXPECT_FAIL(orrSemaphoreAddSignaller(semaphore, far), orrErrorPeerAccess,
                "orrDeviceEnablePeerAccess(0, 0)");
    ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
    EXPECT_OK(orrSemaphoreAddSignaller(semaphore, far));
    EXPECT_OK(orrStreamDestroy(far));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrSetDevice(0));
}

// Numbers of queues are used again: what became of an earlier one is no cause.
TEST(Signallers, OfAnEarlierLifeAreNotTheCause) {
    FakeSystem system;
    orrStream_t waiter = nullptr;
    ASSERT_OK(orrStreamCreate(&waiter, 0));
    orrSemaphore_t gate = nullptr, semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    orrStream_t first = nullptr, second = nullptr;
    ASSERT_OK(orrStreamCreate(&first, 0));
    ASSERT_OK(orrStreamWaitSemaphore(first, gate, 1, nullptr));
    ASSERT_OK(orrStreamAbort(first));
    ASSERT_OK(orrStreamDestroy(first));
    ASSERT_OK(orrStreamCreate(&second, 0));
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, second));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphore, 1, nullptr));
    ASSERT_OK(orrStreamDestroy(second));
    EXPECT_FAIL(orrStreamSynchronize(waiter), orrErrorAbandoned, "nobody is left");
    EXPECT_OK(orrStreamDestroy(waiter));
    EXPECT_OK(orrSemaphoreDestroy(gate));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

}  // namespace
}  // namespace orrery::umd::test
