// Graphs over cards that no way of links joins: copies through the host's memory, and order by the host.
#include <orrery/graph.h>
#include <orrery/prof.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/unit/umd/staged_fixture.h"

namespace orrery::umd::test {
namespace {

class StagedGraph : public Staged {
  protected:
    void SetUp() override {
        Staged::SetUp();
        ASSERT_OK(orrGraphCreate(&graph_, 0));
    }
    void TearDown() override {
        if (exec_ != nullptr) EXPECT_OK(orrGraphExecDestroy(exec_));
        EXPECT_OK(orrGraphDestroy(graph_));
        Staged::TearDown();
    }
    orrGraphNode_t copy(void* dst, const void* src, std::size_t bytes,
                        std::vector<orrGraphNode_t> after = {}) {
        orrGraphNode_t node = nullptr;
        EXPECT_OK(orrGraphAddMemcpyNode(&node, graph_, after.data(), after.size(), dst, src, bytes,
                                        orrMemcpyDefault));
        return node;
    }
    orrGraphNode_t fill(void* dst, int value, std::size_t bytes, std::vector<orrGraphNode_t> after = {}) {
        orrGraphNode_t node = nullptr;
        EXPECT_OK(orrGraphAddMemsetNode(&node, graph_, after.data(), after.size(), dst, value, bytes));
        return node;
    }
    void instantiate() { ASSERT_OK(orrGraphInstantiate(&exec_, graph_, 0)); }
    orrGraphExecInfo info() {
        orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
        EXPECT_OK(orrGraphExecGetInfo(&info, exec_));
        return info;
    }
    std::vector<std::uint8_t> read(const void* memory, std::size_t bytes) {
        std::vector<std::uint8_t> back(bytes);
        EXPECT_OK(orrMemcpy(back.data(), memory, bytes, orrMemcpyDefault));
        return back;
    }
    bool all(const void* memory, std::size_t bytes, int value) {
        return std::ranges::all_of(read(memory, bytes), [&](std::uint8_t byte) { return byte == value; });
    }
    orrGraph_t graph_ = nullptr;
    orrGraphExec_t exec_ = nullptr;
};

// There and back, launched into streams of both cards and of the one between them, which is linked with both.
TEST_F(StagedGraph, CopiesKeepEveryByteAndTheGraphsOrder) {
    constexpr std::size_t kBytes = 2 * kHalf + 777;
    const orrGraphNode_t first = fill(memory_[0], 1, kBytes);
    const orrGraphNode_t there = copy(memory_[1], memory_[0], kBytes, {first});
    const orrGraphNode_t over = fill(memory_[0], 2, kBytes, {there});
    const orrGraphNode_t mark = fill(at(memory_[1], 5), 3, 1, {there});
    copy(at(memory_[0], 10), at(memory_[1], 5), 100, {over, mark});
    instantiate();
    EXPECT_EQ(info().by_host, 2u);
    EXPECT_EQ(info().nodes, 5u);
    EXPECT_EQ(info().edges, 5u);
    const orrStream_t middle = stream_on(1);
    for (const orrStream_t stream : {stream_[0], stream_[1], middle, stream_[0]}) {
        ASSERT_OK(orrMemset(memory_[0], 0xee, kSize));
        ASSERT_OK(orrMemset(memory_[1], 0xee, kSize));
        ASSERT_OK(orrGraphLaunch(exec_, stream));
        ASSERT_OK(orrStreamSynchronize(stream));
        auto want = std::vector<std::uint8_t>(kSize, 0xee);
        std::fill_n(want.begin(), kBytes, std::uint8_t{1});
        want[5] = 3;
        EXPECT_TRUE(read(memory_[1], kSize) == want);
        std::fill_n(want.begin(), kBytes, std::uint8_t{2});
        std::fill_n(want.begin() + 10, 100, std::uint8_t{1});
        want[10] = 3;
        EXPECT_TRUE(read(memory_[0], kSize) == want);
    }
    ASSERT_OK(orrStreamDestroy(middle));
}

// Launches in a row, into streams of both cards: each behind the last, and behind its stream's work.
TEST_F(StagedGraph, LaunchesComeOneAfterTheOther) {
    copy(at(memory_[1], 64), memory_[0], 64);
    copy(at(memory_[0], 64), at(memory_[1], 64), 64);
    instantiate();
    for (int round = 1; round <= 20; ++round) {
        const orrStream_t stream = stream_[round % 2];
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrMemset(memory_[0], round, 64));
        ASSERT_OK(orrGraphLaunch(exec_, stream));
        ASSERT_OK(orrGraphLaunch(exec_, stream_[1 - round % 2]));
        ASSERT_OK(orrStreamSynchronize(stream_[1 - round % 2]));
        ASSERT_TRUE(all(at(memory_[1], 64), 64, round)) << round;
    }
    EXPECT_EQ(info().launches, 40u);
}

// The next launch begins when all of the last one is done, whatever threads that has.
TEST_F(StagedGraph, ALaunchIntoAnotherStreamWaitsForTheEnd) {
    struct Host {
        std::atomic<int> began{0};
        std::atomic<bool> go{false};
    } host;
    orrGraphNode_t node = nullptr;
    ASSERT_OK(orrGraphAddHostNode(
        &node, graph_, nullptr, 0, [](void* user) { ++static_cast<Host*>(user)->began; }, &host));
    ASSERT_OK(orrGraphAddHostNode(
        &node, graph_, nullptr, 0,
        [](void* user) {
            while (!static_cast<Host*>(user)->go)
                std::this_thread::yield();
        },
        &host));
    copy(memory_[1], memory_[0], 64);
    instantiate();
    ASSERT_OK(orrGraphLaunch(exec_, stream_[0]));
    ASSERT_OK(orrGraphLaunch(exec_, stream_[1]));
    while (host.began == 0)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(host.began, 1);
    host.go = true;
    EXPECT_OK(orrStreamSynchronize(stream_[1]));
    EXPECT_OK(orrStreamSynchronize(stream_[0]));
    EXPECT_EQ(host.began, 2);
}

TEST_F(StagedGraph, BoxesAndReductions) {
    std::vector<std::uint64_t> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), 1);
    const std::size_t bytes = numbers.size() * 8;
    for (void* memory : memory_)
        ASSERT_OK(orrMemcpy(memory, numbers.data(), bytes, orrMemcpyDefault));
    orrGraphNode_t sum = nullptr, box = nullptr;
    ASSERT_OK(orrGraphAddReduceNode(&sum, graph_, nullptr, 0, memory_[1], memory_[0], numbers.size(),
                                    orrUint64, orrReduceSum, 0));
    // Rows of 64 bytes, apart there.
    orrMemcpyNDParams rows = rows_between(at(memory_[0], 0x10000), memory_[1], 64, 100);
    rows.dst_stride[0] = 96;
    ASSERT_OK(orrGraphAddMemcpyNDNode(&box, graph_, &sum, 1, &rows));
    instantiate();
    EXPECT_EQ(info().by_host, 2u);
    ASSERT_OK(orrGraphLaunch(exec_, stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    std::vector<std::uint64_t> back(numbers.size());
    ASSERT_OK(orrMemcpy(back.data(), memory_[1], bytes, orrMemcpyDefault));
    for (std::size_t i = 0; i < back.size(); ++i)
        ASSERT_EQ(back[i], 2 * numbers[i]);
    const auto there = read(at(memory_[0], 0x10000), std::size_t{96} * 100);
    for (std::size_t row = 0; row < 100; ++row)
        ASSERT_EQ(std::memcmp(there.data() + 96 * row, back.data() + 8 * row, 64), 0) << row;
}

// Captured from streams of both cards, which one event joins and another joins back.
TEST_F(StagedGraph, ACapturedOneHasTheSame) {
    orrEvent_t event = nullptr, joined = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrEventCreate(&joined, 0));
    orrGraph_t captured = nullptr;
    ASSERT_OK(orrStreamBeginCapture(stream_[0], 0));
    ASSERT_OK(orrMemsetAsync(memory_[0], 7, 4096, stream_[0]));
    ASSERT_OK(orrMemcpyAsync(memory_[1], memory_[0], 4096, orrMemcpyDefault, stream_[0]));
    ASSERT_OK(orrEventRecord(event, stream_[0]));
    ASSERT_OK(orrStreamWaitEvent(stream_[1], event, 0));
    ASSERT_OK(orrMemsetAsync(memory_[1], 8, 100, stream_[1]));
    ASSERT_OK(orrMemcpyAsync(at(memory_[0], 4096), memory_[1], 4096, orrMemcpyDefault, stream_[1]));
    ASSERT_OK(orrEventRecord(joined, stream_[1]));
    ASSERT_OK(orrStreamWaitEvent(stream_[0], joined, 0));
    ASSERT_OK(orrStreamEndCapture(&captured, stream_[0]));
    ASSERT_OK(orrGraphInstantiate(&exec_, captured, 0));
    EXPECT_EQ(info().by_host, 2u);
    for (int round = 0; round < 3; ++round) {
        ASSERT_OK(orrMemset(memory_[0], 0, 8192));
        ASSERT_OK(orrGraphLaunch(exec_, stream_[0]));
        ASSERT_OK(orrStreamSynchronize(stream_[0]));
        EXPECT_TRUE(all(at(memory_[0], 4096), 100, 8));
        EXPECT_TRUE(all(at(memory_[0], 4096 + 100), 3996, 7));
    }
    ASSERT_OK(orrGraphDestroy(captured));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrEventDestroy(joined));
}

