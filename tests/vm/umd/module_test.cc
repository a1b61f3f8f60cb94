// Variables of modules, and launches whose groups wait for each other, on real cards.
#include <orrery/graph.h>

#include <cstring>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

std::uint64_t* variable(orrModule_t module, const char* name) {
    void* address = nullptr;
    EXPECT_OK(orrModuleGetGlobal(&address, nullptr, module, name));
    return static_cast<std::uint64_t*>(address);
}

std::uint64_t read(const std::uint64_t* word) {
    std::uint64_t value = 0;
    EXPECT_OK(orrMemcpy(&value, word, sizeof(value), orrMemcpyDefault));
    return value;
}

// Kernels and copies see the same variables, those of this module on this card alone.
void use_globals(int device) {
    Card one(device), other(device);
    void* memory = nullptr;
    ASSERT_OK(orrMallocHost(&memory, 24, 0));
    auto* words = static_cast<std::uint64_t*>(memory);
    const auto run = [&](Card& card, std::uint64_t value) {
        ASSERT_OK(card.launch("use_globals", {words, 0, value}));
        ASSERT_OK(orrStreamSynchronize(card.stream));
    };
    EXPECT_EQ(read(variable(one.module, "shared_constants") + 2), 5u);
    run(one, 2);
    EXPECT_EQ(words[0], 42u);
    EXPECT_EQ(words[1], 10u);
    EXPECT_EQ(words[2], 0u);
    run(one, 1);
    EXPECT_EQ(words[0], 43u);
    EXPECT_EQ(words[1], 20u);
    words[0] = 1000;
    ASSERT_OK(orrMemcpyAsync(variable(one.module, "shared_counter"), words, 8, orrMemcpyDefault, one.stream));
    ASSERT_OK(orrMemsetD64Async(variable(one.module, "shared_table"), 7, 1000, one.stream));
    run(one, 3);
    EXPECT_EQ(words[0], 1003u);
    EXPECT_EQ(words[1], 17u);
    EXPECT_EQ(words[2], 7u);
    EXPECT_EQ(read(variable(one.module, "shared_counter")), 1003u);
    EXPECT_EQ(read(variable(one.module, "shared_table") + 999), 17u);
    run(other, 1);
    EXPECT_EQ(words[0], 41u);
    EXPECT_EQ(words[1], 10u);
    EXPECT_EQ(words[2], 0u);
    ASSERT_OK(orrFreeHost(memory));
}

TEST(Module, VariablesAreEachModulesOwn) {
    use_globals(0);
}

TEST(TwoModules, VariablesAreEachCardsOwn) {
    use_globals(1);
    use_globals(0);
}

TEST(Module, ItemStackOfAKernelIsSet) {
    Card card(0);
    orrFunction_t kernel = card.kernel("use_stack");
    void* memory = nullptr;
    ASSERT_OK(orrMallocHost(&memory, 64, 0));
    const TestArgs args{static_cast<std::uint64_t*>(memory), 0, 30000};
    const auto run = [&] {
        EXPECT_OK(orrLaunchKernel(kernel, {1, 1, 1}, {4, 1, 1}, &args, sizeof(args), 0, card.stream));
        return orrStreamSynchronize(card.stream);
    };
    EXPECT_FAIL(run(), orrErrorIllegalAddress, "stack");
    card.renew_stream();
    ASSERT_OK(orrFuncSetAttribute(kernel, orrFuncAttributeItemStackBytes, 32768));
    EXPECT_OK(run());
    ASSERT_OK(orrFreeHost(memory));
}

class Cooperative : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrOccupancyMaxActiveGroups(&groups_, card_.kernel("meet"), {1, 1, 1}, 0, 0));
        ASSERT_GT(groups_, 1u);
    }
    orrError_t launch(const TestArgs& args, std::uint32_t groups, const char* name = "meet",
                      std::uint32_t items = 1) {
        orrLaunchParams launch = ORR_INIT(orrLaunchParams);
        launch.function = card_.kernel(name);
        launch.grid = {groups, 1, 1};
        launch.block = {items, 1, 1};
        launch.args = &args;
        launch.bytes = sizeof(args);
        launch.stream = card_.stream;
        launch.flags = orrLaunchCooperative;
        return orrLaunchKernelEx(&launch);
    }

    Card card_{0};
    std::uint32_t groups_ = 0;
};

