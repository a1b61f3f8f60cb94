// Copies of boxes in up to five dimensions.
#include <orrery/graph.h>

#include <cstring>
#include <functional>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

constexpr std::size_t kSize = 1 << 20;

// 7 x 3 x 2 x 4 x 5, with room between all.
orrMemcpyNDParams five_dimensions() {
    orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
    box.dims = 5;
    const std::size_t extents[] = {7, 3, 2, 4, 5};
    std::size_t dst = 1, src = 1;
    for (std::size_t i = 0; i < 5; ++i) {
        box.extent[i] = extents[i];
        if (i > 0) {
            box.dst_stride[i - 1] = dst;
            box.src_stride[i - 1] = src;
        }
        dst = dst * extents[i] + 3 + i;
        src = src * extents[i] + 11 - i;
    }
    box.kind = orrMemcpyDefault;
    return box;
}

void copy(std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& from, const orrMemcpyNDParams& box,
          std::size_t dst, std::size_t src, std::size_t dim) {
    if (dim == 0) {
        std::memcpy(to.data() + dst, from.data() + src, box.extent[0]);
        return;
    }
    for (std::size_t i = 0; i < box.extent[dim]; ++i)
        copy(to, from, box, dst + i * box.dst_stride[dim - 1], src + i * box.src_stride[dim - 1], dim - 1);
}

class BoxCopyTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrMalloc(&card_, kSize));
        ASSERT_OK(orrMallocHost(&from_, kSize, 0));
        ASSERT_OK(orrMallocHost(&to_, kSize, 0));
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        std::memcpy(from_, data_.data(), kSize);
    }
    void TearDown() override {
        ASSERT_OK(orrStreamDestroy(stream_));
        ASSERT_OK(orrFree(card_));
        ASSERT_OK(orrFreeHost(from_));
        ASSERT_OK(orrFreeHost(to_));
    }
    // `run` copies the box into pinned memory, which then holds it and nothing else.
    void expect_copied(orrMemcpyNDParams box, const std::function<void(const orrMemcpyNDParams&)>& run) {
        std::vector<std::uint8_t> want(kSize, 0xee);
        copy(want, data_, box, 5, 17, box.dims - 1);
        for (void* src : {card_, from_}) {
            ASSERT_OK(orrMemcpy(src, data_.data(), kSize, orrMemcpyDefault));
            std::memset(to_, 0xee, kSize);
            box.dst = at(to_, 5);
            box.src = at(src, 17);
            run(box);
            EXPECT_EQ(std::memcmp(to_, want.data(), kSize), 0);
        }
    }

    FakeSystem system_{2};
    const std::vector<std::uint8_t> data_ = random_bytes(kSize, 1);
    void *card_ = nullptr, *from_ = nullptr, *to_ = nullptr;
    orrStream_t stream_ = nullptr;
};

TEST_F(BoxCopyTest, EachNumberOfDimensions) {
    for (std::size_t dims = 1; dims <= 5; ++dims) {
        orrMemcpyNDParams box = five_dimensions();
        box.dims = dims;
        for (std::size_t i = dims; i < 5; ++i)
            box.extent[i] = box.dst_stride[i - 1] = box.src_stride[i - 1] = 0;
        expect_copied(box, [](const auto& params) { ASSERT_OK(orrMemcpyND(&params)); });
    }
}

TEST_F(BoxCopyTest, ASourceMayBeReadAgainAndAgain) {
    orrMemcpyNDParams box = five_dimensions();
    box.src_stride[1] = box.src_stride[3] = 0;
    expect_copied(box, [](const auto& params) { ASSERT_OK(orrMemcpyND(&params)); });
}

TEST_F(BoxCopyTest, InStreamsCapturesAndGraphs) {
    expect_copied(five_dimensions(), [&](const auto& params) {
        ASSERT_OK(orrMemcpyNDAsync(&params, stream_));
        ASSERT_OK(orrStreamSynchronize(stream_));
    });
    for (const bool captured : {false, true}) {
        expect_copied(five_dimensions(), [&](const auto& params) {
            orrGraph_t graph = nullptr;
            orrGraphExec_t exec = nullptr;
            if (captured) {
                ASSERT_OK(orrStreamBeginCapture(stream_, 0));
                ASSERT_OK(orrMemcpyNDAsync(&params, stream_));
                ASSERT_OK(orrStreamEndCapture(&graph, stream_));
            } else {
                ASSERT_OK(orrGraphCreate(&graph, 0));
                ASSERT_OK(orrGraphAddMemcpyNDNode(nullptr, graph, nullptr, 0, &params));
            }
            ASSERT_OK(orrGraphInstantiate(&exec, graph, 0));
            for (int launch = 0; launch < 2; ++launch)
                ASSERT_OK(orrGraphLaunch(exec, stream_));
            ASSERT_OK(orrStreamSynchronize(stream_));
            ASSERT_OK(orrGraphExecDestroy(exec));
            ASSERT_OK(orrGraphDestroy(graph));
        });
    }
}

