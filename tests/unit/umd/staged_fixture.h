// Two cards that no way of links joins.
#pragma once

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/staging.h"

namespace orrery::umd::test {

constexpr std::size_t kHalf = Staging::kHalf;

inline void* malloc_on(int device, std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_OK(orrSetDevice(device));
    EXPECT_OK(orrMalloc(&memory, bytes));
    return memory;
}

inline orrStream_t stream_on(int device) {
    orrStream_t stream = nullptr;
    EXPECT_OK(orrSetDevice(device));
    EXPECT_OK(orrStreamCreate(&stream, 0));
    return stream;
}

// Rows without gaps.
inline orrMemcpyNDParams rows_between(void* dst, const void* src, std::size_t width, std::size_t rows) {
    orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
    box.dst = dst;
    box.src = src;
    box.dims = 2;
    box.extent[0] = box.dst_stride[0] = box.src_stride[0] = width;
    box.extent[1] = rows;
    box.kind = orrMemcpyDefault;
    return box;
}

// The first and the last of three: no card passes anything on here.
class Staged : public ::testing::Test {
  protected:
    static constexpr std::size_t kSize = (3 << 20) + 77;
    void SetUp() override {
        for (int i = 0; i < 2; ++i) {
            memory_[i] = malloc_on(2 * i, kSize);
            stream_[i] = stream_on(2 * i);
        }
    }
    void TearDown() override {
        for (int i = 0; i < 2; ++i) {
            EXPECT_OK(orrStreamDestroy(stream_[i]));
            EXPECT_OK(orrFree(memory_[i]));
        }
    }
    FakeSystem system_{3};
    void* memory_[2] = {};
    orrStream_t stream_[2] = {};
};

}  // namespace orrery::umd::test
