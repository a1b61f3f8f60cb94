// What tests of the driver begin with.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/vm/kmod/device.h"

namespace orrery::kmod_test {

inline constexpr std::uint64_t kRingVa = 0x10000000;

// A file of card 0 with an address space.
class CardTest : public ::testing::Test {
  protected:
    void SetUp() override {
        file_ = open_card();
        ASSERT_TRUE(file_);
        ASSERT_EQ(create_vm(fd(), vm_), 0);
    }
    int fd() const { return file_.get(); }
    File file_;
    std::uint32_t vm_ = 0;
};

// For those who also look into debugfs.
class RootTest : public CardTest {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs debugfs";
        CardTest::SetUp();
    }
};

}  // namespace orrery::kmod_test
