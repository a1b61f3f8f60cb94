// Cycles of waits: found, told once, and told from waits that somebody may still end.
#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint64_t semaphore(std::uint64_t n) {
    return kSharedVa + 16 * n;
}

class DeadlockTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        for (std::uint32_t n = 0; n < 6; ++n)
            queues.push_back(bench.create_queue(n, 1 + n % 2, 64));
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
        EXPECT_EQ(bench.soc.timer, kEmpty) << "a forgotten alarm makes the idle clock jump";
    }
    std::vector<orr_mbox_message> reports() {
        std::vector<orr_mbox_message> found;
        while (const auto message = bench.receive()) {
            if (message->opcode == ORR_EVENT_DEADLOCK) found.push_back(*message);
        }
        return found;
    }
    // While something runs there is no idle time: the alarm looks.
    void run_until_looked() {
        for (int n = 0; n < 100; ++n) {
            ASSERT_NE(bench.soc.timer, kEmpty);
            if (deadlocks().rounds() != 0 && bench.soc.timer > bench.soc.time + 500'000'000'000) break;
            bench.soc.time = bench.soc.timer;
            bench.run();
        }
        EXPECT_GT(deadlocks().rounds(), 0u);
    }
    const Deadlocks& deadlocks() { return bench.firmware->scheduler().deadlocks(); }
    Bench bench;
    std::vector<ProcessQueue> queues;
};

TEST_F(DeadlockTest, ACycleAcrossContextsIsToldEdgeByEdge) {
    bench.set_shared(16, 3);
    bench.submit(queues[0], {nop(), wait(semaphore(1), 5), nop(), signal(semaphore(0), 2)});
    bench.submit(queues[2], {wait(kAliasVa + 32, 1), signal(semaphore(1), 9)});
    EXPECT_TRUE(reports().empty());
    bench.submit(queues[1], {wait(semaphore(0), 1), signal(kAliasVa + 32, 7)});
    const auto events = reports();
    ASSERT_EQ(events.size(), 3u);
    // 0 waits for 2, 2 for 1, 1 for 0.
    const std::map<std::uint64_t, std::uint64_t> holder{{0, 2}, {2, 1}, {1, 0}};
    for (std::size_t n = 0; n < 3; ++n) {
        const orr_mbox_message& e = events[n];
        EXPECT_EQ(e.sequence, 0u);
        EXPECT_EQ(e.arg[0], 1 | n << 32 | 3ull << 48);
        const std::uint64_t waits = e.arg[1] & 0xffffffff;
        EXPECT_EQ(e.arg[1] >> 32, holder.at(waits));
        EXPECT_EQ(e.arg[1] >> 32, events[(n + 1) % 3].arg[1] & 0xffffffff) << "not in the order of the cycle";
        if (waits == 0) {
            EXPECT_EQ(e.arg[2], semaphore(1));
            EXPECT_EQ(e.arg[3], 5u);
            EXPECT_EQ(e.arg[4], 3u);
            EXPECT_EQ(e.arg[5], 1u);
        }
        if (waits == 2) EXPECT_EQ(e.arg[2], kAliasVa + 32);
    }
    const auto records = trace_records(bench.soc, ORR_TRACE_DEADLOCK);
    ASSERT_EQ(records.size(), 3u);
    for (std::size_t n = 0; n < 3; ++n) {
        EXPECT_EQ(records[n].a, events[n].arg[1] & 0xffffffff);
        EXPECT_EQ(records[n].b, (events[n].arg[1] >> 32) | n << 16 | 3u << 24);
        EXPECT_EQ(records[n].words[1], events[n].arg[3]);
        EXPECT_EQ(records[n].words[2], events[n].arg[4]);
    }
    // Nothing is stopped: a process can signal, and all go on.
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    bench.submit(queues[3], {signal(semaphore(2), 1)});
    for (const std::uint32_t n : {0u, 1u, 2u})
        EXPECT_EQ(bench.status(n).completed, queues[n].producer);
}

