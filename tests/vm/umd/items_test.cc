// Kernels whose items work together, and what kernels say: on a real card.
#include <bit>
#include <numeric>

#include <orrery/graph.h>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

using ::testing::HasSubstr;

class Items : public ::testing::Test {
  protected:
    static constexpr std::size_t kWords = 1 << 15;
    void SetUp() override {
        void* memory = nullptr;
        ASSERT_OK(orrMallocHost(&memory, kWords * 8, 0));
        words_ = static_cast<std::uint64_t*>(memory);
        std::fill_n(words_, kWords, 0);
    }
    void TearDown() override {
        card_.renew_stream();
        ASSERT_OK(orrFreeHost(words_));
    }
    orrError_t run(const char* kernel, std::uint64_t count, std::uint64_t value, std::uint32_t groups,
                   std::uint32_t items, std::size_t local = 0) {
        const orrError_t launched = card_.launch(kernel, {words_, count, value}, groups, items, local);
        return launched != orrSuccess ? launched : orrStreamSynchronize(card_.stream);
    }
    void expect_fault(const char* kernel, std::uint64_t value, orrError_t code,
                      std::initializer_list<const char*> texts) {
        EXPECT_EQ(run(kernel, 1, value, 3, 8), code) << kernel;
        for (const char* text : texts)
            EXPECT_THAT(orrGetLastErrorText(), HasSubstr(text));
        card_.renew_stream();
    }

    Card card_{0};
    std::uint64_t* words_ = nullptr;
};

TEST_F(Items, ReduceOverBarriers) {
    // A stream grows its stacks from one launch to the next.
    for (const std::uint32_t items : {1u, 7u, 64u, 1024u}) {
        constexpr std::uint32_t kGroups = 11;
        constexpr std::uint64_t kCount = 20'000;
        std::iota(words_ + kGroups, words_ + kGroups + kCount, 1);
        ASSERT_OK(run("reduce_groups", kCount, 0, kGroups, items));
        EXPECT_EQ(std::accumulate(words_, words_ + kGroups, std::uint64_t{0}), kCount * (kCount + 1) / 2);
        // Each group has its own share.
        std::uint64_t first = 0;
        for (std::uint64_t i = 0; i < kCount; ++i)
            first += i % (std::uint64_t{kGroups} * items) < items ? i + 1 : 0;
        EXPECT_EQ(words_[0], first);
    }
}

TEST_F(Items, SortInWorkGroupMemory) {
    constexpr std::uint32_t kGroups = 20, kItems = 50;
    std::mt19937_64 random(5);
    std::generate_n(words_, kGroups * kItems, random);
    std::vector<std::uint64_t> expected(words_, words_ + kGroups * kItems);
    ASSERT_OK(run("sort_groups", kItems, 0, kGroups, kItems, kItems * 8));
    for (std::uint32_t group = 0; group < kGroups; ++group)
        std::sort(expected.begin() + group * kItems, expected.begin() + (group + 1) * kItems);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), words_));
}

TEST_F(Items, GroupOperations) {
    constexpr std::uint32_t kGroups = 3, kItems = 9;
    ASSERT_OK(run("group_operations", 0, 0, kGroups, kItems));
    double sum = 0;
    for (std::uint32_t i = 0; i < kItems; ++i)
        sum = i == 0 ? 1.0 : sum + 1.0 / (i + 1);
    for (std::uint32_t i = 0; i < kGroups * kItems; ++i) {
        const std::uint32_t self = i % kItems, next = (self + 1) % kItems;
        const std::uint64_t* out = words_ + 6 * i;
        EXPECT_EQ(std::bit_cast<double>(out[0]), sum);
        EXPECT_EQ(out[1], 0 + 100 * 5u);
        EXPECT_EQ(out[2], std::uint64_t{next} * next);
        EXPECT_EQ(out[3], 5u);
        EXPECT_EQ(out[4], std::uint64_t{self} * (self + 1) / 2);
        EXPECT_EQ(out[5], 3u + 1000);
    }
}

