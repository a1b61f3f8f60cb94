// Copies of rows, planes and batches, fills of larger values and copies with reduction, by real copy engines.
#include <cstring>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

constexpr std::size_t kSize = 1 << 20;

class Copies : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrMalloc(&card_, kSize));
        ASSERT_OK(orrMallocHost(&pinned_, kSize, 0));
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        std::memcpy(pinned_, data_.data(), kSize);
        ASSERT_OK(orrMemset(card_, 0xee, kSize));
    }
    void TearDown() override {
        ASSERT_OK(orrStreamDestroy(stream_));
        ASSERT_OK(orrFree(card_));
        ASSERT_OK(orrFreeHost(pinned_));
    }
    void expect_card() {
        ASSERT_OK(orrStreamSynchronize(stream_));
        std::vector<std::uint8_t> back(kSize);
        ASSERT_OK(orrMemcpy(back.data(), card_, kSize, orrMemcpyDefault));
        ASSERT_EQ(std::memcmp(back.data(), want_.data(), kSize), 0);
    }

    const std::vector<std::uint8_t> data_ = random_bytes(kSize, 3);
    std::vector<std::uint8_t> want_ = std::vector<std::uint8_t>(kSize, 0xee);
    void* card_ = nullptr;
    void* pinned_ = nullptr;
    orrStream_t stream_ = nullptr;
};

TEST_F(Copies, BoxesFromPinnedAndOrdinaryMemory) {
    orrMemcpy3DParams box = ORR_INIT(orrMemcpy3DParams);
    box.width = 300;
    box.height = 20;
    box.depth = 30;
    box.dst_pitch = 500;
    box.src_pitch = 333;
    box.dst_height = 21;
    box.src_height = 25;
    box.dst = at(card_, 5);
    box.kind = orrMemcpyDefault;
    for (std::size_t plane = 0; plane < box.depth; ++plane) {
        for (std::size_t row = 0; row < box.height; ++row) {
            std::memcpy(want_.data() + 5 + (plane * 21 + row) * 500, data_.data() + (plane * 25 + row) * 333,
                        300);
        }
    }
    box.src = pinned_;
    ASSERT_OK(orrMemcpy3DAsync(&box, stream_));
    expect_card();
    ASSERT_OK(orrMemset(card_, 0xee, kSize));
    box.src = data_.data();
    ASSERT_OK(orrMemcpy3D(&box));
    expect_card();
}

// 300 bytes x 5 x 4 x 3 x 6, of which the third dimension reads the same source again.
TEST_F(Copies, BoxesInFiveDimensions) {
    orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
    box.dst = at(card_, 5);
    box.src = at(pinned_, 9);
    box.dims = 5;
    box.kind = orrMemcpyDefault;
    const std::size_t extents[] = {300, 5, 4, 3, 6};
    const std::size_t dst_strides[] = {301, 1510, 6100, 20'000}, src_strides[] = {333, 2000, 0, 9000};
    std::copy_n(extents, 5, box.extent);
    std::copy_n(dst_strides, 4, box.dst_stride);
    std::copy_n(src_strides, 4, box.src_stride);
    for (std::size_t row = 0; row < 5 * 4 * 3 * 6; ++row) {
        std::size_t to = 5, from = 9, left = row;
        for (std::size_t dim = 1; dim < 5; left /= extents[dim++]) {
            to += left % extents[dim] * dst_strides[dim - 1];
            from += left % extents[dim] * src_strides[dim - 1];
        }
        std::memcpy(want_.data() + to, data_.data() + from, extents[0]);
    }
    ASSERT_OK(orrMemcpyNDAsync(&box, stream_));
    expect_card();
    ASSERT_OK(orrMemset(card_, 0xee, kSize));
    ASSERT_OK(orrMemcpyND(&box));
    expect_card();
}

TEST_F(Copies, BatchesAndValues) {
    std::vector<void*> dsts;
    std::vector<const void*> srcs;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < 200; ++i) {
        dsts.push_back(at(card_, i * 1000));
        srcs.push_back(at(pinned_, i * 777));
        sizes.push_back(i * 5);
        std::memcpy(want_.data() + i * 1000, data_.data() + i * 777, i * 5);
    }
    ASSERT_OK(orrMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), dsts.size(), 0, stream_));
    ASSERT_OK(orrMemsetD32Async(at(card_, 512 << 10), 0x12345678, 1000, stream_));
    ASSERT_OK(orrMemset2DAsync(at(card_, 768 << 10), 100, 7, 33, 50, stream_));
    for (std::size_t i = 0; i < 1000; ++i) {
        const std::uint32_t value = 0x12345678;
        std::memcpy(want_.data() + (512 << 10) + i * 4, &value, 4);
        if (i < 50) std::memset(want_.data() + (768 << 10) + i * 100, 7, 33);
    }
    expect_card();
}

TEST_F(Copies, Reductions) {
    // Sums of whole numbers that halves hold exactly, and integers that wrap around.
    constexpr std::size_t kCount = 1000;
    std::vector<std::uint16_t> halves(kCount, 0x3c00);  // 1
    ASSERT_OK(orrMemcpy(card_, halves.data(), 2 * kCount, orrMemcpyDefault));
    std::memcpy(pinned_, halves.data(), 2 * kCount);
    ASSERT_OK(orrMemcpyReduceAsync(card_, pinned_, kCount, orrFloat16, orrReduceSum, 0, stream_));
    ASSERT_OK(orrMemcpyReduceAsync(card_, card_, kCount, orrFloat16, orrReduceProd, 0, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    std::vector<std::uint16_t> back(kCount);
    ASSERT_OK(orrMemcpy(back.data(), card_, 2 * kCount, orrMemcpyDefault));
    EXPECT_EQ(back, std::vector<std::uint16_t>(kCount, 0x4400)) << "(1 + 1) squared";
    std::memcpy(pinned_, data_.data(), kSize);
    ASSERT_OK(orrMemcpy(card_, at(pinned_, kSize / 2), kSize / 2, orrMemcpyDefault));
    ASSERT_OK(orrMemcpyReduce(card_, pinned_, kSize / 16, orrUint64, orrReduceSum, 0));
    for (std::size_t i = 0; i < kSize / 2; i += 8) {
        std::uint64_t a = 0, b = 0;
        std::memcpy(&a, data_.data() + i, 8);
        std::memcpy(&b, data_.data() + kSize / 2 + i, 8);
        a += b;
        std::memcpy(want_.data() + i, &a, 8);
    }
    expect_card();
    EXPECT_FAIL(orrMemcpyReduce(card_, at(card_, 8), 8, orrUint64, orrReduceSum, 0), orrErrorInvalidValue,
                "overlap");
}

}  // namespace
}  // namespace orrery::umd::vm
