// Task graphs through the C API, on cards that live in the test's process.
#include <orrery/task.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

// The fake card's only kernel: out = value + the sum of the inputs, or out += ...
struct Args {
    std::uint64_t out = 0, a = 0, b = 0;
    std::int64_t value = 0;
    std::uint64_t add = 0;  // to what out holds
    std::uint64_t trap = 0;
};
constexpr std::int32_t kOut = offsetof(Args, out), kA = offsetof(Args, a), kB = offsetof(Args, b);

FakeOutcome compute(FakeCard& card, const FakeDispatch& dispatch) {
    std::uint64_t fault = 0;
    const auto word = [&](std::uint64_t va) {
        auto* at = reinterpret_cast<std::int64_t*>(card.translate(va, 8, ORR_BIND_READ, &fault));
        EXPECT_NE(at, nullptr) << "no memory of card " << card.number << " at " << va;
        return at;
    };
    const auto* raw = card.translate(dispatch.args, sizeof(Args), ORR_BIND_READ, &fault);
    if (dispatch.local_bytes == 0 && dispatch.grid[1] == 7) {  // a merge
        const auto args = *reinterpret_cast<const orrTaskMergeArgs*>(raw);
        *word(reinterpret_cast<std::uintptr_t>(args.into)) +=
            *word(reinterpret_cast<std::uintptr_t>(args.part));
        return {};
    }
    const auto args = *reinterpret_cast<const Args*>(raw);
    if (args.trap != 0) return {ORR_QERR_KERNEL_TRAP, dispatch.entry, 3};
    std::int64_t sum = args.value;
    if (args.a != 0) sum += *word(args.a);
    if (args.b != 0) sum += *word(args.b);
    std::int64_t* out = word(args.out);
    *out = args.add != 0 ? *out + sum : sum;
    return {};
}

class TaskTest : public ::testing::Test {
  public:
    explicit TaskTest(int cards = 2) : system_(cards) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(cards); ++i)
            system_.card(i).on_dispatch = compute;
        std::ifstream file(TEST_KERNELS, std::ios::binary);
        image_.assign(std::istreambuf_iterator<char>(file), {});
        create(nullptr);
    }
    ~TaskTest() override { EXPECT_OK(orrTaskGraphDestroy(graph_)); }
    void create(const orrTaskGraphOptions* options) {
        if (graph_ != nullptr) EXPECT_OK(orrTaskGraphDestroy(graph_));
        EXPECT_OK(orrTaskGraphCreate(&graph_, options));
        EXPECT_OK(orrTaskKernelCreate(&kernel_, graph_, image_.data(), image_.size(), "add_value"));
    }
    orrTaskData_t data(std::int64_t value) {
        orrTaskData_t made = nullptr;
        EXPECT_OK(orrTaskDataCreate(&made, graph_, &value, sizeof(value)));
        return made;
    }
    orrTask_t add(const Args& args, std::vector<orrTaskAccess> accesses,
                  const std::function<void(orrTaskDesc&)>& more = {}) {
        orrTaskDesc desc{};
        desc.kernel = kernel_;
        desc.grid = desc.block = {1, 1, 1};
        desc.args = &args;
        desc.bytes = sizeof(args);
        desc.accesses = accesses.data();
        desc.access_count = accesses.size();
        if (more) more(desc);
        orrTask_t task = 0;
        EXPECT_OK(orrTaskSubmit(&task, graph_, &desc));
        return task;
    }
    std::int64_t read(orrTaskData_t from) {
        std::int64_t value = -1;
        EXPECT_OK(orrTaskDataRead(from, &value, sizeof(value)));
        return value;
    }
    orrTaskInfo info(orrTask_t task) {
        orrTaskInfo told{};
        EXPECT_OK(orrTaskGetInfo(&told, graph_, task));
        return told;
    }

    FakeSystem system_;
    std::vector<char> image_;
    orrTaskGraph_t graph_ = nullptr;
    orrTaskKernel_t kernel_ = nullptr;
};

