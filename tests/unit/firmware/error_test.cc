// What stops a queue, how it is told, and that it stops nothing else.
#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {
namespace {

class ErrorTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        queue = bench.create_queue(0, 1);
        other = bench.create_queue(1, 1);
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
        // Whatever happened to the one queue, the other works.
        bench.submit(other, {signal(kSharedVa + 0x100, 1), copy(0x1000)});
        while (!bench.soc.busy_ports().empty()) {
            bench.soc.finish(bench.soc.busy_ports().front());
            bench.run();
        }
        EXPECT_EQ(bench.status(1).completed, 2u);
        EXPECT_EQ(bench.soc.halt, kEmpty);
    }
    Bench bench;
    ProcessQueue queue, other;
};

TEST_F(ErrorTest, BadPackets) {
    bench.submit(queue, {nop(), packet(1234), signal(kSharedVa, 1)});
    expect_error(bench, queue, ORR_QERR_BAD_OPCODE, 1, 0, 1234);
    EXPECT_NE(bench.shared(0), 1u);
    // It is sticky: a doorbell starts nothing.
    bench.ring(queue);
    bench.run();
    EXPECT_EQ(bench.status(0).completed, 1u);
}

TEST_F(ErrorTest, NotImplemented) {
    bench.submit(queue, {packet(ORR_PKT_INDIRECT)});
    expect_error(bench, queue, ORR_QERR_NOT_IMPLEMENTED, 0, 0, ORR_PKT_INDIRECT);
}

TEST_F(ErrorTest, BadPacketNamesTheWord) {
    bench.submit(queue, {signal(kSharedVa + 8, 1)});
    expect_error(bench, queue, ORR_QERR_BAD_PACKET, 0, 0, 1);
}

TEST_F(ErrorTest, ErrorWaitsForEarlierWork) {
    bench.submit(queue, {copy(0x1000), packet(1234)});
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    bench.soc.finish(0);
    bench.run();
    expect_error(bench, queue, ORR_QERR_BAD_OPCODE, 1, 0, 1234);
}

TEST_F(ErrorTest, LowestIndexCountsAndLaterWorkIsEnded) {
    SlowBench slow;
    ProcessQueue q = slow.create_queue(0, 1);
    slow.submit(q, {copy(0x1000), copy(0x2000), dispatch(0x3000), dispatch(0x4000)});
    slow.soc.finish(2, ORR_DONE_TRAP, 2, 0x3010);  // packet 2
    slow.run();
    EXPECT_FALSE(slow.soc.engines[0].abort_wanted);
    EXPECT_FALSE(slow.soc.engines[1].abort_wanted);
    EXPECT_TRUE(slow.soc.engines[3].abort_wanted);
    EXPECT_EQ(slow.status(0).error, ORR_QERR_NONE);
    slow.soc.finish(1, ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, 0x2008);  // packet 1
    slow.soc.finish(3);  // faster than the abort: does not count
    slow.run();
    slow.soc.finish(0);
    slow.run();
    expect_error(slow, q, ORR_QERR_FAULT, 1, 0x2008, ORR_FAULT_NOT_MAPPED);
}

TEST_F(ErrorTest, AnEngineThatIsSlowToLetGoCostsTheCoreNothing) {
    SlowBench slow;
    ProcessQueue q = slow.create_queue(0, 1, 16, 1000);
    slow.submit(q, {copy(0x1000), dispatch(0x3000)});
    orr_mbox_message destroy{};
    destroy.sequence = 9;
    destroy.opcode = ORR_MBOX_QUEUE_DESTROY;
    slow.send(destroy);
    slow.run();
    slow.soc.finish(0, ORR_DONE_ABORTED);
    slow.soc.time += 5'000'000'000;  // past the limit
    slow.run();
    slow.soc.finish(2, ORR_DONE_ABORTED);
    slow.run();
    EXPECT_EQ(slow.call(ORR_MBOX_QUEUE_INFO, {0}).status, ORR_STATUS_NO_ENTRY);
}

