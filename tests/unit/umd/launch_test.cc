#include <orrery/graph.h>
#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/mmu.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "tests/vm/umd/kernels.h"

namespace orrery::umd::test {
namespace {

class LaunchTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrModuleLoad(&module_, TEST_KERNELS));
        ASSERT_OK(orrModuleGetFunction(&function_, module_, "add_value"));
        ASSERT_OK(orrStreamCreate(&stream_, 0));
    }
    void TearDown() override {
        if (stream_ != nullptr) EXPECT_OK(orrStreamDestroy(stream_));
        if (module_ != nullptr) EXPECT_OK(orrModuleUnload(module_));
    }
    void launch_and_fail_with(FakeOutcome outcome) {
        system_.card().on_dispatch = [outcome](FakeCard&, const FakeDispatch&) { return outcome; };
        ASSERT_OK(orrLaunchKernel(function_, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream_));
    }

    FakeSystem system_{1};
    orrModule_t module_ = nullptr;
    orrFunction_t function_ = nullptr;
    orrStream_t stream_ = nullptr;
};

TEST_F(LaunchTest, ModuleLiesOnTheCardWithItsProtections) {
    FakeCard& card = system_.card();
    int code = 0, data = 0;
    const std::lock_guard lock(card.mutex());
    for (const auto& [va, mapping] : card.mappings) {
        const bool write = (mapping.flags & ORR_BIND_WRITE) != 0, exec = (mapping.flags & ORR_BIND_EXEC) != 0;
        EXPECT_FALSE(write && exec);
        code += exec;
        data += !write;
    }
    EXPECT_EQ(code, 1);
    EXPECT_GE(data, 2) << "code and constants";
}

