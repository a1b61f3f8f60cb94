// Queues at work: order, sharing, waiting, time.
#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

class SchedTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        queue = bench.create_queue(0, 1);
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
    }
    std::uint64_t consumer(const ProcessQueue& q) { return bench.ring_of(q).consumer; }
    void expect_completed(const ProcessQueue& q, std::uint64_t count) {
        EXPECT_EQ(consumer(q), count);
        EXPECT_EQ(bench.status(q.number).completed, count);
    }
    Bench bench;
    ProcessQueue queue;
};

TEST_F(SchedTest, EmptyJob) {
    bench.submit(queue, {signal(kSharedVa, 7)});
    EXPECT_EQ(bench.shared(0), 7u);
    EXPECT_GT(bench.shared(8), 0u);
    expect_completed(queue, 1);
    const orr_ring ring = bench.ring_of(queue);
    EXPECT_GE(ring.consumer_time_ps, bench.shared(8));
    EXPECT_EQ(bench.status(0).time_ps, ring.consumer_time_ps);
    EXPECT_EQ(bench.soc.host_irqs[ORR_IRQ_QUEUE], 0u) << "nobody asked for an interrupt";
}

// The hot path: what a job costs in accesses to the chip, each of which costs the host tens of nanoseconds.
TEST_F(SchedTest, EmptyJobNeedsFewAccesses) {
    bench.submit(queue, {signal(kSharedVa, 1)});
    bench.push(queue, signal(kSharedVa, 2));
    bench.ring(queue);
    const auto before = bench.soc.accesses;
    bench.run();
    EXPECT_LE(bench.soc.accesses - before, 32u);
}

TEST_F(SchedTest, RingWrapsAround) {
    for (std::uint64_t n = 0; n < 100; ++n) {
        bench.submit(queue, {signal(kSharedVa, n + 1), nop(), nop()});
        ASSERT_EQ(bench.shared(0), n + 1);
    }
    expect_completed(queue, 300);
}

TEST_F(SchedTest, FullRingAtOnce) {
    for (std::uint64_t n = 0; n < 16; ++n)
        bench.push(queue, nop());
    bench.ring(queue);
    bench.run();
    expect_completed(queue, 16);
}

TEST_F(SchedTest, InterruptFlagIsCoalesced) {
    bench.submit(queue, {nop(ORR_PKT_F_INTERRUPT), nop(), nop(ORR_PKT_F_INTERRUPT)});
    EXPECT_EQ(bench.soc.host_irqs[ORR_IRQ_QUEUE], 1u);
    bench.submit(queue, {copy(0x1000, ORR_PKT_F_INTERRUPT)});
    EXPECT_EQ(bench.soc.host_irqs[ORR_IRQ_QUEUE], 1u);
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.soc.host_irqs[ORR_IRQ_QUEUE], 2u);
}

TEST_F(SchedTest, TimestampIsTheModelTime) {
    const auto before = bench.soc.time;
    bench.submit(queue, {timestamp(kSharedVa + 24)});
    EXPECT_GT(bench.shared(24), before);
    EXPECT_LT(bench.shared(24), bench.soc.time);
    expect_completed(queue, 1);
}

TEST_F(SchedTest, CompletionsOutOfOrderRetireInOrder) {
    bench.submit(queue, {copy(0x1000), dispatch(0x2000), copy(0x3000), dispatch(0x4000), nop()});
    EXPECT_EQ(bench.soc.busy_ports().size(), 4u);
    expect_completed(queue, 0);
    bench.soc.finish(1);
    bench.soc.finish(3);
    bench.run();
    expect_completed(queue, 0);
    bench.soc.finish(0);
    bench.run();
    expect_completed(queue, 1);
    bench.soc.finish(2);
    bench.run();
    expect_completed(queue, 5);
}

TEST_F(SchedTest, OrderedPacketsWaitForAllBefore) {
    bench.submit(queue, {copy(0x1000), dispatch(0x2000), signal(kSharedVa, 1)});
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.shared(0), 0u);
    bench.soc.finish(2);
    bench.run();
    EXPECT_EQ(bench.shared(0), 1u);
    expect_completed(queue, 3);

    bench.submit(queue, {copy(0x1000), copy(0x2000, ORR_PKT_F_ORDERED), nop()});
    EXPECT_EQ(bench.soc.busy_ports(), std::vector<std::uint32_t>{0});
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.soc.busy_ports().size(), 1u);
    bench.soc.finish(bench.soc.busy_ports().front());
    bench.run();
    expect_completed(queue, 6);

    bench.submit(queue, {copy(0x1000), barrier(), dispatch(0x2000), timestamp(kSharedVa + 32)});
    EXPECT_EQ(bench.soc.busy_ports().size(), 1u);
    bench.soc.finish(bench.soc.busy_ports().front());
    bench.run();
    EXPECT_EQ(bench.soc.busy_ports().size(), 1u) << "the barrier did not open";
    EXPECT_EQ(bench.shared(32), 0u);
    bench.soc.finish(bench.soc.busy_ports().front());
    bench.run();
    EXPECT_NE(bench.shared(32), 0u);
    expect_completed(queue, 10);
}