TEST_F(TaskTest, DataFlowsBetweenTasksAndCards) {
    const auto x = data(5), y = data(7), z = data(0);
    const orrTask_t on0 =
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 1; });
    const orrTask_t on1 =
        add({0, 0, 0, 2, 1, 0}, {{y, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 2; });
    add({0, 0, 0, 100, 0, 0}, {{z, orrTaskWrite, kOut}, {x, orrTaskRead, kA}, {y, orrTaskRead, kB}});
    ASSERT_OK(orrTaskGraphWait(graph_));
    EXPECT_EQ(read(z), 100 + 6 + 9);
    EXPECT_EQ(read(x), 6);
    EXPECT_EQ(info(on0).device, 0);
    EXPECT_EQ(info(on1).device, 1);
    EXPECT_EQ(info(on0).state, orrTaskDone);
    EXPECT_GT(info(on0).end_ns, info(on0).start_ns);
    orrTaskStats stats{};
    ASSERT_OK(orrTaskGraphGetStats(&stats, graph_));
    EXPECT_EQ(stats.done, stats.tasks);
    EXPECT_GT(stats.transfers, 2u);
    EXPECT_GT(stats.waits, 0u);
}

// The same graph on the CPU and on cards, for many random graphs with all access modes.
TEST_F(TaskTest, RandomGraphsComputeWhatTheCpuComputes) {
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
        if (seed != 0) create(nullptr);
        std::mt19937 random(seed);
        constexpr std::size_t kData = 12;
        std::vector<orrTaskData_t> handles;
        std::vector<std::int64_t> model;
        for (std::size_t i = 0; i < kData; ++i) {
            model.push_back(static_cast<std::int64_t>(i * i));
            handles.push_back(data(model.back()));
            ASSERT_OK(orrTaskDataSetMerge(handles.back(), kernel_, {1, 7, 1}, {1, 1, 1}));
        }
        for (int i = 0; i < 400; ++i) {
            const std::size_t out = random() % kData, a = random() % kData;
            const auto value = static_cast<std::int64_t>(random() % 100);
            const bool use_a = a != out && random() % 3 != 0;
            const unsigned mode = random() % 4;
            Args args{0, 0, 0, value, mode == 0 ? 0u : 1u, 0};
            std::vector<orrTaskAccess> accesses = {{handles[out],
                                                    mode == 0   ? orrTaskWrite
                                                    : mode == 1 ? orrTaskReadWrite
                                                                : orrTaskReduce,
                                                    kOut}};
            if (use_a) accesses.push_back({handles[a], orrTaskRead, kA});
            add(args, accesses);
            const std::int64_t sum = value + (use_a ? model[a] : 0);
            model[out] = mode == 0 ? sum : model[out] + sum;
            if (i == 100) ASSERT_OK(orrTaskGraphStart(graph_));
        }
        for (std::size_t i = 0; i < kData; ++i)
            ASSERT_EQ(read(handles[i]), model[i]) << "seed " << seed << ", datum " << i;
        ASSERT_OK(orrTaskGraphWait(graph_));
    }
}

TEST_F(TaskTest, HostTasksReadWriteAndGrowTheGraph) {
    const auto x = data(1);
    struct Grow {
        TaskTest* test;
        orrTaskData_t x;
        std::atomic<int> left;
        static void call(void* self, void* const* at, std::size_t count) {
            auto& grow = *static_cast<Grow*>(self);
            EXPECT_EQ(count, 1u);
            *static_cast<std::int64_t*>(at[0]) *= 2;
            if (--grow.left <= 0) return;
            grow.test->add({0, 0, 0, 1, 1, 0}, {{grow.x, orrTaskReadWrite, kOut}});
            grow.submit();
        }
        void submit() {
            const orrTaskAccess access{x, orrTaskReadWrite, -1};
            orrTaskDesc desc{};
            desc.name = "double";
            desc.function = call;
            desc.user = this;
            desc.accesses = &access;
            desc.access_count = 1;
            EXPECT_OK(orrTaskSubmit(nullptr, test->graph_, &desc));
        }
    } grow{this, x, 10};
    grow.submit();
    ASSERT_OK(orrTaskGraphWait(graph_));
    std::int64_t expected = 2;
    for (int i = 0; i < 9; ++i)
        expected = (expected + 1) * 2;
    EXPECT_EQ(read(x), expected);
}

