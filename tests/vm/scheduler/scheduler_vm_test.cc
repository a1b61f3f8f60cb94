// Graphs and task graphs on real cards in a VM. Times are model time of a card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/graph.h>
#include <orrery/task.h>
#include <orrery/embedded_kernel.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "tests/vm/scheduler/kernels.h"

ORR_EMBEDDED_KERNEL(scheduler_test_kernels);

#define ASSERT_OK(call) ASSERT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_OK(call) EXPECT_EQ((call), orrSuccess) << orrGetLastErrorText()

namespace {

constexpr std::uint64_t kRounds = 100'000;
constexpr std::int32_t kOut = offsetof(WorkArgs, out), kIn = offsetof(WorkArgs, in);

int devices() {
    int count = 0;
    EXPECT_OK(orrGetDeviceCount(&count));
    return count;
}

class OneCardGraph : public ::testing::Test {
  protected:
    OneCardGraph() {
        EXPECT_OK(orrSetDevice(0));
        const auto image = scheduler_test_kernels_image();
        EXPECT_OK(orrModuleLoadData(&module_, image.data(), image.size()));
        EXPECT_OK(orrModuleGetFunction(&work_, module_, "work"));
        EXPECT_OK(orrStreamCreate(&stream_, 0));
        EXPECT_OK(orrEventCreate(&start_, 0));
        EXPECT_OK(orrEventCreate(&end_, 0));
        EXPECT_OK(orrSemaphoreCreate(&gate_, 0));
        void* memory = nullptr;
        EXPECT_OK(orrMallocHost(&memory, 4096, 0));
        words_ = static_cast<std::uint64_t*>(memory);
        std::memset(words_, 0, 4096);
    }
    ~OneCardGraph() override {
        EXPECT_OK(orrStreamDestroy(stream_));
        EXPECT_OK(orrEventDestroy(start_));
        EXPECT_OK(orrEventDestroy(end_));
        EXPECT_OK(orrSemaphoreDestroy(gate_));
        EXPECT_OK(orrModuleUnload(module_));
        EXPECT_OK(orrFreeHost(words_));
    }
    orrGraphNode_t node(orrGraph_t graph, std::uint64_t* out, const std::uint64_t* in,
                        std::vector<orrGraphNode_t> after) {
        const WorkArgs args{out, in, kRounds, 0};
        const orrKernelNodeParams params{sizeof(params), work_,        {1, 1, 1}, {1, 1, 1},
                                         &args,          sizeof(args), 0,         0};
        orrGraphNode_t made = nullptr;
        EXPECT_OK(orrGraphAddKernelNode(&made, graph, after.data(), after.size(), &params));
        return made;
    }
    double run(orrGraphExec_t exec) {
        // All stands on the card before the first node runs: its clock goes on while the host is slow.
        EXPECT_OK(orrStreamWaitSemaphore(stream_, gate_, ++runs_, nullptr));
        EXPECT_OK(orrEventRecord(start_, stream_));
        EXPECT_OK(orrGraphLaunch(exec, stream_));
        EXPECT_OK(orrEventRecord(end_, stream_));
        EXPECT_OK(orrSemaphoreSignal(gate_, runs_));
        EXPECT_OK(orrStreamSynchronize(stream_));
        double ns = 0;
        EXPECT_OK(orrEventElapsedModelTime(&ns, start_, end_));
        return ns;
    }

