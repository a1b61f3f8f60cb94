// What waiting promises, beside failures of others: cycles are named, limits end, semaphores that have failed
// stay so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>

#include <cstdint>
#include <cstring>

#include "tests/system/runtime/rig.h"
#include "tests/vm/umd/kernels.h"

namespace orrery::umd::conformance {
namespace {

#define ASSERT_OK(call) ASSERT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_OK(call) EXPECT_EQ((call), orrSuccess) << orrGetLastErrorText()

class Waits : public ::testing::Test {
  protected:
    void SetUp() override { rig_ = make_rig(); }
    static orrStream_t stream_on(int device, const char* name) {
        EXPECT_OK(orrSetDevice(device));
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.name = name;
        orrStream_t stream = nullptr;
        EXPECT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
        return stream;
    }
    static orrSemaphore_t semaphore_on(int device) {
        EXPECT_OK(orrSetDevice(device));
        orrSemaphore_t semaphore = nullptr;
        EXPECT_OK(orrSemaphoreCreate(&semaphore, 0));
        return semaphore;
    }
    std::unique_ptr<Rig> rig_;
};

TEST_F(Waits, CycleOverCardsIsNamedAndCanBeLeft) {
    orrStream_t a = stream_on(0, "left"), b = stream_on(1, "right");
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
    orrSemaphore_t on0 = semaphore_on(0), on1 = semaphore_on(1);
    ASSERT_OK(orrStreamWaitSemaphore(a, on0, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(a, on1, 1));
    ASSERT_OK(orrStreamWaitSemaphore(b, on1, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(b, on0, 1));
    EXPECT_EQ(orrStreamSynchronize(a), orrErrorDeadlock) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'left'"));
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'right'"));
    EXPECT_EQ(orrStreamQuery(a), orrErrorNotReady) << "nothing has been stopped";
    ASSERT_OK(orrSemaphoreSignal(on0, 1));
    EXPECT_OK(orrStreamSynchronize(a));
    EXPECT_OK(orrStreamDestroy(a));
    EXPECT_OK(orrStreamDestroy(b));
    EXPECT_OK(orrSemaphoreDestroy(on0));
    EXPECT_OK(orrSemaphoreDestroy(on1));
}

TEST_F(Waits, ValuesAboveTheLargestAreRefused) {
    orrStream_t stream = stream_on(0, "stream");
    orrSemaphore_t semaphore = semaphore_on(0);
    EXPECT_EQ(orrStreamWaitSemaphore(stream, semaphore, 1ull << 63, nullptr), orrErrorInvalidValue);
    EXPECT_EQ(orrStreamSignalSemaphore(stream, semaphore, 1ull << 63), orrErrorInvalidValue);
    EXPECT_EQ(orrSemaphoreSignal(semaphore, ~0ull), orrErrorInvalidValue);
    ASSERT_OK(orrSemaphoreSignal(semaphore, (1ull << 63) - 1));
    std::uint64_t value = 0;
    ASSERT_OK(orrSemaphoreGetValue(&value, semaphore));
    EXPECT_EQ(value, (1ull << 63) - 1);
    EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

TEST_F(Waits, AbortedStreamFailsWhatItWouldHaveSignalled) {
    orrStream_t source = stream_on(0, "source"), waiter = stream_on(0, "waiter");
    orrSemaphore_t never = semaphore_on(0), promised = semaphore_on(0);
    ASSERT_OK(orrStreamWaitSemaphore(source, never, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(source, promised, 5));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, promised, 5, nullptr));
    ASSERT_OK(orrStreamAbort(source));
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorAborted) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'source'"));
    std::uint64_t value = 0;
    EXPECT_EQ(orrSemaphoreGetValue(&value, promised), orrErrorAborted);
    EXPECT_EQ(orrSemaphoreSignal(promised, 6), orrErrorAborted) << "the first failure stays";
    ASSERT_OK(orrSemaphoreGetValue(&value, never));
    EXPECT_EQ(value, 0u);
    EXPECT_EQ(orrStreamQuery(source), orrErrorAborted) << "it can be asked";
    for (orrStream_t stream : {source, waiter})
        EXPECT_OK(orrStreamDestroy(stream));
    for (orrSemaphore_t semaphore : {never, promised})
        EXPECT_OK(orrSemaphoreDestroy(semaphore));
    // A semaphore that failed is nobody's any more: new ones work.
    orrStream_t again = stream_on(0, "again");
    for (int i = 0; i < 8; ++i) {
        orrSemaphore_t semaphore = semaphore_on(0);
        ASSERT_OK(orrStreamSignalSemaphore(again, semaphore, 1));
        ASSERT_OK(orrStreamWaitSemaphore(again, semaphore, 1, nullptr));
        ASSERT_OK(orrStreamSynchronize(again));
        ASSERT_OK(orrSemaphoreDestroy(semaphore));
    }
    EXPECT_OK(orrStreamDestroy(again));
}

TEST_F(Waits, EventsOfStreamsThatAreGoneStillTellTheirFailure) {
    orrStream_t source = stream_on(0, "source"), waiter = stream_on(0, "waiter");
    orrSemaphore_t never = semaphore_on(0);
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrStreamWaitSemaphore(source, never, 1, nullptr));
    ASSERT_OK(orrEventRecord(event, source));
    ASSERT_OK(orrStreamWaitEvent(waiter, event, nullptr));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamAbort(source));
    ASSERT_OK(orrStreamDestroy(source));
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorAborted) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'source'"));
    EXPECT_OK(orrStreamDestroy(waiter));
    EXPECT_OK(orrSemaphoreDestroy(never));
}

