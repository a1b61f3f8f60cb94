#include "emulator/model/resource.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace orrery::emu {
namespace {

// Picoseconds a byte that are no whole number.
constexpr std::uint64_t kRate = 7'000'000'000;

TEST(Resource, PiecesTakeWhatOneOfThemAllWould) {
    Resource pieces(kRate), whole(kRate);
    ModelTime end = 1000;
    for (int i = 0; i < 1000; ++i)
        end = pieces.reserve(end, 1 + static_cast<std::uint64_t>(i) % 5);
    EXPECT_EQ(end, whole.reserve(1000, 3000));
    EXPECT_EQ(end, 1000 + duration_ps(3000, kRate));
}

TEST(Resource, WhatGoesThroughIsCounted) {
    Counters counters;
    Resource way(kRate), endless(0), other(kRate);
    way.count_in(counters, ORR_CTR_VRAM_BYTES, ORR_CTR_VRAM_WAIT_PS);
    endless.count_in(counters, ORR_CTR_PCIE_READ_BYTES, ORR_CTR_PCIE_WAIT_PS);
    way.of(ORR_CTR_VRAM_COPY_BYTES).reserve(0, 1000);
    const ModelTime small = way.of(ORR_CTR_VRAM_CORE_BYTES).slip_in(0, 64) - duration_ps(64, kRate);
    way.of(ORR_CTR_VRAM_COPY_BYTES).reserve(0, 1, 15'000);
    way.hold(1'000);
    way.reset();
    other.reserve(0, 5);
    endless.reserve(0, 30);
    endless.slip_in(0, 4);
    EXPECT_EQ(counters.get(ORR_CTR_VRAM_BYTES), 1065u);
    EXPECT_EQ(counters.get(ORR_CTR_VRAM_COPY_BYTES), 1001u);
    EXPECT_EQ(counters.get(ORR_CTR_VRAM_CORE_BYTES), 64u);
    // The small one waited for a burst, the last one for all that was before it.
    EXPECT_EQ(counters.get(ORR_CTR_VRAM_WAIT_PS), small + Resource(kRate).reserve(0, 1064));
    EXPECT_EQ(counters.get(ORR_CTR_PCIE_READ_BYTES), 34u) << "also of one that takes no time";
    EXPECT_EQ(counters.get(ORR_CTR_PCIE_WAIT_PS), 0u);
}

// By hand: at a byte a nanosecond.
TEST(Resource, WaitsAreCountedToThePicosecond) {
    constexpr ModelTime kNs = 1'000;
    Counters counters;
    Resource way(1'000'000'000);
    way.count_in(counters, ORR_CTR_PCIE_READ_BYTES, ORR_CTR_PCIE_WAIT_PS);
    ModelTime waits = 0;
    const auto expect = [&](ModelTime waited) {
        waits += waited;
        EXPECT_EQ(counters.get(ORR_CTR_PCIE_WAIT_PS), waits);
    };
    way.reserve(0, 100'000);
    expect(0);
    way.reserve(30'000 * kNs, 1'000);
    expect(70'000 * kNs);
    way.slip_in(40'000 * kNs, 64);
    expect(512 * kNs);  // behind a burst
    way.slip_in(40'000 * kNs, 64);
    expect((512 + 64 + 64) * kNs);  // behind the first, and as much of the others
    way.slip_in(50'000 * kNs, 64);
    expect(512 * kNs);
    // All of this comes before what is asked for now.
    way.reserve(60'000 * kNs, 1);
    expect((101'000 + 3 * 64 - 60'000) * kNs);
    way.reserve(101'193 * kNs, 5);
    way.slip_in(200'000 * kNs, 64);
    expect(0);
    EXPECT_EQ(counters.get(ORR_CTR_PCIE_READ_BYTES), 101'000u + 4 * 64 + 6);
}

TEST(Resource, ServesInTheOrderOfRequests) {
    Resource way(1'000'000'000);  // 1 ns a byte
    EXPECT_EQ(way.reserve(0, 10), 10'000u);
    EXPECT_EQ(way.reserve(4'000, 10), 20'000u);
    EXPECT_EQ(way.reserve(20'000, 10), 30'000u);
    EXPECT_EQ(way.reserve(50'000, 10), 60'000u) << "what nobody asked for is gone";
    EXPECT_EQ(way.reserve(0, 10, 15'000), 75'000u) << "takes no less than it must";
    EXPECT_EQ(way.reserve(0, 10, 5'000), 85'000u);
    way.hold(1'000);
    EXPECT_EQ(way.reserve(0, 1), 87'000u);
    way.reset();
    EXPECT_EQ(way.reserve(0, 1), 1'000u);
}

// Against times in parts of a picosecond, all the way: what takes about as long as it must, by a picosecond
// more or less.
TEST(Resource, WhatARequestMustTakeIsExact) {
    __extension__ using Wide = unsigned __int128;
    std::mt19937_64 random(11);
    for (const std::uint64_t rate :
         {kRate, std::uint64_t{12'125'000'000}, std::uint64_t{3'000'000'000'001}}) {
        Resource way(rate);
        Wide end = 0;  // parts
        const auto rounded = [&] { return static_cast<ModelTime>((end + rate - 1) / rate); };
        for (int i = 0; i < 20'000; ++i) {
            const std::uint64_t bytes = random() % 200;
            const ModelTime takes = duration_ps(bytes, rate), about = takes + random() % 5;
            const ModelTime least = random() % 4 == 0 || about < 2 ? 0 : about - 2;
            const ModelTime now = rounded() + random() % 3 - std::min<ModelTime>(rounded(), 1);
            if (now > rounded()) end = Wide{now} * rate;
            const ModelTime soonest = rounded() + least;
            end += Wide{bytes} * kPsPerSecond;
            if (rounded() < soonest) end = Wide{soonest} * rate;
            ASSERT_EQ(way.reserve(now, bytes, least), rounded()) << i << ": " << bytes << " " << least;
        }
    }
}

TEST(Resource, SmallRequestsGoBetweenBursts) {
    Resource way(1'000'000'000);
    const ModelTime burst = Resource::kBurst * kPsPerNs;
    ASSERT_EQ(way.reserve(0, 100'000), 100'000'000u);
    EXPECT_EQ(way.slip_in(0, 64), burst + 64'000);
    EXPECT_EQ(way.slip_in(0, 64), burst + 192'000) << "behind each other, and behind as much of the others";
    EXPECT_EQ(way.slip_in(99'900'000, 64), 100'128'000u + 64'000) << "no more is left than this";
    EXPECT_EQ(way.reserve(0, 1), 100'000'000u + 3 * 64'000 + 1'000) << "what slipped in takes its time";
}

TEST(Resource, SmallRequestsLeaveHalfToTheOthers) {
    Resource way(1'000'000'000);
    constexpr unsigned kRequests = 1000;
    ASSERT_EQ(way.reserve(0, 1'000'000), 1'000'000'000u);
    ModelTime last = 0;
    for (unsigned i = 0; i < kRequests; ++i)
        last = way.slip_in(0, 64);
    EXPECT_EQ(last, (Resource::kBurst + (2 * kRequests - 1) * 64) * kPsPerNs);
    EXPECT_EQ(way.reserve(0, 1), 1'000'001'000u + kRequests * 64'000);
}

TEST(Resource, SmallRequestsAreABandwidthToo) {
    Resource way(1'000'000'000);
    EXPECT_EQ(way.slip_in(0, 64), 64'000u);
    EXPECT_EQ(way.slip_in(0, 64), 128'000u);
    EXPECT_EQ(way.reserve(0, 1), 129'000u);
}

TEST(Resource, WithoutARateTakesNoTime) {
    Resource way;
    EXPECT_EQ(way.reserve(5, 1 << 20), 5u);
    EXPECT_EQ(way.slip_in(5, 64), 5u);
    EXPECT_EQ(way.reserve(5, 1, 10), 15u);
}

TEST(Resource, StaysInsideTime) {
    Resource slow(1);
    EXPECT_EQ(slow.reserve(kNever - 10, 1), kNever - 1);
    EXPECT_EQ(slow.reserve(0, ~std::uint64_t{0}), kNever - 1);
}

TEST(Resource, APieceIsShort) {
    for (const std::uint64_t rate : {0ull, 1ull, 32'000'000'000ull, 800'000'000'000ull}) {
        const Resource way(rate);
        EXPECT_GE(way.piece(), 64u);
        EXPECT_LE(way.piece(), Resource::kMostPiece);
        EXPECT_LE(duration_ps(way.piece(), rate), std::max(duration_ps(64, rate), Resource::kPiecePs + 1));
    }
}

}  // namespace
}  // namespace orrery::emu
