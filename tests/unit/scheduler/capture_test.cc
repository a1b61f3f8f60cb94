#include <orrery/graph.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class CaptureTest : public ::testing::Test {
  protected:
    CaptureTest() {
        EXPECT_OK(orrStreamCreate(&a_, 0));
        EXPECT_OK(orrStreamCreate(&b_, 0));
        EXPECT_OK(orrEventCreate(&fork_, 0));
        EXPECT_OK(orrEventCreate(&join_, 0));
        void* memory = nullptr;
        EXPECT_OK(orrMallocHost(&memory, 4096, 0));
        memory_ = static_cast<std::uint8_t*>(memory);
        std::memset(memory_, 0, 4096);
    }
    ~CaptureTest() override {
        EXPECT_OK(orrStreamDestroy(a_));
        EXPECT_OK(orrStreamDestroy(b_));
        EXPECT_OK(orrEventDestroy(fork_));
        EXPECT_OK(orrEventDestroy(join_));
        EXPECT_OK(orrFreeHost(memory_));
    }

    FakeSystem system_;
    orrStream_t a_ = nullptr, b_ = nullptr;
    orrEvent_t fork_ = nullptr, join_ = nullptr;
    std::uint8_t* memory_ = nullptr;
};

TEST_F(CaptureTest, TwoStreamsBecomeOneGraph) {
    ASSERT_OK(orrStreamBeginCapture(a_, 0));
    ASSERT_OK(orrMemsetAsync(memory_, 4, 64, a_));
    ASSERT_OK(orrEventRecord(fork_, a_));
    ASSERT_OK(orrStreamWaitEvent(b_, fork_, nullptr));
    int capturing = 0;
    ASSERT_OK(orrStreamIsCapturing(&capturing, b_));
    EXPECT_EQ(capturing, 1);
    ASSERT_OK(orrMemcpyAsync(memory_ + 64, memory_, 64, orrMemcpyDefault, b_));
    ASSERT_OK(orrMemcpyAsync(memory_ + 128, memory_, 64, orrMemcpyDefault, a_));
    ASSERT_OK(orrEventRecord(join_, b_));
    ASSERT_OK(orrStreamWaitEvent(a_, join_, nullptr));
    ASSERT_OK(orrMemsetAsync(memory_, 8, 64, a_));
    orrGraph_t graph = nullptr;
    ASSERT_OK(orrStreamEndCapture(&graph, a_));
    EXPECT_EQ(memory_[64], 0) << "nothing ran yet";
    ASSERT_OK(orrStreamIsCapturing(&capturing, b_));
    EXPECT_EQ(capturing, 0);
    std::size_t nodes = 0;
    ASSERT_OK(orrGraphGetNodeCount(&nodes, graph));
    EXPECT_EQ(nodes, 4u);
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrGraphDestroy(graph));
    orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
    ASSERT_OK(orrGraphExecGetInfo(&info, exec));
    EXPECT_EQ(info.queues, 2u);
    EXPECT_EQ(info.waits, 2u);
    for (int i = 0; i < 3; ++i) {
        std::memset(memory_, 0, 4096);
        ASSERT_OK(orrGraphLaunch(exec, a_));
        ASSERT_OK(orrStreamSynchronize(a_));
        EXPECT_EQ(memory_[0], 8);
        EXPECT_EQ(memory_[64], 4);
        EXPECT_EQ(memory_[128], 4);
    }
    ASSERT_OK(orrGraphExecDestroy(exec));
    // The streams run their work again.
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, b_));
    ASSERT_OK(orrStreamSynchronize(b_));
    EXPECT_EQ(memory_[0], 1);
}