TEST_F(LaunchTest, CooperativeGroupsAreAllOnCores) {
    std::vector<bool> resident;
    system_.card().on_dispatch = [&](FakeCard&, const FakeDispatch& dispatch) {
        resident.push_back(dispatch.resident);
        return FakeOutcome{};
    };
    const auto cooperative = [&](orrFunction_t function, orrDim3 grid, orrDim3 block) {
        orrLaunchParams params = ORR_INIT(orrLaunchParams);
        params.function = function;
        params.grid = grid;
        params.block = block;
        params.stream = stream_;
        params.flags = orrLaunchCooperative;
        return orrLaunchKernelEx(&params);
    };
    std::uint32_t groups = 0;
    ASSERT_OK(orrOccupancyMaxActiveGroups(&groups, function_, {64, 1, 1}, 4096, 0));
    ASSERT_EQ(groups, FakeCard::kVectorCores);
    ASSERT_OK(orrLaunchKernel(function_, {groups + 1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream_));
    ASSERT_OK(cooperative(function_, {1, groups, 1}, {64, 1, 1}));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(resident, (std::vector<bool>{false, true}));
    EXPECT_FAIL(cooperative(function_, {groups + 1, 1, 1}, {1, 1, 1}), orrErrorInvalidValue, "vector cores");
    EXPECT_FAIL(cooperative(function_, {1u << 31, 1, 1}, {1, 1, 1}), orrErrorInvalidValue, "vector cores");
    EXPECT_FAIL(cooperative(function_, {0, 1, 1}, {1, 1, 1}), orrErrorInvalidValue, "grid");
    EXPECT_FAIL(cooperative(nullptr, {1, 1, 1}, {1, 1, 1}), orrErrorInvalidHandle, "function");
    EXPECT_FAIL(orrOccupancyMaxActiveGroups(nullptr, function_, {1, 1, 1}, 0, 0), orrErrorInvalidValue,
                "groups");
    EXPECT_FAIL(orrOccupancyMaxActiveGroups(&groups, nullptr, {1, 1, 1}, 0, 0), orrErrorInvalidHandle,
                "function");
    EXPECT_FAIL(orrOccupancyMaxActiveGroups(&groups, function_, {1025, 1, 1}, 0, 0), orrErrorInvalidValue,
                "block");
    EXPECT_FAIL(orrOccupancyMaxActiveGroups(&groups, function_, {1, 1, 1}, 1 << 20, 0), orrErrorInvalidValue,
                "work-group memory");
    EXPECT_FAIL(orrOccupancyMaxActiveGroups(&groups, function_, {1, 1, 1}, 0, 1), orrErrorInvalidValue,
                "flags 0x1: give 0");
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(resident.size(), 2u);
}

TEST_F(LaunchTest, CooperativeLaunchesAreNodesOfGraphs) {
    std::vector<bool> resident;
    system_.card().on_dispatch = [&](FakeCard&, const FakeDispatch& dispatch) {
        resident.push_back(dispatch.resident);
        return FakeOutcome{};
    };
    orrLaunchParams params = ORR_INIT(orrLaunchParams);
    params.function = function_;
    params.grid = {FakeCard::kVectorCores, 1, 1};
    params.block = {1, 1, 1};
    params.stream = stream_;
    params.flags = orrLaunchCooperative;
    orrGraph_t graph = nullptr;
    ASSERT_OK(orrStreamBeginCapture(stream_, 0));
    ASSERT_OK(orrLaunchKernelEx(&params));
    ASSERT_OK(orrStreamEndCapture(&graph, stream_));
    orrKernelNodeParams node = ORR_INIT(orrKernelNodeParams);
    node.function = function_;
    node.grid = params.grid;
    node.block = params.block;
    node.flags = orrLaunchCooperative;
    ASSERT_OK(orrGraphAddKernelNode(nullptr, graph, nullptr, 0, &node));
    node.grid.x += 1;
    EXPECT_FAIL(orrGraphAddKernelNode(nullptr, graph, nullptr, 0, &node), orrErrorInvalidValue,
                "vector cores");
    node.flags = 6;
    EXPECT_FAIL(orrGraphAddKernelNode(nullptr, graph, nullptr, 0, &node), orrErrorInvalidValue, "flags 0x6");
    node.flags = 0;
    ASSERT_OK(orrGraphAddKernelNode(nullptr, graph, nullptr, 0, &node));
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(std::ranges::count(resident, true), 2);
    EXPECT_EQ(std::ranges::count(resident, false), 1);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
    // One that could never be there fails the capture.
    ASSERT_OK(orrStreamBeginCapture(stream_, 0));
    params.grid.x += 1;
    EXPECT_FAIL(orrLaunchKernelEx(&params), orrErrorInvalidValue, "vector cores");
    EXPECT_FAIL(orrStreamEndCapture(&graph, stream_), orrErrorInvalidValue, "vector cores");
}

// With no flags it is orrLaunchKernel, whatever else is given.
TEST_F(LaunchTest, AllThatALaunchHasGoesInAStruct) {
    std::vector<FakeDispatch> seen;
    system_.card().on_dispatch = [&](FakeCard&, const FakeDispatch& dispatch) {
        seen.push_back(dispatch);
        return FakeOutcome{};
    };
    const std::uint64_t args = 5;
    orrLaunchParams params = ORR_INIT(orrLaunchParams);
    params.function = function_;
    params.grid = {2, 3, 4};
    params.block = {5, 6, 7};
    params.args = &args;
    params.bytes = sizeof(args);
    params.local_bytes = 99;
    params.stream = stream_;
    ASSERT_OK(orrLaunchKernelEx(&params));
    // A program of a header without flags.
    params.flags = orrLaunchCooperative;
    params.size = offsetof(orrLaunchParams, flags);
    ASSERT_OK(orrLaunchKernelEx(&params));
    ASSERT_OK(orrLaunchKernel(function_, params.grid, params.block, &args, sizeof(args), 99, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    ASSERT_EQ(seen.size(), 3u);
    for (const FakeDispatch& dispatch : seen) {
        EXPECT_FALSE(dispatch.resident);
        EXPECT_EQ(dispatch.grid[2], 4u);
        EXPECT_EQ(dispatch.block[1], 6u);
        EXPECT_EQ(dispatch.local_bytes, 99u);
    }
    params.size = sizeof(params);
    params.flags = 1ull << 40;
    EXPECT_FAIL(orrLaunchKernelEx(&params), orrErrorInvalidValue, "flags 0x10000000000");
    params.flags = 0;
    params.bytes = 5000;
    EXPECT_FAIL(orrLaunchKernelEx(&params), orrErrorInvalidValue, "4096");
    EXPECT_FAIL(orrLaunchKernelEx(nullptr), orrErrorInvalidValue, "orrLaunchParams");
    // What is wrong is part of a capture.
    ASSERT_OK(orrStreamBeginCapture(stream_, 0));
    EXPECT_EQ(orrLaunchKernelEx(&params), orrErrorInvalidValue);
    orrGraph_t graph = nullptr;
    EXPECT_FAIL(orrStreamEndCapture(&graph, stream_), orrErrorInvalidValue, "because a call failed");
}

TEST_F(LaunchTest, ArgumentsAreCopiedAtTheCall) {
    std::vector<std::uint64_t> seen;
    system_.card().on_dispatch = [&](FakeCard& card, const FakeDispatch& dispatch) {
        std::uint64_t fault = 0;
        TestArgs args{};
        const auto* memory = card.translate(dispatch.args, sizeof(args), ORR_BIND_READ, &fault);
        if (memory == nullptr) return FakeOutcome{ORR_QERR_FAULT, dispatch.args, fault};
        std::memcpy(&args, memory, sizeof(args));
        seen.push_back(args.value);
        EXPECT_EQ(dispatch.grid[0], 3u);
        EXPECT_EQ(dispatch.block[1], 5u);
        EXPECT_EQ(dispatch.local_bytes, 77u);
        return FakeOutcome{};
    };
    std::vector<std::byte> big(4096);
    // The argument ring of 256 KiB goes round several times, with all sizes.
    for (std::uint64_t i = 0; i < 3000; ++i) {
        TestArgs args{nullptr, 0, i};
        std::memcpy(big.data(), &args, sizeof(args));
        const std::size_t bytes = sizeof(args) + i * 37 % (4096 - sizeof(args) + 1);
        ASSERT_OK(orrLaunchKernel(function_, {3, 1, 1}, {1, 5, 1}, big.data(), bytes, 77, stream_));
    }
    ASSERT_OK(orrStreamSynchronize(stream_));
    ASSERT_EQ(seen.size(), 3000u);
    for (std::uint64_t i = 0; i < 3000; ++i)
        ASSERT_EQ(seen[i], i);
}

TEST_F(LaunchTest, LaunchMistakesAreExplained) {
    const auto launch = [&](orrDim3 grid, orrDim3 block, const void* args, std::size_t bytes,
                            std::size_t local) {
        return orrLaunchKernel(function_, grid, block, args, bytes, local, stream_);
    };
    std::vector<std::byte> args(5000);
    EXPECT_FAIL(launch({0, 1, 1}, {1, 1, 1}, nullptr, 0, 0), orrErrorInvalidValue, "grid");
    EXPECT_FAIL(launch({65536, 65536, 1}, {1, 1, 1}, nullptr, 0, 0), orrErrorInvalidValue, "2^31");
    EXPECT_FAIL(launch({~0u, ~0u, ~0u}, {1, 1, 1}, nullptr, 0, 0), orrErrorInvalidValue, "2^31");
    EXPECT_FAIL(launch({1, 1, 1}, {1025, 1, 1}, nullptr, 0, 0), orrErrorInvalidValue, "1024");
    EXPECT_FAIL(launch({1, 1, 1}, {65536, 65536, 65536}, nullptr, 0, 0), orrErrorInvalidValue, "1024");
    EXPECT_FAIL(launch({1, 1, 1}, {1, 1, 0}, nullptr, 0, 0), orrErrorInvalidValue, "block");
    EXPECT_FAIL(launch({1, 1, 1}, {1, 1, 1}, args.data(), 4097, 0), orrErrorInvalidValue, "4096");
    EXPECT_FAIL(launch({1, 1, 1}, {1, 1, 1}, nullptr, 8, 0), orrErrorInvalidValue, "args");
    EXPECT_FAIL(launch({1, 1, 1}, {1, 1, 1}, nullptr, 0, ORR_LOCAL_BYTES + 1), orrErrorInvalidValue,
                "work-group");
    orrFunction_t missing = nullptr;
    EXPECT_FAIL(orrModuleGetFunction(&missing, module_, "nothing"), orrErrorNotFound, "add_value");
    ASSERT_OK(orrModuleUnload(module_));
    EXPECT_FAIL(launch({1, 1, 1}, {1, 1, 1}, nullptr, 0, 0), orrErrorInvalidHandle, "function");
    EXPECT_FAIL(orrModuleUnload(module_), orrErrorInvalidHandle, "module");
    module_ = nullptr;
}

TEST_F(LaunchTest, KernelErrorsNameKernelPlaceAndRemedy) {
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 4096));
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    launch_and_fail_with({ORR_QERR_FAULT, address + 4096 + 16, ORR_FAULT_NOT_MAPPED});
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorIllegalAddress, "kernel 'add_value' accessed");
    EXPECT_THAT(orrGetLastErrorText(),
                ::testing::HasSubstr("16 bytes past the end of the allocation of 4096 bytes"));
    ASSERT_OK(orrFree(memory));
}