TEST_F(TaskTest, FailureIsNamedByAllThatDependOnIt) {
    const auto x = data(1), y = data(2), z = data(3);
    const orrTask_t bad =
        add({0, 0, 0, 1, 1, 1}, {{x, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.name = "bad one"; });
    const orrTask_t next = add({0, 0, 0, 1, 1, 0}, {{y, orrTaskReadWrite, kOut}, {x, orrTaskRead, kA}},
                               [](orrTaskDesc& d) { d.name = "middle"; });
    const orrTask_t last = add({0, 0, 0, 1, 1, 0}, {{y, orrTaskReadWrite, kOut}});
    std::vector<orrTask_t> fine;
    for (int i = 0; i < 30; ++i)
        fine.push_back(add({0, 0, 0, 1, 1, 0}, {{z, orrTaskReadWrite, kOut}}));
    EXPECT_FAIL(orrTaskGraphWait(graph_), orrErrorIllegalInstruction, "'bad one' failed");
    EXPECT_FAIL(orrTaskWait(graph_, last), orrErrorIllegalInstruction, "because task 0 'bad one' had failed");
    EXPECT_EQ(info(bad).state, orrTaskFailed);
    EXPECT_EQ(info(next).state, orrTaskCancelled);
    EXPECT_EQ(info(last).cause, bad);
    EXPECT_EQ(info(last).error, orrErrorIllegalInstruction);
    EXPECT_EQ(read(z), 33) << "what does not depend on it goes on";
    std::int64_t value = 0;
    EXPECT_FAIL(orrTaskDataRead(y, &value, 8), orrErrorIllegalInstruction, "'bad one'");
    // What is written anew is whole again.
    add({0, 0, 0, 50, 0, 0}, {{y, orrTaskWrite, kOut}});
    EXPECT_EQ(read(y), 50);
}

TEST_F(TaskTest, ManyFailuresAndStillTheRestIsRight) {
    std::vector<orrTaskData_t> all;
    for (int i = 0; i < 16; ++i)
        all.push_back(data(i));
    for (int round = 0; round < 20; ++round) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool trap = i % 4 == 3 && round == static_cast<int>(i);
            add({0, 0, 0, 1, 1, trap ? 1u : 0u}, {{all[i], orrTaskReadWrite, kOut}});
        }
    }
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::int64_t value = 0;
        const orrError_t error = orrTaskDataRead(all[i], &value, 8);
        if (i % 4 == 3) {
            EXPECT_EQ(error, orrErrorIllegalInstruction) << i;
        } else {
            ASSERT_EQ(error, orrSuccess) << orrGetLastErrorText();
            EXPECT_EQ(value, static_cast<std::int64_t>(i) + 20) << i;
        }
    }
}

TEST_F(TaskTest, FailureWhileHostTasksQueue) {
    const auto x = data(1), y = data(2), z = data(3);
    const auto host_task = [&](orrTaskData_t of) {
        orrTaskDesc desc{};
        orrTaskAccess access{of, orrTaskReadWrite, -1};
        desc.function = [](void*, void* const* data, std::size_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            ++*static_cast<std::int64_t*>(data[0]);
        };
        desc.accesses = &access;
        desc.access_count = 1;
        EXPECT_OK(orrTaskSubmit(nullptr, graph_, &desc));
    };
    host_task(x);  // runs when the kernel traps
    host_task(y);  // is queued
    add({0, 0, 0, 0, 0, 1}, {{z, orrTaskReadWrite, kOut}});
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    EXPECT_EQ(read(x), 2);
    EXPECT_EQ(read(y), 3);
}

