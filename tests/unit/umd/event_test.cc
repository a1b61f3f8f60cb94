#include <orrery/graph.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

TEST(Event, ModelTimeIsExactAndHostTimeMoves) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrEvent_t start = nullptr, end = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrEventCreate(&start, 0));
    ASSERT_OK(orrEventCreate(&end, 0));
    ASSERT_OK(orrMalloc(&memory, 4096));
    for (int round = 0; round < 3; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        ASSERT_OK(orrEventRecord(start, stream));
        ASSERT_OK(orrMemsetAsync(memory, 1, 4096, stream));
        ASSERT_OK(orrEventRecord(end, stream));
        ASSERT_OK(orrEventSynchronize(end));
        double model = 0, host = -1, again = -1;
        ASSERT_OK(orrEventElapsedModelTime(&model, start, end));
        // The fake takes 1 ns a packet and 10 ps a byte.
        EXPECT_EQ(model, 2.0 + 40.96);
        // The start is looked at here for the first time, after the end.
        ASSERT_OK(orrEventElapsedHostTime(&host, start, end));
        const std::chrono::duration<double, std::nano> all = std::chrono::steady_clock::now() - begin;
        EXPECT_GE(host, 0);
        EXPECT_LE(host, all.count());
        ASSERT_OK(orrEventElapsedHostTime(&again, start, end));
        EXPECT_EQ(again, host) << "when the end was seen does not change";
        std::uint64_t ps = 0;
        ASSERT_OK(orrEventGetModelTime(&ps, end));
        EXPECT_GT(ps, 0u);
    }
    ASSERT_OK(orrEventDestroy(start));
    EXPECT_FAIL(orrEventRecord(start, stream), orrErrorInvalidHandle, "event");
    ASSERT_OK(orrEventDestroy(end));
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrFree(memory));
}

TEST(Event, StatesAndMistakes) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr, never = nullptr;
    double ns = 0;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrEventCreate(&never, 0));
    EXPECT_OK(orrEventSynchronize(never));
    EXPECT_FAIL(orrEventElapsedModelTime(&ns, never, never), orrErrorInvalidValue, "never recorded");
    system.card().pause(true);
    ASSERT_OK(orrEventRecord(event, stream));
    EXPECT_FAIL(orrEventQuery(event), orrErrorNotReady, "not done");
    EXPECT_FAIL(orrEventElapsedModelTime(&ns, event, event), orrErrorNotReady, "not done");
    system.card().pause(false);
    ASSERT_OK(orrEventSynchronize(event));
    EXPECT_OK(orrEventQuery(event));
    EXPECT_FAIL(orrEventElapsedModelTime(nullptr, event, event), orrErrorInvalidValue, "ns");
    ASSERT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrEventQuery(event)) << "a record outlives its stream";
    ASSERT_OK(orrEventElapsedModelTime(&ns, event, event));
    EXPECT_EQ(ns, 0.0);
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrEventDestroy(never));
}

TEST(Event, OrdersStreamsOfACard) {
    FakeSystem system(1);
    constexpr int kStreams = 5, kRounds = 200;
    std::vector<orrStream_t> streams(kStreams);
    orrEvent_t event = nullptr;
    void* memory = nullptr;
    void* pinned = nullptr;
    ASSERT_OK(orrMalloc(&memory, 64));
    ASSERT_OK(orrMallocHost(&pinned, kRounds * 8, 0));
    for (auto& stream : streams)
        ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    // Each stream overwrites the word behind the one before: the last one to run must be the last submitted.
    for (int i = 0; i < kRounds; ++i) {
        orrStream_t stream = streams[static_cast<std::size_t>(i % kStreams)];
        ASSERT_OK(orrStreamWaitEvent(stream, event, nullptr));
        ASSERT_OK(orrMemsetAsync(memory, i, 8, stream));
        ASSERT_OK(
            orrMemcpyAsync(at(pinned, static_cast<std::size_t>(i) * 8), memory, 8, orrMemcpyDefault, stream));
        ASSERT_OK(orrEventRecord(event, stream));  // again and again: the earlier record may be pending
    }
    ASSERT_OK(orrDeviceSynchronize());
    for (int i = 0; i < kRounds; ++i) {
        ASSERT_EQ(static_cast<std::uint8_t*>(pinned)[i * 8], i & 0xff) << i;
    }
    for (auto& stream : streams)
        ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrFree(memory));
    ASSERT_OK(orrFreeHost(pinned));
}