// Without a copy between them: each reads what the one before it has written to memory of the host.
TEST_F(StagedGraph, OrderAlone) {
    void* pinned = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, 4096, 0));
    const orrGraphNode_t first = copy(pinned, memory_[0], 4096);
    const orrGraphNode_t second = copy(memory_[1], pinned, 4096, {first});
    orrGraphNode_t host = nullptr;
    ASSERT_OK(orrGraphAddHostNode(
        &host, graph_, &second, 1, [](void* user) { std::memset(user, 5, 4096); }, pinned));
    copy(at(memory_[0], 4096), pinned, 4096, {host});
    instantiate();
    EXPECT_EQ(info().by_host, 0u);
    EXPECT_EQ(info().edges, 3u);
    for (int round = 1; round <= 6; ++round) {
        std::memset(pinned, 0, 4096);
        ASSERT_OK(orrMemset(memory_[0], 10 + round, 4096));
        ASSERT_OK(orrGraphLaunch(exec_, stream_[round % 2]));
        ASSERT_OK(orrStreamSynchronize(stream_[round % 2]));
        EXPECT_TRUE(all(memory_[1], 4096, 10 + round));
        EXPECT_TRUE(all(at(memory_[0], 4096), 4096, 5));
    }
    ASSERT_OK(orrFreeHost(pinned));
}

