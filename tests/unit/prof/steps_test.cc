// What graphs, task graphs and groups do within one call.
#include <orrery/graph.h>
#include <orrery/group.h>
#include <orrery/prof.h>
#include <orrery/prof_calls.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/prof/subscription.h"
#include "tests/unit/scheduler/task_fixture.h"
#include "umd/prof/profiler.h"

namespace orrery::umd::test {
namespace {

struct Told {
    std::string name;
    orrProfRecord record;
    orrProfStep step;
};

class StepsHeard {
  public:
    explicit StepsHeard(std::uint64_t want = orrProfWantCalls | orrProfWantWork | orrProfWantSteps)
        : subscription_(want, &told, this) {}

    // All there are now.
    std::vector<Told> steps() {
        EXPECT_OK(orrProfFlush());
        const std::lock_guard lock(mutex_);
        return steps_;
    }
    // Correlation ids of a call, in their order.
    std::vector<std::uint64_t> calls(std::uint32_t call) {
        const std::lock_guard lock(mutex_);
        return calls_[call];
    }
    // The begin and end of all packets of a stream in [first, end).
    std::pair<std::uint64_t, std::uint64_t> work(const orrProfStep& step) {
        const std::lock_guard lock(mutex_);
        std::pair<std::uint64_t, std::uint64_t> time{~std::uint64_t{0}, 0};
        for (const orrProfWork& work : work_) {
            if (work.stream != step.stream || work.index < step.first_index || work.index >= step.end_index)
                continue;
            time = {std::min(time.first, work.begin_ps), std::max(time.second, work.end_ps)};
        }
        return time;
    }

  private:
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<StepsHeard*>(user);
        const std::lock_guard lock(self.mutex_);
        if (record->kind == orrProfEnter) self.calls_[record->call].push_back(record->correlation);
        if (record->kind == orrProfWorkDone)
            self.work_.push_back(*static_cast<const orrProfWork*>(record->params));
        if (record->kind == orrProfStepDone)
            self.steps_.push_back({record->name, *record, *static_cast<const orrProfStep*>(record->params)});
    }
    std::mutex mutex_;
    std::vector<Told> steps_;
    std::vector<orrProfWork> work_;
    std::map<std::uint32_t, std::vector<std::uint64_t>> calls_;
    Subscription subscription_;
};

class GraphSteps : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrGraphCreate(&graph_, 0));
        ASSERT_OK(orrMalloc(&memory_, 4096));
    }
    void TearDown() override {
        ASSERT_OK(orrGraphDestroy(graph_));
        ASSERT_OK(orrStreamDestroy(stream_));
    }
    orrGraphNode_t fill(std::vector<orrGraphNode_t> after = {}) {
        orrGraphNode_t node = nullptr;
        EXPECT_OK(orrGraphAddMemsetNode(&node, graph_, after.data(), after.size(), memory_, 1, 64));
        return node;
    }
    orrGraphNode_t copy(std::vector<orrGraphNode_t> after = {}) {
        orrGraphNode_t node = nullptr;
        EXPECT_OK(orrGraphAddMemcpyNode(&node, graph_, after.data(), after.size(),
                                        static_cast<char*>(memory_) + 2048, memory_, 64, orrMemcpyDefault));
        return node;
    }
    orrGraphNode_t host(std::vector<orrGraphNode_t> after = {}) {
        orrGraphNode_t node = nullptr;
        EXPECT_OK(orrGraphAddHostNode(&node, graph_, after.data(), after.size(), [](void*) {}, nullptr));
        return node;
    }
    void launch(int times) {
        ASSERT_OK(orrGraphInstantiate(&exec_, graph_, 0));
        for (int i = 0; i < times; ++i)
            ASSERT_OK(orrGraphLaunch(exec_, stream_));
        ASSERT_OK(orrStreamSynchronize(stream_));
    }

    FakeSystem system_;
    orrStream_t stream_ = nullptr;
    orrGraph_t graph_ = nullptr;
    orrGraphExec_t exec_ = nullptr;
    void* memory_ = nullptr;
};