TEST_F(DeadlockTest, AStandingCycleIsToldOnceAndANewOneAgain) {
    bench.submit(queues[0], {wait(semaphore(1), 1), signal(semaphore(0), 1)});
    bench.submit(queues[1], {wait(semaphore(0), 1), signal(semaphore(1), 1)});
    EXPECT_EQ(reports().size(), 2u);
    // Others park and work meanwhile: the cycle stands.
    bench.submit(queues[2], {wait(semaphore(9), 1)});
    bench.submit(queues[3], {nop()});
    EXPECT_TRUE(reports().empty());
    EXPECT_EQ(deadlocks().reports(), 1u);
    // Another cycle beside it.
    bench.submit(queues[4], {wait(semaphore(5), 1), signal(semaphore(4), 1)});
    bench.submit(queues[5], {wait(semaphore(4), 1), signal(semaphore(5), 1)});
    const auto second = reports();
    ASSERT_EQ(second.size(), 2u);
    EXPECT_EQ(second[0].arg[0] & 0xffffffff, 2u);
    // The first is broken, and comes up again with new waits.
    bench.submit(queues[3], {signal(semaphore(0), 1)});
    EXPECT_EQ(bench.status(0).completed, 2u);
    EXPECT_EQ(bench.status(1).completed, 2u);
    EXPECT_TRUE(reports().empty());
    bench.submit(queues[0], {wait(semaphore(1), 2), signal(semaphore(0), 2)});
    bench.submit(queues[1], {wait(semaphore(0), 2), signal(semaphore(1), 2)});
    EXPECT_EQ(reports().size(), 2u);
    EXPECT_EQ(deadlocks().reports(), 3u);
}

TEST_F(DeadlockTest, PacketsThatComeBehindAWaitCanCloseACycle) {
    bench.submit(queues[0], {wait(semaphore(1), 1)});
    bench.submit(queues[1], {wait(semaphore(0), 1), signal(semaphore(1), 1)});
    EXPECT_TRUE(reports().empty());
    bench.submit(queues[0], {signal(semaphore(0), 1)});
    EXPECT_EQ(reports().size(), 2u);
}

TEST_F(DeadlockTest, AQueueThatWaitsForItself) {
    bench.submit(queues[0], {wait(semaphore(0), 1), signal(semaphore(0), 1)});
    const auto events = reports();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].arg[1], 0u);
    EXPECT_EQ(events[0].arg[0] >> 48, 1u);
}

TEST_F(DeadlockTest, AWaitForSomebodyOutsideIsNone) {
    // Nobody holds the signal; somebody holds it with too low a value; a chain that ends outside.
    bench.submit(queues[0], {wait(semaphore(0), 5), signal(semaphore(1), 1)});
    bench.submit(queues[1], {wait(semaphore(1), 1), signal(semaphore(0), 4)});
    bench.submit(queues[2], {wait(semaphore(1), 1)});
    EXPECT_TRUE(reports().empty());
    EXPECT_EQ(deadlocks().reports(), 0u);
    EXPECT_GT(deadlocks().rounds(), 0u) << "nobody has looked";
}

TEST_F(DeadlockTest, ASecondHolderThatRunsMakesItNone) {
    bench.submit(queues[2], {dispatch(0x1000), signal(semaphore(0), 1)});
    bench.submit(queues[0], {wait(semaphore(0), 1), signal(semaphore(1), 1)});
    bench.submit(queues[1], {wait(semaphore(1), 1), signal(semaphore(0), 1)});
    // Queue 2 is found alive.
    ASSERT_NO_FATAL_FAILURE(run_until_looked());
    EXPECT_TRUE(reports().empty());
    bench.soc.finish(2);
    bench.run();
    EXPECT_EQ(bench.status(0).completed, 2u);
    EXPECT_EQ(bench.status(1).completed, 2u);
    EXPECT_TRUE(reports().empty());
}