TEST_F(ErrorTest, EngineErrors) {
    const struct {
        std::uint64_t status, fault, detail;
        std::uint64_t code, address, error_detail;
    } cases[] = {
        {ORR_DONE_BAD_DESC, 0, 0, ORR_QERR_BAD_DESC, 0, ORR_DONE_BAD_DESC},
        {ORR_DONE_FAULT, ORR_FAULT_PERMISSION, 0xabc000, ORR_QERR_FAULT, 0xabc000, ORR_FAULT_PERMISSION},
        {ORR_DONE_TRAP, 2, 0x4444, ORR_QERR_KERNEL_TRAP, 0x4444, 2},
        {ORR_DONE_ABORTED, 0, 0, ORR_QERR_TIMEOUT, 0, 0},
        {99, 0, 0, ORR_QERR_BAD_DESC, 0, 99},
    };
    std::uint32_t number = 10;
    for (const auto& c : cases) {
        ProcessQueue q = bench.create_queue(number++, 1);
        bench.submit(q, {dispatch(0x1000), nop()});
        bench.soc.finish(bench.soc.busy_ports().front(), c.status, c.fault, c.detail);
        bench.run();
        expect_error(bench, q, c.code, 0, c.address, c.error_detail);
        // As the fake chip makes them up; of the others there is no item.
        const bool item =
            c.status == ORR_DONE_FAULT || c.status == ORR_DONE_TRAP || c.status == ORR_DONE_BAD_DESC;
        EXPECT_EQ(bench.ring_of(q).error_item, item ? c.detail + 1 : 0);
        EXPECT_EQ(bench.ring_of(q).error_other, item ? c.detail + 2 : 0);
    }
}

TEST_F(ErrorTest, SignalFault) {
    bench.submit(queue, {signal(0x6660000, 1)});
    expect_error(bench, queue, ORR_QERR_FAULT, 0, 0x6660000, ORR_FAULT_NOT_MAPPED);
}

TEST_F(ErrorTest, WaitFault) {
    bench.submit(queue, {wait(0x6660010, 1)});
    expect_error(bench, queue, ORR_QERR_FAULT, 0, 0x6660010, ORR_FAULT_NOT_MAPPED);
}

TEST_F(ErrorTest, WaitedMemoryGoesAway) {
    bench.submit(queue, {wait(kSharedVa + 0x2000, 1)});
    bench.soc.unmap(1, kSharedVa + 0x2000);
    EXPECT_EQ(bench.call(ORR_MBOX_TLB_FLUSH, {1, 0, 0}).status, ORR_STATUS_OK);
    bench.run();
    expect_error(bench, queue, ORR_QERR_FAULT, 0, kSharedVa + 0x2000, ORR_FAULT_NOT_MAPPED);
}

TEST_F(ErrorTest, TimestampFault) {
    bench.submit(queue, {timestamp(0x6660018)});
    expect_error(bench, queue, ORR_QERR_FAULT, 0, 0x6660018, ORR_FAULT_NOT_MAPPED);
}

TEST_F(ErrorTest, AddressesBeyondTheWindow) {
    const std::uint64_t far = 1ull << 48;
    bench.submit(queue, {timestamp(far | kSharedVa)});
    expect_error(bench, queue, ORR_QERR_FAULT, 0, far | kSharedVa, ORR_FAULT_NON_CANONICAL);
    ProcessQueue second = bench.create_queue(10, 1);
    bench.submit(second, {wait(1ull << 63 | kHostBase, 0)});
    expect_error(bench, second, ORR_QERR_FAULT, 0, 1ull << 63 | kHostBase, ORR_FAULT_NON_CANONICAL);
    ProcessQueue third = bench.create_queue(11, 1);
    bench.submit(third, {signal(far, 0)});
    expect_error(bench, third, ORR_QERR_FAULT, 0, far, ORR_FAULT_NON_CANONICAL);
}

TEST_F(ErrorTest, ProducerTooFarAhead) {
    queue.producer = 17;
    bench.ring(queue);
    bench.run();
    expect_error(bench, queue, ORR_QERR_BAD_INDEX, 0, 17, 0);
}

// Nothing new, whatever the ring says: dropped, and what comes later is heard.
TEST_F(ErrorTest, DoorbellBehind) {
    bench.submit(queue, {nop(), nop()});
    queue.producer = 1;
    const std::uint64_t before = bench.soc.loads;
    bench.ring(queue);
    bench.run();
    EXPECT_EQ(bench.soc.loads, before) << "the ring was read";
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    queue.producer = 2;
    bench.submit(queue, {nop()});
    EXPECT_EQ(bench.status(0).completed, 3u);
}

TEST_F(ErrorTest, DoorbellBehindWhatRuns) {
    bench.submit(queue, {copy(0x1000), copy(0x2000)});
    queue.producer = 1;
    bench.ring(queue);
    bench.run();
    for (const std::uint32_t port : bench.soc.busy_ports())
        bench.soc.finish(port);
    bench.run();
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    EXPECT_EQ(bench.status(0).completed, 2u);
}