TEST_F(GraphSteps, AreItsNodesWithTheirLaunch) {
    StepsHeard heard;
    const auto first = fill();
    const auto middle = host({first});
    copy({middle});
    orrGraphNode_t none = nullptr;
    ASSERT_OK(orrGraphAddEmptyNode(&none, graph_, &middle, 1));
    launch(2);
    auto steps = heard.steps();
    const auto launches = heard.calls(orrProfCall_orrGraphLaunch);
    ASSERT_EQ(launches.size(), 2u);
    ASSERT_EQ(steps.size(), 6u) << "the empty node is none";
    std::ranges::sort(steps, {}, [](const Told& one) { return std::tuple(one.step.round, one.step.number); });
    const auto check = [&](std::size_t i, const char* name, orrProfStepKind kind) {
        const auto& [told, record, step] = steps[i];
        EXPECT_EQ(told, name);
        EXPECT_EQ(step.kind, static_cast<std::uint32_t>(kind)) << i;
        EXPECT_EQ(step.of, static_cast<std::uint32_t>(orrProfOwnerGraph));
        EXPECT_EQ(step.owner, steps[0].step.owner);
        EXPECT_EQ(step.round, i / 3 + 1);
        EXPECT_EQ(step.number, i % 3);
        EXPECT_EQ(record.correlation, launches[i / 3]);
        EXPECT_EQ(record.thread, prof_thread());
        if (kind == orrProfStepHost) {
            EXPECT_EQ(step.device, -1);
            EXPECT_GT(step.begin_ns, 0u);
            EXPECT_GE(step.end_ns, step.begin_ns);
            EXPECT_EQ(step.end_ps, 0u);
            return;
        }
        EXPECT_EQ(step.device, 0);
        EXPECT_EQ(step.end_index, step.first_index + 1);
        EXPECT_GT(step.end_ps, step.begin_ps);
        EXPECT_EQ(std::pair(step.begin_ps, step.end_ps), heard.work(step));
        EXPECT_EQ(step.begin_ns, 0u);
    };
    for (const std::size_t i : {std::size_t{0}, std::size_t{3}}) {
        check(i, "fill", orrProfStepFill);
        check(i + 1, "host node", orrProfStepHost);
        check(i + 2, "copy", orrProfStepCopy);
    }
    EXPECT_NE(steps[0].step.lane, steps[1].step.lane);
    ASSERT_OK(orrGraphExecDestroy(exec_));
}

TEST_F(GraphSteps, OfAReductionAreNoCopies) {
    StepsHeard heard;
    const auto first = copy();
    orrGraphNode_t node = nullptr;
    ASSERT_OK(orrGraphAddReduceNode(&node, graph_, &first, 1, memory_, static_cast<char*>(memory_) + 2048, 16,
                                    orrFloat32, orrReduceSum, 0));
    launch(1);
    const auto steps = heard.steps();
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].name, "copy");
    EXPECT_EQ(steps[0].step.kind, static_cast<std::uint32_t>(orrProfStepCopy));
    EXPECT_EQ(steps[1].name, "reduction");
    EXPECT_EQ(steps[1].step.kind, static_cast<std::uint32_t>(orrProfStepReduction));
    ASSERT_OK(orrGraphExecDestroy(exec_));
}

TEST_F(GraphSteps, OfAChainAreInTheStreamItself) {
    StepsHeard heard;
    ASSERT_OK(orrMemsetAsync(memory_, 0, 64, stream_));
    copy({fill()});
    launch(3);
    ASSERT_OK(orrMemsetAsync(memory_, 0, 64, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    const auto steps = heard.steps();
    ASSERT_EQ(steps.size(), 6u) << "what is in the stream beside the graph is none of its steps";
    for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].step.round, i / 2 + 1);
        EXPECT_EQ(steps[i].step.number, i % 2);
        EXPECT_EQ(steps[i].step.first_index, i + 1);
        EXPECT_EQ(std::pair(steps[i].step.begin_ps, steps[i].step.end_ps), heard.work(steps[i].step));
    }
    ASSERT_OK(orrGraphExecDestroy(exec_));
}

TEST_F(GraphSteps, AreNotToldToWhoDoesNotWantThem) {
    StepsHeard others(orrProfWantCalls | orrProfWantWork | orrProfWantRanges);
    StepsHeard host_only(orrProfWantSteps);
    others.steps();
    host({fill()});
    launch(1);
    EXPECT_TRUE(others.steps().empty());
    ASSERT_OK(orrGraphExecDestroy(exec_));
    // The other subscription has work told, so its cards' steps are as well.
    EXPECT_EQ(host_only.steps().size(), 2u);
}