TEST_F(TaskTest, LostCardEndsTheGraph) {
    const auto x = data(1), y = data(2);
    system_.card(0).pause(true);
    add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 1; });
    add({0, 0, 0, 1, 1, 0}, {{y, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 2; });
    ASSERT_OK(orrTaskGraphStart(graph_));
    system_.card(0).lose();
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost);
    EXPECT_EQ(read(y), 3) << "the other card goes on";
    // What comes then is not planned where nothing runs, though nobody is less busy.
    std::vector<orrTaskData_t> more;
    for (int i = 0; i < 20; ++i) {
        more.push_back(data(i));
        add({0, 0, 0, 1, 1, 0}, {{more.back(), orrTaskReadWrite, kOut}});
    }
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost) << "the first cause stays";
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(read(more[static_cast<std::size_t>(i)]), i + 1);
}

// A cable is pulled, and then something fails that has nothing to do with it: what is left goes over the
// host.
TEST_F(TaskTest, AFailureAfterItsLinkWasCut) {
    const auto x = data(1), y = data(0), z = data(0);
    const auto on = [](int card) { return [card](orrTaskDesc& d) { d.device_plus_1 = card; }; };
    for (int i = 0; i < 4; ++i)
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}}, on(i % 2 + 1));
    ASSERT_OK(orrTaskGraphWait(graph_));
    system_.card(0).cut_link();
    add({0, 0, 0, 0, 0, 1}, {{y, orrTaskReadWrite, kOut}}, on(2));
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    const orrTask_t alone = add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}}, on(1));
    EXPECT_OK(orrTaskWait(graph_, alone));
    const orrTask_t across =
        add({0, 0, 0, 0, 1, 0}, {{z, orrTaskReadWrite, kOut}, {x, orrTaskRead, kA}}, on(2));
    EXPECT_OK(orrTaskWait(graph_, across));
    EXPECT_EQ(read(z), 6);
}

// Times count from the graph's start, also when a card that nobody has missed yet is not there.
TEST_F(TaskTest, TimesBesideACardThatIsGone) {
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 32 << 20));
    ASSERT_OK(orrMemset(memory, 1, 32 << 20));
    ASSERT_OK(orrFree(memory));
    system_.card(1).lose();
    const auto x = data(1), y = data(2);
    const orrTask_t runs =
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 1; });
    add({0, 0, 0, 1, 1, 0}, {{y, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 2; });
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost);
    EXPECT_OK(orrTaskWait(graph_, runs));
    EXPECT_LT(info(runs).start_ns, 100'000);
}

// What the cards know of each other's work is of queues that stay and of queues that are made anew.
TEST_F(TaskTest, ChainsOverTheCardsBeforeAndAfterAFailure) {
    system_.card(0).on_dispatch = [&, running = 0](FakeCard& card, const FakeDispatch& dispatch) mutable {
        if (++running % 4 != 0) return FakeOutcome{.running = true};  // so that who does not wait comes first
        return compute(card, dispatch);
    };
    const auto x = data(0), y = data(0);
    const auto chain = [&] {
        for (int i = 0; i < 40; ++i) {
            add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}},
                [i](orrTaskDesc& d) { d.device_plus_1 = i % 2 + 1; });
        }
        EXPECT_EQ(read(x) % 40, 0);
    };
    chain();
    for (int card = 1; card <= 2; ++card) {
        const orrTask_t trap = add({0, 0, 0, 0, 0, 1}, {{y, orrTaskWrite, kOut}},
                                   [card](orrTaskDesc& d) { d.device_plus_1 = card; });
        EXPECT_EQ(orrTaskWait(graph_, trap), orrErrorIllegalInstruction);
        chain();
        EXPECT_EQ(read(x), 40 * (card + 1));
    }
}