orrWaitOptions limited(std::uint64_t limit_ns) {
    orrWaitOptions options = ORR_INIT(orrWaitOptions);
    options.size = sizeof(options);
    options.limit_ns = limit_ns;
    return options;
}

TEST_F(Waits, LimitEndsAWaitAndNothingElse) {
    orrStream_t late = stream_on(0, "late"), patient = stream_on(0, "patient"),
                source = stream_on(0, "source");
    orrSemaphore_t never = semaphore_on(0), soon = semaphore_on(0);
    ASSERT_OK(orrSemaphoreSetName(never, "never"));
    const auto ten_ms = limited(10'000'000), hour = limited(3'600'000'000'000);
    ASSERT_OK(orrStreamWaitSemaphore(patient, soon, 1, &hour));
    ASSERT_OK(orrStreamWaitSemaphore(late, never, 3, &ten_ms));
    EXPECT_EQ(orrStreamSynchronize(late), orrErrorTimeout) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'never'"));
    EXPECT_EQ(orrStreamQuery(patient), orrErrorNotReady);
    ASSERT_OK(orrStreamSignalSemaphore(source, soon, 1));
    EXPECT_OK(orrStreamSynchronize(patient));
    std::uint64_t value = 1;
    EXPECT_OK(orrSemaphoreGetValue(&value, never)) << "it has not failed: somebody may signal it";
    EXPECT_EQ(value, 0u);
    for (orrStream_t stream : {late, patient, source})
        EXPECT_OK(orrStreamDestroy(stream));
    for (orrSemaphore_t semaphore : {never, soon})
        EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

TEST_F(Waits, LimitOfAnEventIsOfTheCardThatWaits) {
    orrStream_t source = stream_on(1, "source"), far = stream_on(0, "far"), near = stream_on(1, "near");
    ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
    orrSemaphore_t gate = semaphore_on(1);
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrStreamWaitSemaphore(source, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(event, source));
    const auto ten_ms = limited(10'000'000);
    for (orrStream_t stream : {far, near}) {
        ASSERT_OK(orrStreamWaitEvent(stream, event, &ten_ms));
        EXPECT_EQ(orrStreamSynchronize(stream), orrErrorTimeout) << orrGetLastErrorText();
    }
    EXPECT_EQ(orrStreamQuery(source), orrErrorNotReady) << "who is waited for goes on";
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    EXPECT_OK(orrEventSynchronize(event));
    for (orrStream_t stream : {far, near, source})
        EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrEventDestroy(event));
    EXPECT_OK(orrSemaphoreDestroy(gate));
}

