// A stream with a name, and memory for its work.
#pragma once

#include <gtest/gtest.h>
#include <orrery/orrery.h>

#include <cstddef>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {

class NamedStream : public ::testing::Test {
  protected:
    void SetUp() override {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.name = "main";
        ASSERT_OK(orrStreamCreateWithAttributes(&stream_, &attributes));
        ASSERT_OK(orrMalloc(&memory_, 4096));
    }
    void fill(std::size_t bytes) { ASSERT_OK(orrMemsetAsync(memory_, 1, bytes, stream_)); }
    void synchronize() { ASSERT_OK(orrStreamSynchronize(stream_)); }

    FakeSystem system_;
    orrStream_t stream_ = nullptr;
    void* memory_ = nullptr;
};

}  // namespace orrery::umd::test