// The streams of a task graph are streams of their device: who waits for that waits for them.
TEST_F(TaskTest, DeviceSynchronizeWaitsForItsTasks) {
    std::atomic<bool> held{true}, runs{false}, over{false};
    system_.card(0).on_dispatch = [&](FakeCard& card, const FakeDispatch& dispatch) {
        runs.store(true);
        return held.load() ? FakeOutcome{.running = true} : compute(card, dispatch);
    };
    const auto x = data(1);
    add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 1; });
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 64));
    ASSERT_OK(orrTaskGraphStart(graph_));
    while (!runs.load())
        std::this_thread::yield();
    std::thread waits([&] {
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrDeviceSynchronize());
        EXPECT_OK(orrFree(memory));
        over.store(true);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(over.load());
    held.store(false);
    waits.join();
    ASSERT_OK(orrTaskGraphWait(graph_));
    EXPECT_EQ(read(x), 2);
}

// A card goes at any moment of a graph that uses all of it: the graph ends, and soon.
class CardGoes : public TaskTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(CardGoes, AtAnyMomentAndTheGraphEnds) {
    constexpr int kRow = 12;
    std::mt19937 random(GetParam());
    std::vector<orrTaskData_t> handles;
    for (int i = 0; i < kRow * kRow; ++i)
        handles.push_back(data(i));
    const auto at = [&](int i, int j) { return handles[static_cast<std::size_t>(i * kRow + j)]; };
    for (int k = 0; k < kRow; ++k) {
        for (int i = k + 1; i < kRow; ++i) {
            for (int j = k + 1; j < i; ++j)
                add({0, 0, 0, 1, 1, 0}, {{at(i, j), orrTaskReadWrite, kOut},
                                         {at(i, k), orrTaskRead, kA},
                                         {at(j, k), orrTaskRead, kB}});
        }
    }
    ASSERT_OK(orrTaskGraphStart(graph_));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12'000));
    FakeCard& gone = system_.card(GetParam() % 2);
    gone.pause(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until the driver looks
    gone.lose();
    const auto begin = std::chrono::steady_clock::now();
    const orrError_t told = orrTaskGraphWait(graph_);
    EXPECT_TRUE(told == orrSuccess || told == orrErrorDeviceLost) << orrGetLastErrorText();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 5);
}
INSTANTIATE_TEST_SUITE_P(Seeds, CardGoes, ::testing::Range(0u, 12u));

// Asking for a task's state never waits for the longest kernel, also while the graph recovers.
TEST_F(TaskTest, CanBeAskedWhileItRecovers) {
    std::atomic<bool> held{true};
    system_.card(1).on_dispatch = [&](FakeCard& card, const FakeDispatch& dispatch) {
        return held.load() ? FakeOutcome{.running = true} : compute(card, dispatch);
    };
    const auto x = data(1), y = data(2);
    const orrTask_t bad =
        add({0, 0, 0, 0, 0, 1}, {{x, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 1; });
    add({0, 0, 0, 1, 1, 0}, {{y, orrTaskReadWrite, kOut}}, [](orrTaskDesc& d) { d.device_plus_1 = 2; });
    ASSERT_OK(orrTaskGraphStart(graph_));
    while (info(bad).state != orrTaskFailed)
        std::this_thread::yield();  // with the lock held over the recovery this never ends
    held.store(false);
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorIllegalInstruction);
    EXPECT_EQ(read(y), 3);
}

TEST_F(TaskTest, CancelBeforeTheStart) {
    const auto x = data(1), y = data(1);
    const orrTask_t first = add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}});
    const orrTask_t second = add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}});
    const orrTask_t third = add({0, 0, 0, 1, 1, 0}, {{y, orrTaskReadWrite, kOut}, {x, orrTaskRead, kA}});
    ASSERT_OK(orrTaskCancel(graph_, second));
    ASSERT_OK(orrTaskWait(graph_, first));
    EXPECT_FAIL(orrTaskWait(graph_, third), orrErrorCancelled, "was cancelled");
    EXPECT_EQ(info(third).cause, second);
    EXPECT_EQ(orrTaskCancel(graph_, first), orrErrorNotReady);
    ASSERT_OK(orrTaskGraphWait(graph_)) << "cancelling is no failure";
}

