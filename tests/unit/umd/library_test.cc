// Libraries: one image, which each card loads when it needs it.
#include <orrery/graph.h>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <thread>
#include <utility>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

class LibraryTest : public ::testing::Test {
  protected:
    void SetUp() override {
        for (int device = 0; device < 2; ++device) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrStreamCreate(&stream_[device], 0));
            system_.card(static_cast<std::size_t>(device)).on_dispatch =
                [this, device](FakeCard&, const FakeDispatch& dispatch) {
                    ++launches_[device];
                    stack_pages_ = dispatch.item_stack_pages;
                    return FakeOutcome{};
                };
        }
        ASSERT_OK(orrLibraryLoad(&library_, TEST_KERNELS));
        ASSERT_OK(orrLibraryGetFunction(&kernel_, library_, "add_value"));
    }
    void TearDown() override {
        for (orrStream_t stream : stream_)
            EXPECT_OK(orrStreamDestroy(stream));
        if (library_ != nullptr) EXPECT_OK(orrLibraryUnload(library_));
    }
    // How often its code lies on the card.
    int loaded(std::size_t device) {
        FakeCard& card = system_.card(device);
        const std::lock_guard lock(card.mutex());
        return static_cast<int>(std::ranges::count_if(
            card.mappings, [](const auto& entry) { return (entry.second.flags & ORR_BIND_EXEC) != 0; }));
    }
    orrError_t launch(int device, orrFunction_t kernel, std::uint32_t items = 1) {
        const orrError_t given =
            orrLaunchKernel(kernel, {1, 1, 1}, {items, 1, 1}, nullptr, 0, 0, stream_[device]);
        return given != orrSuccess ? given : orrStreamSynchronize(stream_[device]);
    }

    FakeSystem system_{2};
    orrLibrary_t library_ = nullptr;
    orrFunction_t kernel_ = nullptr;
    orrStream_t stream_[2] = {};
    std::atomic<int> launches_[2] = {};
    std::atomic<std::uint16_t> stack_pages_{0};
};

TEST_F(LibraryTest, EachCardLoadsItAtItsFirstUse) {
    EXPECT_EQ(loaded(0) + loaded(1), 0);
    ASSERT_OK(launch(1, kernel_));
    EXPECT_EQ(loaded(0), 0);
    EXPECT_EQ(loaded(1), 1);
    ASSERT_OK(orrSetDevice(0));
    for (int round = 0; round < 2; ++round) {
        ASSERT_OK(orrLibraryPreload(library_));
        EXPECT_EQ(loaded(0), 1);
    }
    EXPECT_FAIL(orrLibraryPreload(nullptr), orrErrorInvalidHandle, "library");
    ASSERT_OK(launch(0, kernel_));
    orrFunction_t again = nullptr;
    ASSERT_OK(orrLibraryGetFunction(&again, library_, "trap"));
    ASSERT_OK(launch(0, again));
    ASSERT_OK(launch(1, again));
    EXPECT_EQ(loaded(0), 1);
    EXPECT_EQ(loaded(1), 1);
    EXPECT_EQ(launches_[0], 2);
    EXPECT_EQ(launches_[1], 2);
    ASSERT_OK(orrLibraryUnload(library_));
    EXPECT_EQ(loaded(0) + loaded(1), 0);
    EXPECT_FAIL(launch(0, kernel_), orrErrorInvalidHandle, "function");
    EXPECT_FAIL(orrLibraryUnload(library_), orrErrorInvalidHandle, "library");
    EXPECT_FAIL(orrLibraryGetFunction(&again, library_, "trap"), orrErrorInvalidHandle, "library");
    EXPECT_FAIL(orrLibraryGetGlobal(nullptr, nullptr, library_, "x"), orrErrorInvalidValue, "null");
    library_ = nullptr;
}

TEST_F(LibraryTest, ManyThreadsAreTheFirst) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([this, i] {
            orrFunction_t own = nullptr;
            EXPECT_OK(orrLibraryGetFunction(&own, library_, "trap"));
            EXPECT_OK(launch(i % 2, i % 3 == 0 ? own : kernel_));
        });
    }
    threads.clear();
    EXPECT_EQ(loaded(0), 1);
    EXPECT_EQ(loaded(1), 1);
    EXPECT_EQ(launches_[0] + launches_[1], 8);
}

