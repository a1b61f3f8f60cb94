// On cards that check kernels' use of memory (--check memory).
#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

class Checked : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_OK(orrMalloc(&memory_, kBytes)); }
    void TearDown() override { ASSERT_OK(orrFree(memory_)); }
    std::uint64_t at(std::uint64_t offset) const {
        return reinterpret_cast<std::uintptr_t>(memory_) + offset;
    }
    // Of a kernel that uses eight bytes of card memory there.
    void expect(const char* kernel, std::uint64_t offset, const char* text) {
        ASSERT_OK(card_.launch(kernel, {static_cast<std::uint64_t*>(memory_), 1, at(offset)}));
        EXPECT_FAIL(orrStreamSynchronize(card_.stream), orrErrorIllegalInstruction, text);
        EXPECT_THAT(orrGetLastErrorText(),
                    ::testing::ContainsRegex("item 0 of group 0 [a-z]+ at pc 0x[0-9a-f]+ "
                                             "\\(.*kernels\\.cc:[1-9][0-9]*, offset 0x"));
        card_.renew_stream();
    }
    void expect_good(const char* kernel, std::uint64_t offset) {
        ASSERT_OK(card_.launch(kernel, {static_cast<std::uint64_t*>(memory_), 1, at(offset)}));
        ASSERT_OK(orrStreamSynchronize(card_.stream));
    }

    static constexpr std::size_t kBytes = 104;
    Card card_{0};
    void* memory_ = nullptr;
};

TEST_F(Checked, BytesBesideAnAllocationAreNamed) {
    expect("store_to", kBytes,
           "which are in no allocation: 0 bytes past the end of the allocation of 104 bytes");
    expect_good("store_to", kBytes - 8);
    // Its place is another's now, and what stood there is not what that one has written.
    ASSERT_OK(orrMemset(memory_, 1, kBytes));
    const std::uint64_t was = at(0);
    ASSERT_OK(orrFree(memory_));
    ASSERT_OK(orrMalloc(&memory_, kBytes));
    ASSERT_EQ(at(0), was);
    expect("load_from", 8, "that nobody wrote (8 bytes into the allocation of 104 bytes");
}

TEST_F(Checked, WhatNobodyWroteIsNamed) {
    expect("load_from", 16, "that nobody wrote (16 bytes into the allocation of 104 bytes");
    ASSERT_OK(orrMemset(memory_, 0, 24));
    expect_good("load_from", 16);
    expect("load_from", 24, "that nobody wrote (24 bytes into");
    const std::uint64_t word = 5;
    ASSERT_OK(orrMemcpy(reinterpret_cast<void*>(at(24)), &word, sizeof word, orrMemcpyDefault));
    expect_good("load_from", 24);
    expect_good("store_to", 32);
    expect_good("load_from", 32);
}

}  // namespace
}  // namespace orrery::umd::vm
