#include <orrery/graph.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class GraphTest : public ::testing::Test {
  protected:
    explicit GraphTest(int cards = 1) : system_(cards) {
        EXPECT_OK(orrStreamCreate(&stream_, 0));
        EXPECT_OK(orrGraphCreate(&graph_, 0));
    }
    ~GraphTest() override {
        EXPECT_OK(orrGraphDestroy(graph_));
        EXPECT_OK(orrStreamDestroy(stream_));
    }
    static void* pinned(std::size_t bytes) {
        void* memory = nullptr;
        EXPECT_OK(orrMallocHost(&memory, bytes, 0));
        std::memset(memory, 0, bytes);
        return memory;
    }
    static void* on_card(int device, std::size_t bytes) {
        void* memory = nullptr;
        EXPECT_OK(orrSetDevice(device));
        EXPECT_OK(orrMalloc(&memory, bytes));
        return memory;
    }
    orrGraphNode_t memset_node(void* dst, int value, std::size_t bytes,
                               std::vector<orrGraphNode_t> after = {}) {
        orrGraphNode_t node = nullptr;
        EXPECT_OK(orrGraphAddMemsetNode(&node, graph_, after.data(), after.size(), dst, value, bytes));
        return node;
    }
    orrGraphNode_t copy_node(void* dst, const void* src, std::size_t bytes,
                             std::vector<orrGraphNode_t> after = {}) {
        orrGraphNode_t node = nullptr;
        EXPECT_OK(orrGraphAddMemcpyNode(&node, graph_, after.data(), after.size(), dst, src, bytes,
                                        orrMemcpyDefault));
        return node;
    }
    orrGraphExecInfo info(orrGraphExec_t exec) {
        orrGraphExecInfo result = ORR_INIT(orrGraphExecInfo);
        EXPECT_OK(orrGraphExecGetInfo(&result, exec));
        return result;
    }

    FakeSystem system_;
    orrStream_t stream_ = nullptr;
    orrGraph_t graph_ = nullptr;
};

class TwoCardGraph : public GraphTest {
  protected:
    TwoCardGraph() : GraphTest(2) {
        for (int device = 0; device < 2; ++device) {
            EXPECT_OK(orrSetDevice(device));
            EXPECT_OK(orrDeviceEnablePeerAccess(1 - device, 0));
        }
        EXPECT_OK(orrSetDevice(0));
    }
};

TEST_F(GraphTest, ChainGoesStraightIntoTheStreamWithOneDoorbell) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    orrGraphNode_t last = nullptr;
    for (int i = 1; i <= 5; ++i)
        last = memset_node(memory + i, i, 64 - static_cast<std::size_t>(i),
                           last == nullptr ? std::vector<orrGraphNode_t>{} : std::vector{last});
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    for (int i = 0; i < 3; ++i) {
        std::memset(memory, 0, 64);
        ASSERT_OK(orrGraphLaunch(exec, stream_));
        ASSERT_OK(orrStreamSynchronize(stream_));
        for (int k = 1; k <= 5; ++k)
            EXPECT_EQ(memory[k], k);
        EXPECT_EQ(memory[63], 5);
    }
    const auto told = info(exec);
    EXPECT_EQ(told.queues, 1u);
    EXPECT_EQ(told.waits, 0u);
    EXPECT_EQ(told.packets, 5u);
    EXPECT_EQ(told.doorbells, 3u);
    ASSERT_OK(orrGraphExecDestroy(exec));
    EXPECT_FAIL(orrGraphLaunch(exec, stream_), orrErrorInvalidHandle, "not a live");
    ASSERT_OK(orrFreeHost(memory));
}