// A queue that will fail one of the semaphores ends the cycle too.
TEST_F(DeadlockTest, AFailThatIsToComeMakesItNone) {
    bench.submit(queues[2],
                 {dispatch(0x1000), semaphore_packet(ORR_PKT_FAIL, semaphore(0), ORR_QERR_ABORTED, 0)});
    bench.submit(queues[0], {wait(semaphore(0), 1), signal(semaphore(1), 1)});
    bench.submit(queues[1], {wait(semaphore(1), 1), signal(semaphore(0), 1)});
    ASSERT_NO_FATAL_FAILURE(run_until_looked());
    bench.soc.finish(2);
    bench.run();
    EXPECT_TRUE(reports().empty());
    EXPECT_EQ(bench.status(0).error, ORR_QERR_POISON);
    EXPECT_EQ(bench.status(1).error, ORR_QERR_POISON);
}

TEST_F(DeadlockTest, IsFoundWhileOthersRun) {
    bench.submit(queues[2], {dispatch(0x1000)});
    bench.submit(queues[0], {wait(semaphore(0), 1), signal(semaphore(1), 1)});
    bench.submit(queues[1], {wait(semaphore(1), 1), signal(semaphore(0), 1)});
    const auto start = bench.soc.time;
    std::vector<orr_mbox_message> events;
    for (int n = 0; n < 100 && events.empty(); ++n) {
        ASSERT_NE(bench.soc.timer, kEmpty);
        bench.soc.time = bench.soc.timer;
        bench.run();
        events = reports();
    }
    EXPECT_EQ(events.size(), 2u);
    EXPECT_LT(bench.soc.time - start, 2 * bench.firmware->scheduler().policy().deadlock_ps);
    bench.soc.finish(2);
    bench.run();
}

