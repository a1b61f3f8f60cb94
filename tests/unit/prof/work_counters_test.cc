// What the hardware counted of work is told with it, where that is wanted and the card can.
#include <gtest/gtest.h>
#include <orrery/hw/trace_sink.h>
#include <orrery/prof.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "tests/unit/prof/work_fixture.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

TEST_F(Work, HasCountersWhereTheyAreWanted) {
    Watched watched;
    fill(64);
    synchronize();
    ASSERT_EQ(watched.flushed().size(), 1u);
    EXPECT_FALSE(watched.flushed()[0].counters);
    {
        Watched counted(orrProfWantWork | orrProfWantCounters);
        fill(64);
        synchronize();
        const auto all = counted.flushed();
        ASSERT_EQ(all.size(), 1u);
        ASSERT_TRUE(all[0].counters);
        EXPECT_EQ(all[0].counters->size, sizeof(orrProfWorkCounters));
        // What the fake card says, by number.
        const std::uint64_t first = 1000 * all[0].work.index;
        EXPECT_EQ(all[0].counters->cores, first + ORR_JOB_CORES);
        EXPECT_EQ(all[0].counters->moved, first + ORR_JOB_MOVED);
        EXPECT_EQ(all[0].counters->flops_f32, first + ORR_JOB_FLOPS_F32);
        EXPECT_EQ(all[0].counters->tlb_walked, first + ORR_JOB_TLB_WALKED);
        EXPECT_EQ(all[0].counters->copy_setup_ps, first + ORR_JOB_COPY_SETUP_PS);
        EXPECT_EQ(all[0].counters->copy_peer_ps, first + ORR_JOB_COPY_PEER_PS);
        EXPECT_EQ(all[0].counters->link_ports, first + ORR_JOB_LINK_PORTS);
        EXPECT_EQ(all[0].counters->pause_ps, first + ORR_JOB_PAUSE_PS);
    }
    // A wait has none.
    Watched again(orrProfWantWork | orrProfWantCounters);
    orrSemaphore_t semaphore = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore, 1, nullptr));
    until_waits(1);
    ASSERT_OK(orrSemaphoreSignal(semaphore, 1));
    synchronize();
    const auto all = again.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].name, "wait");
    EXPECT_FALSE(all[0].counters);
}

// Cards before 2.15 count no more.
TEST_F(Work, HasTheCountersThatTheCardCounts) {
    {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().counters_known = (std::uint64_t{1} << ORR_JOB_COPY_SETUP_PS) - 1;
    }
    Watched watched(orrProfWantWork | orrProfWantCounters);
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 1u);
    ASSERT_TRUE(all[0].counters);
    EXPECT_EQ(all[0].counters->size, offsetof(orrProfWorkCounters, copy_setup_ps));
    EXPECT_EQ(all[0].counters->tlb_walked, 1000 * all[0].work.index + ORR_JOB_TLB_WALKED);
    EXPECT_EQ(all[0].counters->copy_setup_ps, 0u);
}

// They take room of all processes'.
TEST_F(Work, HasCountersOnlyWhileTheyAreWanted) {
    FakeCard& card = system_.card();
    const auto counts = [&] {
        const std::lock_guard lock(card.mutex());
        return card.counters_wanted;
    };
    Watched watched;
    {
        Watched counted(orrProfWantWork | orrProfWantCounters);
        fill(64);
        EXPECT_TRUE(counts());
        synchronize();
        EXPECT_EQ(counted.flushed().size(), 1u);
    }
    while (counts())  // the library's thread notices
        std::this_thread::yield();
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u) << "the records go on";
    EXPECT_TRUE(all[0].counters);
    EXPECT_FALSE(all[1].counters);
}

// Who subscribes to all of what an older version knew costs nobody that room.
TEST_F(Work, HasNoCountersForWhoJustSubscribes) {
    Watched watched(0);
    fill(64);
    with_card([](const FakeCard& card) {
        EXPECT_TRUE(card.work_wanted);
        EXPECT_FALSE(card.counters_wanted);
    });
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].counters);
}

TEST_F(Work, HasCountersOnceTheCardCan) {
    with_card([](FakeCard& card) { card.counters_busy = 1; });
    Watched watched(orrProfWantWork | orrProfWantCounters);
    fill(64);
    synchronize();
    fill(64);
    synchronize();
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_FALSE(all[0].counters);
    EXPECT_TRUE(all[1].counters);
}

// Who upgrades while others have records.
TEST_F(Work, KeepsItsRecordsWhileTheCardCannotCount) {
    Watched watched;
    fill(64);
    synchronize();
    with_card([](FakeCard& card) { card.counters_busy = 1; });
    Watched counted(orrProfWantWork | orrProfWantCounters);
    for (int i = 0; i < 2; ++i) {
        fill(64);
        synchronize();
    }
    const auto all = watched.flushed();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_FALSE(all[1].counters);
    EXPECT_TRUE(all[2].counters);
}

}  // namespace
}  // namespace orrery::umd::test
