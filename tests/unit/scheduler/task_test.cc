// What task graphs compute, and when.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "tests/unit/scheduler/task_fixture.h"

namespace orrery::umd::test {
namespace {

// A kernel's limit is that of the queue to which it goes.
TEST_F(TaskTest, KernelsHaveTheLimitOfTheirGraph) {
    orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
    options.limit_us = 5'000'000;
    create(&options);
    const auto x = data(5);
    add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 1); });
    ASSERT_OK(orrTaskGraphWait(graph_));
    EXPECT_EQ(read(x), 6);
    FakeCard& card = system_.card(1);
    {
        const std::lock_guard lock(card.mutex());
        const auto limit_of = [&](std::string_view name) {
            const auto queue = std::ranges::find(card.queues, name, [](auto& q) { return q.options.name; });
            return queue == card.queues.end() ? 0 : queue->options.limit_us;
        };
        EXPECT_EQ(limit_of("tasks"), 5'000'000u);
    }
    options.reserved = 1;
    orrTaskGraph_t none = nullptr;
    EXPECT_EQ(orrTaskGraphCreate(&none, &options), orrErrorInvalidValue);
}

TEST_F(TaskTest, DataFlowsBetweenTasksAndCards) {
    const auto x = data(5), y = data(7), z = data(0);
    const orrTask_t on0 =
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 0); });
    const orrTask_t on1 =
        add({0, 0, 0, 2, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 1); });
    add({0, 0, 0, 100, 0, 0},
        {{z, orrTaskAccessWrite, kOut}, {x, orrTaskAccessRead, kA}, {y, orrTaskAccessRead, kB}});
    ASSERT_OK(orrTaskGraphWait(graph_));
    EXPECT_EQ(read(z), 100 + 6 + 9);
    EXPECT_EQ(read(x), 6);
    EXPECT_EQ(info(on0).device, 0);
    EXPECT_EQ(info(on1).device, 1);
    EXPECT_EQ(info(on0).state, orrTaskStateDone);
    EXPECT_GT(info(on0).end_ns, info(on0).start_ns);
    orrTaskStats stats = ORR_INIT(orrTaskStats);
    ASSERT_OK(orrTaskGraphGetStats(&stats, graph_));
    EXPECT_EQ(stats.done, stats.tasks);
    EXPECT_GT(stats.transfers, 2u);
    EXPECT_GT(stats.waits, 0u);
}

TEST_F(TaskTest, KernelsOfALibraryOutliveIt) {
    orrLibrary_t library = nullptr;
    orrFunction_t function = nullptr;
    ASSERT_OK(orrLibraryLoad(&library, TEST_KERNELS));
    ASSERT_OK(orrLibraryGetFunction(&function, library, "add_value"));
    ASSERT_OK(orrTaskKernelFromFunction(&kernel_, graph_, function));
    ASSERT_OK(orrLibraryUnload(library));
    orrTaskKernel_t none = nullptr;
    EXPECT_FAIL(orrTaskKernelFromFunction(&none, graph_, function), orrErrorInvalidHandle, "function");
    const auto x = data(5);
    for (const int device : {0, 1, 0}) {
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}},
            [&](orrTaskDesc& desc) { on_device(desc, device); });
    }
    EXPECT_EQ(read(x), 8);
}

