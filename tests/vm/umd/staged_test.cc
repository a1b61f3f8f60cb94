// Copies between cards that no way of links joins, and those whose way goes and comes back.
#include <orrery/graph.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>

#include "tests/system/runtime/hand.h"
#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

constexpr std::size_t kHalf = 512 << 10;  // what goes at once: sizes are around it

orrPeerWay way_of(int device, int peer) {
    orrPeerWay way = ORR_INIT(orrPeerWay);
    EXPECT_OK(orrDeviceGetPeerWay(&way, device, peer));
    return way;
}

// The first card and the last.
class Staged : public ::testing::Test {
  protected:
    static constexpr std::size_t kSize = (2 << 20) + 4096;
    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_GE(count, 2);
        last_ = count - 1;
        for (int i = 0; i < 2; ++i) {
            device_[i] = i == 0 ? 0 : last_;
            ASSERT_OK(orrSetDevice(device_[i]));
            ASSERT_OK(orrMalloc(&memory_[i], kSize));
            ASSERT_OK(orrStreamCreate(&stream_[i], 0));
        }
    }
    void TearDown() override {
        for (int i = 0; i < 2; ++i) {
            EXPECT_OK(orrStreamDestroy(stream_[i]));
            EXPECT_OK(orrFree(memory_[i]));
        }
    }
    // By orrMemcpy (2), or in a stream of the source's card (0) or the destination's (1), with an event
    // behind it that says when it is there.
    void copy(int from, std::size_t bytes, int by, std::uint32_t seed) {
        const int to = 1 - from;
        const auto data = random_bytes(bytes, seed);
        const std::size_t a = seed % 97, b = seed % 89;
        ASSERT_OK(orrMemset(memory_[to], 0xee, kSize));
        ASSERT_OK(orrMemcpy(at(memory_[from], a), data.data(), bytes, orrMemcpyHostToDevice));
        void *const dst = at(memory_[to], b), *const src = at(memory_[from], a);
        if (by == 2) {
            ASSERT_OK(orrMemcpy(dst, src, bytes, orrMemcpyDeviceToDevice));
        } else {
            orrStream_t stream = stream_[by == 0 ? from : to];
            orrEvent_t event = nullptr;
            ASSERT_OK(orrSetDevice(device_[by == 0 ? from : to]));
            ASSERT_OK(orrEventCreate(&event, 0));
            // What comes before it in the stream is done before, and what comes behind it after.
            if (by == 0) ASSERT_OK(orrMemsetAsync(src, 0x5a, 1, stream));
            ASSERT_OK(orrMemcpyAsync(dst, src, bytes, orrMemcpyDefault, stream));
            if (by == 0) ASSERT_OK(orrMemsetAsync(src, 0x11, 1, stream));
            if (by == 1) ASSERT_OK(orrMemsetAsync(dst, 0x5a, 1, stream));
            ASSERT_OK(orrEventRecord(event, stream));
            ASSERT_OK(orrEventSynchronize(event));
            ASSERT_OK(orrEventDestroy(event));
        }
        std::vector<std::uint8_t> back(kSize), wanted(kSize, 0xee);
        std::ranges::copy(data, wanted.begin() + static_cast<std::ptrdiff_t>(b));
        if (by != 2) wanted[b] = 0x5a;
        ASSERT_OK(orrMemcpy(back.data(), memory_[to], kSize, orrMemcpyDeviceToHost));
        ASSERT_TRUE(back == wanted) << bytes << " bytes from " << device_[from] << " by " << by;
    }
    void copy_all() {
        std::uint32_t round = 0;
        for (const std::size_t bytes :
             {std::size_t{1}, kHalf - 1, kHalf, kHalf + 1, 2 * kHalf + 77, kSize - 100}) {
            for (const int from : {0, 1}) {
                ASSERT_NO_FATAL_FAILURE(copy(from, bytes, static_cast<int>(round % 3), round));
                ++round;
            }
        }
    }

    int last_ = 0, device_[2] = {};
    void* memory_[2] = {};
    orrStream_t stream_[2] = {};
};

using Unlinked = Staged;