TEST_F(GraphTest, BranchesJoinAgainAndDoorbellsAreOneAQueue) {
    auto* memory = static_cast<std::uint8_t*>(pinned(4096));
    const auto root = memset_node(memory, 1, 1024);
    std::vector<orrGraphNode_t> branches;
    for (int i = 1; i < 4; ++i)
        branches.push_back(copy_node(memory + 1024 * i, memory, 1024, {root}));
    orrGraphNode_t join = nullptr;
    ASSERT_OK(orrGraphAddEmptyNode(&join, graph_, branches.data(), branches.size()));
    memset_node(memory, 9, 4096, {join});
    auto* result = static_cast<std::uint8_t*>(pinned(4096));
    // Behind a branch, independent of the join.
    copy_node(result, memory + 1024, 1024, {branches[0]});
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    constexpr int kLaunches = 50;
    for (int i = 0; i < kLaunches; ++i)
        ASSERT_OK(orrGraphLaunch(exec, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(memory[4095], 9);
    const auto told = info(exec);
    EXPECT_EQ(told.queues, 3u) << "the second result goes behind its branch, where no wait is needed";
    EXPECT_EQ(told.launches, static_cast<std::uint64_t>(kLaunches));
    EXPECT_EQ(told.doorbells, kLaunches * (told.queues + 1ull)) << "one a queue, one for the stream";
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrFreeHost(memory));
    ASSERT_OK(orrFreeHost(result));
}

TEST_F(GraphTest, RandomGraphsRunInOrder) {
    // Each node copies a counter's neighbour: order errors leave a wrong word.
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
        std::mt19937 random(seed);
        constexpr std::size_t kNodes = 60;
        auto* words = static_cast<std::uint8_t*>(pinned(8 * (kNodes + 1) * 4));
        orrGraph_t graph = nullptr;
        ASSERT_OK(orrGraphCreate(&graph, 0));
        std::vector<orrGraphNode_t> nodes(kNodes);
        std::vector<std::vector<std::size_t>> sources(kNodes);
        for (std::size_t i = 0; i < kNodes; ++i) {
            std::vector<orrGraphNode_t> after;
            for (std::size_t e = 0; i != 0 && e < random() % 3; ++e) {
                sources[i].push_back(random() % i);
                after.push_back(nodes[sources[i].back()]);
            }
            // Word i becomes that of its first source, or its own number.
            void* dst = words + 8 * i;
            if (sources[i].empty()) {
                ASSERT_OK(
                    orrGraphAddMemsetNode(&nodes[i], graph, nullptr, 0, dst, static_cast<int>(i + 1), 8));
            } else {
                ASSERT_OK(orrGraphAddMemcpyNode(&nodes[i], graph, after.data(), after.size(), dst,
                                                words + 8 * sources[i][0], 8, orrMemcpyDefault));
            }
        }
        orrGraphExec_t exec = nullptr;
        ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
        ASSERT_OK(orrGraphDestroy(graph));
        for (int round = 0; round < 4; ++round) {
            std::memset(words, 0, 8 * kNodes);
            ASSERT_OK(orrGraphLaunch(exec, stream_));
            ASSERT_OK(orrStreamSynchronize(stream_));
            for (std::size_t i = 0; i < kNodes; ++i) {
                std::size_t origin = i;
                while (!sources[origin].empty())
                    origin = sources[origin][0];
                ASSERT_EQ(words[8 * i], origin + 1) << "seed " << seed << " node " << i;
            }
        }
        ASSERT_OK(orrGraphExecDestroy(exec));
        ASSERT_OK(orrFreeHost(words));
    }
}

TEST_F(TwoCardGraph, CrossesTheLinkBothWays) {
    constexpr std::size_t kSize = 64 << 10;
    void* a = on_card(0, kSize);
    void* b = on_card(1, kSize);
    auto* out = static_cast<std::uint8_t*>(pinned(kSize));
    const auto fill = memset_node(a, 0x5a, kSize);
    const auto over = copy_node(b, a, kSize, {fill});
    const auto more = memset_node(b, 0x77, kSize / 2, {over});
    const auto back = copy_node(a, b, kSize, {more});
    copy_node(out, a, kSize, {back});
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    ASSERT_OK(orrSetDevice(1));
    orrStream_t other = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    for (int round = 0; round < 6; ++round) {
        std::memset(out, 0, kSize);
        orrStream_t stream = round % 2 == 0 ? stream_ : other;  // launches stay in order across streams
        ASSERT_OK(orrGraphLaunch(exec, stream));
        ASSERT_OK(orrStreamSynchronize(stream));
        EXPECT_EQ(out[0], 0x77);
        EXPECT_EQ(out[kSize - 1], 0x5a);
    }
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrStreamDestroy(other));
    ASSERT_OK(orrFree(a));
    ASSERT_OK(orrFree(b));
    ASSERT_OK(orrFreeHost(out));
}

struct Log {
    std::mutex mutex;
    std::vector<int> order;
};
struct HostCall {
    Log* log;
    int number;
    static void call(void* self) {
        auto* c = static_cast<HostCall*>(self);
        const std::lock_guard lock(c->log->mutex);
        c->log->order.push_back(c->number);
    }
};