TEST_F(LibraryTest, GraphsAndOccupancyTakeTheCurrentDevice) {
    orrGraph_t graph = nullptr;
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphCreate(&graph, 0));
    orrKernelNodeParams params = ORR_INIT(orrKernelNodeParams);
    params.function = kernel_;
    params.grid = params.block = {1, 1, 1};
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrGraphAddKernelNode(nullptr, graph, nullptr, 0, &params));
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream_[1]));
    ASSERT_OK(orrStreamSynchronize(stream_[1]));
    EXPECT_EQ(launches_[1], 1);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
    // A capture loads it where it has to be.
    ASSERT_OK(orrStreamBeginCapture(stream_[0], 0));
    ASSERT_OK(orrLaunchKernel(kernel_, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream_[0]));
    ASSERT_OK(orrStreamEndCapture(&graph, stream_[0]));
    EXPECT_EQ(loaded(0), 1);
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    EXPECT_EQ(launches_[0], 1);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
    std::uint32_t groups = 0;
    ASSERT_OK(orrOccupancyMaxActiveGroups(&groups, kernel_, {1, 1, 1}, 0, 0));
    EXPECT_EQ(groups, FakeCard::kVectorCores);
}

TEST_F(LibraryTest, ACaptureEndsWithTheLibrary) {
    orrGraph_t graph = nullptr;
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrStreamBeginCapture(stream_[1], 0));
    ASSERT_OK(orrLaunchKernel(kernel_, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream_[1]));
    ASSERT_OK(orrStreamEndCapture(&graph, stream_[1]));
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrLibraryUnload(library_));
    EXPECT_EQ(loaded(1), 0);
    ASSERT_OK(orrLibraryLoad(&library_, TEST_KERNELS));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrLibraryPreload(library_));
    EXPECT_FAIL(orrGraphLaunch(exec, stream_[1]), orrErrorInvalidHandle, "library was unloaded");
    EXPECT_OK(orrStreamSynchronize(stream_[1]));
    EXPECT_EQ(launches_[1], 0);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
}

// Who asks for the kernel at each launch uses no handle up.
TEST_F(LibraryTest, CppGivesOneHandleAName) {
    orrery::Library library(TEST_KERNELS);
    const orrFunction_t kernel = library.function("add_value");
    EXPECT_EQ(library.function(std::string("add_value").c_str()), kernel);
    EXPECT_NE(library.function("trap"), kernel);
    EXPECT_THROW(library.function("nothing"), orrery::ApiError);
    EXPECT_THROW(library.function(nullptr), orrery::ApiError);
    EXPECT_OK(launch(0, kernel));
    orrery::Library moved = std::move(library);
    EXPECT_EQ(moved.function("add_value"), kernel);
    EXPECT_THROW(library.function("add_value"), orrery::ApiError);  // NOLINT(bugprone-use-after-move)
    moved = orrery::Library(TEST_KERNELS);
    EXPECT_NE(moved.function("add_value"), kernel) << "that one has ended";
    EXPECT_OK(launch(1, moved.function("add_value")));
    moved.destroy();
    EXPECT_THROW(moved.function("add_value"), orrery::ApiError);
}

TEST_F(LibraryTest, VariablesAreEachCardsOwn) {
    std::uint64_t* counters[2] = {};
    for (int device = 0; device < 2; ++device) {
        ASSERT_OK(orrSetDevice(device));
        void* address = nullptr;
        std::size_t bytes = 0;
        ASSERT_OK(orrLibraryGetGlobal(&address, &bytes, library_, "shared_counter"));
        EXPECT_EQ(bytes, 8u);
        counters[device] = static_cast<std::uint64_t*>(address);
    }
    const std::uint64_t value = 5;
    ASSERT_OK(orrMemcpy(counters[0], &value, 8, orrMemcpyDefault));
    std::uint64_t read = 0;
    ASSERT_OK(orrMemcpy(&read, counters[1], 8, orrMemcpyDefault));
    EXPECT_EQ(read, 40u);
    void* address = nullptr;
    EXPECT_FAIL(orrLibraryGetGlobal(&address, nullptr, library_, "nothing"), orrErrorNotFound,
                "shared_counter");
    EXPECT_FAIL(orrLibraryGetGlobal(&address, nullptr, library_, nullptr), orrErrorInvalidValue, "name");
    EXPECT_FAIL(orrLibraryGetGlobal(&address, nullptr, nullptr, "x"), orrErrorInvalidHandle, "library");
}

