// What cards did for ranges of the program is told when all of it is over.
#include <orrery/hw/trace_sink.h>
#include <orrery/prof.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/prof/range_fixture.h"
#include "umd/prof/range_work.h"

namespace orrery::umd::test {
namespace {

TEST_F(RangeWork, IsTheSumOfWhatWasSubmittedInIt) {
    orrProfDomain_t domain = nullptr;
    ASSERT_OK(
        orrProfDomainCreate(&domain, "data"));  // that another test has: one takes all that there can be
    Listener listener(kAllRanges | orrProfWantRanges);
    fill(64);
    push("outer");
    copy(1024);
    push("theirs", domain);
    push("inner");
    fill(512);
    fill(64);
    pop();
    fill(8);
    pop();
    fill(16);
    pop(domain);
    fill(32);
    synchronize();
    const Range outer = listener.flushed("outer"), inner = listener.flushed("inner"),
                theirs = listener.flushed("theirs");
    const auto work = listener.work();
    const auto counters = listener.counters();
    ASSERT_EQ(work.size(), 7u);
    ASSERT_EQ(counters.size(), 7u);
    const auto expect = [&](const Range& range, std::size_t first, std::size_t end) {
        std::uint64_t ps = 0, used = 0, setup = 0, busy = 0, cores = 0, ports = 0;
        std::size_t copies = 0;
        for (std::size_t i = first; i < end; ++i) {
            ps += work[i].end_ps - work[i].begin_ps;
            used += work[i].used_ps;
            copies += work[i].operation == orrProfOperationCopy ? 1 : 0;
            busy += counters[i].busy_ps;
            setup += counters[i].copy_peer_ps;
            cores = std::max(cores, counters[i].cores);
            ports |= counters[i].link_ports;
        }
        EXPECT_EQ(range.work.kernels, 0u);
        EXPECT_EQ(range.work.copies, copies) << range.name;
        EXPECT_EQ(range.work.fills, end - first - copies) << range.name;
        EXPECT_EQ(range.work.records, end - first) << range.name;
        EXPECT_EQ(range.work.counted, end - first) << range.name;
        EXPECT_EQ(range.work.missing, 0u);
        EXPECT_EQ(range.work.failed, 0u);
        EXPECT_EQ(range.work.copy_ps, ps) << range.name;
        EXPECT_EQ(range.work.used_ps, used) << range.name;
        EXPECT_EQ(range.work.ended, 1u);
        EXPECT_EQ(range.work.untold, 0u);
        EXPECT_LE(range.work.begin_ns, range.work.end_ns);
        EXPECT_EQ(range.record.thread, static_cast<std::uint64_t>(::gettid()));
        EXPECT_GE(range.behind, end) << range.name << " is told behind its work";
        ASSERT_TRUE(range.counters) << range.name;
        EXPECT_EQ(range.counters->size, sizeof(orrProfWorkCounters));
        EXPECT_EQ(range.counters->busy_ps, busy) << range.name;
        EXPECT_EQ(range.counters->copy_peer_ps, setup) << range.name;
        EXPECT_EQ(range.counters->cores, cores) << range.name;
        EXPECT_EQ(range.counters->link_ports, ports) << range.name;
    };
    expect(outer, 1, 5);
    expect(inner, 2, 4);
    expect(theirs, 2, 6);
    EXPECT_EQ(inner.work.around, outer.record.range);
    EXPECT_EQ(outer.work.around, 0u);
    EXPECT_EQ(theirs.work.around, 0u) << "of another domain";
    EXPECT_EQ(inner.record.depth, 1u);
    EXPECT_EQ(theirs.domain, "data");
    EXPECT_EQ(outer.domain, "");
    using Numbers = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
    EXPECT_EQ(listener.begins_and_ends(), (Numbers{{orrProfRangeBegin, outer.record.range},
                                                   {orrProfRangeBegin, theirs.record.range},
                                                   {orrProfRangeBegin, inner.record.range},
                                                   {orrProfRangeEnd, inner.record.range},
                                                   {orrProfRangeEnd, outer.record.range},
                                                   {orrProfRangeEnd, theirs.record.range}}));
}

TEST_F(RangeWork, IsToldWhenTheRangeHasEndedAndItsWorkToo) {
    Listener listener;
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    push("open");
    fill(64);
    synchronize();
    EXPECT_TRUE(listener.flushed().empty()) << "it is open";
    pop();
    EXPECT_EQ(listener.flushed().size(), 1u) << "nothing of it is left to be told";
    ASSERT_OK(orrStreamWaitSemaphore(stream_, gate, 1, nullptr));
    push("waits");
    fill(64);
    pop();
    EXPECT_EQ(listener.flushed().size(), 1u) << "its work has not begun";
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    synchronize();
    EXPECT_EQ(listener.flushed("waits").work.fills, 1u);
    EXPECT_OK(orrSemaphoreDestroy(gate));
}

TEST_F(RangeWork, OfARangeWithoutWorkIsToldAtItsEnd) {
    Listener listener;
    push("outer");
    push("empty");
    pop();
    ASSERT_EQ(listener.flushed().size(), 1u);
    pop();
    const auto all = listener.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "empty");
    EXPECT_EQ(all[0].work.records, 0u);
    EXPECT_EQ(all[0].counters, std::nullopt);
    EXPECT_EQ(all[1].name, "outer");
}

// It costs nothing while nobody wants it, and is not what an older program asks for.
TEST_F(RangeWork, IsOfThoseWhoWantIt) {
    Listener others(orrProfWantWork | orrProfWantRanges), usual(0), ranges(orrProfWantRanges);
    push("x");
    fill(64);
    pop();
    synchronize();
    EXPECT_TRUE(others.flushed().empty());
    EXPECT_TRUE(usual.ranges().empty());
    for (const auto& [kind, range] : others.begins_and_ends())
        EXPECT_EQ(range, 0u);
    Listener wants;
    push("y");
    pop();
    const auto all = wants.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].name, "y");
}