// What it waited for and what it does then are published together; if others want the core, it waits its
// turn.
TEST_F(SchedTest, WhoWaitedForItsOwnJobsGoesOnAtOnce) {
    ProcessQueue other = bench.create_queue(1, 2);
    const auto retired = [&] {
        std::vector<std::uint64_t> counts;
        for (const TraceRecord& record : trace_records(bench.soc, ORR_TRACE_RETIRE))
            if (record.a == queue.number) counts.push_back(record.words.at(0));
        return counts;
    };
    bench.submit(queue, {copy(0x1000), signal(kSharedVa, 1), signal(kSharedVa, 2)});
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.shared(0), 2u);
    EXPECT_EQ(retired(), std::vector<std::uint64_t>{3});
    expect_completed(queue, 3);

    bench.submit(queue, {copy(0x1000), signal(kSharedVa, 3), copy(0x2000), timestamp(kSharedVa + 24)});
    bench.soc.finish(0);
    bench.push(other, nop());
    bench.ring(other);
    bench.run();
    EXPECT_EQ(bench.shared(0), 3u);
    EXPECT_EQ(retired(), (std::vector<std::uint64_t>{3, 4, 5}));
    expect_completed(other, 1);
    bench.soc.finish(0);
    bench.run();
    EXPECT_NE(bench.shared(24), 0u);
    expect_completed(queue, 7);

    // A signal that fails: what was done before is published.
    bench.submit(queue, {copy(0x1000), signal(0x7000000, 1)});
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.status(queue.number).completed, 8u);
    EXPECT_EQ(bench.status(queue.number).error, ORR_QERR_FAULT);
}

TEST_F(SchedTest, UnorderedPacketsOverlap) {
    bench.submit(queue, {copy(0x1000), nop(), wait(kSharedVa, 0), copy(0x2000)});
    EXPECT_EQ(bench.soc.busy_ports().size(), 2u);
}

TEST_F(SchedTest, BusyEnginesHoldBackOneQueueOnly) {
    ProcessQueue other = bench.create_queue(1, 2);
    ProcessQueue third = bench.create_queue(2, 2);
    bench.submit(queue, {copy(0x1000), copy(0x2000), copy(0x3000), copy(0x4000)});
    bench.submit(other, {signal(kSharedVa, 3), dispatch(0x1000)});
    EXPECT_EQ(bench.shared(0), 3u);
    bench.submit(third, {copy(0x9000)});
    bench.soc.finish(0);
    bench.run();
    // Whoever has waited longest gets the engine: queue 0's third copy, then the other queue's.
    EXPECT_EQ(bench.soc.engines[0].as<orr_desc_copy>().src, 0x3000u);
    bench.soc.finish(1);
    bench.run();
    EXPECT_EQ(bench.soc.engines[1].as<orr_desc_copy>().src, 0x9000u);
    EXPECT_EQ(bench.soc.engines[1].as<orr_desc_copy>().asid, 2u);
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.soc.engines[0].as<orr_desc_copy>().src, 0x4000u);
}

TEST_F(SchedTest, AtMostAWindowInFlight) {
    FakeSoc::Config config;
    config.copy_engines = 40;
    Bench wide(config);
    ASSERT_TRUE(wide.boot());
    wide.create_context(1, 0);
    ProcessQueue q = wide.create_queue(0, 1, 64);
    for (std::uint64_t n = 0; n < 40; ++n)
        wide.push(q, copy(0x1000 * n));
    wide.ring(q);
    wide.run();
    EXPECT_EQ(wide.soc.busy_ports().size(), kWindow);
    wide.soc.finish(5);
    wide.run();
    EXPECT_EQ(wide.soc.busy_ports().size(), kWindow - 1) << "packet 0 holds the window";
    wide.soc.finish(0);
    wide.run();
    EXPECT_EQ(wide.soc.busy_ports().size(), kWindow - 1);
    for (int n = 0; n < 200; ++n) {
        for (const std::uint32_t port : wide.soc.busy_ports())
            wide.soc.finish(port);
        wide.run();
    }
    EXPECT_EQ(wide.status(0).completed, 40u);
}

