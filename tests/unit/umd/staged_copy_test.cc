// Copies between two cards that no way of links joins: through the host's memory, and who is told so.
#include <orrery/graph.h>
#include <orrery/prof.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/umd/staged_fixture.h"
#include "umd/runtime/context.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/stream.h"

namespace orrery::umd::test {
namespace {

std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint32_t seed) {
    std::vector<std::uint8_t> data(bytes);
    for (std::uint8_t& byte : data)
        byte = static_cast<std::uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
    return data;
}

orrPeerWay way_of(int device, int peer) {
    orrPeerWay way = ORR_INIT(orrPeerWay);
    EXPECT_OK(orrDeviceGetPeerWay(&way, device, peer));
    return way;
}

#define EXPECT_WAY(way, wanted, text)                                                       \
    do {                                                                                    \
        const orrPeerWay found = way;                                                       \
        EXPECT_EQ(found.kind, wanted) << found.reason;                                      \
        EXPECT_NE(std::string(found.reason).find(text), std::string::npos) << found.reason; \
    } while (false)

TEST_F(Staged, EveryByteArrivesAndNoOther) {
    std::vector<std::uint8_t> back(kSize);
    std::uint32_t round = 0;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4095}, kHalf - 1, kHalf, kHalf + 1, 2 * kHalf,
                                    2 * kHalf + 3, 4 * kHalf + 129, kSize - 2000}) {
        for (const int from : {0, 1}) {
            // By orrMemcpy, in a stream of the source's card, and of the destination's.
            const int to = 1 - from, by = static_cast<int>(round++ % 3);
            const auto data = pattern(bytes, round);
            const std::size_t a = round * 7, b = 1000 - round * 3;
            ASSERT_OK(orrMemset(memory_[to], 0xee, kSize));
            ASSERT_OK(orrMemcpy(at(memory_[from], a), data.data(), bytes, orrMemcpyDefault));
            void *const dst = at(memory_[to], b), *const src = at(memory_[from], a);
            if (by == 0) {
                ASSERT_OK(orrMemcpy(dst, src, bytes, orrMemcpyDeviceToDevice));
            } else {
                ASSERT_OK(orrMemcpyAsync(dst, src, bytes, orrMemcpyDefault, stream_[by == 1 ? from : to]));
            }
            ASSERT_OK(orrMemcpy(back.data(), memory_[to], kSize, orrMemcpyDefault));
            ASSERT_EQ(std::memcmp(back.data() + b, data.data(), bytes), 0) << bytes << " by " << by;
            ASSERT_TRUE(std::all_of(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(b),
                                    [](std::uint8_t byte) { return byte == 0xee; }));
            ASSERT_TRUE(std::all_of(back.begin() + static_cast<std::ptrdiff_t>(b + bytes), back.end(),
                                    [](std::uint8_t byte) { return byte == 0xee; }));
        }
    }
}