TEST_F(TaskTest, CostsAreMeasuredAndKept) {
    const std::string path = ::testing::TempDir() + "/orrery_task_costs";
    std::remove(path.c_str());
    orrTaskGraphOptions options{};
    options.cost_file = path.c_str();
    create(&options);
    const auto x = data(0);
    for (int i = 0; i < 40; ++i)
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskReadWrite, kOut}});
    EXPECT_EQ(read(x), 40);
    create(nullptr);
    std::ifstream file(path);
    std::string header, footprint;
    double mean = 0;
    std::uint64_t count = 0;
    std::getline(file, header);
    file >> footprint >> mean >> count;
    EXPECT_EQ(footprint, "add_value:1:1:8");
    EXPECT_GT(mean, 0);
    EXPECT_GE(count, 40u);
    create(&options);  // reads it
    std::ofstream(path) << "something else\n";
    orrTaskGraph_t none = nullptr;
    EXPECT_FAIL(orrTaskGraphCreate(&none, &options), orrErrorInvalidValue, "does not start with");
    create(nullptr);
    std::remove(path.c_str());
}

// Nobody's memory is so large: the datum is refused, or the task that would be the first to use it fails.
TEST_F(TaskTest, DataOfNearlyAllAddresses) {
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 4096, SIZE_MAX / 2}) {
        orrTaskData_t large = nullptr;
        std::int64_t value = 1;
        EXPECT_EQ(orrTaskDataCreate(&large, graph_, &value, bytes), orrErrorOutOfMemory) << bytes;
        ASSERT_OK(orrTaskDataCreate(&large, graph_, nullptr, bytes)) << bytes;
        EXPECT_EQ(orrTaskWait(graph_, add({0, 0, 0, 1, 0, 0}, {{large, orrTaskWrite, kOut}})),
                  orrErrorOutOfMemory);
        const orrTask_t on_host = add({}, {{large, orrTaskWrite, -1}}, [](orrTaskDesc& desc) {
            desc.kernel = nullptr;
            desc.function = [](void*, void* const*, std::size_t) { ADD_FAILURE() << "without its data"; };
        });
        EXPECT_EQ(orrTaskWait(graph_, on_host), orrErrorOutOfMemory);
    }
}

TEST_F(TaskTest, Mistakes) {
    const auto x = data(1);
    orrTaskDesc desc{};
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "either a kernel or a function");
    desc.kernel = kernel_;
    desc.grid = desc.block = {1, 1, 1};
    orrTaskAccess accesses[2] = {{x, orrTaskRead, 0}, {x, orrTaskWrite, -1}};
    desc.accesses = accesses;
    desc.access_count = 2;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "no place for an address");
    accesses[0].arg_offset = -1;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "second time");
    desc.access_count = 1;
    accesses[0].mode = orrTaskReduce;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "orrTaskDataSetMerge");
    accesses[0].mode = orrTaskRead;
    const orrTask_t later = 77;
    desc.after = &later;
    desc.after_count = 1;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "no task 77");
    EXPECT_FAIL(orrTaskWait(graph_, 5), orrErrorInvalidValue, "no task 5");
    std::int64_t value[2];
    EXPECT_FAIL(orrTaskDataRead(x, value, 16), orrErrorInvalidValue, "has 8");
    const int devices[] = {0, 0};
    orrTaskGraphOptions options{};
    options.devices = devices;
    options.device_count = 2;
    orrTaskGraph_t none = nullptr;
    EXPECT_FAIL(orrTaskGraphCreate(&none, &options), orrErrorInvalidValue, "twice");
    create(nullptr);
    EXPECT_FAIL(orrTaskDataRead(x, value, 8), orrErrorInvalidHandle, "not a live");
}

class FourCards : public TaskTest {
  protected:
    FourCards() : TaskTest(4) {}
};