TEST_F(Cooperative, GroupsWaitForEachOther) {
    const std::size_t bytes = 8 * (groups_ + 2);
    void *card_memory = nullptr, *pinned = nullptr;
    ASSERT_OK(orrMalloc(&card_memory, bytes));
    ASSERT_OK(orrMallocHost(&pinned, bytes, 0));
    for (void* memory : {card_memory, pinned}) {
        ASSERT_OK(orrMemset(memory, 0, bytes));
        auto* words = static_cast<std::uint64_t*>(memory);
        ASSERT_OK(launch({words, groups_, 5}, groups_));
        ASSERT_OK(orrStreamSynchronize(card_.stream));
        EXPECT_EQ(read(words), 5u * groups_);
        for (std::uint32_t group = 0; group < groups_; ++group)
            EXPECT_EQ(read(words + 1 + group), 5u) << group;
    }
    // One more than there are cores cannot ever be there at one moment.
    EXPECT_FAIL(launch({static_cast<std::uint64_t*>(pinned), groups_ + 1, 1}, groups_ + 1),
                orrErrorInvalidValue, "vector cores");
    ASSERT_OK(orrMemset(pinned, 0, bytes));
    EXPECT_OK(launch({static_cast<std::uint64_t*>(pinned), groups_, 1}, groups_)) << "nothing is lost by it";
    EXPECT_OK(orrStreamSynchronize(card_.stream));
    ASSERT_OK(orrFree(card_memory));
    ASSERT_OK(orrFreeHost(pinned));
}

TEST_F(Cooperative, WaitsForCoresThatOthersHave) {
    const std::size_t bytes = 8 * (groups_ + 2);
    void *pinned = nullptr, *told = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, bytes, 0));
    ASSERT_OK(orrMallocHost(&told, 16, 0));
    std::memset(pinned, 0, bytes);
    std::memset(told, 0, 16);
    auto* words = static_cast<std::uint64_t*>(pinned);
    auto* orders = static_cast<volatile std::uint64_t*>(told);
    Card other(0);
    ASSERT_OK(other.launch("obey", {static_cast<std::uint64_t*>(told), kObeyEnd, 0}));
    while (orders[1] == 0)
        ASSERT_EQ(orrStreamQuery(other.stream), orrErrorNotReady) << orrGetLastErrorText();
    ASSERT_OK(launch({words, groups_, 3}, groups_));
    orders[0] = 1;
    ASSERT_OK(orrStreamSynchronize(card_.stream));
    ASSERT_OK(orrStreamSynchronize(other.stream));
    EXPECT_EQ(words[0], 3u * groups_);
    ASSERT_OK(orrFreeHost(pinned));
    ASSERT_OK(orrFreeHost(told));
}

TEST_F(Cooperative, GridBarriersHoldAllGroups) {
    constexpr std::uint64_t kRounds = 20;
    const std::size_t words = groups_ + 3;
    void *card_memory = nullptr, *pinned = nullptr;
    ASSERT_OK(orrMalloc(&card_memory, 8 * words));
    ASSERT_OK(orrMallocHost(&pinned, 8 * words, 0));
    for (void* memory : {card_memory, pinned}) {
        for (const std::uint32_t items : {1u, 3u}) {
            ASSERT_OK(orrMemset(memory, 0, 8 * words));
            auto* data = static_cast<std::uint64_t*>(memory);
            ASSERT_OK(launch({data, groups_, kRounds}, groups_, "take_rounds", items));
            ASSERT_OK(orrStreamSynchronize(card_.stream));
            for (std::uint32_t group = 0; group < groups_; ++group)
                EXPECT_EQ(read(data + 1 + group), kRounds) << group;
            EXPECT_EQ(read(data + 1 + groups_), 0u) << "a group was behind others";
        }
    }
    ASSERT_OK(orrFree(card_memory));
    ASSERT_OK(orrFreeHost(pinned));
}

TEST_F(Cooperative, IsANodeOfAGraph) {
    void* pinned = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, 8 * (groups_ + 1), 0));
    auto* words = static_cast<std::uint64_t*>(pinned);
    orrGraph_t graph = nullptr;
    orrGraphExec_t exec = nullptr;
    ASSERT_OK(orrStreamBeginCapture(card_.stream, 0));
    ASSERT_OK(orrMemsetAsync(pinned, 0, 8, card_.stream));
    ASSERT_OK(launch({words, groups_, 3}, groups_));
    ASSERT_OK(orrStreamEndCapture(&graph, card_.stream));
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 3; ++round) {
        ASSERT_OK(orrGraphLaunch(exec, card_.stream));
        ASSERT_OK(orrStreamSynchronize(card_.stream));
        EXPECT_EQ(words[0], 3u * groups_);
    }
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
    ASSERT_OK(orrFreeHost(pinned));
}

}  // namespace
}  // namespace orrery::umd::vm
