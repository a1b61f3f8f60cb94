// Variables and attributes of what a module has.
#include <orrery/graph.h>
#include <orrery/hw/kernel_abi.h>

#include <array>
#include <atomic>
#include <numeric>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "tests/unit/umd/made_image.h"

namespace orrery::umd::test {
namespace {

class ModuleTest : public ::testing::Test {
  protected:
    struct Variable {
        std::uint64_t* words = nullptr;
        std::size_t bytes = 0;
    };
    static orrModule_t load(int device, const char* path = TEST_KERNELS) {
        orrModule_t module = nullptr;
        EXPECT_OK(orrSetDevice(device));
        EXPECT_OK(orrModuleLoad(&module, path));
        return module;
    }
    static Variable variable(orrModule_t module, const char* name) {
        void* address = nullptr;
        Variable found;
        EXPECT_OK(orrModuleGetGlobal(&address, &found.bytes, module, name));
        found.words = static_cast<std::uint64_t*>(address);
        return found;
    }
    static std::uint64_t read(const std::uint64_t* word) {
        std::uint64_t value = 0;
        EXPECT_OK(orrMemcpy(&value, word, sizeof(value), orrMemcpyDeviceToHost));
        return value;
    }
    static orrFuncAttributes attributes(orrFunction_t function) {
        orrFuncAttributes all = ORR_INIT(orrFuncAttributes);
        EXPECT_OK(orrFuncGetAttributes(&all, function));
        return all;
    }

    FakeSystem system_{2};
};

TEST_F(ModuleTest, VariablesHaveTheirFirstValuesInEachModule) {
    orrModule_t modules[] = {load(0), load(0), load(1)};
    for (orrModule_t module : modules) {
        const Variable counter = variable(module, "shared_counter");
        ASSERT_EQ(counter.bytes, 8u);
        EXPECT_EQ(read(counter.words), 40u);
        const Variable table = variable(module, "shared_table");
        ASSERT_EQ(table.bytes, 8000u);
        std::vector<std::uint64_t> words(1000, 1);
        ASSERT_OK(orrMemcpy(words.data(), table.words, 8000, orrMemcpyDefault));
        EXPECT_EQ(std::accumulate(words.begin(), words.end(), std::uint64_t{0}), 0u);
        const Variable constants = variable(module, "shared_constants");
        ASSERT_EQ(constants.bytes, 24u);
        EXPECT_EQ(read(constants.words + 2), 5u);
    }
    const std::uint64_t value = 77;
    ASSERT_OK(orrMemcpy(variable(modules[1], "shared_counter").words, &value, 8, orrMemcpyHostToDevice));
    EXPECT_EQ(read(variable(modules[0], "shared_counter").words), 40u);
    EXPECT_EQ(read(variable(modules[1], "shared_counter").words), 77u);
    EXPECT_EQ(read(variable(modules[2], "shared_counter").words), 40u);
    for (orrModule_t module : modules)
        ASSERT_OK(orrModuleUnload(module));
}

TEST_F(ModuleTest, StreamsAndGraphsTakeVariables) {
    orrModule_t module = load(0);
    std::uint64_t* const table = variable(module, "shared_table").words;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrMemsetD64Async(table, 9, 1000, stream));
    ASSERT_OK(orrMemcpyAsync(table + 1, table, 8, orrMemcpyDeviceToDevice, stream));
    ASSERT_OK(orrMemcpyReduceAsync(table + 2, table, 1, orrUint64, orrReduceSum, 0, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    EXPECT_EQ(read(table + 2), 18u);
    EXPECT_EQ(read(table + 999), 9u);
    orrGraph_t graph = nullptr;
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrStreamBeginCapture(stream, 0));
    ASSERT_OK(orrMemsetD64Async(table, 1, 2, stream));
    ASSERT_OK(orrStreamEndCapture(&graph, stream));
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream));
    ASSERT_OK(orrStreamSynchronize(stream));
    EXPECT_EQ(read(table + 1), 1u);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrModuleUnload(module));
}