// A subscription that comes when it is open would be told of a part.
TEST_F(RangeWork, OfARangeThatBeganForOthersIsNotTold) {
    push("before all");
    {
        const Listener first;
        push("for the first");
        fill(64);
    }
    fill(64);
    Listener second;
    push("own");
    fill(64);
    pop();
    pop();
    pop();
    synchronize();
    const auto all = second.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].name, "own");
    EXPECT_EQ(all[0].work.fills, 1u);
    EXPECT_EQ(all[0].work.around, 0u);
}

TEST_F(RangeWork, OfAThreadThatEndsIsToldWithWhatItHad) {
    Listener listener;
    std::thread([&] {
        push("left open");
        push("within");
        fill(64);
    }).join();
    synchronize();
    const Range left = listener.flushed("left open"), within = listener.flushed("within");
    EXPECT_EQ(left.work.ended, 0u);
    EXPECT_EQ(left.work.fills, 1u);
    EXPECT_GE(left.work.end_ns, left.work.begin_ns);
    EXPECT_EQ(within.work.ended, 0u);
    EXPECT_EQ(within.work.around, left.record.range);
}

TEST_F(RangeWork, OfLostRecordsSaysHowManyAreMissing) {
    Listener listener;
    push("outer");
    push("lost");
    fill(64);
    synchronize();
    EXPECT_OK(orrProfFlush());
    with_card([](FakeCard& card) { card.loses_work = true; });
    fill(64);
    fill(64);
    synchronize();
    with_card([](FakeCard& card) { card.loses_work = false; });
    pop();
    pop();
    for (const char* name : {"lost", "outer"}) {
        const Range range = listener.flushed(name);
        EXPECT_EQ(range.work.fills, 1u) << name;
        EXPECT_EQ(range.work.missing, 2u) << name;
    }
}

TEST_F(RangeWork, OfACardThatTellsNothingIsMissing) {
    system_.card().records_work = false;
    Listener listener;
    push("untold");
    fill(64);
    synchronize();
    pop();
    EXPECT_EQ(orrProfFlush(), orrErrorNotSupported);
    const auto all = listener.ranges();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].work.records, 0u);
    EXPECT_EQ(all[0].work.missing, 1u);
}

// Nobody destroys it, and the range is told.
TEST_F(RangeWork, OfAStreamThatStopsDoesNotWaitForWhatNeverRuns) {
    Listener listener;
    void* gone = nullptr;
    ASSERT_OK(orrMalloc(&gone, 2 << 20));
    system_.card().pause(true);
    system_.card().hide(gone);
    push("stops");
    fill(64);
    ASSERT_OK(orrMemsetAsync(gone, 1, 64, stream_));
    fill(64);
    fill(64);
    pop();
    system_.card().pause(false);
    EXPECT_EQ(orrStreamSynchronize(stream_), orrErrorIllegalAddress);
    const Range range = listener.flushed("stops");
    EXPECT_EQ(range.work.fills, 2u);
    EXPECT_EQ(range.work.failed, 1u);
    EXPECT_EQ(range.work.missing, 2u);
    ASSERT_OK(orrStreamDestroy(stream_));
    ASSERT_OK(orrFree(gone));
}