TEST_F(LibraryTest, AttributesNeedNoCardAndAreOfAllCards) {
    ASSERT_OK(launch(0, kernel_, 2));
    EXPECT_EQ(stack_pages_, 1);
    ASSERT_OK(orrFuncSetAttribute(kernel_, orrFuncAttributeItemStackBytes, 8192));
    for (const int device : {0, 1}) {  // one has loaded it already
        ASSERT_OK(launch(device, kernel_, 2));
        EXPECT_EQ(stack_pages_, 2) << device;
    }
    orrFunction_t other = nullptr;
    ASSERT_OK(orrLibraryGetFunction(&other, library_, "use_more_stack"));
    orrFuncAttributes all = ORR_INIT(orrFuncAttributes);
    ASSERT_OK(orrFuncGetAttributes(&all, other));
    EXPECT_EQ(all.item_stack_bytes, 16384u);
    EXPECT_GT(all.code_bytes, 0u);
    EXPECT_STREQ(all.isa, "rv64imafdc_zicsr_zmmul");
    EXPECT_THAT(std::string(all.source), ::testing::ContainsRegex("kernels.cc:[0-9]+$"));
}

TEST_F(LibraryTest, ACardThatIsFullIsAskedAgain) {
    void* all = nullptr;
    ASSERT_OK(orrSetDevice(0));
    std::uint64_t free = 0;
    {
        const std::lock_guard lock(system_.card(0).mutex());
        free = system_.card(0).vram_bytes - system_.card(0).vram_used;
    }
    ASSERT_OK(orrMalloc(&all, free));
    EXPECT_EQ(launch(0, kernel_), orrErrorOutOfMemory) << orrGetLastErrorText();
    EXPECT_OK(launch(1, kernel_)) << "others are not concerned";
    ASSERT_OK(orrFree(all));
    EXPECT_OK(launch(0, kernel_));
}

TEST_F(LibraryTest, MistakesAreExplained) {
    orrLibrary_t library = nullptr;
    orrFunction_t function = nullptr;
    EXPECT_FAIL(orrLibraryLoad(nullptr, TEST_KERNELS), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrLibraryLoad(&library, nullptr), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrLibraryLoad(&library, "/nonexistent/x.elf"), orrErrorSystem, "/nonexistent/x.elf");
    EXPECT_FAIL(orrLibraryLoadData(&library, nullptr, 7), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrLibraryLoadData(&library, "garbage", 7), orrErrorInvalidImage, "less than an ELF header");
    EXPECT_FAIL(orrLibraryGetFunction(nullptr, library_, "trap"), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrLibraryGetFunction(&function, library_, nullptr), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrLibraryGetFunction(&function, nullptr, "trap"), orrErrorInvalidHandle, "library");
    EXPECT_FAIL(orrLibraryGetFunction(&function, library_, "nothing"), orrErrorNotFound, "add_value");
    orrModule_t module = nullptr;
    ASSERT_OK(orrModuleLoad(&module, TEST_KERNELS));
    EXPECT_FAIL(orrLibraryUnload(reinterpret_cast<orrLibrary_t>(module)), orrErrorInvalidHandle, "library");
    EXPECT_FAIL(orrModuleUnload(reinterpret_cast<orrModule_t>(library_)), orrErrorInvalidHandle, "module");
    ASSERT_OK(orrModuleUnload(module));
}

TEST(LibraryIsa, TheCardThatLacksSomethingRefuses) {
    FakeSystem system(2);
    system.card(1).vector_isa = "rv64imafdcv_zicsr_zifencei_zvl512b";
    orrLibrary_t library = nullptr;
    orrFunction_t kernel = nullptr;
    ASSERT_OK(orrLibraryLoad(&library, VECTOR_KERNEL));
    ASSERT_OK(orrLibraryGetFunction(&kernel, library, "twice"));
    for (int round = 0; round < 2; ++round) {
        ASSERT_OK(orrSetDevice(0));
        EXPECT_FAIL(orrLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, nullptr),
                    orrErrorNotSupported,
                    "umd_vector_kernel.elf needs v with VLEN >= 512; device 0 has rv64");
        EXPECT_EQ(std::string(orrGetLastErrorText()).find('\n'), std::string::npos) << "one line";
        ASSERT_OK(orrSetDevice(1));
        EXPECT_OK(orrLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, nullptr));
    }
    ASSERT_OK(orrStreamSynchronize(nullptr));
    ASSERT_OK(orrLibraryUnload(library));
}

}  // namespace
}  // namespace orrery::umd::test