TEST_F(ModuleTest, VariablesEndWhereTheyEnd) {
    orrModule_t module = load(0);
    const Variable table = variable(module, "shared_table");
    const Variable constants = variable(module, "shared_constants");
    std::array<std::uint64_t, 1001> words{};
    EXPECT_FAIL(orrMemcpy(table.words, words.data(), 8001, orrMemcpyDefault), orrErrorInvalidValue,
                "past its variable of a module, of 8000 bytes");
    EXPECT_FAIL(orrMemcpy(words.data(), table.words + 1, 8000, orrMemcpyDefault), orrErrorInvalidValue,
                "past its variable");
    EXPECT_FAIL(orrMemset(table.words + 999, 0, 9), orrErrorInvalidValue, "past its variable");
    EXPECT_FAIL(orrMemcpy2D(table.words, 4096, words.data(), 8, 8, 3, orrMemcpyDefault), orrErrorInvalidValue,
                "past its variable");
    EXPECT_FAIL(orrMemcpy(constants.words, words.data(), 8, orrMemcpyDefault), orrErrorInvalidValue,
                "constant of a module");
    EXPECT_FAIL(orrMemset(constants.words, 0, 8), orrErrorInvalidValue, "constant of a module");
    EXPECT_FAIL(orrMemcpy2D(constants.words, 8, words.data(), 8, 8, 2, orrMemcpyDefault),
                orrErrorInvalidValue, "constant of a module");
    EXPECT_FAIL(orrMemcpyReduce(constants.words, table.words, 1, orrUint64, orrReduceSum, 0),
                orrErrorInvalidValue, "constant of a module");
    EXPECT_EQ(read(constants.words), 2u);
    EXPECT_FAIL(orrFree(table.words), orrErrorInvalidValue, "goes with its module");
    EXPECT_EQ(read(table.words), 0u) << "it is still there";
    ASSERT_OK(orrModuleUnload(module));
    EXPECT_FAIL(orrMemcpy(words.data(), table.words, 8, orrMemcpyDefault), orrErrorInvalidValue,
                "Was it freed?");
}

TEST_F(ModuleTest, VariablesAreTheirOwnDevices) {
    orrModule_t module = load(1);
    std::uint64_t* const counter = variable(module, "shared_counter").words;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 64));
    EXPECT_FAIL(orrMemcpy(counter, memory, 8, orrMemcpyDefault), orrErrorPeerAccess,
                "a variable of a module on device 1");
    // From elsewhere the call finds the variable's device.
    const std::uint64_t value = 3;
    ASSERT_OK(orrMemcpy(counter, &value, 8, orrMemcpyDefault));
    EXPECT_EQ(read(counter), 3u);
    {
        const std::lock_guard lock(system_.card(0).mutex());
        for (const auto& [va, mapping] : system_.card(0).mappings) {
            EXPECT_FALSE(va <= reinterpret_cast<std::uintptr_t>(counter) &&
                         reinterpret_cast<std::uintptr_t>(counter) - va < mapping.size)
                << "a peer sees the module";
        }
    }
    ASSERT_OK(orrFree(memory));
    ASSERT_OK(orrModuleUnload(module));
}

TEST_F(ModuleTest, VariablesThatThereAreNot) {
    orrModule_t module = load(0);
    void* address = nullptr;
    std::size_t bytes = 0;
    EXPECT_FAIL(orrModuleGetGlobal(&address, &bytes, module, "nothing"), orrErrorNotFound,
                "it has: shared_constants, shared_counter, shared_table. Is it marked ORR_GLOBAL?");
    EXPECT_FAIL(orrModuleGetGlobal(&address, &bytes, module, "add_value"), orrErrorNotFound, "no variable");
    EXPECT_FAIL(orrModuleGetGlobal(&address, &bytes, module, "orr_output"), orrErrorNotFound, "no variable");
    EXPECT_FAIL(orrModuleGetGlobal(nullptr, nullptr, module, "shared_table"), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrModuleGetGlobal(&address, &bytes, module, nullptr), orrErrorInvalidValue, "name");
    EXPECT_FAIL(orrModuleGetGlobal(&address, &bytes, nullptr, "shared_table"), orrErrorInvalidHandle,
                "module");
    ASSERT_OK(orrModuleGetGlobal(nullptr, &bytes, module, "shared_table"));
    ASSERT_OK(orrModuleGetGlobal(&address, nullptr, module, "shared_table"));
    EXPECT_EQ(bytes, 8000u);
    ASSERT_OK(orrModuleUnload(module));
    EXPECT_FAIL(orrModuleGetGlobal(&address, &bytes, module, "shared_table"), orrErrorInvalidHandle,
                "module");
}