TEST_F(Staged, RowsPlanesAndLists) {
    const auto data = pattern(kSize, 5);
    ASSERT_OK(orrMemcpy(memory_[0], data.data(), kSize, orrMemcpyDefault));
    ASSERT_OK(orrMemset(memory_[1], 0, kSize));
    // Rows of which many fit a half, and one that does not.
    for (const std::size_t width : {std::size_t{1000}, kHalf + 100}) {
        const std::size_t rows = width == 1000 ? 700 : 3, here = width + 24, there = width + 8;
        ASSERT_OK(orrMemcpy2D(memory_[1], there, memory_[0], here, width, rows, orrMemcpyDefault));
        std::vector<std::uint8_t> back(there * rows);
        ASSERT_OK(orrMemcpy(back.data(), memory_[1], back.size(), orrMemcpyDefault));
        for (std::size_t row = 0; row < rows; ++row)
            ASSERT_EQ(std::memcmp(back.data() + row * there, data.data() + row * here, width), 0) << row;
    }
    orrMemcpy3DParams box = ORR_INIT(orrMemcpy3DParams);
    box.dst = memory_[1];
    box.src = memory_[0];
    box.width = 500;
    box.dst_pitch = 600;
    box.src_pitch = 512;
    box.height = 7;
    box.dst_height = 8;
    box.src_height = 9;
    box.depth = 5;
    box.kind = orrMemcpyDefault;
    ASSERT_OK(orrMemcpy3DAsync(&box, stream_[1]));
    std::vector<std::uint8_t> back(600 * 8 * 5);
    ASSERT_OK(orrMemcpy(back.data(), memory_[1], back.size(), orrMemcpyDefault));
    for (std::size_t plane = 0; plane < 5; ++plane) {
        for (std::size_t row = 0; row < 7; ++row)
            ASSERT_EQ(std::memcmp(back.data() + (plane * 8 + row) * 600,
                                  data.data() + (plane * 9 + row) * 512, 500),
                      0);
    }
    // Among copies that the card does alone.
    void* pinned = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, 4096, 0));
    void* const dsts[] = {pinned, at(memory_[1], 0), at(memory_[0], 1 << 20)};
    const void* const srcs[] = {at(memory_[0], 64), at(memory_[0], 128), at(memory_[0], 256)};
    const std::size_t sizes[] = {1000, 2000, 3000};
    ASSERT_OK(orrMemcpyBatchAsync(dsts, srcs, sizes, 3, 0, stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    EXPECT_EQ(std::memcmp(pinned, data.data() + 64, 1000), 0);
    ASSERT_OK(orrMemcpy(back.data(), memory_[1], 2000, orrMemcpyDefault));
    EXPECT_EQ(std::memcmp(back.data(), data.data() + 128, 2000), 0);
    ASSERT_OK(orrMemcpy(back.data(), at(memory_[0], 1 << 20), 3000, orrMemcpyDefault));
    EXPECT_EQ(std::memcmp(back.data(), data.data() + 256, 3000), 0);
    ASSERT_OK(orrFreeHost(pinned));
}

// Behind what the stream was given before, and before what it is given next; in both cards' streams.
TEST_F(Staged, KeepsTheStreamsOrder) {
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    std::vector<std::uint8_t> back(kSize);
    for (int round = 1; round <= 6; ++round) {
        const int of = round % 2;
        ASSERT_OK(orrSetDevice(2 * of));
        ASSERT_OK(orrMemsetAsync(memory_[of], round, kSize, stream_[of]));
        ASSERT_OK(orrMemcpyAsync(memory_[1 - of], memory_[of], kSize, orrMemcpyDefault, stream_[of]));
        ASSERT_OK(orrMemsetAsync(memory_[of], 0xff, kSize, stream_[of]));
        // And back, in the same stream, which reads what it has just written.
        ASSERT_OK(orrMemcpyAsync(memory_[of], memory_[1 - of], kSize, orrMemcpyDefault, stream_[of]));
        ASSERT_OK(orrEventRecord(event, stream_[of]));
        ASSERT_OK(orrEventSynchronize(event));
        for (void* memory : memory_) {
            ASSERT_OK(orrMemcpy(back.data(), memory, kSize, orrMemcpyDefault));
            ASSERT_TRUE(std::ranges::all_of(back, [&](std::uint8_t byte) { return byte == round; })) << round;
        }
    }
    ASSERT_OK(orrEventDestroy(event));
}

TEST_F(Staged, WhatCannotBeSaysWhy) {
    constexpr const char* kWhy = "go through the host's memory then; kernels and memsets do not";
    EXPECT_FAIL(orrMemsetAsync(memory_[1], 1, 64, stream_[0]), orrErrorPeerAccess, kWhy);
    const orrMemcpyNDParams box = rows_between(memory_[1], memory_[0], 64, 1);
    // A card that has no part in it does not do it.
    orrStream_t third = stream_on(1);
    EXPECT_EQ(orrMemcpyAsync(memory_[1], memory_[0], 64, orrMemcpyDefault, third), orrErrorPeerAccess);
    EXPECT_EQ(orrMemcpyNDAsync(&box, third), orrErrorPeerAccess);
    EXPECT_EQ(orrMemcpyReduceAsync(memory_[1], memory_[0], 8, orrUint64, orrReduceSum, 0, third),
              orrErrorPeerAccess);
    ASSERT_OK(orrStreamDestroy(third));
}

TEST_F(Staged, TheProgramIsToldWhichWayAndWhy) {
    EXPECT_WAY(way_of(1, 1), orrPeerWaySelf, "both are device 1");
    EXPECT_WAY(way_of(0, 2), orrPeerWayHost, "no way over links that are up joins device 0 and device 2");
    EXPECT_EQ(way_of(0, 2).links, 0u);
    const orrPeerWay near = way_of(0, 1);
    EXPECT_WAY(near, orrPeerWayLink, "1 link up from port 0 of device 0 to device 1: orrDeviceEnablePeer");
    EXPECT_EQ(near.links, 1u);
    EXPECT_EQ(near.latency_ps, 300'000u);
    EXPECT_EQ(near.enabled, 0);
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    EXPECT_EQ(way_of(0, 1).enabled, 1);
    EXPECT_EQ(way_of(1, 0).enabled, 0);
    orrPeerWay way = ORR_INIT(orrPeerWay);
    EXPECT_EQ(orrDeviceGetPeerWay(&way, 0, 3), orrErrorInvalidDevice);
    EXPECT_EQ(orrDeviceGetPeerWay(&way, -1, 0), orrErrorInvalidDevice);
    EXPECT_EQ(orrDeviceGetPeerWay(nullptr, 0, 1), orrErrorInvalidValue);
    way.size = 4;
    EXPECT_EQ(orrDeviceGetPeerWay(&way, 0, 1), orrErrorInvalidValue);
}

// What worked goes on working; who enables peer access has the link.
TEST_F(Staged, ALinkThatComesUpChangesNothingUntilItIsEnabled) {
    ASSERT_OK(orrMemset(memory_[0], 0x42, 4096));
    ASSERT_OK(orrMemcpy(memory_[1], memory_[0], 4096, orrMemcpyDefault));
    system_.card(0).link_to(system_.card(2));
    EXPECT_WAY(way_of(0, 2), orrPeerWayHost, "orrDeviceEnablePeerAccess(2, 0) takes the 1 that are up now");
    ASSERT_OK(orrMemcpy(memory_[1], memory_[0], 4096, orrMemcpyDefault));
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(2, 0));
    EXPECT_WAY(way_of(0, 2), orrPeerWayLink, "1 link up");
    ASSERT_OK(orrMemcpy(memory_[1], memory_[0], 4096, orrMemcpyDefault));
}

TEST(StagedPeer, AWayThatIsDownIsGoneAround) {
    FakeSystem system(2);
    constexpr std::size_t kBytes = kHalf + 5;
    void *here = malloc_on(0, kBytes), *there = malloc_on(1, kBytes);
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    EXPECT_WAY(way_of(0, 1), orrPeerWayLink, "1 link up");
    std::uint8_t last = 0;
    for (const int round : {1, 2, 3}) {
        if (round == 2) {
            system.card(0).cut_link();
            EXPECT_WAY(way_of(0, 1), orrPeerWayHost, "no way over links that are up");
        } else if (round == 3) {
            system.card(0).mend_link();
            EXPECT_WAY(way_of(0, 1), orrPeerWayLink, "1 link up");
        }
        ASSERT_OK(orrMemset(here, round, kBytes));
        ASSERT_OK(orrMemcpy(there, here, kBytes, orrMemcpyDefault));
        ASSERT_OK(orrMemcpy(&last, at(there, kBytes - 1), 1, orrMemcpyDefault));
        EXPECT_EQ(last, round);
    }
    for (void* memory : {here, there})
        ASSERT_OK(orrFree(memory));
}

// One of the cards goes in the middle of a copy, whose stream is the source's card's or the destination's.
class StagedLoss : public ::testing::TestWithParam<std::tuple<int, int, int>> {
  protected:
    // Bytes, a box, or a copy with reduction.
    static orrError_t copy(void* dst, void* src, std::size_t bytes, orrStream_t stream) {
        const orrMemcpyNDParams box = rows_between(dst, src, 1000, bytes / 1000);
        switch (std::get<2>(GetParam())) {
            case 0:
                return orrMemcpyAsync(dst, src, bytes, orrMemcpyDefault, stream);
            case 1:
                return orrMemcpyNDAsync(&box, stream);
            default:
                return orrMemcpyReduceAsync(dst, src, bytes / 8, orrUint64, orrReduceSum, 0, stream);
        }
    }
};

TEST_P(StagedLoss, ACardThatGoesStopsTheStreamWithTheCause) {
    const auto [of, lost, what] = GetParam();  // 0: the source's card
    FakeSystem system(3);
    constexpr std::size_t kBytes = 8 << 20;
    void *src = malloc_on(0, kBytes), *dst = malloc_on(2, kBytes);
    orrStream_t stream = stream_on(2 * of), other = stream_on(2 - 2 * of);
    FakeCard &source = system.card(0), &sink = system.card(2);
    sink.pause(true);
    const std::uint64_t before = source.packets();
    orrError_t told = orrSuccess;
    std::string text;
    std::atomic<bool> over{false};
    std::thread copier([&] {
        told = copy(dst, src, kBytes, stream);
        text = orrGetLastErrorText();
        over = true;
    });
    // It has read both halves, and cannot write.
    while (source.packets() < before + 2 && !over)
        std::this_thread::yield();
    EXPECT_FALSE(over) << text;
    (lost == 0 ? source : sink).lose();
    sink.pause(false);
    copier.join();
    EXPECT_EQ(told, orrErrorDeviceLost) << text;
    if (of != lost) {
        const std::string half = "device " + std::to_string(2 * lost) + ", which does its half";
        EXPECT_NE(text.find(half), std::string::npos) << text;
    }
    EXPECT_EQ(orrMemsetAsync(of == 0 ? src : dst, 1, 64, stream), orrErrorDeviceLost)
        << "what comes next does not run";
    if (of == lost) EXPECT_OK(orrStreamSynchronize(other));
    // The next one is told at once, and the card that is left goes on.
    EXPECT_EQ(orrMemcpy(dst, src, 64, orrMemcpyDefault), orrErrorDeviceLost);
    EXPECT_OK(orrMemset(lost == 0 ? dst : src, 1, 64));
    orrStreamDestroy(stream);
    orrStreamDestroy(other);
    orrFree(src);
    orrFree(dst);
}

INSTANTIATE_TEST_SUITE_P(All, StagedLoss,
                         ::testing::Combine(::testing::Values(0, 1), ::testing::Values(0, 1),
                                            ::testing::Values(0, 1, 2)));

// What is wrong with one stream's copy is that stream's, whoever else copies to the same card.
class StagedFault : public ::testing::Test {
  protected:
    static constexpr std::size_t kBytes = 4096;
    static constexpr std::size_t kApart = 2 << 20;  // a buffer of its own
    void SetUp() override {
        for (int i = 0; i < 2; ++i) {
            src_[i] = malloc_on(i, kBytes);
            stream_[i] = stream_on(i);
        }
        good_ = malloc_on(3, kApart);
        bad_ = malloc_on(3, kApart);
        system_.card(3).hide(bad_);
    }
    void TearDown() override {
        for (int i = 0; i < 2; ++i) {
            EXPECT_OK(orrStreamDestroy(stream_[i]));
            EXPECT_OK(orrFree(src_[i]));
        }
        orrFree(bad_);
        EXPECT_OK(orrFree(good_));
    }
    // It is in the paused card's queue, or about to be.
    static void copying(FakeCard& source, std::uint64_t packets) {
        while (source.packets() < packets)
            std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    FakeSystem system_{4};
    void *src_[2] = {}, *good_ = nullptr, *bad_ = nullptr;
    orrStream_t stream_[2] = {};
};

TEST_F(StagedFault, StopsNoOtherStreamsCopy) {
    FakeCard& sink = system_.card(3);
    for (int i = 0; i < 2; ++i)
        ASSERT_OK(orrMemcpyAsync(good_, src_[i], 64, orrMemcpyDefault, stream_[i]));
    sink.pause(true);
    std::vector<std::thread> copiers;
    orrError_t told[2] = {};
    for (unsigned i = 0; i < 2; ++i) {
        const std::uint64_t before = system_.card(i).packets();
        copiers.emplace_back([&, i] {
            told[i] = orrMemcpyAsync(i == 0 ? bad_ : good_, src_[i], kBytes, orrMemcpyDefault, stream_[i]);
        });
        copying(system_.card(i), before + 1);
    }
    sink.pause(false);
    for (std::thread& copier : copiers)
        copier.join();
    EXPECT_NE(told[0], orrSuccess);
    EXPECT_OK(told[1]);
    EXPECT_OK(orrMemsetAsync(src_[1], 1, 64, stream_[1]));
    EXPECT_OK(orrStreamSynchronize(stream_[1]));
}

TEST_F(StagedFault, IsNoErrorOfTheOtherDevice) {
    EXPECT_NE(orrMemcpyAsync(bad_, src_[0], kBytes, orrMemcpyDefault, stream_[0]), orrSuccess);
    ASSERT_OK(orrSetDevice(3));
    EXPECT_OK(orrDeviceSynchronize());
}

// Nor while it is under way: who waits for the other device waits for it, and is told nothing of its end.
TEST_F(StagedFault, IsNoErrorOfWhoWaitsForTheOtherDevice) {
    FakeCard& sink = system_.card(3);
    sink.pause(true);
    const std::uint64_t before = system_.card(0).packets();
    orrError_t told = orrSuccess, waited = orrErrorNotReady;
    std::thread copier([&] { told = orrMemcpyAsync(good_, src_[0], kBytes, orrMemcpyDefault, stream_[0]); });
    copying(system_.card(0), before + 1);
    std::thread waiter([&] {
        orrSetDevice(3);
        waited = orrDeviceSynchronize();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it is in the wait, most likely
    ASSERT_OK(orrStreamAbort(stream_[0]));
    sink.pause(false);
    copier.join();
    waiter.join();
    EXPECT_EQ(told, orrErrorAborted);
    EXPECT_EQ(waited, orrSuccess);
}

// A stream that is closed before its copy has begun: the copy has not been done.
TEST_F(StagedFault, ACopyOfAClosedStreamFails) {
    const auto stream = Runtime::usable()->streams.find(stream_[0]);
    Context& other = **Runtime::usable()->context(3);
    stream->close();
    const auto done = stream->staging().between(
        *stream, other,
        {.pushes = true,
         .box = make_box(reinterpret_cast<std::uint64_t>(good_), reinterpret_cast<std::uint64_t>(src_[0]),
                         {.row_bytes = kBytes, .rows = 1})});
    EXPECT_FALSE(done.has_value());
}

// However many copy at one moment.
TEST_F(StagedFault, TheOtherCardKeepsFewQueuesForCopies) {
    constexpr unsigned kThreads = 16;
    FakeCard& sink = system_.card(3);
    const auto queues = [&] {
        const std::lock_guard lock(sink.mutex());
        return sink.queues.size();
    };
    const std::size_t before = queues();
    std::vector<orrStream_t> streams;
    for (unsigned i = 0; i < kThreads; ++i)
        streams.push_back(stream_on(0));
    sink.pause(true);
    std::vector<std::thread> copiers;
    for (const orrStream_t stream : streams)
        copiers.emplace_back(
            [&, stream] { EXPECT_OK(orrMemcpyAsync(good_, src_[0], kBytes, orrMemcpyDefault, stream)); });
    while (queues() < before + kThreads)
        std::this_thread::yield();
    sink.pause(false);
    for (std::thread& copier : copiers)
        copier.join();
    for (const orrStream_t stream : streams)
        ASSERT_OK(orrStreamDestroy(stream));
    EXPECT_LE(queues(), before + 4);
}

// Also with a tool that hears of all work, and calls back into the library.
TEST_F(StagedFault, TheNextCopyGoesThroughWithATool) {
    const auto hears = [](void*, const orrProfRecord* record) {
        if (record->kind != orrProfWorkDone) return;
        int device = 0;
        orrGetDevice(&device);
        orrSetDevice(3);
        orrStreamSynchronize(nullptr);
        orrSetDevice(device);
    };
    orrProfSubscription_t subscription = nullptr;
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantWork;
    ASSERT_OK(orrProfSubscribe(&subscription, hears, nullptr, &options));
    for (int round = 0; round < 10; ++round) {
        EXPECT_NE(orrMemcpyAsync(bad_, src_[0], kBytes, orrMemcpyDefault, stream_[0]), orrSuccess);
        EXPECT_OK(orrStreamDestroy(stream_[0]));
        stream_[0] = stream_on(0);
        ASSERT_OK(orrMemcpyAsync(good_, src_[0], kBytes, orrMemcpyDefault, stream_[0]));
        ASSERT_OK(orrMemcpyAsync(good_, src_[1], kBytes, orrMemcpyDefault, stream_[1]));
    }
    EXPECT_OK(orrProfUnsubscribe(subscription));
}

// A queue that is not kept ends with its copy, of whose work a tool is told there.
TEST_F(StagedFault, AToolMayCopyWhenItIsToldOfACopysQueue) {
    static thread_local orrStream_t t_own;
    struct Sides {
        void *to, *from;
    } sides{good_, src_[0]};
    const auto hears = [](void* user, const orrProfRecord* record) {
        const auto& all = *static_cast<const Sides*>(user);
        if (record->kind != orrProfWorkDone || t_own == nullptr) return;
        EXPECT_OK(orrMemcpyAsync(all.to, all.from, 64, orrMemcpyDefault, std::exchange(t_own, nullptr)));
    };
    constexpr unsigned kThreads = 8;
    FakeCard& sink = system_.card(3);
    const auto queues = [&] {
        const std::lock_guard lock(sink.mutex());
        return sink.queues.size();
    };
    const std::size_t before = queues();
    std::vector<orrStream_t> streams;
    for (unsigned i = 0; i < kThreads; ++i)
        streams.push_back(stream_on(0));
    sink.pause(true);
    orrProfSubscription_t subscription = nullptr;
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantWork;
    ASSERT_OK(orrProfSubscribe(&subscription, hears, &sides, &options));
    std::vector<std::thread> copiers;
    for (const orrStream_t stream : streams)
        copiers.emplace_back([&, stream] {
            t_own = stream;
            EXPECT_OK(orrMemcpyAsync(good_, src_[0], kBytes, orrMemcpyDefault, stream));
            t_own = nullptr;
        });
    while (queues() < before + kThreads)
        std::this_thread::yield();
    sink.pause(false);
    for (std::thread& copier : copiers)
        copier.join();
    EXPECT_OK(orrProfUnsubscribe(subscription));
    for (const orrStream_t stream : streams)
        EXPECT_OK(orrStreamDestroy(stream));
}

TEST_F(StagedFault, NothingOfAnAbortedStreamRuns) {
    FakeCard& sink = system_.card(3);
    ASSERT_OK(orrMemset(src_[0], 0x77, kBytes));
    ASSERT_OK(orrMemset(good_, 0, kBytes));
    ASSERT_OK(orrDeviceSynchronize());
    sink.pause(true);
    const std::uint64_t before = system_.card(0).packets();
    orrError_t told = orrSuccess;
    std::thread copier([&] { told = orrMemcpyAsync(good_, src_[0], kBytes, orrMemcpyDefault, stream_[0]); });
    copying(system_.card(0), before + 1);
    ASSERT_OK(orrStreamAbort(stream_[0]));
    sink.pause(false);
    copier.join();
    EXPECT_EQ(told, orrErrorAborted);
    std::vector<std::uint8_t> back(kBytes, 1);
    ASSERT_OK(orrMemcpy(back.data(), good_, kBytes, orrMemcpyDefault));
    EXPECT_TRUE(std::ranges::all_of(back, [](std::uint8_t byte) { return byte == 0; }));
}

}  // namespace
}  // namespace orrery::umd::test
