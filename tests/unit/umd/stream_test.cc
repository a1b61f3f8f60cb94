#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class StreamTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrMalloc(&memory_, 1 << 16));
        ASSERT_OK(orrMallocHost(&pinned_, 1 << 16, 0));
    }
    void TearDown() override {
        if (stream_ != nullptr) EXPECT_OK(orrStreamDestroy(stream_));
        EXPECT_OK(orrFree(memory_));
        EXPECT_OK(orrFreeHost(pinned_));
    }

    FakeSystem system_{1};
    orrStream_t stream_ = nullptr;
    void* memory_ = nullptr;
    void* pinned_ = nullptr;
};

TEST_F(StreamTest, RingWrapsManyTimesInOrder) {
    auto* words = static_cast<std::uint64_t*>(pinned_);
    for (std::uint64_t i = 0; i < 5000; ++i) {
        // Each word makes a round trip over the one before it: any disorder shows.
        words[i % 512] = i;
        ASSERT_OK(orrMemcpyAsync(at(memory_, 8 * (i % 512)), words + i % 512, 8, orrMemcpyDefault, stream_));
        if (i % 512 == 511) ASSERT_OK(orrStreamSynchronize(stream_));
    }
    ASSERT_OK(orrStreamSynchronize(stream_));
    std::vector<std::uint64_t> back(512);
    ASSERT_OK(orrMemcpy(back.data(), memory_, 4096, orrMemcpyDefault));
    for (std::uint64_t i = 0; i < 512; ++i)
        EXPECT_EQ(back[i] % 512, i);
}

TEST_F(StreamTest, FullRingHoldsTheSubmitterBack) {
    system_.card().pause(true);
    std::atomic<int> submitted{0};
    std::thread submitter([&] {
        for (int i = 0; i < 1500; ++i) {
            ASSERT_OK(orrMemsetAsync(memory_, i, 64, stream_));
            submitted.store(i + 1);
        }
    });
    while (submitted.load() < 1024)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(submitted.load(), 1024) << "the ring has 1024 slots";
    EXPECT_EQ(orrStreamQuery(stream_), orrErrorNotReady);
    system_.card().pause(false);
    submitter.join();
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_OK(orrStreamQuery(stream_));
    std::uint8_t last = 0;
    ASSERT_OK(orrMemcpy(&last, memory_, 1, orrMemcpyDefault));
    EXPECT_EQ(last, 1499 & 0xff);
}

TEST_F(StreamTest, HotSubmissionAsksTheKernelNothing) {
    ASSERT_OK(orrMemsetAsync(memory_, 0, 64, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    const std::uint64_t waits = system_.card().waits();
    for (int i = 0; i < 500; ++i)
        ASSERT_OK(orrMemsetAsync(memory_, i, 64, stream_));
    EXPECT_EQ(system_.card().waits(), waits);
    ASSERT_OK(orrStreamSynchronize(stream_));
}

TEST_F(StreamTest, SleepingCardIsKicked) {
    // Its thread may be late to lie down.
    for (int i = 0; i < 20 || (i < 4000 && system_.card().kicks() == 0); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ASSERT_OK(orrMemsetAsync(memory_, i & 0xff, 64, stream_));
        ASSERT_OK(orrStreamSynchronize(stream_));
    }
    EXPECT_GT(system_.card().kicks(), 0u);
}

TEST_F(StreamTest, ThreadsShareAStream) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 2000; ++i) {
                ASSERT_OK(orrMemsetAsync(at(memory_, static_cast<std::size_t>(t) * 64), t + 1, 64, stream_));
                if (i % 500 == 0) ASSERT_OK(orrStreamSynchronize(stream_));
            }
        });
    }
    for (auto& thread : threads)
        thread.join();
    ASSERT_OK(orrStreamSynchronize(stream_));
    std::uint8_t back[256];
    ASSERT_OK(orrMemcpy(back, memory_, sizeof(back), orrMemcpyDefault));
    for (std::size_t i = 0; i < sizeof(back); ++i)
        EXPECT_EQ(back[i], i / 64 + 1);
}

TEST_F(StreamTest, PageableCopiesOfThreadsDoNotMix) {
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            const auto data = random_bytes(1 << 21, t);
            void* own = nullptr;
            ASSERT_OK(orrMalloc(&own, data.size()));
            std::vector<std::uint8_t> back(data.size());
            for (int i = 0; i < 4; ++i) {
                ASSERT_OK(orrMemcpyAsync(own, data.data(), data.size(), orrMemcpyDefault, stream_));
                ASSERT_OK(orrMemcpyAsync(back.data(), own, data.size(), orrMemcpyDefault, stream_));
                ASSERT_EQ(back, data);
            }
            ASSERT_OK(orrFree(own));
        });
    }
    for (auto& thread : threads)
        thread.join();
}