TEST_F(Unlinked, CopiesKeepEveryByteInBothDirections) {
    for (const auto& [from, to] : {std::pair{0, last_}, {last_, 0}}) {
        const orrPeerWay way = way_of(from, to);
        EXPECT_EQ(way.kind, orrPeerWayHost);
        EXPECT_THAT(way.reason, ::testing::HasSubstr("no way over links that are up joins device "));
        EXPECT_EQ(way.links, 0u);
        ASSERT_OK(orrSetDevice(from));
        EXPECT_FAIL(orrDeviceEnablePeerAccess(to, 0), orrErrorPeerAccess, "no way over links");
    }
    copy_all();
}

// Boxes, whose dimensions lie in another order on each side, and copies with reduction.
class UnlinkedShapes : public Staged {
  protected:
    // In a stream of the source's card (0), of the destination's (1), or by the call that waits (2); with
    // what the stream does before and behind it.
    orrError_t ordered(int from, int by, void* dst, void* src,
                       const std::function<orrError_t(orrStream_t)>& run) {
        if (by == 2) return run(nullptr);
        orrStream_t stream = stream_[by == 0 ? from : 1 - from];
        void* const own = by == 0 ? src : dst;
        std::uint8_t first = 0;
        EXPECT_OK(orrMemcpy(&first, own, 1, orrMemcpyDeviceToHost));
        EXPECT_OK(orrMemsetAsync(own, first ^ 0xff, 1, stream));
        EXPECT_OK(orrMemsetAsync(own, first, 1, stream));
        const orrError_t done = run(stream);
        if (by == 0) EXPECT_OK(orrMemsetAsync(own, first ^ 0xff, 1, stream));
        EXPECT_OK(orrStreamSynchronize(stream));
        return done;
    }
    struct Box {
        std::array<std::size_t, 5> extent;
        std::array<std::size_t, 4> dst, src;
    };
    void copy_box(const Box& shape, int from, int by) {
        const int to = 1 - from;
        const auto& data = noise();
        std::vector<std::uint8_t> back(kSize), wanted(kSize, 0xee);
        const auto [n0, n1, n2, n3, n4] = shape.extent;
        for (std::size_t i = 0; i < n1 * n2 * n3 * n4; ++i) {
            const std::size_t at[] = {i % n1, i / n1 % n2, i / n1 / n2 % n3, i / n1 / n2 / n3};
            const auto a = std::inner_product(at, at + 4, shape.src.begin(), kA);
            const auto b = std::inner_product(at, at + 4, shape.dst.begin(), kB);
            std::memcpy(&wanted.at(b), &data.at(a), n0);
        }
        ASSERT_OK(orrMemcpy(memory_[from], data.data(), kSize, orrMemcpyHostToDevice));
        ASSERT_OK(orrMemset(memory_[to], 0xee, kSize));
        orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
        void* const src = at(memory_[from], kA);
        box.dst = at(memory_[to], kB);
        box.src = src;
        box.dims = 5;
        std::ranges::copy(shape.extent, box.extent);
        std::ranges::copy(shape.dst, box.dst_stride);
        std::ranges::copy(shape.src, box.src_stride);
        box.kind = orrMemcpyDeviceToDevice;
        ASSERT_OK(ordered(from, by, box.dst, src, [&](orrStream_t stream) {
            return by == 2 ? orrMemcpyND(&box) : orrMemcpyNDAsync(&box, stream);
        }));
        ASSERT_OK(orrMemcpy(back.data(), memory_[to], kSize, orrMemcpyDeviceToHost));
        ASSERT_TRUE(back == wanted) << ::testing::PrintToString(shape.extent) << " from " << from << " by "
                                    << by;
    }
    // Made once: the guest takes long for it.
    static const std::vector<std::uint8_t>& noise() {
        static const auto bytes = random_bytes(kSize, 5);
        return bytes;
    }
    // Integers of any value, floats of many sizes and both signs.
    template <typename Value>
    static void fill(std::vector<Value>& values, std::size_t start) {
        if constexpr (std::is_floating_point_v<Value>) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                std::int32_t bits = 0;
                std::memcpy(&bits, &noise().at(start + i % (kSize / 8) * 4), sizeof bits);
                values[i] = static_cast<Value>(bits / 77.0);
            }
        } else {
            std::memcpy(values.data(), &noise().at(start), values.size() * sizeof(Value));
        }
    }
    // Of so many elements, at addresses that are multiples of their size and no more.
    template <typename Value>
    void reduce(std::size_t count, int from, int by, orrDataType type, orrReduceOp op,
                Value (*function)(Value, Value)) {
        const int to = 1 - from;
        const std::size_t a = 3, b = 1, values = count + 5;
        std::vector<Value> source(values), wanted(values), back(values);
        fill(source, count % 4096);
        fill(wanted, 4096 + count % 4096);
        ASSERT_OK(orrMemcpy(memory_[from], source.data(), values * sizeof(Value), orrMemcpyHostToDevice));
        ASSERT_OK(orrMemcpy(memory_[to], wanted.data(), values * sizeof(Value), orrMemcpyHostToDevice));
        for (std::size_t i = 0; i < count; ++i)
            wanted[b + i] = function(wanted[b + i], source[a + i]);
        void* const dst = at(memory_[to], b * sizeof(Value));
        void* const src = at(memory_[from], a * sizeof(Value));
        ASSERT_OK(ordered(from, by, dst, src, [&](orrStream_t stream) {
            return by == 2 ? orrMemcpyReduce(dst, src, count, type, op, 0)
                           : orrMemcpyReduceAsync(dst, src, count, type, op, 0, stream);
        }));
        ASSERT_OK(orrMemcpy(back.data(), memory_[to], values * sizeof(Value), orrMemcpyDeviceToHost));
        ASSERT_EQ(std::memcmp(back.data(), wanted.data(), values * sizeof(Value)), 0)
            << count << " elements of type " << type << " from " << from << " by " << by;
    }

    static constexpr std::size_t kA = 17, kB = 5;
};