TEST_F(ErrorTest, RingUnmapped) {
    bench.push(queue, nop());
    bench.ring(queue);
    bench.soc.unmap(1, kRingVa);
    bench.run();
    const orr_queue_status line = bench.status(0);
    EXPECT_EQ(line.error, ORR_QERR_RING_FAULT);
    EXPECT_EQ(line.error_address, kRingVa + sizeof(orr_ring));
    EXPECT_EQ(line.error_detail, ORR_FAULT_NOT_MAPPED);
}

TEST_F(ErrorTest, PacketsUnmapped) {
    ProcessQueue big = bench.create_queue(10, 1, 64);
    for (int n = 0; n < 63; ++n)
        bench.push(big, nop());
    bench.soc.unmap(1, kRingVa + 10 * kRingBytes + ORR_PAGE_SIZE);
    bench.ring(big);
    bench.run();
    expect_error(bench, big, ORR_QERR_RING_FAULT, 60, kRingVa + 10 * kRingBytes + ORR_PAGE_SIZE,
                 ORR_FAULT_NOT_MAPPED);
}

TEST_F(ErrorTest, RingNotWritableAnyMore) {
    bench.push(queue, copy(0x1000));
    bench.ring(queue);
    bench.run();
    bench.soc.map(1, kRingVa, queue.ring, false);
    bench.soc.finish(0);
    bench.run();
    const orr_queue_status line = bench.status(0);
    EXPECT_EQ(line.error, ORR_QERR_RING_FAULT);
    EXPECT_EQ(line.completed, 1u) << "the packet did finish";
    EXPECT_EQ(line.error_detail, ORR_FAULT_PERMISSION);
}

TEST_F(ErrorTest, PacketsAreReadOnce) {
    // The process changes a packet after it was read, while it waits for an engine: what was checked is what
    // runs.
    ProcessQueue filler = bench.create_queue(10, 1);
    bench.submit(filler, {copy(0x1000), copy(0x2000)});
    bench.submit(queue, {copy(0x7000)});
    queue.producer = 0;
    bench.push(queue, packet(1234));
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.soc.engines[0].as<orr_desc_copy>().src, 0x7000u);
}

TEST_F(ErrorTest, StoppedQueueKeepsItsPlaceFree) {
    // Stops while it waits for an engine, for a semaphore, and for its own packets.
    ProcessQueue filler = bench.create_queue(10, 1);
    bench.submit(filler, {copy(0x1000), copy(0x2000)});
    ProcessQueue port = bench.create_queue(11, 1);
    bench.submit(port, {dispatch(0x1000), copy(0x7000)});
    bench.soc.finish(2, ORR_DONE_TRAP, 2, 4);
    bench.run();
    expect_error(bench, port, ORR_QERR_KERNEL_TRAP, 0, 4, 2);
    ProcessQueue semaphore = bench.create_queue(12, 1);
    bench.submit(semaphore, {dispatch(0x1000), wait(kSharedVa, 1)});
    bench.soc.finish(2, ORR_DONE_TRAP, 2, 4);
    bench.run();
    expect_error(bench, semaphore, ORR_QERR_KERNEL_TRAP, 0, 4, 2);
    bench.set_shared(0, 1);
    bench.soc.poke(0);
    bench.soc.finish(0);
    bench.soc.finish(1);
    bench.run();
    EXPECT_TRUE(bench.soc.busy_ports().empty());
}

TEST(ErrorOnAnotherChip, NoEngineOfThatKind) {
    FakeSoc::Config config;
    config.vector_ports = 0;
    Bench bench(config);
    ASSERT_TRUE(bench.boot());
    bench.create_context(1, 0);
    ProcessQueue queue = bench.create_queue(0, 1);
    bench.submit(queue, {dispatch(0x1000)});
    expect_error(bench, queue, ORR_QERR_NOT_IMPLEMENTED, 0, 0, ORR_PKT_DISPATCH);
}

TEST(ErrorOfTheDriver, StatusLineGone) {
    Bench bench;
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, queue_status), kHostBase + kHostSize - 0x10000);
    ASSERT_TRUE(bench.boot());
    EXPECT_EQ(bench.soc.halt, kEmpty);
}

}  // namespace
}  // namespace orrery::fw::test