TEST_F(SchedTest, RoundRobinIsFair) {
    // Three queues with far more than one turn's work: signals must interleave turn by turn.
    std::vector<ProcessQueue> queues{queue, bench.create_queue(1, 1, 64), bench.create_queue(2, 2, 64)};
    queues[0] = bench.create_queue(3, 1, 64);
    std::vector<std::size_t> order;
    bench.soc.on_signal = [&](std::uint32_t, std::uint64_t va, std::uint64_t) {
        order.push_back((va - kSharedVa) / 16);
    };
    for (std::size_t n = 0; n < queues.size(); ++n) {
        for (std::uint64_t value = 1; value <= 4 * kWindow; ++value)
            bench.push(queues[n], signal(kSharedVa + 16 * n, value));
    }
    for (const ProcessQueue& q : queues)
        bench.ring(q);
    bench.run();
    ASSERT_EQ(order.size(), 3 * 4 * kWindow);
    for (std::size_t n = 0; n < order.size(); ++n)
        ASSERT_EQ(order[n], n / kWindow % 3) << "at signal " << n;
}

TEST_F(SchedTest, WaitPassesWhenReached) {
    bench.set_shared(0, 5);
    bench.submit(queue, {wait(kSharedVa, 5), signal(kSharedVa + 16, 1)});
    EXPECT_EQ(bench.shared(16), 1u);
    expect_completed(queue, 2);
}

TEST_F(SchedTest, WaitIsOpenedByAnotherQueueAlsoThroughAnAlias) {
    ProcessQueue other = bench.create_queue(1, 2);
    bench.submit(queue, {wait(kSharedVa, 2), signal(kSharedVa + 16, 1)});
    expect_completed(queue, 0);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_INFO, {0}).arg[0], ORR_QUEUE_WAITING);
    bench.submit(other, {signal(kAliasVa, 1)});
    expect_completed(queue, 0);
    bench.submit(other, {signal(kAliasVa, 2)});
    EXPECT_EQ(bench.shared(16), 1u);
    expect_completed(queue, 2);
}

TEST_F(SchedTest, WaitAloneIsRetiredWhenOpened) {
    ProcessQueue other = bench.create_queue(1, 2);
    bench.submit(queue, {wait(kSharedVa, 1, ORR_PKT_F_INTERRUPT)});
    bench.submit(other, {signal(kSharedVa, 1)});
    expect_completed(queue, 1);
    EXPECT_EQ(bench.soc.host_irqs[ORR_IRQ_QUEUE], 1u);
}

TEST_F(SchedTest, WaitIsOpenedByAPeersSignal) {
    bench.submit(queue, {wait(kSharedVa, 1)});
    bench.set_shared(0, 1);
    bench.run();
    expect_completed(queue, 0);  // nothing told the firmware yet
    bench.soc.poke(kSharedMemory);
    bench.run();
    expect_completed(queue, 1);
}

TEST_F(SchedTest, APlainStoreWakesNobody) {
    ProcessQueue same = bench.create_queue(1, 1);
    bench.submit(queue, {wait(kSharedVa, 1)});
    bench.set_shared(0, 1);
    bench.submit(same, {nop()});
    expect_completed(queue, 0);
    bench.submit(same, {signal(kSharedVa, 1)});
    expect_completed(queue, 1);
}

TEST_F(SchedTest, WaitingIsNotPolled) {
    bench.submit(queue, {wait(kSharedVa, 1)});
    EXPECT_FALSE(bench.firmware->pass());
    EXPECT_EQ(bench.soc.timer, kEmpty);
}

TEST_F(SchedTest, WaitHoldsBackButEarlierWorkRetires) {
    bench.submit(queue, {copy(0x1000), wait(kSharedVa, 1), copy(0x2000)});
    EXPECT_EQ(bench.soc.busy_ports().size(), 1u);
    bench.soc.finish(0);
    bench.run();
    expect_completed(queue, 1);
    ProcessQueue other = bench.create_queue(1, 2);
    bench.submit(other, {signal(kSharedVa, 1)});
    EXPECT_EQ(bench.soc.busy_ports().size(), 1u);
    expect_completed(queue, 2);
}

TEST_F(SchedTest, ManyWaitersAllWake) {
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 1; n <= 100; ++n)
        queues.push_back(bench.create_queue(n, 1 + n % 2));
    for (std::size_t n = 0; n < queues.size(); ++n)
        bench.submit(queues[n], {wait(kSharedVa, 1 + n % 3)});
    for (std::uint64_t value = 1; value <= 3; ++value) {
        bench.submit(queue, {signal(kSharedVa, value)});
        for (std::size_t n = 0; n < queues.size(); ++n)
            ASSERT_EQ(bench.status(queues[n].number).completed, 1 + n % 3 <= value ? 1u : 0u);
    }
}