TEST_F(UnlinkedShapes, BoxesKeepEveryByteInBothDirections) {
    const Box boxes[] = {
        {{7, 3, 2, 4, 5}, {8, 30, 70, 300}, {11, 33, 67, 270}},
        // More than a half: of bytes of a row, of rows, of what is outermost, and of one in between.
        {{kHalf + 100, 3, 1, 1, 1}, {kHalf + 101}, {kHalf + 117}},
        {{1000, 700, 1, 1, 1}, {1003}, {1024}},
        {{64, 16, 8, 16, 5}, {64 * 5, 64 * 80, 64 * 1280, 64}, {64, 1024, 8192, 131072}},
        {{9001, 5, 3, 11, 1}, {9001, 9001 * 5, 9001 * 15}, {9001 * 33, 9001 * 11, 9001}},
        // A row that is read again and again.
        {{3000, 200, 2, 1, 1}, {3000, 600000}, {0, 77}},
    };
    int round = 0;
    for (const Box& box : boxes) {
        for (const int from : {0, 1}) {
            ASSERT_NO_FATAL_FAILURE(copy_box(box, from, round++ % 3));
        }
    }
}

TEST_F(UnlinkedShapes, ReductionsKeepEveryBitInBothDirections) {
    int round = 0;
    for (const int offset : {-1, 0, 1}) {
        for (const int from : {0, 1}) {
            const auto around = [&](std::size_t bytes) {
                return kHalf / bytes + static_cast<std::size_t>(offset);
            };
            const int by = round++ % 3;
            ASSERT_NO_FATAL_FAILURE(reduce<float>(around(4), from, by, orrFloat32, orrReduceSum,
                                                  [](float x, float y) { return x + y; }));
            ASSERT_NO_FATAL_FAILURE(
                reduce<std::uint8_t>(3 * around(1) + 77, from, by, orrUint8, orrReduceMax,
                                     [](std::uint8_t x, std::uint8_t y) { return std::max(x, y); }));
        }
    }
    ASSERT_NO_FATAL_FAILURE(reduce<double>(kHalf / 4 + 3, 1, 0, orrFloat64, orrReduceProd,
                                           [](double x, double y) { return x * y; }));
}

