// Kernels that go wrong in every way: the right error, with a text that helps, and all others go on.
#include <orrery/hw/kernel_abi.h>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

class BadKernel : public ::testing::Test {
  protected:
    void SetUp() override {
        other_ = start_worker("add");
        ASSERT_OK(orrMalloc(&memory_, 4096));
    }
    void TearDown() override {
        // The stream is dead, the card is not: a new stream works, and so does the other process.
        card_.renew_stream();
        ASSERT_OK(orrMemset(memory_, 0, 4096));
        ASSERT_OK(card_.launch("add_value", {words(), 512, 5}, 2, 16));
        std::uint64_t word = 0;
        ASSERT_OK(orrMemcpyAsync(&word, memory_, 8, orrMemcpyDefault, card_.stream));
        EXPECT_EQ(word, 5u);
        ASSERT_OK(orrFree(memory_));
        EXPECT_EQ(wait_for(other_), 0) << "the other process was disturbed";
    }
    std::uint64_t* words() const { return static_cast<std::uint64_t*>(memory_); }
    void expect(const char* kernel, std::uint64_t value, orrError_t code, const std::string& text) {
        ASSERT_OK(card_.launch(kernel, {words(), 1, value}));
        EXPECT_FAIL(orrStreamSynchronize(card_.stream), code, text);
        EXPECT_FAIL(card_.launch("add_value", {words(), 1, 1}), code, kernel);
    }

    Card card_{0};
    void* memory_ = nullptr;
    pid_t other_ = -1;
};

TEST_F(BadKernel, Trap) {
    expect("trap", 0, orrErrorIllegalInstruction, "kernel 'trap' trapped");
    // The line of source: this module is built with -g.
    EXPECT_THAT(orrGetLastErrorText(), ::testing::ContainsRegex("kernels\\.cc:[1-9][0-9]*, offset 0x"));
}

TEST_F(BadKernel, FailedAssertion) {
    expect("fail_assertion", 0, orrErrorIllegalInstruction,
           "failed the assertion 'args->value == 12345' at ");
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("group 0, item 0"));
}

TEST_F(BadKernel, JumpToNowhere) {
    expect("jump_out", 0x123456, orrErrorIllegalAddress, "nothing is mapped");
}

TEST_F(BadKernel, JumpIntoData) {
    expect("jump_out", reinterpret_cast<std::uintptr_t>(memory_), orrErrorIllegalAddress, "data cannot run");
}

TEST_F(BadKernel, StoreToNull) {
    expect("store_to", 0, orrErrorIllegalAddress, "kernel 'store_to' accessed 0x0");
    EXPECT_THAT(orrGetLastErrorText(),
                ::testing::ContainsRegex("at pc 0x[0-9a-f]+ \\(.*kernels\\.cc:[1-9][0-9]*, offset 0x"));
}

TEST_F(BadKernel, StoreBeyondAllAddresses) {
    expect("store_to", 0x0001'0000'0000'0000, orrErrorIllegalAddress, "48-bit");
}

TEST_F(BadKernel, LoadFromTheHostsOrdinaryMemory) {
    std::uint64_t local = 1;
    expect("load_from", reinterpret_cast<std::uintptr_t>(&local), orrErrorIllegalAddress,
           "near no allocation");
}

TEST_F(BadKernel, StorePastAnAllocationIsNamed) {
    // A block of its own, so that what follows is not mapped.
    void* large = nullptr;
    ASSERT_OK(orrMalloc(&large, 2 << 20));
    expect("store_to", reinterpret_cast<std::uintptr_t>(large) + (2 << 20) + 24, orrErrorIllegalAddress,
           "24 bytes past the end of the allocation of 2097152 bytes");
    card_.renew_stream();
    ASSERT_OK(orrFree(large));
}

TEST_F(BadKernel, StoreToFreedMemory) {
    void* large = nullptr;
    ASSERT_OK(orrMalloc(&large, 2 << 20));
    ASSERT_OK(orrFree(large));
    expect("store_to", reinterpret_cast<std::uintptr_t>(large), orrErrorIllegalAddress, "kernel 'store_to'");
}

TEST_F(BadKernel, OverwritingCode) {
    expect("overwrite_code", 0, orrErrorIllegalAddress, "protection");
}

TEST_F(BadKernel, RunningOutOfGroupMemory) {
    expect("store_to", ORR_LOCAL_BASE + ORR_LOCAL_BYTES, orrErrorIllegalAddress, "work-group memory");
    EXPECT_THAT(orrGetLastErrorText(), ::testing::ContainsRegex("kernels\\.cc:[1-9][0-9]*, offset 0x"));
}

TEST_F(BadKernel, EndlessLoop) {
    expect("spin_for_ever", 0, orrErrorLaunchTimeout, "endless loop");
}

TEST_F(BadKernel, EndlessLoopOfAnotherProcess) {
    const pid_t spinner = start_worker("spin");
    ASSERT_OK(card_.launch("add_value", {words(), 8, 1}));
    ASSERT_OK(orrStreamSynchronize(card_.stream));
    EXPECT_EQ(wait_for(spinner), 0);
}

}  // namespace
}  // namespace orrery::umd::vm