// Whoever frees memory waits for copies that no card knows of yet.
TEST_F(StagedGraph, MemoryIsFreedBehindCopiesToCome) {
    std::atomic<bool> go{false}, freed{false};
    orrGraphNode_t host = nullptr;
    ASSERT_OK(orrGraphAddHostNode(
        &host, graph_, nullptr, 0,
        [](void* user) {
            while (!static_cast<std::atomic<bool>*>(user)->load())
                std::this_thread::yield();
        },
        &go));
    void* const there = malloc_on(2, 4096);
    copy(there, memory_[0], 4096, {host});
    instantiate();
    ASSERT_OK(orrGraphLaunch(exec_, stream_[0]));
    std::thread other([&] {
        EXPECT_OK(orrFree(there));
        freed = true;
    });
    for (int i = 0; i < 200; ++i)
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(freed);
    go = true;
    other.join();
    EXPECT_OK(orrStreamSynchronize(stream_[0]));
}

TEST_F(StagedGraph, MemoryThatIsGoneIsNamed) {
    void* const there = malloc_on(2, 4096);
    copy(there, memory_[0], 4096);
    ASSERT_OK(orrFree(there));
    EXPECT_FAIL(orrGraphInstantiate(&exec_, graph_, 0), orrErrorInvalidValue,
                "memory of a copy in the graph is gone");
}

// The way is that of the moment at which the graph is instantiated.
TEST(StagedGraphPeer, AnInstanceTakesTheWayOfItsMoment) {
    FakeSystem system(2);
    void *here = malloc_on(0, 4096), *there = malloc_on(1, 4096);
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    const orrStream_t stream = stream_on(0);
    orrGraph_t graph = nullptr;
    orrGraphNode_t node = nullptr;
    ASSERT_OK(orrGraphCreate(&graph, 0));
    ASSERT_OK(orrGraphAddMemcpyNode(&node, graph, nullptr, 0, there, here, 4096, orrMemcpyDefault));
    for (const int round : {1, 2, 3}) {
        if (round == 2) system.card(0).cut_link();
        if (round == 3) system.card(0).mend_link();
        orrPeerWay way = ORR_INIT(orrPeerWay);
        ASSERT_OK(orrDeviceGetPeerWay(&way, 0, 1));
        orrGraphExec_t exec = nullptr;
        ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
        orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
        ASSERT_OK(orrGraphExecGetInfo(&info, exec));
        EXPECT_EQ(info.by_host, round == 2 ? 1u : 0u);
        EXPECT_EQ(way.kind, round == 2 ? orrPeerWayHost : orrPeerWayLink);
        ASSERT_OK(orrMemset(here, round, 4096));
        ASSERT_OK(orrGraphLaunch(exec, stream));
        ASSERT_OK(orrStreamSynchronize(stream));
        std::uint8_t last = 0;
        ASSERT_OK(orrMemcpy(&last, at(there, 4095), 1, orrMemcpyDefault));
        EXPECT_EQ(last, round);
        ASSERT_OK(orrGraphExecDestroy(exec));
    }
    ASSERT_OK(orrGraphDestroy(graph));
    ASSERT_OK(orrStreamDestroy(stream));
    for (void* memory : {here, there})
        ASSERT_OK(orrFree(memory));
}

}  // namespace
}  // namespace orrery::umd::test