// Records on one stream take a shorter way from the second on.
TEST(Event, RecordedAgainOnItsStream) {
    FakeSystem system(1);
    orrStream_t stream = nullptr, other = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    std::uint64_t before = 0, now = 0;
    for (int i = 0; i < 3000; ++i) {  // more than the ring holds
        ASSERT_OK(orrEventRecord(event, stream));
        if (i % 256 != 0) continue;
        ASSERT_OK(orrEventSynchronize(event));
        ASSERT_OK(orrEventGetModelTime(&now, event));
        ASSERT_GT(now, before);
        before = now;
    }
    // On another one it must wait for that one.
    ASSERT_OK(orrStreamSynchronize(stream));
    system.card().pause(true);
    ASSERT_OK(orrEventRecord(event, other));
    EXPECT_OK(orrStreamQuery(stream));
    EXPECT_FAIL(orrEventQuery(event), orrErrorNotReady, "not done");
    system.card().pause(false);
    ASSERT_OK(orrEventSynchronize(event));
    ASSERT_OK(orrEventRecord(event, stream));
    // A capture takes it in.
    orrGraph_t graph = nullptr;
    ASSERT_OK(orrStreamBeginCapture(stream, 0));
    ASSERT_OK(orrEventRecord(event, stream));
    EXPECT_FAIL(orrEventSynchronize(event), orrErrorStreamCapture, "captured");
    ASSERT_OK(orrStreamEndCapture(&graph, stream));
    ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrEventSynchronize(event));
    // A handle without its stream is refused, though the event still has that.
    ASSERT_OK(orrStreamDestroy(stream));
    EXPECT_FAIL(orrEventRecord(event, stream), orrErrorInvalidHandle, "not a stream");
    ASSERT_OK(orrEventRecord(event, other));
    ASSERT_OK(orrEventSynchronize(event));
    ASSERT_OK(orrGraphDestroy(graph));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(other));
}

TEST(Event, SlotsComeBackWithoutWakingOldWaiters) {
    FakeSystem system(1);
    orrStream_t a = nullptr, b = nullptr;
    ASSERT_OK(orrStreamCreate(&a, 0));
    ASSERT_OK(orrStreamCreate(&b, 0));
    for (int i = 0; i < 5000; ++i) {  // more than a pool block has
        orrEvent_t event = nullptr;
        ASSERT_OK(orrEventCreate(&event, 0));
        ASSERT_OK(orrEventRecord(event, i % 2 == 0 ? a : b));
        ASSERT_OK(orrStreamWaitEvent(i % 2 == 0 ? b : a, event, nullptr));
        ASSERT_OK(orrEventDestroy(event));  // while the record may be pending
    }
    ASSERT_OK(orrDeviceSynchronize());
    ASSERT_OK(orrStreamDestroy(a));
    ASSERT_OK(orrStreamDestroy(b));
}

TEST(Event, StreamThatWaitsForAStoppedOneEndsWithItsError) {
    FakeSystem system(1);
    orrStream_t bad = nullptr, waiting = nullptr;
    orrEvent_t event = nullptr;
    void* gone = nullptr;
    ASSERT_OK(orrStreamCreate(&bad, 0));
    ASSERT_OK(orrStreamCreate(&waiting, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrMalloc(&gone, 2 << 20));
    system.card().pause(true);
    system.card().hide(gone);
    ASSERT_OK(orrMemsetAsync(gone, 0, 8, bad));
    ASSERT_OK(orrEventRecord(event, bad));
    ASSERT_OK(orrStreamWaitEvent(waiting, event, nullptr));
    system.card().pause(false);
    EXPECT_FAIL(orrStreamSynchronize(waiting), orrErrorIllegalAddress, "will never come");
    EXPECT_EQ(orrEventSynchronize(event), orrErrorIllegalAddress);
    EXPECT_EQ(orrStreamWaitEvent(waiting, event, nullptr), orrErrorIllegalAddress);
    ASSERT_OK(orrStreamDestroy(bad));
    ASSERT_OK(orrStreamDestroy(waiting));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrFree(gone));
}

// Memory that the card finds unmapped: what touches it fails.
void* broken_memory(FakeSystem& system, std::size_t card = 0) {
    void* gone = nullptr;
    EXPECT_OK(orrMalloc(&gone, 2 << 20));
    system.card(card).hide(gone);
    return gone;
}