// Of all cards, one after the other and back to the first, which each of them changes a little.
class UnlinkedGraphs : public Staged {
  protected:
    static constexpr std::size_t kBytes = kHalf + 4099;
    void SetUp() override {
        Staged::SetUp();
        all_.resize(static_cast<std::size_t>(last_) + 1);
        for (int device = 0; device <= last_; ++device) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrMalloc(&all_[static_cast<std::size_t>(device)], kBytes));
        }
        ASSERT_OK(orrSetDevice(0));
    }
    void TearDown() override {
        if (exec_ != nullptr) EXPECT_OK(orrGraphExecDestroy(exec_));
        if (graph_ != nullptr) EXPECT_OK(orrGraphDestroy(graph_));
        for (void* memory : all_)
            EXPECT_OK(orrFree(memory));
        Staged::TearDown();
    }
    // Launches it, with other bytes each time, into a stream of each end.
    void expect_round() {
        ASSERT_OK(orrGraphInstantiate(&exec_, graph_, 0));
        orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
        ASSERT_OK(orrGraphExecGetInfo(&info, exec_));
        EXPECT_EQ(info.by_host, static_cast<std::uint64_t>(last_) + 1);
        for (std::uint32_t round = 0; round < 4; ++round) {
            auto data = random_bytes(kBytes, round);
            ASSERT_OK(orrMemcpy(all_[0], data.data(), kBytes, orrMemcpyHostToDevice));
            ASSERT_OK(orrGraphLaunch(exec_, stream_[round % 2]));
            ASSERT_OK(orrStreamSynchronize(stream_[round % 2]));
            std::vector<std::uint8_t> back(kBytes);
            ASSERT_OK(orrMemcpy(back.data(), memory_[0], kBytes, orrMemcpyDeviceToHost));
            for (int device = 0; device <= last_; ++device)
                data[static_cast<std::size_t>(device) * 7] = static_cast<std::uint8_t>(0x50 + device);
            ASSERT_TRUE(back == data) << "round " << round;
        }
    }
    std::vector<void*> all_;
    orrGraph_t graph_ = nullptr;
    orrGraphExec_t exec_ = nullptr;
};

TEST_F(UnlinkedGraphs, GoRoundAllCards) {
    ASSERT_OK(orrGraphCreate(&graph_, 0));
    orrGraphNode_t before = nullptr;
    for (int device = 0; device <= last_; ++device) {
        void* const own = all_[static_cast<std::size_t>(device)];
        void* const next = device == last_ ? memory_[0] : all_[static_cast<std::size_t>(device) + 1];
        ASSERT_OK(orrGraphAddMemsetNode(&before, graph_, &before, device == 0 ? 0 : 1,
                                        at(own, static_cast<std::size_t>(device) * 7), 0x50 + device, 1));
        ASSERT_OK(orrGraphAddMemcpyNode(&before, graph_, &before, 1, next, own, kBytes, orrMemcpyDefault));
    }
    expect_round();
}

TEST_F(UnlinkedGraphs, GoRoundAllCardsAsCaptured) {
    std::vector<orrStream_t> streams(all_.size());
    orrEvent_t event = nullptr;
    for (int device = 0; device <= last_; ++device) {
        ASSERT_OK(orrSetDevice(device));
        ASSERT_OK(orrStreamCreate(&streams[static_cast<std::size_t>(device)], 0));
    }
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrEventCreate(&event, 0));
    ASSERT_OK(orrStreamBeginCapture(streams[0], 0));
    for (std::size_t i = 0; i < all_.size(); ++i) {
        void* const next = i + 1 == all_.size() ? memory_[0] : all_[i + 1];
        ASSERT_OK(orrMemsetAsync(at(all_[i], i * 7), 0x50 + static_cast<int>(i), 1, streams[i]));
        ASSERT_OK(orrMemcpyAsync(next, all_[i], kBytes, orrMemcpyDefault, streams[i]));
        ASSERT_OK(orrEventRecord(event, streams[i]));
        ASSERT_OK(orrStreamWaitEvent(streams[(i + 1) % all_.size()], event, 0));
    }
    ASSERT_OK(orrStreamEndCapture(&graph_, streams[0]));
    expect_round();
    ASSERT_OK(orrEventDestroy(event));
    for (const orrStream_t stream : streams)
        ASSERT_OK(orrStreamDestroy(stream));
}