// A call on a stream that had joined meets the end of the capture.
TEST_F(CaptureTest, EndsWhileOthersCaptureIntoIt) {
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over.load()) {
            (void)orrMemsetAsync(memory_, 1, 8, b_);
            (void)orrEventRecord(join_, b_);
        }
    });
    for (int round = 0; round < 1000; ++round) {
        ASSERT_OK(orrStreamBeginCapture(a_, 0));
        ASSERT_OK(orrEventRecord(fork_, a_));
        ASSERT_OK(orrStreamWaitEvent(b_, fork_, nullptr));
        orrGraph_t graph = nullptr;
        if (orrStreamEndCapture(&graph, a_) == orrSuccess) EXPECT_OK(orrGraphDestroy(graph));
    }
    over.store(true);
    other.join();
}

TEST_F(CaptureTest, Mistakes) {
    orrGraph_t graph = nullptr;
    EXPECT_FAIL(orrStreamBeginCapture(nullptr, 0), orrErrorStreamCapture, "null stream");
    EXPECT_FAIL(orrStreamEndCapture(&graph, a_), orrErrorStreamCapture, "not being captured");
    ASSERT_OK(orrStreamBeginCapture(a_, 0));
    EXPECT_FAIL(orrStreamBeginCapture(a_, 0), orrErrorStreamCapture, "already");
    EXPECT_FAIL(orrStreamSynchronize(a_), orrErrorStreamCapture, "orrStreamSynchronize");
    EXPECT_FAIL(orrStreamEndCapture(&graph, a_), orrErrorStreamCapture, "because a call failed");
    EXPECT_EQ(graph, nullptr);

    ASSERT_OK(orrStreamBeginCapture(a_, 0));
    std::uint8_t ordinary[16] = {};
    EXPECT_FAIL(orrMemcpyAsync(memory_, ordinary, 16, orrMemcpyDefault, a_), orrErrorStreamCapture,
                "orrMallocHost");
    EXPECT_FAIL(orrStreamEndCapture(&graph, a_), orrErrorStreamCapture, "because a call failed");

    // A launch that is wrong in itself is missing from the graph all the same.
    ASSERT_OK(orrStreamBeginCapture(a_, 0));
    EXPECT_EQ(orrLaunchKernel(reinterpret_cast<orrFunction_t>(1), {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, a_),
              orrErrorInvalidHandle);
    EXPECT_FAIL(orrStreamEndCapture(&graph, a_), orrErrorInvalidHandle, "because a call failed");

    ASSERT_OK(orrStreamBeginCapture(a_, 0));
    ASSERT_OK(orrEventRecord(fork_, a_));
    EXPECT_FAIL(orrEventSynchronize(fork_), orrErrorStreamCapture, "captured");
    ASSERT_OK(orrStreamWaitEvent(b_, fork_, nullptr));
    ASSERT_OK(orrMemsetAsync(memory_, 1, 8, b_));
    EXPECT_FAIL(orrStreamEndCapture(&graph, b_), orrErrorStreamCapture, "another stream");
    EXPECT_FAIL(orrStreamEndCapture(&graph, a_), orrErrorStreamCapture, "not joined back");
    EXPECT_FAIL(orrStreamWaitEvent(b_, fork_, nullptr), orrErrorStreamCapture, "has ended");
    ASSERT_OK(orrMemsetAsync(memory_, 1, 8, b_));
    ASSERT_OK(orrStreamSynchronize(b_));

    // An event from before the capture is no part of it.
    ASSERT_OK(orrEventRecord(join_, b_));
    ASSERT_OK(orrStreamBeginCapture(a_, 0));
    EXPECT_FAIL(orrStreamWaitEvent(a_, join_, nullptr), orrErrorStreamCapture, "outside");
    EXPECT_EQ(orrStreamEndCapture(&graph, a_), orrErrorStreamCapture);
    // A stream that is destroyed while it is captured.
    ASSERT_OK(orrStreamBeginCapture(a_, 0));
    ASSERT_OK(orrStreamDestroy(a_));
    ASSERT_OK(orrStreamCreate(&a_, 0));
}

}  // namespace
}  // namespace orrery::umd::test