// A file may have any names, and many of them.
TEST_F(ModuleTest, NamesInTextsOfErrorsAreShortAndPlain) {
    MadeImage made;
    const std::string evil = "\n\x1b[2J\x9b" + std::string(3000, 'x');
    for (std::uint32_t i = 0; i < 1000; ++i) {
        const std::uint32_t name = made.add_text("n" + std::to_string(i) + evil);
        made.add_variable(name, 64 * i, 64);
        made.add_function(name);
    }
    const auto plain = [](orrError_t code) {
        EXPECT_NE(code, orrSuccess);
        const std::string text = orrGetLastErrorText();
        EXPECT_LT(text.size(), 2000u);
        EXPECT_EQ(text.find_first_of("\n\x1b\x9b"), std::string::npos) << text;
        return text;
    };
    const auto image = made.bytes();
    orrModule_t module = nullptr;
    orrLibrary_t library = nullptr;
    orrFunction_t kernel = nullptr;
    void* address = nullptr;
    ASSERT_OK(orrModuleLoadData(&module, image.data(), image.size()));
    ASSERT_OK(orrLibraryLoadData(&library, image.data(), image.size()));
    EXPECT_THAT(plain(orrModuleGetGlobal(&address, nullptr, module, "nothing")),
                ::testing::ContainsRegex("has no variable 'nothing'; it has: n0.* and 99[0-9] more\\. Is"));
    EXPECT_THAT(plain(orrModuleGetFunction(&kernel, module, evil.c_str())),
                ::testing::ContainsRegex("no kernel '.*it has: n0.* and 99[0-9] more\\. Is"));
    plain(orrLibraryGetFunction(&kernel, library, "nothing"));
    // A kernel that fails, and one that is asked for what it cannot do.
    ASSERT_OK(orrModuleGetFunction(&kernel, module, ("n7" + evil).c_str()));
    plain(orrFuncSetAttribute(kernel, orrFuncAttributeItemStackBytes, 4096));
    system_.card().on_dispatch = [](FakeCard&, const FakeDispatch& dispatch) {
        return FakeOutcome{ORR_QERR_KERNEL_TRAP, dispatch.entry, 3};
    };
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrLaunchKernel(kernel, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream));
    EXPECT_THAT(plain(orrStreamSynchronize(stream)), ::testing::StartsWith("kernel 'n7??[2J?xxx"));
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrLibraryUnload(library));
    ASSERT_OK(orrModuleUnload(module));
}

TEST_F(ModuleTest, AGraphIsNotLaunchedWithoutItsKernels) {
    std::atomic<int> launches{0};
    system_.card().on_dispatch = [&](FakeCard&, const FakeDispatch&) {
        ++launches;
        return FakeOutcome{};
    };
    orrModule_t module = load(0), other = load(0);
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    orrGraph_t graph = nullptr;
    orrGraphExec_t exec = nullptr, more = nullptr;
    ASSERT_OK(orrGraphCreate(&graph, 0));
    for (orrModule_t of : {other, module}) {
        orrKernelNodeParams params = ORR_INIT(orrKernelNodeParams);
        ASSERT_OK(orrModuleGetFunction(&params.function, of, of == module ? "trap" : "add_value"));
        params.grid = params.block = {1, 1, 1};
        ASSERT_OK(orrGraphAddKernelNode(nullptr, graph, nullptr, 0, &params));
    }
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrGraphLaunch(exec, stream));
    ASSERT_OK(orrModuleUnload(module));  // waits for it
    EXPECT_EQ(launches, 2);
    orrModule_t next = load(0);  // where the first one was
    EXPECT_FAIL(orrGraphLaunch(exec, stream), orrErrorInvalidHandle,
                "kernel 'trap' of the graph is gone: its module or library was unloaded");
    EXPECT_FAIL(orrGraphInstantiate(&more, graph, 0), orrErrorInvalidHandle, "unloaded");
    EXPECT_OK(orrStreamSynchronize(stream));
    EXPECT_EQ(launches, 2) << "nor the other kernel";
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
    ASSERT_OK(orrStreamDestroy(stream));
    for (orrModule_t each : {other, next})
        ASSERT_OK(orrModuleUnload(each));
}

