// Boxes and copies with reduction between two cards that no way of links joins.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "tests/unit/umd/staged_fixture.h"

namespace orrery::umd::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Of up to five: how many of each, and how far they are apart.
struct Shape {
    std::vector<std::size_t> extent, dst, src;
};

std::size_t span_of(const Shape& shape, const std::vector<std::size_t>& strides) {
    std::size_t span = shape.extent[0];
    for (std::size_t i = 0; i < strides.size(); ++i)
        span += (shape.extent[i + 1] - 1) * strides[i];
    return span;
}

void copy(std::uint8_t* to, const std::uint8_t* from, const Shape& shape, std::size_t dim) {
    if (dim == 0) {
        std::memcpy(to, from, shape.extent[0]);
        return;
    }
    for (std::size_t i = 0; i < shape.extent[dim]; ++i)
        copy(to + i * shape.dst[dim - 1], from + i * shape.src[dim - 1], shape, dim - 1);
}

// Extents and strides of no order: the dimensions lie in each memory in an order of its own.
Shape random_shape(std::mt19937& random, std::size_t bytes) {
    const auto below = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    const std::size_t dims = 1 + below(5);
    Shape shape;
    std::size_t left = bytes;
    for (std::size_t i = 0; i < dims; ++i) {
        const std::size_t some = i == 0 ? bytes / 4000 + below(200) : below(200);
        const std::size_t most = i + 1 == dims ? left : 1 + std::min(left - 1, some);
        shape.extent.push_back(std::max<std::size_t>(1, most - below(std::max<std::size_t>(1, most / 8))));
        left = std::max<std::size_t>(1, left / shape.extent.back());
    }
    for (auto* strides : {&shape.dst, &shape.src}) {
        std::vector<std::size_t> order(dims - 1);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::shuffle(order, random);
        strides->resize(dims - 1);
        std::size_t stride = shape.extent[0];
        for (const std::size_t at : order) {
            (*strides)[at] = stride += below(3);
            stride *= shape.extent[at + 1];
        }
    }
    return shape;
}

class StagedShapes : public Staged {
  protected:
    // By the call that waits (2), or in a stream of the source's card (0) or the destination's (1). The
    // stream's own work before it is done before, and that behind it after.
    orrError_t in_order(int from, int by, void* dst, void* src,
                        const std::function<orrError_t(orrStream_t)>& run) {
        if (by == 2) return run(nullptr);
        orrStream_t stream = stream_[by == 0 ? from : 1 - from];
        std::uint8_t first = 0;
        EXPECT_OK(orrMemcpy(&first, by == 0 ? src : dst, 1, orrMemcpyDefault));
        EXPECT_OK(orrMemsetAsync(by == 0 ? src : dst, first ^ 0xff, 1, stream));
        EXPECT_OK(orrMemsetAsync(by == 0 ? src : dst, first, 1, stream));
        const orrError_t done = run(stream);
        if (by == 0) EXPECT_OK(orrMemsetAsync(src, 0x11, 1, stream));
        EXPECT_OK(orrStreamSynchronize(stream));
        return done;
    }
    void expect_copied(const Shape& shape, int from, int by) {
        const std::size_t to_bytes = span_of(shape, shape.dst), from_bytes = span_of(shape, shape.src);
        ASSERT_LE(std::max(to_bytes, from_bytes) + 100, kSize);
        const std::size_t a = 17, b = 5;
        Bytes want(kSize, 0xee), back(kSize);
        copy(want.data() + b, data_.data() + a, shape, shape.extent.size() - 1);
        ASSERT_OK(orrMemcpy(memory_[from], data_.data(), kSize, orrMemcpyDefault));
        ASSERT_OK(orrMemset(memory_[1 - from], 0xee, kSize));
        orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
        box.dst = at(memory_[1 - from], b);
        box.src = at(memory_[from], a);
        box.dims = shape.extent.size();
        std::ranges::copy(shape.extent, box.extent);
        std::ranges::copy(shape.dst, box.dst_stride);
        std::ranges::copy(shape.src, box.src_stride);
        box.kind = orrMemcpyDeviceToDevice;
        ASSERT_OK(in_order(from, by, box.dst, const_cast<void*>(box.src), [&](orrStream_t stream) {
            return by == 2 ? orrMemcpyND(&box) : orrMemcpyNDAsync(&box, stream);
        }));
        ASSERT_OK(orrMemcpy(back.data(), memory_[1 - from], kSize, orrMemcpyDefault));
        ASSERT_TRUE(back == want) << "byte " << std::ranges::mismatch(back, want).in1 - back.begin()
                                  << ", from " << from << " by " << by << ", extents "
                                  << ::testing::PrintToString(shape.extent);
    }
    const Bytes data_ = random_bytes(kSize, 3);
};