TEST_F(TwoCardGraph, HostNodesRunBetweenCards) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    Log log;
    HostCall calls[3] = {{&log, 0}, {&log, 1}, {&log, 2}};
    struct Check {
        std::uint8_t* memory;
        int seen;
        static void call(void* self) {
            auto* c = static_cast<Check*>(self);
            c->seen = c->memory[0];
            c->memory[1] = 42;
        }
    } check{memory, -1};
    orrGraphNode_t first = nullptr, middle = nullptr, last = nullptr;
    ASSERT_OK(orrGraphAddHostNode(&first, graph_, nullptr, 0, HostCall::call, &calls[0]));
    const auto fill = memset_node(memory, 7, 1, {first});
    ASSERT_OK(orrGraphAddHostNode(&middle, graph_, &fill, 1, Check::call, &check));
    const auto copy = copy_node(memory + 8, memory, 8, {middle});
    orrGraphNode_t both[] = {copy, first};
    ASSERT_OK(orrGraphAddHostNode(&last, graph_, both, 2, HostCall::call, &calls[1]));
    ASSERT_OK(orrGraphAddHostNode(nullptr, graph_, &last, 1, HostCall::call, &calls[2]));
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    for (int round = 0; round < 5; ++round) {
        ASSERT_OK(orrGraphLaunch(exec, stream_));
        ASSERT_OK(orrStreamSynchronize(stream_));
        EXPECT_EQ(check.seen, 7);
        EXPECT_EQ(memory[8], 7);
        EXPECT_EQ(memory[9], 42);
        const std::lock_guard lock(log.mutex);
        EXPECT_EQ(log.order, (std::vector{0, 1, 2}));
        log.order.clear();
    }
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrFreeHost(memory));
}

TEST_F(GraphTest, ChildGraphsAndEvents) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    memset_node(memory, 3, 8);
    orrGraph_t parent = nullptr;
    ASSERT_OK(orrGraphCreate(&parent, 0));
    orrGraphNode_t child = nullptr, again = nullptr, record = nullptr;
    ASSERT_OK(orrGraphAddChildGraphNode(&child, parent, nullptr, 0, graph_));
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrGraphAddEventRecordNode(&record, parent, &child, 1, event));
    orrGraphNode_t copy = nullptr;
    ASSERT_OK(orrGraphAddMemcpyNode(&copy, parent, &record, 1, memory + 8, memory, 8, orrMemcpyDefault));
    ASSERT_OK(orrGraphAddChildGraphNode(&again, parent, &copy, 1, parent));
    std::size_t count = 0;
    ASSERT_OK(orrGraphGetNodeCount(&count, parent));
    EXPECT_EQ(count, 9u);
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, parent, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream_));
    ASSERT_OK(orrEventSynchronize(event));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(memory[8], 3);
    std::uint64_t ps = 0;
    ASSERT_OK(orrEventGetModelTime(&ps, event));
    EXPECT_GT(ps, 0u);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(parent));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrFreeHost(memory));
}

TEST_F(GraphTest, Mistakes) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    const auto a = memset_node(memory, 1, 8);
    const auto b = memset_node(memory, 2, 8, {a});
    std::uint8_t ordinary[8];
    EXPECT_FAIL(orrGraphAddMemcpyNode(nullptr, graph_, nullptr, 0, memory, ordinary, 8, orrMemcpyDefault),
                orrErrorInvalidValue, "orrMallocHost");
    EXPECT_FAIL(orrGraphAddHostNode(nullptr, graph_, nullptr, 0, nullptr, nullptr), orrErrorInvalidValue,
                "null");
    orrGraph_t other = nullptr;
    ASSERT_OK(orrGraphCreate(&other, 0));
    EXPECT_FAIL(orrGraphAddEmptyNode(nullptr, other, &a, 1), orrErrorInvalidHandle,
                "not a node of this graph");
    ASSERT_OK(orrGraphDestroy(other));
    EXPECT_FAIL(orrGraphAddEmptyNode(nullptr, other, nullptr, 0), orrErrorInvalidHandle, "not a live graph");
    EXPECT_FAIL(orrGraphAddDependencies(graph_, &a, &a, 1), orrErrorInvalidValue, "itself");
    ASSERT_OK(orrGraphAddDependencies(graph_, &b, &a, 1));
    orrGraphExec_t exec = nullptr;
    EXPECT_FAIL(orrGraphInstantiate(&exec, graph_, 0), orrErrorInvalidValue, "cycle");
    ASSERT_OK(orrFreeHost(memory));
}