TEST_F(SchedTest, StaleDoorbellsAreIgnored) {
    bench.push(queue, nop());
    bench.soc.set_memory(queue.ring, queue.producer);
    bench.soc.ring(queue.page, queue.slot, ORR_DB_VALUE(queue.generation + 1, 1));
    bench.run();
    expect_completed(queue, 0);
    EXPECT_EQ(bench.firmware->scheduler().stats().stale_doorbells, 1u);
    bench.ring(queue);
    bench.run();
    expect_completed(queue, 1);
}

TEST_F(SchedTest, DoorbellDuringWorkIsNotLost) {
    // The process writes a packet and rings while the firmware is at the one before: it is found without the
    // doorbell and the doorbell then finds nothing to do.
    bool once = true;
    bench.soc.on_signal = [&](std::uint32_t, std::uint64_t, std::uint64_t) {
        if (!once) return;
        once = false;
        bench.push(queue, signal(kSharedVa + 16, 9));
        bench.ring(queue);
    };
    bench.submit(queue, {signal(kSharedVa, 1)});
    EXPECT_EQ(bench.shared(16), 9u);
    expect_completed(queue, 2);
}

TEST_F(SchedTest, AllQueuesAtOnce) {
    bench.create_context(3, 2);
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 1; n < ORR_FW_QUEUES; ++n)
        queues.push_back(bench.create_queue(n, n < ORR_DB_SLOTS ? 1 : n < 2 * ORR_DB_SLOTS ? 2 : 3));
    EXPECT_EQ(bench.soc.bindings.size(), ORR_FW_QUEUES);
    for (std::size_t n = 0; n < queues.size(); ++n) {
        bench.push(queues[n], signal(kSharedVa + 16 * n, n + 1));
        bench.ring(queues[n]);
    }
    bench.run();
    for (std::size_t n = 0; n < queues.size(); ++n)
        ASSERT_EQ(bench.shared(16 * n), n + 1);
}

TEST_F(SchedTest, WildCompletionsAreCounted) {
    bench.submit(queue, {copy(0x1000)});
    bench.soc.wild_completion(0xffffffff00000000);
    bench.soc.wild_completion(63ull << 32);
    bench.soc.wild_completion(std::uint64_t{0} << 32 | (bench.soc.engines[0].tag + 1));
    bench.soc.wild_completion(std::uint64_t{1} << 32 | bench.soc.engines[0].tag);
    bench.run();
    EXPECT_EQ(bench.firmware->scheduler().stats().wild_completions, 4u);
    expect_completed(queue, 0);
    bench.soc.finish(0);
    bench.run();
    expect_completed(queue, 1);
}

TEST_F(SchedTest, WatchdogEndsLongDispatches) {
    ProcessQueue brief = bench.create_queue(1, 1, 16, 50);  // 50 us
    bench.submit(queue, {dispatch(0x1000)});
    const auto start = bench.soc.time;
    EXPECT_NEAR(static_cast<double>(bench.soc.timer), static_cast<double>(start) + 1e12, 1e6);
    bench.submit(brief, {dispatch(0x2000), nop()});
    EXPECT_LT(bench.soc.timer, start + 51'000'000);
    bench.soc.time = bench.soc.timer;
    bench.run();
    expect_error(bench, brief, ORR_QERR_TIMEOUT, 0, 0, 0);
    EXPECT_TRUE(bench.soc.engines[2].busy) << "the other dispatch has time left";
    bench.soc.finish(2);
    bench.run();
    expect_completed(queue, 1);
    EXPECT_EQ(bench.soc.timer, kEmpty) << "a forgotten alarm makes the idle clock jump";
}

TEST_F(SchedTest, WatchdogEndsLongCopies) {
    ProcessQueue brief = bench.create_queue(1, 1, 16, 50);
    const auto start = bench.soc.time;
    bench.submit(brief, {copy(0x1000), nop()});
    ASSERT_LT(bench.soc.timer, start + 60'000'000);
    bench.soc.time = bench.soc.timer;
    bench.run();
    expect_error(bench, brief, ORR_QERR_TIMEOUT, 0, 0, 0);
    EXPECT_EQ(bench.soc.timer, kEmpty);
}

TEST_F(SchedTest, DispatchThatEndsInTimeIsNoError) {
    bench.submit(queue, {dispatch(0x1000)});
    bench.soc.finish(2);
    bench.soc.time = bench.soc.timer;  // the alarm and the completion at once
    bench.run();
    expect_completed(queue, 1);
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
}

}  // namespace
}  // namespace orrery::fw::test