TEST_F(Waits, LastSignallerThatGoesEndsTheWait) {
    orrStream_t first = stream_on(0, "first"), last = stream_on(0, "last"), waiter = stream_on(0, "waiter");
    orrSemaphore_t semaphore = semaphore_on(0);
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, first));
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, last));
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, last)) << "twice is once";
    ASSERT_OK(orrStreamSignalSemaphore(first, semaphore, 1));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphore, 1, nullptr));
    ASSERT_OK(orrStreamSynchronize(waiter));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphore, 2, nullptr));
    ASSERT_OK(orrStreamDestroy(first));
    EXPECT_EQ(orrStreamQuery(waiter), orrErrorNotReady) << "one is left";
    ASSERT_OK(orrSemaphoreRemoveSignaller(semaphore, last));
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorAbandoned) << orrGetLastErrorText();
    std::uint64_t value = 0;
    EXPECT_EQ(orrSemaphoreGetValue(&value, semaphore), orrErrorAbandoned);
    EXPECT_EQ(value, 1u);
    EXPECT_EQ(orrSemaphoreAddSignaller(semaphore, last), orrErrorAbandoned) << "too late";
    EXPECT_EQ(orrSemaphoreRemoveSignaller(semaphore, last), orrErrorInvalidValue);
    // What was signalled before stays signalled.
    ASSERT_OK(orrStreamWaitSemaphore(last, semaphore, 1, nullptr));
    EXPECT_OK(orrStreamSynchronize(last));
    for (orrStream_t stream : {last, waiter})
        EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrSemaphoreDestroy(semaphore));
}

TEST_F(Waits, CauseOfTheLastSignallerIsTold) {
    orrStream_t source = stream_on(0, "source"), waiter = stream_on(0, "waiter");
    orrSemaphore_t gate = semaphore_on(0), semaphore = semaphore_on(0);
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, source));
    ASSERT_OK(orrStreamWaitSemaphore(source, gate, 1, nullptr));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphore, 1, nullptr));
    ASSERT_OK(orrStreamAbort(source));  // it has not submitted the signal
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorAborted) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'source'"));
    EXPECT_EQ(orrSemaphoreAddSignaller(gate, source), orrErrorAborted) << "a stream that has stopped";
    for (orrStream_t stream : {source, waiter})
        EXPECT_OK(orrStreamDestroy(stream));
    for (orrSemaphore_t one : {gate, semaphore})
        EXPECT_OK(orrSemaphoreDestroy(one));
}

TEST_F(Waits, SignallerOfAnotherCardCounts) {
    orrStream_t far = stream_on(1, "far"), waiter = stream_on(0, "waiter");
    orrSemaphore_t gate = semaphore_on(1), semaphore = semaphore_on(0);
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, far));
    ASSERT_OK(orrStreamWaitSemaphore(far, gate, 1, nullptr));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, semaphore, 1, nullptr));
    ASSERT_OK(orrStreamAbort(far));
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorAborted) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'far'"));
    for (orrStream_t stream : {far, waiter})
        EXPECT_OK(orrStreamDestroy(stream));
    for (orrSemaphore_t one : {gate, semaphore})
        EXPECT_OK(orrSemaphoreDestroy(one));
}

// The memory of a semaphore is used again: nobody of its last life closes the next one.
TEST_F(Waits, SignallersStayWithTheirSemaphore) {
    orrStream_t waiter = stream_on(0, "waiter"), host = stream_on(0, "host");
    for (int i = 0; i < 16; ++i) {
        orrStream_t source = stream_on(0, "source");
        orrSemaphore_t old = semaphore_on(0);
        ASSERT_OK(orrSemaphoreAddSignaller(old, source));
        if (i % 2 == 1) {
            ASSERT_OK(orrStreamAbort(source));
        }
        ASSERT_OK(orrSemaphoreDestroy(old));
        orrSemaphore_t next = semaphore_on(0);
        ASSERT_OK(orrStreamWaitSemaphore(waiter, next, 1, nullptr));
        ASSERT_OK(orrStreamDestroy(source));
        ASSERT_OK(orrStreamSignalSemaphore(host, next, 1));
        ASSERT_OK(orrStreamSynchronize(waiter)) << i;
        ASSERT_OK(orrSemaphoreDestroy(next));
    }
    EXPECT_OK(orrStreamDestroy(waiter));
    EXPECT_OK(orrStreamDestroy(host));
}

}  // namespace
}  // namespace orrery::umd::conformance