// Who subscribed meanwhile has not seen the call that they are of.
TEST_F(GraphSteps, AreNotToldToWhoComesAfterAll) {
    const auto records = [&] {
        FakeCard& card = system_.card(0);
        const std::lock_guard lock(card.mutex());
        return card.work_wanted;
    };
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    {
        const StepsHeard first;
        ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
        copy({fill()});
        ASSERT_OK(orrGraphInstantiate(&exec_, graph_, 0));
        ASSERT_OK(orrGraphLaunch(exec_, stream_));
    }
    while (records())
        std::this_thread::yield();
    StepsHeard second;
    ASSERT_OK(orrMemsetAsync(memory_, 0, 64, stream_));
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_TRUE(second.steps().empty());
    ASSERT_OK(orrGraphLaunch(exec_, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(second.steps().size(), 2u);
    ASSERT_OK(orrGraphExecDestroy(exec_));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
}

// What a stream had done when a callback ends it is told later, like its work.
TEST_F(GraphSteps, OfAStreamThatACallbackDestroysAreTold) {
    StepsHeard heard;
    struct Ender {
        orrStream_t stream = nullptr;
        static void told(void* user, const orrProfRecord* record) {
            auto& self = *static_cast<Ender*>(user);
            if (record->kind != orrProfEnter || record->call != orrProfCall_orrGetDevice) return;
            EXPECT_OK(orrStreamDestroy(std::exchange(self.stream, nullptr)));
        }
    } ender;
    orrProfSubscription_t subscription = nullptr;
    ASSERT_OK(orrProfSubscribe(&subscription, &Ender::told, &ender, nullptr));
    ASSERT_OK(orrStreamCreate(&ender.stream, 0));
    copy({fill()});
    ASSERT_OK(orrGraphInstantiate(&exec_, graph_, 0));
    ASSERT_OK(orrGraphLaunch(exec_, ender.stream));
    ASSERT_OK(orrStreamSynchronize(ender.stream));
    int device = 0;
    ASSERT_OK(orrGetDevice(&device));
    EXPECT_EQ(ender.stream, nullptr);
    ASSERT_OK(orrProfUnsubscribe(subscription));
    const auto steps = heard.steps();
    ASSERT_EQ(steps.size(), 2u);
    for (const Told& one : steps)
        EXPECT_GT(one.step.end_ps, 0u) << one.name;
    ASSERT_OK(orrGraphExecDestroy(exec_));
}

class TaskSteps : public TaskTest {};

TEST_F(TaskSteps, AreTasksTransfersAndHostTasks) {
    StepsHeard heard;
    const auto x = data(5), z = data(0);
    const auto named = [](const char* name, int device) {
        return [name, device](orrTaskDesc& desc) {
            desc.name = name;
            on_device(desc, device);
        };
    };
    const orrTask_t on0 = add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, named("one", 0));
    const orrTask_t on1 =
        add({0, 0, 0, 1, 0, 0}, {{z, orrTaskAccessWrite, kOut}, {x, orrTaskAccessRead, kA}}, named("two", 1));
    orrTaskDesc desc = ORR_INIT(orrTaskDesc);
    const orrTaskAccess reads{z, orrTaskAccessRead, orrTaskAccessNoArgument, 0, 0};
    desc.name = "look";
    desc.function = [](void*, void* const*, std::size_t) {};
    desc.accesses = &reads;
    desc.access_count = 1;
    orrTask_t host = 0;
    ASSERT_OK(orrTaskSubmit(&host, graph_, &desc));
    ASSERT_OK(orrTaskGraphWait(graph_));
    const auto steps = heard.steps();
    const auto submits = heard.calls(orrProfCall_orrTaskSubmit);
    ASSERT_EQ(submits.size(), 3u);
    const auto check = [&](const char* name, orrProfStepKind kind, orrTask_t task, int device) {
        const auto found = std::ranges::find_if(steps, [&](const Told& one) {
            return one.name == name && one.step.kind == static_cast<std::uint32_t>(kind) &&
                   one.step.number == task && one.step.device == device;
        });
        ASSERT_NE(found, steps.end()) << name << " on " << device;
        EXPECT_EQ(found->record.correlation, submits[task]);
        EXPECT_EQ(found->step.of, static_cast<std::uint32_t>(orrProfOwnerTasks));
        if (device >= 0) {
            EXPECT_GT(found->step.end_ps, 0u);
            EXPECT_EQ(std::pair(found->step.begin_ps, found->step.end_ps), heard.work(found->step));
        } else {
            EXPECT_GE(found->step.end_ns, found->step.begin_ns);
        }
    };
    check("one", orrProfStepKernel, on0, 0);
    check("two", orrProfStepKernel, on1, 1);
    check("two", orrProfStepCopy, on1, 0);
    check("look", orrProfStepHost, host, -1);
}

class GroupSteps : public ::testing::Test {
  protected:
    void SetUp() override {
        const int devices[] = {0, 1};
        ASSERT_OK(orrGroupCreateAll(groups_.data(), 2, devices, 0));
        for (std::size_t rank = 0; rank < 2; ++rank) {
            ASSERT_OK(orrSetDevice(devices[rank]));
            ASSERT_OK(orrStreamCreate(&streams_.at(rank), 0));
        }
    }
    void TearDown() override {
        for (orrGroup_t group : groups_)
            ASSERT_OK(orrGroupDestroy(group));
        for (orrStream_t stream : streams_)
            ASSERT_OK(orrStreamDestroy(stream));
    }
    FakeSystem system_{2};
    std::array<orrGroup_t, 2> groups_{};
    std::array<orrStream_t, 2> streams_{};
};

TEST_F(GroupSteps, AreEachMembersPartInWhatAllDo) {
    StepsHeard heard;
    const auto take_part = [&](std::size_t rank) {
        int all[2] = {}, own = static_cast<int>(rank);
        EXPECT_OK(orrGroupBarrier(groups_.at(rank), ORR_NO_LIMIT));
        EXPECT_OK(orrGroupBroadcast(groups_.at(rank), &own, sizeof own, 0, ORR_NO_LIMIT));
        EXPECT_OK(orrGroupAllGather(groups_.at(rank), all, &own, sizeof own, ORR_NO_LIMIT));
    };
    std::thread other(take_part, 1);
    take_part(0);
    other.join();
    for (std::size_t rank = 0; rank < 2; ++rank) {
        for (int i = 0; i < 2; ++i)
            ASSERT_OK(orrGroupBarrierAsync(groups_.at(rank), streams_.at(rank), nullptr));
    }
    for (orrStream_t stream : streams_)
        ASSERT_OK(orrStreamSynchronize(stream));
    const auto steps = heard.steps();
    ASSERT_EQ(steps.size(), 10u);
    std::map<std::tuple<std::uint64_t, std::uint32_t, bool, std::uint64_t>, const Told*> by;
    for (const Told& one : steps) {
        by[{one.step.number, one.step.kind, one.step.device >= 0, one.step.round}] = &one;
        EXPECT_EQ(one.step.of, static_cast<std::uint32_t>(orrProfOwnerGroup));
        EXPECT_EQ(one.step.owner, steps[0].step.owner);
        EXPECT_EQ(one.step.members, 2u);
        EXPECT_NE(one.record.correlation, 0u);
    }
    EXPECT_EQ(by.size(), 10u);
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
        EXPECT_TRUE(by.contains({rank, orrProfStepBarrier, false, 1})) << rank;
        EXPECT_TRUE(by.contains({rank, orrProfStepBroadcast, false, 2})) << rank;
        EXPECT_TRUE(by.contains({rank, orrProfStepGather, false, 3})) << rank;
        for (std::uint64_t round = 1; round < 3; ++round) {
            const auto found = by.find({rank, orrProfStepBarrier, true, round});
            ASSERT_NE(found, by.end()) << rank;
            const orrProfStep& step = found->second->step;
            EXPECT_EQ(step.device, static_cast<int>(rank));
            EXPECT_GT(step.end_index, step.first_index);
            // Whether it waited is the cards' to say.
            if (step.end_ps != 0) EXPECT_EQ(std::pair(step.begin_ps, step.end_ps), heard.work(step));
        }
    }
    const auto calls = heard.calls(orrProfCall_orrGroupBarrierAsync);
    ASSERT_EQ(calls.size(), 4u);
    EXPECT_EQ((by[{0, orrProfStepBarrier, true, 2}]->record.correlation), calls[1]);
}

}  // namespace
}  // namespace orrery::umd::test