TEST(Event, SlotOfAStoppedStreamWakesNobody) {
    FakeSystem system(1);
    orrStream_t bad{}, waiting{}, other{};
    orrEvent_t event{};
    void* x{};
    ASSERT_OK(orrStreamCreate(&bad, 0));
    ASSERT_OK(orrStreamCreate(&waiting, 0));
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrMallocHost(&x, 64, 0));
    std::memset(x, 0, 64);
    system.card().pause(true);
    void* gone = broken_memory(system);
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrMemsetAsync(gone, 0, 8, bad));
    ASSERT_OK(orrEventRecord(event, bad));
    ASSERT_OK(orrStreamWaitEvent(waiting, event, nullptr));
    ASSERT_OK(orrMemsetAsync(x, 7, 8, waiting));
    ASSERT_OK(orrEventDestroy(event));
    system.card().pause(false);
    EXPECT_EQ(orrStreamSynchronize(bad), orrErrorIllegalAddress);
    for (int i = 0; i < 3; ++i) {  // the second of these got the slot
        orrEvent_t more{};
        ASSERT_OK(orrEventCreate(&more, 0));
        ASSERT_OK(orrEventRecord(more, other));
        ASSERT_OK(orrEventSynchronize(more));
        ASSERT_OK(orrEventDestroy(more));
    }
    EXPECT_NE(orrStreamSynchronize(waiting), orrSuccess);
    EXPECT_EQ(*static_cast<std::uint8_t*>(x), 0) << "the dependent ran";
    for (orrStream_t stream : {bad, waiting, other})
        ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrFree(gone));
    ASSERT_OK(orrFreeHost(x));
}

TEST(Event, LostCardIsSeenByWhoPolls) {
    FakeSystem system(1);
    orrStream_t stream{};
    orrEvent_t event{};
    void* memory{};
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrMalloc(&memory, 64));
    system.card().pause(true);
    ASSERT_OK(orrMemsetAsync(memory, 1, 64, stream));
    ASSERT_OK(orrEventRecord(event, stream));
    EXPECT_EQ(orrEventQuery(event), orrErrorNotReady);
    system.card().lose();
    orrError_t state = orrErrorNotReady;
    while (state == orrErrorNotReady)
        state = orrEventQuery(event);
    EXPECT_EQ(state, orrErrorDeviceLost);
    EXPECT_EQ(orrStreamQuery(stream), orrErrorDeviceLost);
}

TEST(Semaphore, OrdersStreamsAndTheHost) {
    FakeSystem system(1);
    orrStream_t a = nullptr, b = nullptr;
    orrSemaphore_t semaphore = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrStreamCreate(&a, 0));
    ASSERT_OK(orrStreamCreate(&b, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrMalloc(&memory, 8));
    ASSERT_OK(orrStreamWaitSemaphore(b, semaphore, 5, nullptr));
    ASSERT_OK(orrMemsetAsync(memory, 2, 8, b));
    ASSERT_OK(orrStreamSignalSemaphore(b, semaphore, 6));
    std::uint64_t value = 99;
    ASSERT_OK(orrSemaphoreGetValue(&value, semaphore));
    EXPECT_EQ(value, 0u);
    EXPECT_EQ(orrStreamQuery(b), orrErrorNotReady);
    ASSERT_OK(orrMemsetAsync(memory, 1, 8, a));
    ASSERT_OK(orrStreamSignalSemaphore(a, semaphore, 5));
    ASSERT_OK(orrStreamSynchronize(b));
    ASSERT_OK(orrSemaphoreGetValue(&value, semaphore));
    EXPECT_EQ(value, 6u);
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemcpy(&byte, memory, 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 2);
    ASSERT_OK(orrStreamWaitSemaphore(b, semaphore, 10, nullptr));
    ASSERT_OK(orrSemaphoreSignal(semaphore, 10));
    ASSERT_OK(orrStreamSynchronize(b));
    EXPECT_FAIL(orrSemaphoreSignal(semaphore, 9), orrErrorInvalidValue, "only grows");
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    EXPECT_FAIL(orrSemaphoreSignal(semaphore, 11), orrErrorInvalidHandle, "semaphore");
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));  // most likely the same memory
    ASSERT_OK(orrSemaphoreGetValue(&value, semaphore));
    EXPECT_EQ(value, 0u);
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrStreamDestroy(a));
    ASSERT_OK(orrStreamDestroy(b));
    ASSERT_OK(orrFree(memory));
}

}  // namespace
}  // namespace orrery::umd::test
