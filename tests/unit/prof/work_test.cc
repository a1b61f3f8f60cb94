// What cards have done is told with the call that asked for it.
#include <gtest/gtest.h>
#include <orrery/prof.h>
#include <orrery/prof_calls.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/prof/work_fixture.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/clock.h"

namespace orrery::umd::test {
namespace {

TEST_F(Work, HasItsCallItsTimesAndItsStream) {
    Watched watched(orrProfWantWork | orrProfWantCalls);
    ASSERT_OK(orrProfExternalPush(77));
    copy(1024);
    const std::uint64_t call = watched.last_call();
    ASSERT_OK(orrProfExternalPop(nullptr));
    fill(512);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "copy");
    EXPECT_EQ(all[0].stream, "stream 'main' on device 0");
    EXPECT_EQ(all[0].record.correlation, call);
    EXPECT_EQ(all[0].record.external, 77u);
    EXPECT_EQ(all[0].record.thread, static_cast<std::uint64_t>(::gettid()));
    EXPECT_EQ(all[0].work.device, 0);
    EXPECT_EQ(all[0].work.operation, static_cast<std::uint32_t>(orrProfOperationCopy));
    EXPECT_EQ(all[0].work.outcome, static_cast<std::uint64_t>(orrProfOutcomeDone));
    EXPECT_EQ(all[0].work.end_ps - all[0].work.begin_ps, 10'240u) << "what the card says";
    EXPECT_GT(all[0].work.submitted_ns, 0u);
    EXPECT_EQ(all[0].work.bytes, 1024u);
    EXPECT_EQ(all[0].work.reduces, 0u);
    EXPECT_EQ(all[0].work.source, 0);
    EXPECT_EQ(all[0].work.destination, 0);
    EXPECT_EQ(all[1].name, "fill");
    EXPECT_EQ(all[1].work.bytes, 512u);
    EXPECT_EQ(all[1].work.destination, 0);
    EXPECT_GT(all[1].record.correlation, call);
    EXPECT_EQ(all[1].record.external, 0u);
    EXPECT_EQ(all[1].work.stream, all[0].work.stream);
    EXPECT_GT(all[1].work.index, all[0].work.index);
}

// Its destination is read as well, so who knows what copies can reach has to know.
TEST_F(Work, OfAReductionHasANameOfItsOwn) {
    Watched watched;
    ASSERT_OK(orrMemcpyReduceAsync(memory_, at(memory_, 2048), 64, orrFloat32, orrReduceSum, 0, stream_));
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].name, "reduction");
    EXPECT_EQ(all[0].work.operation, static_cast<std::uint32_t>(orrProfOperationCopy));
    EXPECT_EQ(all[0].work.reduces, 1u);
    EXPECT_EQ(all[0].work.bytes, 256u);
    EXPECT_EQ(all[0].work.source, 0);
    EXPECT_EQ(all[0].work.destination, 0);
}

TEST_F(Work, HadEndedWhenAWaitReturned) {
    Watched watched;
    fill(64);
    synchronize();
    const auto waited_ns = static_cast<std::uint64_t>(now_ns());
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    copy(1024);
    ASSERT_OK(orrEventRecord(event, stream_));
    ASSERT_OK(orrEventSynchronize(event));
    const auto event_ns = static_cast<std::uint64_t>(now_ns());
    fill(64);
    const auto all = watched.wait_for(3);
    EXPECT_LE(all[0].work.ended_by_ns, waited_ns);
    EXPECT_GT(all[0].work.ended_by_ns, all[0].work.submitted_ns);
    EXPECT_LE(all[1].work.ended_by_ns, event_ns);
    EXPECT_GT(all[1].work.ended_by_ns, waited_ns);
    EXPECT_EQ(all[2].work.ended_by_ns, all[2].record.host_ns) << "nobody has waited for it";
    ASSERT_OK(orrEventDestroy(event));
}

// Who flushes inside of a callback: what it takes from the card is told by another thread.
TEST_F(Work, ThatACallbackFlushesIsTold) {
    Watched watched(orrProfWantWork | orrProfWantCalls);
    watched.at_leave = [&](const orrProfRecord& record) {
        if (record.call != orrProfCall_orrStreamSynchronize) return;
        EXPECT_OK(orrProfFlush());
        // Its stream too: what it did is told all the same.
        const orrStream_t gone = std::exchange(stream_, nullptr);
        if (gone != nullptr) EXPECT_OK(orrStreamDestroy(gone));
    };
    fill(64);
    copy(1024);
    synchronize();
    const auto all = watched.wait_for(2);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "fill");
    EXPECT_EQ(all[1].name, "copy");
    EXPECT_EQ(all[1].stream, "stream 'main' on device 0");
}