TEST_F(LaunchTest, TrapIsIllegalInstruction) {
    launch_and_fail_with({ORR_QERR_KERNEL_TRAP, 0x1234, 3});
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorIllegalInstruction, "ebreak");
}

TEST_F(LaunchTest, TimeoutIsLaunchTimeout) {
    launch_and_fail_with({ORR_QERR_TIMEOUT, 0, 0});
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorLaunchTimeout, "endless loop");
}

TEST_F(LaunchTest, StackOverflowAndLocalOverrunAreNamed) {
    launch_and_fail_with({ORR_QERR_FAULT, ORR_STACK_TOP - ORR_STACK_BYTES - 8, ORR_FAULT_NOT_MAPPED});
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorIllegalAddress, "stack overflow?");
    ASSERT_OK(orrStreamDestroy(stream_));
    ASSERT_OK(orrStreamCreate(&stream_, 0));
    launch_and_fail_with({ORR_QERR_FAULT, ORR_LOCAL_BASE + ORR_LOCAL_BYTES, ORR_FAULT_NOT_MAPPED});
    EXPECT_FAIL(orrStreamSynchronize(stream_), orrErrorIllegalAddress, "local_bytes");
}

TEST_F(LaunchTest, ModuleFilesThatAreNone) {
    orrModule_t module = nullptr;
    EXPECT_FAIL(orrModuleLoad(&module, "/nonexistent/x.elf"), orrErrorSystem, "/nonexistent/x.elf");
    EXPECT_FAIL(orrModuleLoad(&module, "/"), orrErrorSystem, "Is a directory");
    EXPECT_FAIL(orrModuleLoad(&module, "/proc/self/exe"), orrErrorInvalidImage, "RISC-V");
    EXPECT_FAIL(orrModuleLoadData(&module, "garbage", 7), orrErrorInvalidImage, "less than an ELF header");
    EXPECT_FAIL(orrModuleLoadData(&module, nullptr, 7), orrErrorInvalidValue, "null");
}