// Streams go with it whether their work has ended or not.
TEST(RangeWorkOfAll, DoesNotOutliveTheRuntime) {
    Listener listener;
    {
        const FakeSystem system;
        orrSemaphore_t gate = nullptr;
        void* memory = nullptr;
        ASSERT_OK(orrSemaphoreCreate(&gate, 0));
        ASSERT_OK(orrMalloc(&memory, 4096));
        push("cut off");
        ASSERT_OK(orrStreamWaitSemaphore(nullptr, gate, 1, nullptr));
        ASSERT_OK(orrMemsetAsync(memory, 1, 64, nullptr));
        pop();
        EXPECT_TRUE(listener.flushed().empty());
    }
    const Range range = listener.flushed("cut off");
    EXPECT_EQ(range.work.fills, 0u);
    EXPECT_EQ(range.work.missing, 1u);
}

TEST_F(RangeWork, OfALostCardIsTold) {
    Listener listener;
    push("lost card");
    system_.card().pause(true);
    fill(64);
    pop();
    system_.card().lose();
    EXPECT_EQ(orrStreamSynchronize(stream_), orrErrorDeviceLost);
    EXPECT_EQ(orrProfFlush(), orrErrorDeviceLost);
    const auto all = listener.ranges();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].work.missing, 1u);
}

// What a card, or its driver, does not count is in no sum of it either.
TEST_F(RangeWork, HasCountersAsFarAsAllAreKnown) {
    Listener listener;
    push("some");
    fill(64);
    synchronize();
    EXPECT_OK(orrProfFlush());
    with_card([](FakeCard& card) { card.counters_known = (std::uint64_t{1} << ORR_JOB_COPY_SETUP_PS) - 1; });
    fill(64);
    synchronize();
    pop();
    const Range range = listener.flushed("some");
    ASSERT_TRUE(range.counters);
    EXPECT_EQ(range.work.counted, 2u);
    EXPECT_EQ(range.counters->size, offsetof(orrProfWorkCounters, copy_setup_ps));
    const auto counters = listener.counters();
    EXPECT_EQ(range.counters->tlb_walked, counters.at(0).tlb_walked + counters.at(1).tlb_walked);
    EXPECT_EQ(range.counters->copy_setup_ps, 0u);
    EXPECT_EQ(range.counters->link_ports, 0u);
}

TEST_F(RangeWork, WithoutCountersHasNone) {
    Listener listener(orrProfWantWork | orrProfWantRangeWork);
    push("uncounted");
    fill(64);
    synchronize();
    {
        const Listener counts;
        fill(64);
        synchronize();
        EXPECT_OK(orrProfFlush());
    }
    pop();
    const Range range = listener.flushed("uncounted");
    EXPECT_EQ(range.work.records, 2u);
    EXPECT_EQ(range.work.counted, 1u) << "the first was not counted for anybody";
    EXPECT_TRUE(range.counters);
}