TEST_F(GraphTest, FailureEndsTheLaunchAndTheGraph) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    void* gone = on_card(0, 2 << 20);
    const auto bad = memset_node(gone, 1, 8);
    const auto good = memset_node(memory, 5, 8);
    memset_node(memory + 8, 6, 8, {bad, good});
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().mappings.erase(reinterpret_cast<std::uintptr_t>(gone));
    }
    ASSERT_OK(orrGraphLaunch(exec, stream_));
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorIllegalAddress, "a memset accessed");
    EXPECT_EQ(memory[8], 0) << "the dependent ran";
    EXPECT_FAIL(orrGraphLaunch(exec, stream_), orrErrorIllegalAddress, "Instantiate it anew");
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrStreamDestroy(stream_));
    ASSERT_OK(orrStreamCreate(&stream_, 0));
    ASSERT_OK(orrMemset(memory, 1, 8)) << "the card goes on";
    ASSERT_OK(orrFree(gone));
    ASSERT_OK(orrFreeHost(memory));
}

TEST_F(GraphTest, OutlivesTheStreamOfItsLastLaunch) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    memset_node(memory, 1, 8);
    memset_node(memory + 8, 2, 8);
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    orrStream_t once = nullptr;
    ASSERT_OK(orrStreamCreate(&once, 0));
    ASSERT_OK(orrGraphLaunch(exec, once));
    ASSERT_OK(orrStreamSynchronize(once));
    ASSERT_OK(orrStreamDestroy(once));
    std::memset(memory, 0, 16);
    EXPECT_OK(orrGraphLaunch(exec, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(memory[8], 2);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrFreeHost(memory));
}

// Two parallel nodes on two lanes, launched into a stream that fails before the launch's packets.
TEST_F(GraphTest, StoppedStreamHangsNobody) {
    for (const bool known : {false, true}) {
        auto* memory = static_cast<std::uint8_t*>(pinned(64));
        void* gone = on_card(0, 2 << 20);
        memset_node(memory, 1, 8);
        memset_node(memory + 8, 2, 8);
        orrGraphExec_t exec = nullptr;
        ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
        {
            const std::lock_guard lock(system_.card().mutex());
            system_.card().mappings.erase(reinterpret_cast<std::uintptr_t>(gone));
        }
        if (!known) system_.card().pause(true);
        ASSERT_OK(orrMemsetAsync(gone, 0, 8, stream_));
        if (known) EXPECT_EQ(orrStreamSynchronize(stream_), orrErrorIllegalAddress);
        (void)orrGraphLaunch(exec, stream_);
        system_.card().pause(false);
        EXPECT_EQ(orrStreamSynchronize(stream_), orrErrorIllegalAddress);
        EXPECT_OK(orrGraphExecDestroy(exec));
        EXPECT_EQ(memory[8], 0) << "a lane ran";
        ASSERT_OK(orrStreamDestroy(stream_));
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        EXPECT_OK(orrDeviceSynchronize());
        ASSERT_OK(orrFree(gone));
        ASSERT_OK(orrFreeHost(memory));
        ASSERT_OK(orrGraphDestroy(graph_));
        ASSERT_OK(orrGraphCreate(&graph_, 0));
    }
}

// A host node that never runs, because what it waits for failed, is not waited for.
TEST_F(GraphTest, HostNodeBehindAFailureHoldsNobodyUp) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    void* gone = on_card(0, 2 << 20);
    bool ran = false;
    const auto bad = memset_node(gone, 1, 8);
    orrGraphNode_t host = nullptr;
    ASSERT_OK(orrGraphAddHostNode(
        &host, graph_, &bad, 1, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran));
    memset_node(memory, 7, 8, {host});
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().mappings.erase(reinterpret_cast<std::uintptr_t>(gone));
    }
    ASSERT_OK(orrGraphLaunch(exec, stream_));
    EXPECT_EQ(orrStreamSynchronize(stream_), orrErrorIllegalAddress);
    EXPECT_FALSE(ran);
    EXPECT_EQ(memory[0], 0);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrFree(gone));
    ASSERT_OK(orrFreeHost(memory));
}