// By what a card says that it runs; one that says nothing, or no ISA, has no vectors.
TEST(ModuleIsa, IsCheckedWhenAModuleIsLoaded) {
    FakeSystem system(5);
    system.card(1).vector_isa = "rv64imafdcv_zicsr_zifencei_zvl2048b";
    system.card(2).vector_isa = "rv64imafdcv_zicsr_zifencei_zvl256b";
    system.card(3).vector_isa = "rv64imafdcv\x01";
    system.card(4).vector_isa = std::string(128, 'v');
    orrModule_t module = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrModuleLoad(&module, VECTOR_KERNEL));
    ASSERT_OK(orrModuleUnload(module));
    ASSERT_OK(orrSetDevice(2));
    EXPECT_FAIL(orrModuleLoad(&module, VECTOR_KERNEL), orrErrorNotSupported,
                "umd_vector_kernel.elf needs VLEN >= 512; device 2 has rv64imafdcv_zicsr_zifencei_zvl256b");
    for (const int device : {0, 3, 4}) {
        ASSERT_OK(orrSetDevice(device));
        EXPECT_FAIL(orrModuleLoad(&module, VECTOR_KERNEL), orrErrorNotSupported,
                    "umd_vector_kernel.elf needs v with VLEN >= 512; device " + std::to_string(device) +
                        " has rv64imafdc_");
        ASSERT_OK(orrModuleLoad(&module, TEST_KERNELS));
        ASSERT_OK(orrModuleUnload(module));
    }
}

// Compilers let modules with 16-bit vectors need the scalar instructions too.
TEST(ModuleIsa, SixteenBitFloatingPointIsWithItsScalars) {
    FakeSystem system(2);
    system.card(0).vector_isa =
        "rv64imafdcv_zicntr_zicsr_zifencei_zfbfmin_zfhmin_zvfbfmin_zvfbfwma_zvfh_zvl128b";
    system.card(1).vector_isa = "rv64imafdcv_zicntr_zicsr_zifencei_zvfbfmin_zvfbfwma_zvfh_zvl128b";
    orrModule_t module = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrModuleLoad(&module, HALF_KERNEL));
    ASSERT_OK(orrModuleUnload(module));
    ASSERT_OK(orrSetDevice(1));
    EXPECT_FAIL(orrModuleLoad(&module, HALF_KERNEL), orrErrorNotSupported,
                "umd_half_kernel.elf needs zfbfmin, zfhmin; device 1 has rv64imafdcv_");
}

}  // namespace
}  // namespace orrery::umd::test