TEST_F(DeadlockTest, LongQueuesCannotHoldTheCore) {
    bench.submit(queues[2], {dispatch(0x1000)});
    for (std::uint32_t n = 10; n < 30; ++n) {
        ProcessQueue longer = bench.create_queue(n, 1, 64);
        for (int packets = 0; packets < 60; ++packets)
            bench.push(longer, packets == 0 ? wait(semaphore(3), 1) : signal(semaphore(0), 1));
        bench.ring(longer);
        bench.run();
    }
    // Each pass with a scan in it is short, and there are pauses between them.
    int chunks = 0;
    while (deadlocks().rounds() == 0 || bench.soc.timer < bench.soc.time + 500'000'000'000) {
        ASSERT_LT(++chunks, 1000);
        ASSERT_GE(bench.soc.timer, bench.soc.time + Deadlocks::kPausePs / 2);
        bench.soc.time = bench.soc.timer;
        const auto before = bench.soc.time;
        bench.run();
        EXPECT_LT(bench.soc.time - before, Deadlocks::kChunkPs + 200'000);
    }
    EXPECT_GT(chunks, 3);
    bench.soc.finish(2);
    bench.run();
}

// A round takes several chunks, and between any two of them a queue that it has in hand can leave and come
// back.
TEST_F(DeadlockTest, QueuesLeaveAndComeBackInTheMidstOfARound) {
    constexpr std::uint32_t kFirst = 10, kLast = 40;
    unsigned longest = 1;
    for (unsigned when = 0; when < longest; ++when) {
        Bench fresh;
        ASSERT_TRUE(fresh.boot());
        fresh.create_context(1, 0);
        ProcessQueue busy = fresh.create_queue(0, 1, 64);
        ProcessQueue left = fresh.create_queue(1, 1, 64), right = fresh.create_queue(2, 1, 64);
        // Queues each of which holds the next one's signal, and all are alive, for the first holds them all.
        // Those that leave hold nobody's: whoever waited for them would be told of their end.
        fresh.push(busy, dispatch(0x1000));
        for (std::uint32_t n = kFirst; n <= kLast + 1; ++n)
            fresh.push(busy, signal(semaphore(n), 1));
        fresh.ring(busy);
        fresh.run();
        std::map<std::uint32_t, ProcessQueue> chain;
        for (std::uint32_t n = kFirst; n <= kLast + 1; ++n) {
            ProcessQueue& queue = chain[n] = fresh.create_queue(n, 1, 64);
            fresh.push(queue, wait(semaphore(n), 1));
            for (int packets = 0; packets < 60; ++packets)
                fresh.push(queue, signal(semaphore(0), 1));
            fresh.push(queue, signal(semaphore(n >= kLast ? 1000 : n + 1), 1));
            fresh.ring(queue);
            fresh.run();
        }
        unsigned chunks = 0;
        const auto rested = [&] { return fresh.soc.timer > fresh.soc.time + 500'000'000'000; };
        const auto go_on = [&] {
            fresh.soc.time = fresh.soc.timer;
            fresh.run();
            ++chunks;
        };
        while (chunks < when && !rested())
            go_on();
        for (const std::uint32_t n : {kLast, kLast + 1}) {
            fresh.call(ORR_MBOX_QUEUE_DESTROY, {n});
            chain[n] = fresh.create_queue(n, 1, 64);
        }
        while (!rested()) {
            ASSERT_LT(chunks, 1000u) << "a round that never ends, disturbed after " << when << " chunks";
            go_on();
        }
        longest = std::max(longest, chunks);
        // What comes next is found.
        fresh.submit(left, {wait(semaphore(1), 1), signal(semaphore(2), 1)});
        fresh.submit(right, {wait(semaphore(2), 1), signal(semaphore(1), 1)});
        fresh.soc.finish(2);
        fresh.run();
        unsigned edges = 0;
        while (const auto message = fresh.receive())
            edges += message->opcode == ORR_EVENT_DEADLOCK ? 1 : 0;
        EXPECT_EQ(edges, 2u) << when;
        EXPECT_EQ(fresh.firmware->scheduler().deadlocks().reports(), 1u) << when;
    }
    EXPECT_GT(longest, 10u);
}

TEST_F(DeadlockTest, BadRingsDoNoHarm) {
    // The ring is gone, or its producer lies, while the queue waits.
    bench.submit(queues[0], {wait(semaphore(0), 1), signal(semaphore(1), 1)});
    bench.soc.set_memory(queues[0].ring, ~0ull);
    bench.submit(queues[1], {wait(semaphore(1), 1), signal(semaphore(0), 1)});
    EXPECT_EQ(reports().size(), 2u) << "the packets that were known are";
    for (std::uint64_t at = 0; at < kRingBytes; at += ORR_PAGE_SIZE)
        bench.soc.unmap(1, kRingVa + 2 * kRingBytes + at);
    bench.submit(queues[3], {wait(semaphore(3), 1), signal(1ull << 60, 1), signal(0x666000, 1)});
    EXPECT_TRUE(reports().empty());
    EXPECT_EQ(bench.status(3).error, ORR_QERR_NONE) << "what it looks at is not carried out";
}

TEST_F(DeadlockTest, AFullMessageRingDelaysTheReport) {
    for (std::uint64_t n = 0; n < ORR_MBOX_ENTRIES - 1; ++n) {
        orr_mbox_message ping{};
        ping.sequence = static_cast<std::uint32_t>(1000 + n);
        ping.opcode = ORR_MBOX_PING;
        bench.send(ping);
        bench.run();
    }
    bench.submit(queues[0], {wait(semaphore(0), 1), signal(semaphore(1), 1)});
    bench.submit(queues[1], {wait(semaphore(1), 1), signal(semaphore(0), 1)});
    EXPECT_EQ(bench.soc.host(kMessages) - bench.message_consumer, ORR_MBOX_ENTRIES);
    EXPECT_EQ(reports().size(), 1u);
    bench.soc.ring_mailbox();
    bench.run();
    EXPECT_EQ(reports().size(), 1u);
}

}  // namespace
}  // namespace orrery::fw::test