// ORRERY_CARD_DIES: the last card does so, at one of the copies that it is to do for the graph.
TEST_F(UnlinkedGraphs, ACardThatDiesFailsTheLaunch) {
    if (std::getenv("ORRERY_CARD_DIES") == nullptr) GTEST_SKIP() << "no card dies";
    ASSERT_OK(orrGraphCreate(&graph_, 0));
    orrGraphNode_t node = nullptr;
    ASSERT_OK(
        orrGraphAddMemcpyNode(&node, graph_, nullptr, 0, all_.back(), all_[0], kBytes, orrMemcpyDefault));
    ASSERT_OK(orrGraphAddMemsetNode(&node, graph_, &node, 1, all_[0], 1, kBytes));
    ASSERT_OK(orrGraphInstantiate(&exec_, graph_, 0));
    orrError_t error = orrSuccess;
    for (int round = 0; round < 20 && error == orrSuccess; ++round) {
        error = orrGraphLaunch(exec_, stream_[0]);
        if (error == orrSuccess) error = orrStreamSynchronize(stream_[0]);
    }
    EXPECT_EQ(error, orrErrorDeviceLost);
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("device " + std::to_string(last_)));
    EXPECT_EQ(orrGraphLaunch(exec_, stream_[0]), orrErrorDeviceLost);
    // The card that is left goes on.
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemset(all_[0], 3, kBytes));
    ASSERT_OK(orrMemcpy(&byte, at(all_[0], kBytes - 1), 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 3);
}

// ORRERY_CARD_DIES: all but the first card do so, at one of their first copies.
TEST_F(Unlinked, ACardThatDiesInTheMiddleStopsTheStream) {
    if (std::getenv("ORRERY_CARD_DIES") == nullptr) GTEST_SKIP() << "no card dies";
    constexpr std::size_t kMany = 16 << 20;
    std::vector<void*> all(static_cast<std::size_t>(last_) + 1);
    for (int device = 0; device <= last_; ++device) {
        ASSERT_OK(orrSetDevice(device));
        ASSERT_OK(orrMalloc(&all[static_cast<std::size_t>(device)], kMany));
    }
    void *const here = all[0], *there = nullptr;
    // Bytes and a box that the other card writes, and elements that it reads.
    const std::function<orrError_t(orrStream_t)> copies[] = {
        [&](orrStream_t stream) { return orrMemcpyAsync(there, here, kMany, orrMemcpyDefault, stream); },
        [&](orrStream_t stream) {
            orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
            box.dst = there;
            box.src = here;
            box.dims = 3;
            const std::size_t extents[] = {64, 512, 512};
            std::ranges::copy(extents, box.extent);
            box.dst_stride[0] = box.src_stride[1] = 64;
            box.dst_stride[1] = box.src_stride[0] = 64 * 512;
            box.kind = orrMemcpyDefault;
            return orrMemcpyNDAsync(&box, stream);
        },
        [&](orrStream_t stream) {
            return orrMemcpyReduceAsync(here, there, kMany / 4, orrInt32, orrReduceSum, 0, stream);
        },
    };
    ASSERT_EQ(last_, static_cast<int>(std::size(copies)));
    for (int other = 1; other <= last_; ++other) {
        const std::string whose = "device " + std::to_string(other);
        there = all[static_cast<std::size_t>(other)];
        ASSERT_OK(orrMemset(here, 1, kMany));
        EXPECT_EQ(copies[other - 1](stream_[0]), orrErrorDeviceLost);
        EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr(whose + ", which does its half"));
        EXPECT_FAIL(orrMemsetAsync(here, 2, 64, stream_[0]), orrErrorDeviceLost, whose);
        EXPECT_EQ(orrMemcpy(there, here, 64, orrMemcpyDefault), orrErrorDeviceLost);
        // The card that is left goes on.
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrStreamDestroy(stream_[0]));
        ASSERT_OK(orrStreamCreate(&stream_[0], 0));
        std::uint8_t byte = 0;
        ASSERT_OK(orrMemsetAsync(here, 3, kMany, stream_[0]));
        ASSERT_OK(orrStreamSynchronize(stream_[0]));
        ASSERT_OK(orrMemcpy(&byte, at(here, kMany - 1), 1, orrMemcpyDefault));
        EXPECT_EQ(byte, 3);
    }
    EXPECT_OK(orrFree(here));
}