TEST_F(RangeWork, OfManyThreadsIsEachTheirOwn) {
    Listener listener;
    constexpr int kThreads = 4, kRanges = 100;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([this] {
            for (int n = 0; n < kRanges; ++n) {
                push("outer");
                push("inner");
                fill(8);
                pop();
                fill(8);
                pop();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    synchronize();
    const auto all = listener.flushed();
    ASSERT_EQ(all.size(), static_cast<std::size_t>(kThreads * kRanges * 2));
    for (const Range& range : all)
        EXPECT_EQ(range.work.fills, range.name == "outer" ? 2u : 1u);
}

// A callback's own are told by somebody else, and its pushes and pops do no harm.
TEST_F(RangeWork, CallbacksMayHaveRangesToo) {
    Listener listener(kAllRanges | orrProfWantRanges), other;
    listener.and_then = [&](const orrProfRecord& record) {
        if (record.kind != orrProfRangeBegin || record.depth != 0) return;
        push("in a callback");
        pop();
    };
    push("outer");
    fill(64);
    pop();
    synchronize();
    EXPECT_OK(orrProfFlush());
    EXPECT_EQ(other.flushed("in a callback").work.around, other.flushed("outer").record.range);
    EXPECT_EQ(listener.flushed("in a callback").work.fills, 0u) << "also to whose callback it was";
}

TEST_F(RangeWork, IsNotWithoutEnd) {
    Listener listener;
    for (std::size_t i = 0; i < kMostRanges + 10; ++i)
        ASSERT_OK(orrProfRangePush(nullptr, "deep"));
    fill(64);
    for (std::size_t i = 0; i < kMostRanges + 10; ++i)
        ASSERT_OK(orrProfRangePop(nullptr));
    synchronize();
    const auto all = listener.flushed();
    ASSERT_EQ(all.size(), kMostRanges);
    std::uint64_t untold = 0;
    for (const Range& range : all) {
        EXPECT_EQ(range.work.fills, 1u);
        untold += range.work.untold;
    }
    EXPECT_EQ(untold, 10u);
    push("again");
    pop();
    EXPECT_EQ(listener.flushed("again").work.fills, 0u);
}

// The parent tells its own; the child's are new.
TEST_F(RangeWork, InAChildIsOfItsOwnRanges) {
    Listener listener;
    push("the parent's");
    fill(64);
    synchronize();
    EXPECT_OK(orrProfFlush());  // so nobody holds the listener's mutex
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        pop();
        bool good = listener.ranges().empty();
        push("the child's");
        pop();
        const auto all = listener.ranges();
        good = good && all.size() == 1 && all[0].name == "the child's" && all[0].work.around == 0 &&
               all[0].record.thread == static_cast<std::uint64_t>(::getpid());
        ::_exit(good ? 0 : 9);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    pop();
    EXPECT_EQ(listener.flushed("the parent's").work.fills, 1u);
}

// Who asks has all that ended before, also what another thread is about to tell.
TEST_F(RangeWork, AFlushWaitsForWhoTellsThem) {
    Listener listener;
    std::atomic<bool> inside{false}, go{false};
    listener.and_then = [&](const orrProfRecord& record) {
        if (record.kind != orrProfRangeDone || inside.exchange(true)) return;
        while (!go)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    std::thread first([] {
        push("first");
        pop();
    });
    while (!inside)
        std::this_thread::yield();
    push("second");
    pop();
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        go = true;
    });
    const auto all = listener.flushed();
    later.join();
    first.join();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "first");
    EXPECT_EQ(all[1].name, "second");
}

// Inside of a callback nothing is told, so its end is not known when it goes.
TEST_F(RangeWork, OfAStreamThatIsDestroyedIsToldThoughAnEventIsOfIt) {
    Listener listener;
    orrEvent_t event = nullptr;
    std::atomic<bool> once{false};
    listener.and_then = [&](const orrProfRecord& record) {
        if (record.kind != orrProfWorkDone || once.exchange(true)) return;
        orrStream_t stream = nullptr;
        ASSERT_OK(orrStreamCreate(&stream, 0));
        ASSERT_OK(orrEventCreate(&event, 0));
        push("in a callback");
        ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream));
        ASSERT_OK(orrEventRecord(event, stream));
        pop();
        ASSERT_OK(orrStreamSynchronize(stream));
        ASSERT_OK(orrStreamDestroy(stream));
    };
    fill(64);
    synchronize();
    const Range range = listener.flushed("in a callback");
    EXPECT_EQ(range.work.fills + range.work.missing, 1u);
    ASSERT_NE(event, nullptr);
    EXPECT_OK(orrEventDestroy(event));
}

// An end names no range of which nobody will be told, and those before count nobody's.
TEST_F(RangeWork, OfAnEarlierSubscriptionHasNoNumber) {
    {
        const Listener first;
        push("for the first");
        for (std::size_t i = 0; i < kMostRanges + 10; ++i)
            ASSERT_OK(orrProfRangePush(nullptr, "deep"));
    }
    for (std::size_t i = 0; i < kMostRanges + 10; ++i)
        ASSERT_OK(orrProfRangePop(nullptr));
    Listener second(kAllRanges | orrProfWantRanges);
    pop();
    using Numbers = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
    EXPECT_EQ(second.begins_and_ends(), (Numbers{{orrProfRangeEnd, 0}}));
    push("own");
    pop();
    EXPECT_EQ(second.flushed("own").work.untold, 0u);
}

// The parent tells those that had ended, whatever the child does.
TEST_F(RangeWork, AChildOfACallbackTellsNone) {
    Listener listener;
    pid_t child = -1;
    unsigned told = 0;
    listener.and_then = [&](const orrProfRecord& record) {
        if (record.kind != orrProfRangeDone) return;
        if (child == 0) ::_exit(9);
        if (++told != 1) return;
        child = ::fork();
        if (child != 0) return;
        // It goes on to tell what is left.
        (void)std::signal(SIGALRM, [](int) { ::_exit(0); });
        const itimerval soon{{}, {0, 200'000}};
        (void)::setitimer(ITIMER_REAL, &soon, nullptr);
    };
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, gate, 1, nullptr));
    push("outer");
    push("inner");
    fill(64);
    pop();
    pop();
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    synchronize();
    EXPECT_OK(orrProfFlush());
    if (child == 0) ::_exit(0);  // it was this thread that told them
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(told, 2u);
    EXPECT_OK(orrSemaphoreDestroy(gate));
}

}  // namespace
}  // namespace orrery::umd::test