TEST_F(TaskTest, KernelsOfOneDeviceAreForGraphsOfThat) {
    orrModule_t module = nullptr;
    orrFunction_t function = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrModuleLoad(&module, TEST_KERNELS));
    ASSERT_OK(orrModuleGetFunction(&function, module, "add_value"));
    EXPECT_FAIL(orrTaskKernelFromFunction(&kernel_, graph_, function), orrErrorInvalidValue,
                "loaded on device 0");
    EXPECT_FAIL(orrTaskKernelFromFunction(nullptr, graph_, function), orrErrorInvalidValue, "kernel");
    EXPECT_FAIL(orrTaskKernelFromFunction(&kernel_, nullptr, function), orrErrorInvalidHandle, "task graph");
    EXPECT_FAIL(orrTaskKernelFromFunction(&kernel_, graph_, nullptr), orrErrorInvalidHandle, "function");
    const int first = 0;
    orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
    options.devices = &first;
    options.device_count = 1;
    create(&options);
    ASSERT_OK(orrTaskKernelFromFunction(&kernel_, graph_, function));
    const auto x = data(5);
    add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}});
    EXPECT_EQ(read(x), 6);
    ASSERT_OK(orrModuleUnload(module));
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
            std::vector<Use> accesses = {{handles[out],
                                          mode == 0   ? orrTaskAccessWrite
                                          : mode == 1 ? orrTaskAccessReadWrite
                                                      : orrTaskAccessReduce,
                                          kOut}};
            if (use_a) accesses.push_back({handles[a], orrTaskAccessRead, kA});
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
            grow.test->add({0, 0, 0, 1, 1, 0}, {{grow.x, orrTaskAccessReadWrite, kOut}});
            grow.submit();
        }
        void submit() {
            const orrTaskAccess access{x, orrTaskAccessReadWrite, orrTaskAccessNoArgument, 0, 0};
            orrTaskDesc desc = ORR_INIT(orrTaskDesc);
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

// The streams of a task graph are streams of their device: who waits for that waits for them.
TEST_F(TaskTest, DeviceSynchronizeWaitsForItsTasks) {
    std::atomic<bool> held{true}, runs{false}, over{false};
    system_.card(0).on_dispatch = [&](FakeCard& card, const FakeDispatch& dispatch) {
        runs.store(true);
        return held.load() ? FakeOutcome{.running = true} : compute(card, dispatch);
    };
    const auto x = data(1);
    add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}}, [](orrTaskDesc& d) { on_device(d, 0); });
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

TEST_F(TaskTest, CancelBeforeTheStart) {
    const auto x = data(1), y = data(1);
    const orrTask_t first = add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}});
    const orrTask_t second = add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}});
    const orrTask_t third =
        add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}, {x, orrTaskAccessRead, kA}});
    ASSERT_OK(orrTaskCancel(graph_, second));
    ASSERT_OK(orrTaskWait(graph_, first));
    EXPECT_FAIL(orrTaskWait(graph_, third), orrErrorCancelled, "was cancelled");
    EXPECT_EQ(info(third).cause, second);
    EXPECT_EQ(orrTaskCancel(graph_, first), orrErrorNotReady);
    ASSERT_OK(orrTaskGraphWait(graph_)) << "cancelling is no failure";
}

TEST_F(TaskTest, CostsAreMeasuredAndKept) {
    const std::string path = ::testing::TempDir() + "/orrery_task_costs" + std::to_string(::getpid());
    std::remove(path.c_str());
    orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
    options.cost_file = path.c_str();
    create(&options);
    const auto x = data(0);
    for (int i = 0; i < 40; ++i)
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}});
    EXPECT_EQ(read(x), 40);
    create(nullptr);
    std::ifstream file(path);
    std::string header, sku, footprint;
    double mean = 0;
    std::uint64_t count = 0;
    std::getline(file, header);
    while (file >> sku && sku == ">")
        file.ignore(1000, '\n');
    file >> footprint >> mean >> count;
    EXPECT_EQ(sku, "fake");
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