TEST_F(ModuleTest, AttributesOfKernels) {
    orrModule_t module = load(0);
    orrFunction_t plain = nullptr, deep = nullptr;
    ASSERT_OK(orrModuleGetFunction(&plain, module, "add_value"));
    ASSERT_OK(orrModuleGetFunction(&deep, module, "use_more_stack"));
    orrFuncAttributes all = attributes(plain);
    EXPECT_EQ(all.size, sizeof all);
    EXPECT_GT(all.code_bytes, 8u);
    EXPECT_LT(all.code_bytes, 4096u);
    EXPECT_EQ(all.max_items, 1024u);
    EXPECT_EQ(all.max_local_bytes, ORR_LOCAL_BYTES);
    EXPECT_EQ(all.stack_bytes, ORR_STACK_BYTES);
    EXPECT_EQ(all.item_stack_bytes, 4096u);
    EXPECT_EQ(all.vlen, 0u);
    EXPECT_STREQ(all.isa, "rv64imafdc_zicsr_zmmul");
    EXPECT_THAT(std::string(all.source), ::testing::ContainsRegex("tests/vm/umd/kernels.cc:[0-9]+$"));
    EXPECT_EQ(attributes(deep).item_stack_bytes, 16384u);
    // What an older program's struct has no room for stays untouched.
    all = ORR_INIT(orrFuncAttributes);
    all.size = offsetof(orrFuncAttributes, vlen);
    all.vlen = 99;
    ASSERT_OK(orrFuncGetAttributes(&all, deep));
    EXPECT_EQ(all.item_stack_bytes, 16384u);
    EXPECT_EQ(all.vlen, 99u);
    EXPECT_FAIL(orrFuncGetAttributes(nullptr, plain), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrFuncGetAttributes(&all, nullptr), orrErrorInvalidHandle, "function");
    all.size = 7;
    EXPECT_FAIL(orrFuncGetAttributes(&all, plain), orrErrorInvalidValue, "ORR_INIT");
    ASSERT_OK(orrModuleUnload(module));
    all = ORR_INIT(orrFuncAttributes);
    EXPECT_FAIL(orrFuncGetAttributes(&all, plain), orrErrorInvalidHandle, "function");
}

TEST_F(ModuleTest, ItemStacksAreSetForOneHandle) {
    orrModule_t module = load(0);
    orrFunction_t kernel = nullptr, other = nullptr;
    ASSERT_OK(orrModuleGetFunction(&kernel, module, "add_value"));
    ASSERT_OK(orrModuleGetFunction(&other, module, "add_value"));
    ASSERT_OK(orrFuncSetAttribute(kernel, orrFuncAttributeItemStackBytes, 10000));
    EXPECT_EQ(attributes(kernel).item_stack_bytes, 12288u);
    EXPECT_EQ(attributes(other).item_stack_bytes, 4096u);
    std::vector<std::uint16_t> pages;
    system_.card().on_dispatch = [&](FakeCard&, const FakeDispatch& dispatch) {
        pages.push_back(dispatch.item_stack_pages);
        return FakeOutcome{};
    };
    for (orrFunction_t each : {kernel, other})
        ASSERT_OK(orrLaunchKernel(each, {1, 1, 1}, {2, 1, 1}, nullptr, 0, 0, nullptr));
    ASSERT_OK(orrStreamSynchronize(nullptr));
    EXPECT_EQ(pages, (std::vector<std::uint16_t>{3, 1}));
    const auto set = [&](std::uint64_t bytes) {
        return orrFuncSetAttribute(kernel, orrFuncAttributeItemStackBytes, bytes);
    };
    EXPECT_FAIL(set(0), orrErrorInvalidValue, "at least 1");
    EXPECT_FAIL(set((512 << 10) + 1), orrErrorInvalidValue, "at most 524288");
    EXPECT_FAIL(set(~std::uint64_t{0}), orrErrorInvalidValue, "at most 524288");
    EXPECT_FAIL(orrFuncSetAttribute(kernel, static_cast<orrFuncAttribute>(0), 1), orrErrorInvalidValue,
                "orrFuncAttribute");
    EXPECT_FAIL(orrFuncSetAttribute(nullptr, orrFuncAttributeItemStackBytes, 1), orrErrorInvalidHandle,
                "function");
    EXPECT_EQ(attributes(kernel).item_stack_bytes, 12288u) << "what was refused changed nothing";
    ASSERT_OK(orrModuleUnload(module));
    EXPECT_FAIL(set(4096), orrErrorInvalidHandle, "function");
}

TEST_F(ModuleTest, KernelsWithoutBarriersHaveNoItemStacks) {
    system_.card(0).vector_isa = "rv64imafdcv_zicsr_zifencei_zvl512b";
    orrModule_t module = load(0, VECTOR_KERNEL);
    orrFunction_t kernel = nullptr;
    ASSERT_OK(orrModuleGetFunction(&kernel, module, "twice"));
    EXPECT_EQ(attributes(kernel).item_stack_bytes, 0u);
    EXPECT_EQ(attributes(kernel).vlen, 512u);
    EXPECT_STREQ(attributes(kernel).source, "");
    EXPECT_FAIL(orrFuncSetAttribute(kernel, orrFuncAttributeItemStackBytes, 4096), orrErrorInvalidValue,
                "waits at a barrier");
    ASSERT_OK(orrModuleUnload(module));
}

}  // namespace
}  // namespace orrery::umd::test