TEST_F(StagedShapes, BoxesThatFitAHalfAndThatDoNot) {
    const Shape shapes[] = {
        {{1}, {}, {}},
        {{kHalf}, {}, {}},
        {{kHalf + 1}, {}, {}},
        {{kHalf + 100, 3}, {kHalf + 101}, {kHalf + 117}},
        {{1000, 700}, {1003}, {1024}},
        // A row that is read again and again.
        {{1000, 700}, {1000}, {0}},
        {{7, 3, 2, 4, 5}, {8, 30, 70, 300}, {11, 33, 67, 270}},
        // Cut in the last dimension, in the middle, and in that of the rows.
        {{30, 5, 7, 11, 50}, {30, 150, 1050, 11550}, {40, 210, 1500, 17000}},
        {{70000, 3, 3, 2, 2}, {70001, 210003, 630009, 1260018}, {70000, 210000, 630000, 1260000}},
        {{999, 800, 2}, {1000, 800001}, {999, 799300}},
        // Planes become rows, and rows planes.
        {{64, 100, 100}, {64 * 100, 64}, {64, 64 * 100}},
    };
    int round = 0;
    for (const Shape& shape : shapes) {
        for (const int from : {0, 1}) {
            ASSERT_NO_FATAL_FAILURE(expect_copied(shape, from, round++ % 3));
        }
    }
}

TEST_F(StagedShapes, BoxesOfAnyKind) {
    unsigned fit = 0;
    for (std::uint32_t seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        const Shape shape = random_shape(random, seed % 4 == 0 ? 1000 : 3 * kHalf);
        if (std::max(span_of(shape, shape.dst), span_of(shape, shape.src)) + 100 > kSize) continue;
        ++fit;
        ASSERT_NO_FATAL_FAILURE(expect_copied(shape, static_cast<int>(seed % 2), static_cast<int>(seed % 3)));
    }
    EXPECT_GT(fit, 40u);
}

// dst[i] = dst[i] op src[i] of so many elements, whose addresses are multiples of their size and no more.
template <typename Value>
struct Reduced {
    orrDataType type;
    orrReduceOp op;
    Value (*function)(Value, Value);
};
const Reduced<std::uint64_t> kSum{orrUint64, orrReduceSum,
                                  [](std::uint64_t a, std::uint64_t b) { return a + b; }};
const Reduced<float> kMax{orrFloat32, orrReduceMax, [](float a, float b) { return std::max(a, b); }};

