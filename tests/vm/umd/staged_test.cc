// Copies between cards that no way of links joins, and those whose way goes and comes back.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

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

// ORRERY_CARD_DIES: the second card does so at one of its first copies.
TEST_F(Unlinked, ACardThatDiesInTheMiddleStopsTheStream) {
    if (std::getenv("ORRERY_CARD_DIES") == nullptr) GTEST_SKIP() << "no card dies";
    constexpr std::size_t kMany = 16 << 20;
    void *src = nullptr, *dst = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMalloc(&dst, kMany));
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrMalloc(&src, kMany));
    ASSERT_OK(orrMemset(src, 1, kMany));
    EXPECT_EQ(orrMemcpyAsync(dst, src, kMany, orrMemcpyDefault, stream_[0]), orrErrorDeviceLost);
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("device 1, which does its half"));
    EXPECT_FAIL(orrMemsetAsync(src, 2, 64, stream_[0]), orrErrorDeviceLost, "device 1");
    EXPECT_EQ(orrMemcpy(dst, src, 64, orrMemcpyDefault), orrErrorDeviceLost);
    // The card that is left goes on.
    ASSERT_OK(orrStreamDestroy(stream_[0]));
    ASSERT_OK(orrStreamCreate(&stream_[0], 0));
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemsetAsync(src, 3, kMany, stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    ASSERT_OK(orrMemcpy(&byte, at(src, kMany - 1), 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 3);
    EXPECT_OK(orrFree(src));
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