TEST_F(BoxCopyTest, Mistakes) {
    orrMemcpyNDParams good = five_dimensions();
    good.dst = to_;
    good.src = card_;
    const auto with = [&](auto&& spoil) {
        orrMemcpyNDParams bad = good;
        spoil(bad);
        return orrMemcpyNDAsync(&bad, stream_);
    };
    EXPECT_FAIL(orrMemcpyNDAsync(nullptr, stream_), orrErrorInvalidValue, "orrMemcpyNDParams");
    EXPECT_FAIL(with([](auto& p) { p.size = 3; }), orrErrorInvalidValue, "ORR_INIT");
    EXPECT_FAIL(with([](auto& p) { p.dims = 0; }), orrErrorInvalidValue, "dims is 0");
    EXPECT_FAIL(with([](auto& p) { p.dims = 6; }), orrErrorInvalidValue, "at most 5");
    EXPECT_FAIL(with([](auto& p) { p.dims = ~0ull; }), orrErrorInvalidValue, "at most 5");
    EXPECT_FAIL(with([](auto& p) { p.dims = 4; }), orrErrorInvalidValue, "behind that is not 0");
    EXPECT_FAIL(with([](auto& p) { p.reserved = 1; }), orrErrorInvalidValue, "reserved");
    EXPECT_FAIL(with([](auto& p) { p.kind = static_cast<orrMemcpyKind>(7); }), orrErrorInvalidValue,
                "orrMemcpyKind");
    EXPECT_FAIL(with([](auto& p) { p.kind = orrMemcpyHostToDevice; }), orrErrorInvalidValue, "kind says");
    EXPECT_FAIL(with([](auto& p) { p.dst = nullptr; }), orrErrorInvalidValue, "destination is null");
    EXPECT_FAIL(with([](auto& p) { p.src = nullptr; }), orrErrorInvalidValue, "source is null");
    // Sizes at the ends of what they can be.
    EXPECT_FAIL(with([](auto& p) { p.extent[4] = 1ull << 32; }), orrErrorInvalidValue, "less than 2^32");
    EXPECT_FAIL(with([](auto& p) { p.extent[3] = p.extent[4] = 1 << 20; }), orrErrorInvalidValue,
                "2^40 rows");
    EXPECT_FAIL(with([](auto& p) { p.extent[0] = 1ull << 60; }), orrErrorInvalidValue, "more than a copy");
    EXPECT_FAIL(with([](auto& p) { p.dst_stride[3] = 1ull << 62; }), orrErrorInvalidValue,
                "the destination wraps around");
    EXPECT_FAIL(with([](auto& p) { p.src_stride[0] = ~std::size_t{0}; }), orrErrorInvalidValue,
                "the source wraps around");
    EXPECT_FAIL(with([](auto& p) { p.src_stride[0] = ~std::size_t{0} / 2; }), orrErrorInvalidValue,
                "the source wraps around");
    EXPECT_FAIL(with([](auto& p) { p.dst_stride[3] = kSize; }), orrErrorInvalidValue, "destination");
    EXPECT_FAIL(with([](auto& p) { p.src_stride[3] = kSize; }), orrErrorInvalidValue, "source");
    std::vector<std::uint8_t> ordinary(kSize);
    EXPECT_FAIL(with([&](auto& p) { p.dst = ordinary.data(); }), orrErrorInvalidValue,
                "ordinary host memory");
    EXPECT_FAIL(with([&](auto& p) { p.src = ordinary.data(); }), orrErrorInvalidValue,
                "ordinary host memory");
    // Memory that was freed, and that of another device.
    void *gone = nullptr, *there = nullptr;
    ASSERT_OK(orrMalloc(&gone, kSize));
    ASSERT_OK(orrFree(gone));
    EXPECT_FAIL(with([&](auto& p) { p.src = gone; }), orrErrorInvalidValue, "Was it freed?");
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&there, kSize));
    ASSERT_OK(orrSetDevice(0));
    EXPECT_FAIL(with([&](auto& p) { p.src = there; }), orrErrorPeerAccess, "carries only writes");
    EXPECT_EQ(with([&](auto& p) { p.dst = there; }), orrErrorPeerAccess);
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    EXPECT_OK(with([&](auto& p) { p.dst = there; }));
    EXPECT_OK(with([](auto& p) { p.extent[2] = 0; })) << "nothing to do";
    orrGraph_t graph = nullptr;
    ASSERT_OK(orrStreamBeginCapture(stream_, 0));
    EXPECT_FAIL(with([](auto& p) { p.dims = 7; }), orrErrorInvalidValue, "dims");
    EXPECT_NE(orrStreamEndCapture(&graph, stream_), orrSuccess) << "the graph would lack it";
    ASSERT_OK(orrStreamSynchronize(stream_));
    ASSERT_OK(orrFree(there));
    EXPECT_OK(with([](auto&) {}));
    EXPECT_OK(orrStreamSynchronize(stream_));
}

}  // namespace
}  // namespace orrery::umd::test