// The fake links 0-1 and 2-3 only: between the pairs everything goes over the host.
TEST_F(FourCards, CardsWithoutALinkMeetInHostMemory) {
    std::vector<orrTaskData_t> all;
    for (int i = 0; i < 8; ++i)
        all.push_back(data(i));
    const auto sum = data(0);
    for (int round = 0; round < 10; ++round) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            add({0, 0, 0, 1, 1, 0},
                {{all[i], orrTaskReadWrite, kOut}, {all[(i + 1) % all.size()], orrTaskRead, -1}},
                [&](orrTaskDesc& d) {
                    d.device_plus_1 =
                        static_cast<std::int32_t>((i + static_cast<std::size_t>(round)) % 4) + 1;
                });
        }
    }
    for (const auto& one : all)
        add({0, 0, 0, 0, 1, 0}, {{sum, orrTaskReadWrite, kOut}, {one, orrTaskRead, kA}});
    EXPECT_EQ(read(sum), 28 + 80);
    ASSERT_OK(orrTaskGraphWait(graph_));
}

// Each linked with each.
class EightCards : public TaskTest {
  protected:
    static constexpr std::size_t kCards = 8;

    EightCards() : TaskTest(kCards) {
        for (std::size_t a = 0; a < kCards; ++a) {
            for (std::size_t b = a + 1; b < kCards; ++b) {
                if (a % 2 != 0 || b != a + 1) system_.card(a).link_to(system_.card(b));
            }
            system_.card(a).on_make_queue = [&] {
                ++queues_;
                if (made_) made_();
            };
        }
        create(nullptr);  // the first one knows of fewer links
        for (std::size_t card = 0; card < kCards; ++card)
            parts_.push_back(data(static_cast<std::int64_t>(card)));
    }
    static std::function<void(orrTaskDesc&)> on(std::size_t card) {
        return [card](orrTaskDesc& desc) { desc.device_plus_1 = static_cast<std::int32_t>(card) + 1; };
    }
    // Each card makes its part anew, and then needs all others'.
    void all_to_all(std::size_t cards) {
        for (std::size_t card = 0; card < cards; ++card)
            add({0, 0, 0, 1, 0, 0}, {{parts_[card], orrTaskWrite, kOut}}, on(card));
        for (std::size_t card = 0; card < cards; ++card) {
            const auto sum = data(0);
            for (std::size_t other = 0; other < cards; ++other)
                add({0, 0, 0, 0, 1, 0}, {{sum, orrTaskReadWrite, kOut}, {parts_[other], orrTaskRead, kA}},
                    on(card));
        }
    }

    std::atomic<int> queues_{0};
    std::function<void()> made_;
    std::vector<orrTaskData_t> parts_;
};

// To make queues for eight cards takes longer than all else that a failure costs.
TEST_F(EightCards, AFailureCostsOnlyTheQueuesThatItStopped) {
    all_to_all(kCards);
    ASSERT_OK(orrTaskGraphWait(graph_));
    const int all = queues_.load();
    EXPECT_GT(all, 100);
    system_.card(7).lose();
    add({0, 0, 0, 1, 0, 0}, {{data(0), orrTaskWrite, kOut}}, on(7));
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost);
    all_to_all(kCards - 1);
    for (std::size_t card = 0; card < kCards - 1; ++card)
        EXPECT_EQ(read(parts_[card]), 1);
    EXPECT_EQ(orrTaskGraphWait(graph_), orrErrorDeviceLost) << "the first cause stays";
    EXPECT_LE(queues_.load(), all + 20);
}

// Who destroys a graph that still makes its queues does not wait until it has them all.
TEST_F(EightCards, DestroyedWhileItMakesQueues) {
    std::atomic<bool> enough{false}, destroys{false};
    made_ = [&] {
        if (queues_.load() < 20) return;
        enough.store(true);
        while (!destroys.load())
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    all_to_all(kCards);
    ASSERT_OK(orrTaskGraphStart(graph_));
    while (!enough.load())
        std::this_thread::yield();
    destroys.store(true);
    EXPECT_OK(orrTaskGraphDestroy(graph_));
    graph_ = nullptr;
    EXPECT_LE(queues_.load(), 36) << "the rest of a turn; 50 when all are made that were asked for";
    made_ = {};
    create(nullptr);
}

}  // namespace
}  // namespace orrery::umd::test