// Between the ends of a chain a cable is pulled, and put in again.
using PulledCable = Staged;

TEST_F(PulledCable, CopiesGoThroughTheHostMeanwhile) {
    if (::access("/share/cables", F_OK) != 0) GTEST_SKIP() << "nobody on the host pulls a cable";
    for (const int i : {0, 1}) {
        ASSERT_OK(orrSetDevice(device_[i]));
        ASSERT_OK(orrDeviceEnablePeerAccess(device_[1 - i], 0));
    }
    const auto wait_for_way = [&](orrPeerWayKind kind) {
        for (int tries = 0; tries < 12'000; ++tries) {
            if (way_of(0, last_).kind == kind && way_of(last_, 0).kind == kind) return;
            ::usleep(5'000);
        }
        GTEST_FAIL() << way_of(0, last_).reason;
    };
    orrPeerWay way = way_of(0, last_);
    EXPECT_EQ(way.kind, orrPeerWayLink) << way.reason;
    EXPECT_EQ(way.links, static_cast<std::uint32_t>(last_));
    EXPECT_EQ(way.enabled, 1);
    EXPECT_GT(way.bytes_per_s, 0u);
    EXPECT_GT(way.latency_ps, 0u);
    ASSERT_NO_FATAL_FAILURE(copy_all());

    ASSERT_EQ(ask_host("cable", "unplug", std::chrono::seconds(60)), "ok\n");
    ASSERT_NO_FATAL_FAILURE(wait_for_way(orrPeerWayHost));
    way = way_of(0, last_);
    EXPECT_THAT(way.reason,
                ::testing::HasSubstr("no way over links that are up joins device 0 and device 3"));
    EXPECT_EQ(way.enabled, 1);
    EXPECT_EQ(way_of(0, 1).kind, orrPeerWayLink) << "those on this side of it are joined";
    ASSERT_NO_FATAL_FAILURE(copy_all());
    // What comes meanwhile is the first card's, too, once it is reached again: as soon as a kernel looks.
    constexpr std::size_t kWords = (2 << 20) / 8;
    void *news = nullptr, *here = nullptr;
    ASSERT_OK(orrSetDevice(last_));
    ASSERT_OK(orrMalloc(&news, 8 * kWords));
    ASSERT_OK(orrMemset(news, 0, 8 * kWords));
    Card card(0);
    ASSERT_OK(orrMalloc(&here, 8 * kWords));
    ASSERT_OK(orrMemset(here, 3, 8 * kWords));
    const auto write_there = [&] {
        const TestArgs args{static_cast<std::uint64_t*>(here), kWords,
                            reinterpret_cast<std::uintptr_t>(news)};
        EXPECT_OK(card.launch("write_there", args, 8, 4));
        return orrStreamSynchronize(card.stream);
    };
    EXPECT_EQ(write_there(), orrErrorIllegalAddress) << "it is not mapped";
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("No way over links that are up"));
    card.renew_stream();

    ASSERT_EQ(ask_host("cable", "plug", std::chrono::seconds(60)), "ok\n");
    ASSERT_NO_FATAL_FAILURE(wait_for_way(orrPeerWayLink));
    EXPECT_OK(write_there());
    std::uint64_t last = 0;
    ASSERT_OK(orrMemcpy(&last, at(news, 8 * (kWords - 1)), 8, orrMemcpyDefault));
    EXPECT_EQ(last, 0x0303'0303'0303'0304u);
    ASSERT_NO_FATAL_FAILURE(copy_all());
    ASSERT_OK(orrFree(news));
    ASSERT_OK(orrFree(here));
}

}  // namespace
}  // namespace orrery::umd::vm