TEST_F(Items, DivergenceNamesKernelItemAndBothPlaces) {
    expect_fault("leave_barrier", 5, orrErrorIllegalInstruction,
                 {"kernel 'leave_barrier' ended while the items before it wait at the barrier at ",
                  "kernels.cc:", "group 0, item 5"});
    expect_fault("leave_barrier", 0, orrErrorIllegalInstruction, {"had ended without it", "item 1"});
    expect_fault("take_other_barrier", 2, orrErrorIllegalInstruction,
                 {"came to the barrier at ", "wait at that at ", "take_other_barrier", "item 2"});
}

TEST_F(Items, AStackThatOverflowsSaysSo) {
    ASSERT_OK(run("use_stack", 1, 3000, 3, 8));
    expect_fault("use_stack", 6000, orrErrorIllegalAddress,
                 {"below the stack of item 1, of 4096 bytes: a stack overflow?", "ORR_ITEM_STACK"});
    ASSERT_OK(run("use_more_stack", 1, 6000, 3, 8));
}

TEST_F(Items, AGraphOfKernelsWithBarriers) {
    orrGraph_t graph = nullptr;
    orrGraphExec_t exec = nullptr;
    std::iota(words_ + 11, words_ + 11 + 1000, 1);
    ASSERT_OK(orrStreamBeginCapture(card_.stream, 0));
    ASSERT_OK(card_.launch("reduce_groups", {words_, 1000, 0}, 11, 100));
    ASSERT_OK(orrStreamEndCapture(&graph, card_.stream));
    ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
    ASSERT_OK(orrGraphLaunch(exec, card_.stream));
    ASSERT_OK(orrStreamSynchronize(card_.stream));
    EXPECT_EQ(std::accumulate(words_, words_ + 11, std::uint64_t{0}), 1000u * 1001 / 2);
    ASSERT_OK(orrGraphExecDestroy(exec));
    ASSERT_OK(orrGraphDestroy(graph));
}

TEST_F(Items, PrintfComesWholeAndInOrder) {
    constexpr std::uint32_t kGroups = 5, kItems = 3, kLines = 4;
    ::testing::internal::CaptureStdout();
    const orrError_t done = run("say", kLines, 0xabc, kGroups, kItems);
    const std::string text = ::testing::internal::GetCapturedStdout();
    ASSERT_OK(done);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kGroups * kItems * kLines);
    for (std::uint32_t group = 0; group < kGroups; ++group) {
        for (std::uint32_t item = 0; item < kItems; ++item) {
            std::size_t at = 0;
            for (std::uint32_t i = 0; i < kLines; ++i) {
                const std::string line = "group " + std::to_string(group) + " item  " + std::to_string(item) +
                                         ": line " + std::to_string(i) + ".500 0xabc " +
                                         static_cast<char>('a' + i) + "%\n";
                at = text.find(line, at);
                ASSERT_NE(at, std::string::npos) << line;
            }
        }
    }
}

TEST_F(Items, WhatFindsNoRoomIsCounted) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const orrError_t done = run("say", 5000, 1, 1, 1);
    const std::string text = ::testing::internal::GetCapturedStdout();
    const std::string told = ::testing::internal::GetCapturedStderr();
    ASSERT_OK(done);
    // %c prints some line feeds of its own.
    std::int64_t lines = 0;
    for (std::size_t at = 0; (at = text.find(": line ", at)) != std::string::npos; ++at)
        ++lines;
    EXPECT_GT(lines, 1000);
    EXPECT_THAT(told, HasSubstr(std::to_string(5000 - lines) + " calls of printf in kernels found no room"));
}

TEST_F(Items, AKernelThatScribblesOverTheOutputHarmsOnlyThat) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        ::testing::internal::CaptureStdout();
        ::testing::internal::CaptureStderr();
        const orrError_t said = run("say", 2, 1, 1, 1);
        const orrError_t done = run("scribble_on_output", seed * 100, seed, 1, 1);
        const orrError_t again = run("say", 2, 1, 1, 1);
        const std::string text = ::testing::internal::GetCapturedStdout();
        ::testing::internal::GetCapturedStderr();
        ASSERT_OK(said);
        ASSERT_OK(done);
        ASSERT_OK(again);
        EXPECT_THAT(text, HasSubstr("group 0 item  0: line 1.500"));
    }
}

}  // namespace
}  // namespace orrery::umd::vm