TEST_F(Work, OfAStreamIsToldBeforeTheStreamGoes) {
    Watched watched;
    fill(64);
    ASSERT_OK(orrStreamDestroy(stream_));
    EXPECT_EQ(watched.wait_for(1).size(), 1u);
    // The next one has its number at the card, and another one here.
    ASSERT_OK(orrStreamCreate(&stream_, 0));
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_NE(all[0].work.stream, all[1].work.stream);
}

TEST_F(Work, OfCopiesHasTheirBytesAndSides) {
    Watched watched;
    void* host = nullptr;
    ASSERT_OK(orrMallocHost(&host, 4096, 0));
    ASSERT_OK(orrMemcpyAsync(memory_, host, 100, orrMemcpyHostToDevice, stream_));
    ASSERT_OK(orrMemcpyAsync(host, memory_, 200, orrMemcpyDeviceToHost, stream_));
    ASSERT_OK(orrMemcpy2DAsync(memory_, 64, host, 128, 16, 3, orrMemcpyHostToDevice, stream_));
    void* const to[] = {memory_, host};
    const void* const from[] = {host, memory_};
    const std::size_t bytes[] = {8, 16};
    ASSERT_OK(orrMemcpyBatchAsync(to, from, bytes, 2, 0, stream_));
    ASSERT_OK(orrMemcpyBatchAsync(to, from, bytes, 1, 0, stream_));
    orrMemcpyNDParams box = ORR_INIT(orrMemcpyNDParams);
    box.dst = memory_;
    box.src = host;
    box.dims = 4;
    for (std::size_t i = 0; i < 4; ++i)
        box.extent[i] = 4;
    box.dst_stride[0] = box.src_stride[0] = 8;
    box.dst_stride[1] = box.src_stride[1] = 40;
    box.dst_stride[2] = box.src_stride[2] = 200;
    box.kind = orrMemcpyHostToDevice;
    ASSERT_OK(orrMemcpyNDAsync(&box, stream_));
    synchronize();
    using Sides = std::vector<std::vector<std::int64_t>>;
    Sides sides;
    for (const Done& one : watched.flushed())
        sides.push_back({static_cast<std::int64_t>(one.work.bytes), one.work.source, one.work.destination});
    EXPECT_EQ(sides, (Sides{{100, orrProfPlaceHost, 0},
                            {200, 0, orrProfPlaceHost},
                            {48, orrProfPlaceHost, 0},
                            {24, orrProfPlaceUnknown, orrProfPlaceUnknown},
                            {8, orrProfPlaceHost, 0},
                            {256, orrProfPlaceHost, 0}}));
    EXPECT_OK(orrFreeHost(host));
}

TEST_F(Work, IsAskedForOnlyWhileSomebodyWantsIt) {
    FakeCard& card = system_.card();
    const auto wanted = [&] {
        const std::lock_guard lock(card.mutex());
        return card.work_wanted;
    };
    fill(64);
    synchronize();
    EXPECT_FALSE(wanted());
    {
        Watched watched;
        fill(64);
        EXPECT_TRUE(wanted());
        synchronize();
        EXPECT_EQ(watched.flushed().size(), 1u) << "not of what was submitted before";
    }
    while (wanted())  // the library's thread notices
        std::this_thread::yield();
    Watched again;
    fill(64);
    synchronize();
    EXPECT_EQ(again.flushed().size(), 1u);
}

TEST_F(Work, OfACardThatSaysNothingIsNotTold) {
    system_.card().records_work = false;
    Watched watched;
    fill(64);
    synchronize();
    EXPECT_FAIL(orrProfFlush(), orrErrorNotSupported, "does not say when");
}

TEST_F(Work, CallbacksMayCallTheApi) {
    Watched watched;
    watched.and_then = [&] {
        EXPECT_OK(orrProfFlush());  // does nothing
        orrStream_t another = nullptr;
        EXPECT_OK(orrStreamCreate(&another, 0));
        EXPECT_OK(orrStreamDestroy(another));
    };
    fill(64);
    synchronize();
    EXPECT_EQ(watched.flushed().size(), 1u);
}

TEST_F(Work, OfManyThreadsIsAllThere) {
    Watched watched;
    constexpr int kThreads = 4, kFills = 500;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            orrStream_t own = nullptr;
            EXPECT_OK(orrStreamCreate(&own, 0));
            for (int n = 0; n < kFills; ++n)
                EXPECT_OK(orrMemsetAsync(memory_, 1, 8, own));
            EXPECT_OK(orrStreamSynchronize(own));
            EXPECT_OK(orrStreamDestroy(own));
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    const auto all = watched.flushed();
    EXPECT_EQ(all.size(), static_cast<std::size_t>(kThreads * kFills));
    std::set<std::uint64_t> calls, streams;
    for (const Done& one : all) {
        calls.insert(one.record.correlation);
        streams.insert(one.work.stream);
    }
    EXPECT_EQ(calls.size(), all.size()) << "each has a call of its own";
    EXPECT_EQ(streams.size(), static_cast<std::size_t>(kThreads));
}

}  // namespace
}  // namespace orrery::umd::test