    orrModule_t module_ = nullptr;
    orrFunction_t work_ = nullptr;
    orrStream_t stream_ = nullptr;
    orrEvent_t start_ = nullptr, end_ = nullptr;
    orrSemaphore_t gate_ = nullptr;
    std::uint64_t runs_ = 0;
    std::uint64_t* words_ = nullptr;
};

TEST_F(OneCardGraph, IndependentBranchesOverlapInModelTime) {
    orrGraph_t chain = nullptr, wide = nullptr;
    ASSERT_OK(orrGraphCreate(&chain, 0));
    ASSERT_OK(orrGraphCreate(&wide, 0));
    std::vector<orrGraphNode_t> last;
    const auto root = node(wide, words_, nullptr, {});
    std::vector<orrGraphNode_t> branches;
    for (int i = 0; i < 6; ++i)
        last = {node(chain, words_ + 64 + i, nullptr, last)};
    for (int i = 1; i <= 4; ++i)
        branches.push_back(node(wide, words_ + i, words_, {root}));
    node(wide, words_ + 8, words_ + 4, branches);
    orrGraphExec_t chained = nullptr, spread = nullptr;
    ASSERT_OK(orrGraphInstantiate(&chained, chain, 0));
    ASSERT_OK(orrGraphInstantiate(&spread, wide, 0));
    const double serial = run(chained), parallel = run(spread);
    RecordProperty("branches_over_chain", std::to_string(parallel / serial));
    // Six tasks each; four of them side by side on four ports of the card: half the time, and a little for
    // waits.
    EXPECT_LT(parallel, 0.65 * serial) << parallel << " and " << serial << " ns";
    EXPECT_EQ(words_[0], kRounds);
    EXPECT_EQ(words_[4], 2 * kRounds);
    EXPECT_EQ(words_[8], 3 * kRounds);
    for (int i = 0; i < 6; ++i)
        EXPECT_EQ(words_[64 + i], kRounds);
    orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
    ASSERT_OK(orrGraphExecGetInfo(&info, chained));
    EXPECT_EQ(info.queues, 1u);
    EXPECT_EQ(info.waits, 0u);
    EXPECT_EQ(info.doorbells, 1u);
    ASSERT_OK(orrGraphExecGetInfo(&info, spread));
    EXPECT_EQ(info.queues, 4u);
    EXPECT_EQ(info.doorbells, 5u);
    for (int i = 0; i < 20; ++i)
        (void)run(spread);
    EXPECT_EQ(words_[0], 21 * kRounds);
    ASSERT_OK(orrGraphExecDestroy(chained));
    ASSERT_OK(orrGraphExecDestroy(spread));
    ASSERT_OK(orrGraphDestroy(chain));
    ASSERT_OK(orrGraphDestroy(wide));
}

// The task runs on this device only.
void on_device(orrTaskDesc& desc, int device) {
    desc.flags |= orrTaskOnDevice;
    desc.device = device;
}

class Tasks : public ::testing::Test {
  public:
    explicit Tasks(const orrTaskGraphOptions* options = nullptr) {
        EXPECT_OK(orrTaskGraphCreate(&graph_, options));
        const auto image = scheduler_test_kernels_image();
        EXPECT_OK(orrTaskKernelCreate(&work_, graph_, image.data(), image.size(), "work"));
        EXPECT_OK(orrTaskKernelCreate(&merge_, graph_, image.data(), image.size(), "merge"));
    }
    ~Tasks() override { EXPECT_OK(orrTaskGraphDestroy(graph_)); }
    orrTaskData_t data(std::uint64_t value) {
        orrTaskData_t made = nullptr;
        EXPECT_OK(orrTaskDataCreate(&made, graph_, &value, sizeof(value)));
        return made;
    }
    struct Use {
        orrTaskData_t data;
        orrTaskAccessMode mode;
        int offset;  // in the arguments; -1: nowhere
    };
    orrTask_t add(const std::vector<Use>& uses, std::uint64_t rounds = kRounds,
                  const std::function<void(orrTaskDesc&, WorkArgs&)>& more = {}) {
        WorkArgs args{nullptr, nullptr, rounds, 0};
        std::vector<orrTaskAccess> accesses;
        for (const Use& use : uses) {
            accesses.push_back({use.data, use.mode, use.offset < 0 ? orrTaskAccessNoArgument : 0,
                                static_cast<std::uint32_t>(std::max(use.offset, 0)), 0});
        }
        orrTaskDesc desc = ORR_INIT(orrTaskDesc);
        desc.kernel = work_;
        desc.grid = desc.block = {1, 1, 1};
        desc.args = &args;
        desc.bytes = sizeof(args);
        desc.accesses = accesses.data();
        desc.access_count = accesses.size();
        if (more) more(desc, args);
        orrTask_t task = 0;
        EXPECT_OK(orrTaskSubmit(&task, graph_, &desc));
        return task;
    }
    std::uint64_t read(orrTaskData_t from) {
        std::uint64_t value = 0;
        EXPECT_OK(orrTaskDataRead(&value, from, sizeof(value)));
        return value;
    }
    orrTaskInfo info(orrTask_t task) {
        orrTaskInfo told = ORR_INIT(orrTaskInfo);
        EXPECT_OK(orrTaskGetInfo(&told, graph_, task));
        return told;
    }