TEST_F(TaskTest, CostsAreThoseOfTheSkuThatTheyWereMeasuredOn) {
    const std::string path = ::testing::TempDir() + "/orrery_task_costs_by_sku" + std::to_string(::getpid());
    // Of a library that did not tell SKUs apart: nobody knows whose they are.
    std::ofstream(path) << "orrery-task-costs-1\nadd_value:1:1:8 123456 64\n";
    system_.card(1).sku_name = "An other\tone";
    orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
    options.cost_file = path.c_str();
    create(&options);
    const auto x = data(0), y = data(0);
    for (int i = 0; i < 20; ++i) {
        add({0, 0, 0, 1, 1, 0}, {{x, orrTaskAccessReadWrite, kOut}},
            [](orrTaskDesc& desc) { on_device(desc, 0); });
        add({0, 0, 0, 1, 1, 0}, {{y, orrTaskAccessReadWrite, kOut}},
            [](orrTaskDesc& desc) { on_device(desc, 1); });
    }
    EXPECT_EQ(read(x), 20);
    EXPECT_EQ(read(y), 20);
    create(nullptr);
    std::ifstream file(path);
    std::map<std::string, std::uint64_t> counts;
    std::string header, sku, footprint;
    double mean = 0;
    std::uint64_t count = 0;
    std::getline(file, header);
    EXPECT_EQ(header, "orrery-task-costs-2");
    while (file >> sku >> footprint >> mean >> count) {
        if (sku != ">") counts[sku + " " + footprint] = count;
    }
    EXPECT_THAT(counts,
                ::testing::UnorderedElementsAre(::testing::Pair("fake add_value:1:1:8", 20u),
                                                ::testing::Pair("An_other_one add_value:1:1:8", 20u)));
    create(&options);  // reads it
    create(nullptr);
    std::ofstream(path) << "orrery-task-costs-2\nadd_value:1:1:8 123456 64\n";
    orrTaskGraph_t none = nullptr;
    EXPECT_FAIL(orrTaskGraphCreate(&none, &options), orrErrorInvalidValue, ":2: a SKU, a footprint");
    std::remove(path.c_str());
}

TEST_F(TaskTest, ChannelsAreMeasuredOnceAndKept) {
    const std::string path = ::testing::TempDir() + "/orrery_task_channels" + std::to_string(::getpid());
    std::remove(path.c_str());
    // Of these no test has measured any.
    system_.card(0).sku_name = "left";
    system_.card(1).sku_name = "right";
    orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
    options.cost_file = path.c_str();
    const auto kept = [&] {
        std::ifstream file(path);
        std::map<std::string, std::pair<double, double>> channels;
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string mark, name;
            double latency = 0, each = 0;
            if (words >> mark >> name >> latency >> each && mark == ">")
                channels[name.substr(0, name.find(':'))] = {latency, each};
        }
        return channels;
    };
    std::uint64_t before = system_.card(0).packets();
    create(&options);
    EXPECT_GT(system_.card(0).packets(), before);
    create(nullptr);
    // A fake card takes 10 ps a byte, and 1 ns a packet: the copy's and the time stamp's.
    const auto channels = kept();
    ASSERT_EQ(channels.size(), 6u);
    for (const char* name : {"host>left", "left>host", "host>right", "right>host"})
        EXPECT_EQ(channels.at(name), std::pair(2000.0, 10.0)) << name;
    for (const char* name : {"left>right", "right>left"})
        EXPECT_EQ(channels.at(name), std::pair(2000.0 + 300e3, 10.0)) << name << ", with the link's latency";
    // Known in this process, and to those who have the file.
    std::remove(path.c_str());
    before = system_.card(0).packets();
    create(&options);
    create(nullptr);
    EXPECT_EQ(system_.card(0).packets(), before);
    EXPECT_EQ(kept(), channels);
    std::ofstream(path) << "orrery-task-costs-2\n> host>left 7 3.5\n";
    create(&options);
    create(nullptr);
    EXPECT_EQ(kept().at("host>left"), std::pair(7.0, 3.5));
    orrTaskGraph_t none = nullptr;
    for (const char* wrong : {"> host>left 7", "> host>left -1 3", "> host>left 1 0", "> host>left 1 nan"}) {
        std::ofstream(path) << "orrery-task-costs-2\n" << wrong << '\n';
        EXPECT_FAIL(orrTaskGraphCreate(&none, &options), orrErrorInvalidValue, ":2: of a channel '>'");
    }
    std::remove(path.c_str());
}

orrError_t create_on(int first, std::size_t count = 1) {
    const int devices[] = {first, first + 1};
    orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
    options.devices = devices;
    options.device_count = count;
    orrTaskGraph_t graph = nullptr;
    const orrError_t code = orrTaskGraphCreate(&graph, &options);
    return code == orrSuccess ? orrTaskGraphDestroy(graph) : code;
}