// The lanes of a launch go on when the stream that it was launched into is aborted: the next launch waits.
TEST_F(GraphTest, LaunchesDoNotOverlapBehindAnAbort) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    orrStream_t first = nullptr, other = nullptr;
    orrSemaphore_t gate = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&first, 0));
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrStreamWaitSemaphore(other, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(event, other));
    memset_node(memory, 1, 8);
    orrGraphNode_t held = nullptr;
    ASSERT_OK(orrGraphAddEventWaitNode(&held, graph_, nullptr, 0, event));
    memset_node(memory + 8, 2, 8, {held});
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    const auto word = [&] {
        const std::lock_guard lock(system_.card().mutex());  // the card writes it
        return *memory;
    };
    ASSERT_OK(orrGraphLaunch(exec, first));
    while (word() == 0)
        std::this_thread::yield();
    ASSERT_OK(orrStreamAbort(first));
    {
        const std::lock_guard lock(system_.card().mutex());
        *memory = 0;
    }
    ASSERT_OK(orrGraphLaunch(exec, stream_));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(word(), 0) << "the second launch runs beside the first";
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(word(), 1);
    EXPECT_EQ(memory[8], 2);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(first));
    ASSERT_OK(orrStreamDestroy(other));
    ASSERT_OK(orrSemaphoreDestroy(gate));
    ASSERT_OK(orrFreeHost(memory));
}

// The firmware crashes while it works for the queue through which a host node signals.
TEST_F(GraphTest, HostNodeSignalsThoughItsQueueHadCrashed) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));  // makes it
    const auto before = memset_node(memory, 1, 8);
    orrGraphNode_t host = nullptr;
    ASSERT_OK(orrGraphAddHostNode(
        &host, graph_, &before, 1,
        [](void* card) { static_cast<FakeCard*>(card)->crash("signals from the host"); }, &system_.card()));
    memset_node(memory + 8, 7, 8, {host});
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream_));
    EXPECT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(memory[8], 7);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrFreeHost(memory));
}

// Who waits for room in the ring of signals from the host holds its lock, and so must look after nobody else.
TEST_F(TwoCardGraph, FullRingOfHostSignalsHoldsNobodyUp) {
    struct Mishap {
        FakeSystem& system;
        std::atomic<bool> happened{false}, over{false};
    } mishap{system_};
    auto* memory = static_cast<std::uint8_t*>(pinned(1024));
    orrStream_t source = nullptr, waiter = nullptr;
    orrSemaphore_t promised = nullptr, never = nullptr;
    ASSERT_OK(orrStreamCreate(&waiter, 0));
    ASSERT_OK(orrSemaphoreCreate(&promised, 0));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrStreamCreate(&source, 0));
    ASSERT_OK(orrSemaphoreCreate(&never, 0));
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrStreamWaitSemaphore(source, never, 1, nullptr));
    ASSERT_OK(orrStreamSignalSemaphore(source, promised, 1));
    ASSERT_OK(orrStreamWaitSemaphore(waiter, promised, 1, nullptr));
    for (int i = 0; i < 100; ++i) {
        orrGraphNode_t host = nullptr;
        ASSERT_OK(orrGraphAddHostNode(
            &host, graph_, nullptr, 0,
            [](void* data) {
                auto& what = *static_cast<Mishap*>(data);
                if (what.happened.exchange(true)) return;
                what.system.card(0).pause(true);
                what.system.card(1).lose();
                what.over.store(true);
            },
            &mishap));
        memset_node(memory + 8 * i, 1, 8, {host});
    }
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream_));
    while (!mishap.over.load())
        std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    system_.card(0).pause(false);
    EXPECT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(memory[8 * 99], 1);
    EXPECT_EQ(orrStreamSynchronize(waiter), orrErrorDeviceLost);
    ASSERT_OK(orrGraphExecDestroy(exec));
    for (orrStream_t stream : {source, waiter})
        EXPECT_OK(orrStreamDestroy(stream));
    for (orrSemaphore_t semaphore : {promised, never})
        EXPECT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrFreeHost(memory));
}

// A launch that finds no room, because the stream stands in a deadlock, leaves the graph as it was.
TEST_F(GraphTest, DeadlockDoesNotBreakIt) {
    auto* memory = static_cast<std::uint8_t*>(pinned(64));
    memset_node(memory, 1, 8);
    memset_node(memory + 8, 2, 8);
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph_, 0));
    system_.card().pause(true);
    for (int i = 0; i < 1024; ++i)
        ASSERT_OK(orrMemsetAsync(memory + 16, 3, 8, stream_));
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().deadlock.resize(1);
    }
    EXPECT_EQ(orrGraphLaunch(exec, stream_), orrErrorDeadlock);
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().deadlock.clear();
    }
    system_.card().pause(false);
    EXPECT_OK(orrGraphLaunch(exec, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(memory[8], 2);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrFreeHost(memory));
}

}  // namespace
}  // namespace orrery::umd::test