    orrTaskGraph_t graph_ = nullptr;
    orrTaskKernel_t work_ = nullptr, merge_ = nullptr;
};

TEST_F(Tasks, IndependentChainsUseAllCardsAtOnce) {
    const auto cards = static_cast<std::size_t>(devices());
    std::vector<orrTaskData_t> chains;
    std::vector<orrTask_t> tasks;
    for (std::size_t i = 0; i < cards; ++i)
        chains.push_back(data(i));
    for (int step = 0; step < 12; ++step)
        for (const auto& chain : chains)
            tasks.push_back(add({{chain, orrTaskAccessReadWrite, kOut}}));
    ASSERT_OK(orrTaskGraphWait(graph_));
    std::vector<double> busy(cards);
    double sum = 0, makespan = 0;
    for (const orrTask_t task : tasks) {
        const orrTaskInfo told = info(task);
        ASSERT_EQ(told.state, orrTaskStateDone);
        ASSERT_GE(told.device, 0);
        busy[static_cast<std::size_t>(told.device)] += told.end_ns - told.start_ns;
        sum += told.end_ns - told.start_ns;
        makespan = std::max(makespan, told.end_ns);
    }
    for (const double card : busy)
        EXPECT_GT(card, 0) << "every card has its part";
    if (cards > 1) EXPECT_LT(makespan, 0.75 * sum) << "the cards work at the same time";
    EXPECT_GE(makespan, sum / static_cast<double>(cards) * 0.999);
    for (std::size_t i = 0; i < cards; ++i)
        EXPECT_EQ(read(chains[i]), i + 12 * kRounds);
}

TEST_F(Tasks, PrioritiesAndDeadlinesGoFirst) {
    // One after the other: each has work-groups for the whole card.
    const auto on_first_card = [](orrTaskDesc& desc) {
        on_device(desc, 0);
        desc.grid.x = 64;
    };
    std::vector<orrTask_t> plain;
    for (int i = 0; i < 40; ++i)
        plain.push_back(add({{data(0), orrTaskAccessReadWrite, kOut}}, 1000,
                            [&](orrTaskDesc& desc, WorkArgs&) { on_first_card(desc); }));
    const auto x = data(0), y = data(0);
    add({{x, orrTaskAccessReadWrite, kOut}}, 1000,
        [&](orrTaskDesc& desc, WorkArgs&) { on_first_card(desc); });
    const orrTask_t timed = add({{x, orrTaskAccessReadWrite, kOut}}, 1000, [&](orrTaskDesc& desc, WorkArgs&) {
        on_first_card(desc);
        desc.deadline_ns = 1e6;
    });
    const orrTask_t urgent =
        add({{y, orrTaskAccessReadWrite, kOut}}, 1000, [&](orrTaskDesc& desc, WorkArgs&) {
            on_first_card(desc);
            desc.priority = 1;
        });
    ASSERT_OK(orrTaskGraphWait(graph_));
    EXPECT_LE(info(urgent).end_ns, info(timed).start_ns);
    for (const orrTask_t task : plain)
        EXPECT_LE(info(timed).end_ns, info(task).start_ns) << "also what it needs has gone first";
}

// With a graph of one device, all that the test submits is handed out at once.
class TasksOfOneCard : public Tasks {
  protected:
    TasksOfOneCard() : Tasks(&kFirst) {}