// A card that does not answer holds up those who use it, and nobody else.
TEST_F(TaskTest, OthersAreNotHeldUpByACardThatIsMeasured) {
    system_.card(0).sku_name = "stuck";
    system_.card(1).sku_name = "free";
    std::promise<void> reached;
    std::once_flag first;
    system_.card(0).on_wait = [&] { std::call_once(first, [&] { reached.set_value(); }); };
    system_.card(0).pause(true);
    auto stuck = std::async(std::launch::async, [] { return create_on(0); });
    reached.get_future().wait();
    auto free = std::async(std::launch::async, [] { return create_on(1); });
    EXPECT_EQ(free.wait_for(std::chrono::minutes(1)), std::future_status::ready);
    system_.card(0).pause(false);
    EXPECT_OK(free.get());
    EXPECT_OK(stuck.get());
    system_.card(0).on_wait = nullptr;
}

// What a card had sent when it failed to measure arrives in nobody else's memory.
TEST_F(TaskTest, MemoryOfACalibrationThatFailedIsFreedBehindItsWrites) {
    system_.card(0).sku_name = "sender";
    system_.card(1).sku_name = "receiver";
    system_.card(1).hold_arrivals(true);
    system_.card(0).pause(true);
    std::promise<void> gave_up;
    std::atomic<bool> failed = false;
    const std::uint64_t before = system_.card(0).packets();
    system_.card(0).on_wait = [&] {
        if (failed.exchange(true)) return;
        system_.card(0).pause(false);
        // Three copies with time stamps, and the signal that tells that they have arrived.
        const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        while (system_.card(0).packets() < before + 7 && std::chrono::steady_clock::now() < limit)
            std::this_thread::yield();
        system_.card(0).wait_errno.store(EIO);
        gave_up.set_value();
    };
    auto made = std::async(std::launch::async, [] { return create_on(0, 2); });
    gave_up.get_future().wait();
    EXPECT_EQ(made.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout)
        << "a write to it is under way";
    EXPECT_EQ(system_.card(0).packets(), before + 7);
    system_.card(1).hold_arrivals(false);
    EXPECT_OK(made.get());
    system_.card(0).on_wait = nullptr;
}

// Nobody's memory is so large: the datum is refused, or the task that would be the first to use it fails.
TEST_F(TaskTest, DataOfNearlyAllAddresses) {
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 255, SIZE_MAX - 4096, SIZE_MAX / 2}) {
        orrTaskData_t large = nullptr;
        std::int64_t value = 1;
        EXPECT_EQ(orrTaskDataCreate(&large, graph_, &value, bytes), orrErrorOutOfMemory) << bytes;
        ASSERT_OK(orrTaskDataCreate(&large, graph_, nullptr, bytes)) << bytes;
        EXPECT_EQ(orrTaskWait(graph_, add({0, 0, 0, 1, 0, 0}, {{large, orrTaskAccessWrite, kOut}})),
                  orrErrorOutOfMemory);
        const orrTask_t on_host = add({}, {{large, orrTaskAccessWrite, -1}}, [](orrTaskDesc& desc) {
            desc.kernel = nullptr;
            desc.function = [](void*, void* const*, std::size_t) { ADD_FAILURE() << "without its data"; };
        });
        EXPECT_EQ(orrTaskWait(graph_, on_host), orrErrorOutOfMemory);
    }
}

TEST_F(TaskTest, Mistakes) {
    const auto x = data(1);
    orrTaskDesc desc = ORR_INIT(orrTaskDesc);
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "either a kernel or a function");
    desc.kernel = kernel_;
    desc.grid = desc.block = {1, 1, 1};
    orrTaskAccess accesses[2] = {{x, orrTaskAccessRead, 0, 0, 0},
                                 {x, orrTaskAccessWrite, orrTaskAccessNoArgument, 0, 0}};
    desc.accesses = accesses;
    desc.access_count = 2;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "no place for an address");
    accesses[0].flags = orrTaskAccessNoArgument;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "second time");
    desc.access_count = 1;
    accesses[0].mode = orrTaskAccessReduce;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "orrTaskDataSetMerge");
    accesses[0].mode = orrTaskAccessRead;
    const orrTask_t later = 77;
    desc.after = &later;
    desc.after_count = 1;
    EXPECT_FAIL(orrTaskSubmit(nullptr, graph_, &desc), orrErrorInvalidValue, "no task 77");
    EXPECT_FAIL(orrTaskWait(graph_, 5), orrErrorInvalidValue, "no task 5");
    std::int64_t value[2];
    EXPECT_FAIL(orrTaskDataRead(value, x, 16), orrErrorInvalidValue, "has 8");
    const int devices[] = {0, 0};
    orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
    options.devices = devices;
    options.device_count = 2;
    orrTaskGraph_t none = nullptr;
    EXPECT_FAIL(orrTaskGraphCreate(&none, &options), orrErrorInvalidValue, "twice");
    create(nullptr);
    EXPECT_FAIL(orrTaskDataRead(value, x, 8), orrErrorInvalidHandle, "not a live");
}