class StagedReduction : public StagedShapes {
  protected:
    template <typename Value>
    void reduce(const Reduced<Value>& how, std::size_t count, int from, int by) {
        const int to = 1 - from;
        const std::size_t values = kSize / sizeof(Value), a = 3, b = 1;
        std::vector<Value> src(values), dst(values), back(values);
        std::mt19937 random(static_cast<unsigned>(count + values) + static_cast<unsigned>(by));
        for (std::size_t i = 0; i < values; ++i) {
            src[i] = static_cast<Value>(random());
            dst[i] = static_cast<Value>(random());
        }
        ASSERT_OK(orrMemcpy(memory_[from], src.data(), values * sizeof(Value), orrMemcpyDefault));
        ASSERT_OK(orrMemcpy(memory_[to], dst.data(), values * sizeof(Value), orrMemcpyDefault));
        for (std::size_t i = 0; i < count; ++i)
            dst[b + i] = how.function(dst[b + i], src[a + i]);
        void *const to_here = at(memory_[to], b * sizeof(Value)), *const from_there =
                                                                      at(memory_[from], a * sizeof(Value));
        ASSERT_OK(in_order(from, by, to_here, from_there, [&](orrStream_t stream) {
            return by == 2 ? orrMemcpyReduce(to_here, from_there, count, how.type, how.op, 0)
                           : orrMemcpyReduceAsync(to_here, from_there, count, how.type, how.op, 0, stream);
        }));
        ASSERT_OK(orrMemcpy(back.data(), memory_[to], values * sizeof(Value), orrMemcpyDefault));
        ASSERT_TRUE(back == dst) << count << " elements from " << from << " by " << by << ": element "
                                 << std::ranges::mismatch(back, dst).in1 - back.begin();
    }
    template <typename Value>
    void reduce_all(const Reduced<Value>& how) {
        constexpr std::size_t kFits = kHalf / sizeof(Value);
        int round = 0;
        for (const std::size_t count :
             {std::size_t{0}, std::size_t{1}, kFits - 1, kFits, kFits + 1, 2 * kFits, 4 * kFits + 77}) {
            for (const int from : {0, 1}) {
                ASSERT_NO_FATAL_FAILURE(reduce(how, count, from, round++ % 3));
            }
        }
    }
};

TEST_F(StagedReduction, EveryElementIsCombinedOnce) {
    reduce_all(kSum);
    reduce_all(kMax);
}

// Where links join the cards all is as ever: read over them, and written by nobody but the owner.
TEST(StagedReductionPeer, AWayThatIsDownIsGoneAround) {
    FakeSystem system(2);
    for (std::size_t card = 0; card < 2; ++card)
        system.card(card).peer_reads = true;
    constexpr std::size_t kCount = kHalf / 8 + 5;
    void *here = malloc_on(0, 8 * kCount), *there = malloc_on(1, 8 * kCount);
    orrStream_t streams[] = {stream_on(0), stream_on(1)};
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrMemset(here, 0, 8 * kCount));
    ASSERT_OK(orrMemset(there, 1, 8 * kCount));
    const auto add = [&](orrStream_t stream) {
        return orrMemcpyReduceAsync(here, there, kCount, orrUint64, orrReduceSum, 0, stream);
    };
    EXPECT_OK(add(streams[0]));
    EXPECT_FAIL(add(streams[1]), orrErrorPeerAccess, "reduce in a stream of that device");
    system.card(0).cut_link();
    orrPeerWay way = ORR_INIT(orrPeerWay);
    for (const int device : {0, 1}) {
        ASSERT_OK(orrDeviceGetPeerWay(&way, device, 1 - device));
        EXPECT_EQ(way.kind, orrPeerWayHost) << way.reason;
    }
    EXPECT_OK(add(streams[0]));
    EXPECT_OK(add(streams[1]));
    system.card(0).mend_link();
    ASSERT_OK(orrDeviceGetPeerWay(&way, 0, 1));
    EXPECT_OK(add(streams[0]));
    std::uint64_t last = 0;
    ASSERT_OK(orrStreamSynchronize(streams[0]));
    ASSERT_OK(orrMemcpy(&last, at(here, 8 * (kCount - 1)), 8, orrMemcpyDefault));
    EXPECT_EQ(last, 0x0404'0404'0404'0404u);
    for (const int i : {0, 1})
        ASSERT_OK(orrStreamDestroy(streams[i]));
    ASSERT_OK(orrFree(here));
    ASSERT_OK(orrFree(there));
}

}  // namespace
}  // namespace orrery::umd::test