TEST_F(StreamTest, ErrorIsStickyForItsStreamOnly) {
    // Freed memory in flight is the user's fault; the card finds it unmapped.
    void* gone = nullptr;
    ASSERT_OK(orrMalloc(&gone, 2 << 20));
    system_.card().pause(true);
    system_.card().hide(gone);
    ASSERT_OK(orrMemsetAsync(gone, 1, 64, stream_));
    system_.card().pause(false);
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorIllegalAddress, "a memset accessed");
    EXPECT_FAIL(orrMemsetAsync(memory_, 1, 64, stream_), orrErrorIllegalAddress, "destroy it");
    EXPECT_EQ(orrStreamQuery(stream_), orrErrorIllegalAddress);
    orrStream_t other = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, other));
    ASSERT_OK(orrStreamSynchronize(other));
    EXPECT_EQ(orrDeviceSynchronize(), orrErrorIllegalAddress);
    ASSERT_OK(orrStreamDestroy(stream_));
    EXPECT_OK(orrDeviceSynchronize());
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorInvalidHandle, "not a stream");
    stream_ = nullptr;
    ASSERT_OK(orrStreamDestroy(other));
    ASSERT_OK(orrFree(gone));
}

TEST_F(StreamTest, NullStreamCanBeReplacedAfterAnError) {
    void* gone = nullptr;
    ASSERT_OK(orrMalloc(&gone, 2 << 20));
    system_.card().hide(gone);
    EXPECT_EQ(orrMemset(gone, 1, 64), orrErrorIllegalAddress);
    EXPECT_EQ(orrMemset(memory_, 1, 64), orrErrorIllegalAddress);
    ASSERT_OK(orrStreamDestroy(nullptr));
    EXPECT_OK(orrMemset(memory_, 1, 64));
    ASSERT_OK(orrFree(gone));
}

TEST_F(StreamTest, LostCardEndsWaits) {
    system_.card().pause(true);
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    system_.card().lose();
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorDeviceLost, "reset or removed");
    EXPECT_FAIL(orrMemsetAsync(memory_, 1, 64, stream_), orrErrorDeviceLost, "");
}

TEST_F(StreamTest, PollingSeesALostCard) {
    system_.card().pause(true);
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    system_.card().lose();
    orrError_t state = orrErrorNotReady;
    while (state == orrErrorNotReady)
        state = orrStreamQuery(stream_);
    EXPECT_EQ(state, orrErrorDeviceLost);
}

// Calls that name no stream go on while another thread destroys one.
TEST_F(StreamTest, DestroyedWhileOthersWaitForTheDevice) {
    for (int round = 0; round < 30; ++round) {
        orrStream_t stream = nullptr;
        ASSERT_OK(orrStreamCreate(&stream, 0));
        system_.card().pause(true);
        ASSERT_OK(orrMemsetAsync(memory_, round, 64, stream));
        std::thread waiter([] { (void)orrDeviceSynchronize(); });
        std::thread destroyer([&] { EXPECT_OK(orrStreamDestroy(stream)); });
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        system_.card().pause(false);
        waiter.join();
        destroyer.join();
    }
}

// A stream that the host declares stopped has no queue that still works: what it would have touched can be
// freed.
TEST_F(StreamTest, DeclaredStoppedMeansStopped) {
    orrStream_t bad = nullptr;
    orrEvent_t event = nullptr;
    void* gone = nullptr;
    ASSERT_OK(orrStreamCreate(&bad, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrMalloc(&gone, 2 << 20));
    system_.card().pause(true);
    system_.card().hide(gone);
    ASSERT_OK(orrMemsetAsync(gone, 0, 8, bad));
    ASSERT_OK(orrEventRecord(event, bad));
    ASSERT_OK(orrStreamWaitEvent(stream_, event, nullptr));
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    system_.card().pause(false);
    EXPECT_EQ(orrStreamSynchronize(stream_), orrErrorIllegalAddress);
    {
        const std::lock_guard lock(system_.card().mutex());
        EXPECT_TRUE(std::ranges::none_of(system_.card().queues, [](const FakeCard::Queue& queue) {
            return queue.state.error == 0 && queue.waiting;
        })) << "a hardware queue of a stopped stream still waits";
    }
    ASSERT_OK(orrStreamDestroy(bad));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrFree(gone));
}

}  // namespace
}  // namespace orrery::umd::test