// A whole device each, so that as many are issued as the library likes to be ahead.
TEST_F(TaskTest, CardsThatKeepStepGetMoreAtOnce) {
    for (const bool both : {false, true}) {
        system_.card(0).in_step = true;
        system_.card(1).in_step = both;
        create(nullptr);
        const std::size_t ahead = both ? 32 : 3;
        std::vector<orrTask_t> tasks;
        for (std::size_t i = 0; i < 40; ++i) {
            tasks.push_back(
                add({0, 0, 0, 1, 1, 0}, {{data(0), orrTaskAccessReadWrite, kOut}}, [&](orrTaskDesc& d) {
                    d.grid.x = 64;
                    on_device(d, 0);
                }));
        }
        system_.card(0).pause(true);
        ASSERT_OK(orrTaskGraphStart(graph_));
        const auto issued = [&] {
            return static_cast<std::size_t>(std::ranges::count_if(
                tasks, [&](orrTask_t task) { return info(task).state == orrTaskStateIssued; }));
        };
        while (issued() == 0)
            std::this_thread::yield();
        EXPECT_EQ(issued(), ahead) << (both ? "both" : "one");
        system_.card(0).pause(false);
        ASSERT_OK(orrTaskGraphWait(graph_));
    }
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
                {{all[i], orrTaskAccessReadWrite, kOut}, {all[(i + 1) % all.size()], orrTaskAccessRead, -1}},
                [&](orrTaskDesc& d) {
                    on_device(d, static_cast<int>((i + static_cast<std::size_t>(round)) % 4));
                });
        }
    }
    for (const auto& one : all)
        add({0, 0, 0, 0, 1, 0}, {{sum, orrTaskAccessReadWrite, kOut}, {one, orrTaskAccessRead, kA}});
    EXPECT_EQ(read(sum), 28 + 80);
    ASSERT_OK(orrTaskGraphWait(graph_));
}

// Making a queue takes the host milliseconds, in which cards that have begun go on without the others.
TEST_F(FourCards, NobodyBeginsBeforeTheFirstQueuesAreThere) {
    const auto done = [&] {
        std::uint64_t packets = 0;
        for (std::size_t card = 0; card < 4; ++card)
            packets += system_.card(card).packets();
        return packets;
    };
    std::vector<std::uint64_t> done_when_made;
    for (std::size_t card = 0; card < 4; ++card) {
        system_.card(card).on_make_queue = [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));  // that a card that could begin does
            done_when_made.push_back(done());
        };
    }
    std::vector<orrTaskData_t> all;
    for (int i = 0; i < 16; ++i) {
        all.push_back(data(i));
        add({0, 0, 0, 1, 1, 0}, {{all.back(), orrTaskAccessReadWrite, kOut}},
            [&](orrTaskDesc& d) { on_device(d, i % 4); });
    }
    ASSERT_OK(orrTaskGraphWait(graph_));
    for (std::size_t card = 0; card < 4; ++card)
        system_.card(card).on_make_queue = {};
    EXPECT_GT(done_when_made.size(), 8u);
    EXPECT_EQ(done_when_made, std::vector<std::uint64_t>(done_when_made.size(), done_when_made[0]));
    EXPECT_EQ(read(all[15]), 16);
}

}  // namespace
}  // namespace orrery::umd::test