  private:
    static constexpr int kDevice = 0;
    static constexpr std::uint32_t kLimitUs = 1'000'000'000;  // no time of a slow host ends one that waits
    static constexpr orrTaskGraphOptions kFirst{
        sizeof(orrTaskGraphOptions), &kDevice, 1, nullptr, 0, 0, kLimitUs, 0};
};

TEST_F(TasksOfOneCard, SmallKernelsShareItsCores) {
    void* memory = nullptr;
    ASSERT_OK(orrMallocHost(&memory, sizeof(std::atomic<std::uint64_t>), 0));
    auto* const go = new (memory) std::atomic<std::uint64_t>(0);
    orrTaskKernel_t hold = nullptr;
    const auto image = scheduler_test_kernels_image();
    ASSERT_OK(orrTaskKernelCreate(&hold, graph_, image.data(), image.size(), "hold"));
    // All stand on the card before the first of them runs: its clock goes on while the host is slow.
    const orrTask_t gate = add({}, 0, [&](orrTaskDesc& desc, WorkArgs& args) {
        desc.kernel = hold;
        args.in = static_cast<const std::uint64_t*>(memory);
    });
    std::vector<orrTaskData_t> all;
    std::vector<orrTask_t> tasks;
    for (int i = 0; i < 4; ++i)
        all.push_back(data(0));
    for (int step = 0; step < 4; ++step)
        for (const orrTaskData_t datum : all)
            tasks.push_back(
                add({{datum, orrTaskAccessReadWrite, kOut}}, kRounds, [&](orrTaskDesc& desc, WorkArgs&) {
                    desc.after = &gate;
                    desc.after_count = 1;
                }));
    EXPECT_OK(orrTaskGraphStart(graph_));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto issued = [&](orrTask_t task) { return info(task).state == orrTaskStateIssued; };
    while (!std::all_of(tasks.begin(), tasks.end(), issued) && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(std::all_of(tasks.begin(), tasks.end(), issued));
    go->store(1);
    ASSERT_OK(orrTaskGraphWait(graph_));
    double sum = 0, begin = 1e18, end = 0;
    for (const orrTask_t task : tasks) {
        const orrTaskInfo told = info(task);
        sum += told.end_ns - told.start_ns;
        begin = std::min(begin, told.start_ns);
        end = std::max(end, told.end_ns);
    }
    EXPECT_LT(end - begin, 0.3 * sum) << "four at a time";
    for (const orrTaskData_t datum : all)
        EXPECT_EQ(read(datum), 4 * kRounds);
    ASSERT_OK(orrFreeHost(memory));
}

TEST_F(Tasks, DataCrossesCardsInOrder) {
    const int cards = devices();
    const auto x = data(1), y = data(2);
    std::uint64_t a = 1, b = 2;
    for (int i = 0; i < 60; ++i) {
        const bool first = i % 2 == 0;
        add({{first ? x : y, orrTaskAccessReadWrite, kOut}, {first ? y : x, orrTaskAccessRead, kIn}}, 10,
            [&](orrTaskDesc& desc, WorkArgs&) { on_device(desc, i % cards); });
        std::uint64_t& out = first ? a : b;
        out += 10 + (first ? b : a);
    }
    EXPECT_EQ(read(x), a);
    EXPECT_EQ(read(y), b);
}

TEST_F(Tasks, ReductionsAndHostTasks) {
    const auto sum = data(7);
    ASSERT_OK(orrTaskDataSetMerge(sum, merge_, {1, 1, 1}, {1, 1, 1}));
    for (int i = 0; i < 24; ++i)
        add({{sum, orrTaskAccessReduce, kOut}}, 1000);
    static const auto halve = [](void*, void* const* at, std::size_t) {
        *static_cast<std::uint64_t*>(at[0]) /= 2;
    };
    const orrTaskAccess access{sum, orrTaskAccessReadWrite, orrTaskAccessNoArgument, 0, 0};
    orrTaskDesc host = ORR_INIT(orrTaskDesc);
    host.function = +[](void* user, void* const* at, std::size_t count) { halve(user, at, count); };
    host.accesses = &access;
    host.access_count = 1;
    ASSERT_OK(orrTaskSubmit(nullptr, graph_, &host));
    add({{sum, orrTaskAccessReadWrite, kOut}}, 5);
    EXPECT_EQ(read(sum), (7u + 24'000u) / 2 + 5);
}

TEST_F(Tasks, FailureNamesTheFirstCauseAndTheRestGoesOn) {
    const auto x = data(0), y = data(0), z = data(0);
    add({{x, orrTaskAccessReadWrite, kOut}});
    const orrTask_t bad = add({{x, orrTaskAccessReadWrite, kOut}}, 1, [](orrTaskDesc& desc, WorkArgs& args) {
        desc.name = "bad one";
        args.fail = 1;
    });
    const orrTask_t next = add({{y, orrTaskAccessReadWrite, kOut}, {x, orrTaskAccessRead, kIn}});
    const orrTask_t last = add({{y, orrTaskAccessReadWrite, kOut}});
    for (int i = 0; i < 40; ++i)
        add({{z, orrTaskAccessReadWrite, kOut}}, 100);
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("'bad one' failed: kernel 'work' trapped"));
    EXPECT_EQ(orrTaskWait(graph_, last), orrErrorIllegalInstruction);
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("because task 1 'bad one' had failed"));
    EXPECT_EQ(info(next).state, orrTaskStateCancelled);
    EXPECT_EQ(info(last).cause, bad);
    EXPECT_EQ(read(z), 4000u);
}

TEST_F(Tasks, CancelAndGrowth) {
    const auto x = data(0), y = data(0);
    const orrTask_t kept = add({{x, orrTaskAccessReadWrite, kOut}}, 10);
    const orrTask_t dropped = add({{y, orrTaskAccessReadWrite, kOut}, {x, orrTaskAccessRead, kIn}}, 10);
    const orrTask_t behind = add({{y, orrTaskAccessReadWrite, kOut}}, 10);
    ASSERT_OK(orrTaskCancel(graph_, dropped));
    struct Grow {
        Tasks* test;
        orrTaskData_t x;
        std::atomic<int> left;
        static void call(void* self, void* const* at, std::size_t) {
            auto& grow = *static_cast<Grow*>(self);
            *static_cast<std::uint64_t*>(at[0]) += 1;
            if (--grow.left == 0) return;
            grow.test->add({{grow.x, orrTaskAccessReadWrite, kOut}}, 100);
            grow.submit();
        }
        void submit() {
            const orrTaskAccess access{x, orrTaskAccessReadWrite, orrTaskAccessNoArgument, 0, 0};
            orrTaskDesc desc = ORR_INIT(orrTaskDesc);
            desc.function = call;
            desc.user = this;
            desc.accesses = &access;
            desc.access_count = 1;
            EXPECT_OK(orrTaskSubmit(nullptr, test->graph_, &desc));
        }
    } grow{this, x, 20};
    grow.submit();
    ASSERT_OK(orrTaskGraphWait(graph_));
    EXPECT_EQ(info(kept).state, orrTaskStateDone);
    EXPECT_EQ(info(behind).state, orrTaskStateCancelled);
    EXPECT_EQ(info(behind).cause, dropped);
    EXPECT_EQ(read(x), 10u + 19 * 100 + 20);
}

}  // namespace
