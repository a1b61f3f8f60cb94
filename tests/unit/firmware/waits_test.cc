// Semaphores: who is woken by what, and what that costs the others.
#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint64_t kMovedVa = 0x70000000;  // a page that the tests map as they like

class WaitsTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        bench.create_context(3, 2);
        signaller = bench.create_queue(1000, 3, 64);
        bench.soc.map(2, kMovedVa, kSharedMemory);
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
    }
    // Queues from `first` on, all waiting.
    std::vector<ProcessQueue> park(std::uint32_t first, std::uint32_t count, std::uint64_t va,
                                   std::uint64_t value) {
        std::vector<ProcessQueue> queues;
        for (std::uint32_t n = first; n < first + count; ++n) {
            queues.push_back(bench.create_queue(n, n < 400 ? 2 : 1));
            bench.submit(queues.back(), {wait(va, value)});
        }
        return queues;
    }
    std::uint64_t completed(const std::vector<ProcessQueue>& queues) {
        std::uint64_t sum = 0;
        for (const ProcessQueue& q : queues)
            sum += bench.status(q.number).completed;
        return sum;
    }
    std::uint64_t accesses_of_a_signal(std::uint64_t va, std::uint64_t value) {
        bench.push(signaller, signal(va, value));
        bench.ring(signaller);
        const auto before = bench.soc.accesses;
        bench.run();
        return bench.soc.accesses - before;
    }
    void flush(std::uint32_t context) {
        EXPECT_EQ(bench.call(ORR_MBOX_TLB_FLUSH, {context, 0, 0}).status, ORR_STATUS_OK);
    }
    Bench bench;
    ProcessQueue signaller;
};

TEST_F(WaitsTest, ASignalTouchesOnlyThoseThatItWakes) {
    accesses_of_a_signal(kSharedVa, 1);
    const auto alone = accesses_of_a_signal(kSharedVa, 2);
    const auto elsewhere = park(1, 200, kSharedVa + 16, 1);
    const auto later = park(400, 200, kSharedVa, 1000);
    EXPECT_LE(accesses_of_a_signal(kSharedVa, 3), alone + 4) << "but for its ring slot, which others took";
    EXPECT_EQ(completed(elsewhere) + completed(later), 0u);
    const auto one = park(700, 1, kSharedVa, 4);
    const auto with_one = accesses_of_a_signal(kAliasVa, 4);
    EXPECT_LE(with_one, alone + 24);
    EXPECT_EQ(completed(one), 1u);
    EXPECT_EQ(completed(elsewhere) + completed(later), 0u);
}

TEST_F(WaitsTest, ManyAreWokenAFewAPass) {
    const auto queues = park(1, 3 * kWakesPerPass + 5, kSharedVa, 7);
    bench.push(signaller, signal(kSharedVa, 7));
    bench.ring(signaller);
    bench.pass();
    EXPECT_EQ(trace_records(bench.soc, ORR_TRACE_WAKE).size(), kWakesPerPass);
    bench.run();
    EXPECT_EQ(completed(queues), queues.size());
    const auto wakes = trace_records(bench.soc, ORR_TRACE_WAKE);
    ASSERT_EQ(wakes.size(), queues.size());
    for (std::size_t n = 0; n < wakes.size(); ++n) {
        EXPECT_EQ(wakes[n].a, queues[n].number) << "not in the order of their coming";
        EXPECT_EQ(wakes[n].b, ORR_WAKE_LOCAL);
        EXPECT_EQ(wakes[n].words, (std::vector<std::uint64_t>{ORR_VRAM_WINDOW + kSharedMemory, 7}));
    }
    const auto signals = trace_records(bench.soc, ORR_TRACE_SIGNAL);
    ASSERT_EQ(signals.size(), 1u);
    EXPECT_EQ(signals[0].b, kWakesPerPass);
    EXPECT_EQ(signals[0].words, (std::vector<std::uint64_t>{ORR_VRAM_WINDOW + kSharedMemory, 7, kSharedVa}));
}

TEST_F(WaitsTest, MoreBacklogThanThereIsRoomForLosesNobody) {
    // One turn that signals 16 semaphores, each with more waiters than one pass wakes, and another turn's
    // worth.
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 0; n < 20; ++n) {
        for (const ProcessQueue& q : park(1 + n * 40, 40, kSharedVa + 16 * n, 1))
            queues.push_back(q);
    }
    for (std::uint32_t n = 0; n < 20; ++n)
        bench.push(signaller, signal(kSharedVa + 16 * n, 1));
    bench.ring(signaller);
    bench.run();
    EXPECT_EQ(completed(queues), queues.size());
}

TEST_F(WaitsTest, APokeWakesThoseOfItsMemory) {
    const auto here = park(1, 3, kSharedVa, 5);
    const auto there = park(10, 3, kSharedVa + 16, 5);
    bench.set_shared(0, 5);
    bench.set_shared(16, 5);
    bench.soc.poke(kSharedMemory + 32);
    bench.run();
    EXPECT_EQ(completed(here) + completed(there), 0u);
    bench.soc.poke(kSharedMemory);
    bench.run();
    EXPECT_EQ(completed(here), 3u);
    EXPECT_EQ(completed(there), 0u);
    const auto pokes = trace_records(bench.soc, ORR_TRACE_POKE);
    ASSERT_EQ(pokes.size(), 2u);
    EXPECT_EQ(pokes[0].b, 0u);
    EXPECT_EQ(pokes[1].b, 3u);
    EXPECT_EQ(pokes[1].words, std::vector<std::uint64_t>{ORR_VRAM_WINDOW + kSharedMemory});
    EXPECT_EQ(trace_records(bench.soc, ORR_TRACE_WAKE).at(0).b, ORR_WAKE_PEER);
    // Too low a value wakes nobody.
    const auto more = park(20, 1, kSharedVa, 9);
    bench.set_shared(0, 8);
    bench.soc.poke(kSharedMemory);
    bench.run();
    EXPECT_EQ(completed(more), 0u);
}

TEST_F(WaitsTest, AFlushFindsTheNewMemory) {
    const auto queues = park(1, 20, kMovedVa, 5);
    bench.soc.map(2, kMovedVa, kSharedMemory + 0x1000);
    flush(2);
    EXPECT_EQ(completed(queues), 0u);
    accesses_of_a_signal(kSharedVa, 5);
    EXPECT_EQ(completed(queues), 0u) << "the old memory is none of theirs any more";
    accesses_of_a_signal(kSharedVa + 0x1000, 5);
    EXPECT_EQ(completed(queues), 20u);
}

TEST_F(WaitsTest, AFlushWakesThoseWhoseNewMemoryHasTheValue) {
    const auto queues = park(1, 20, kMovedVa, 5);
    const auto others = park(400, 3, kSharedVa, 5);
    bench.set_shared(0x1000, 6);
    bench.soc.map(2, kMovedVa, kSharedMemory + 0x1000);
    flush(1);
    EXPECT_EQ(completed(queues), 0u) << "another context's flush";
    flush(2);
    EXPECT_EQ(completed(queues), 20u);
    EXPECT_EQ(completed(others), 0u);
    EXPECT_EQ(trace_records(bench.soc, ORR_TRACE_WAKE).at(0).b, ORR_WAKE_MAP);
}

TEST_F(WaitsTest, AFlushStopsThoseWithoutMemory) {
    const auto queues = park(1, 2, kMovedVa, 5);
    const auto others = park(10, 1, kSharedVa, 5);
    bench.soc.unmap(2, kMovedVa);
    flush(2);
    expect_error(bench, queues[0], ORR_QERR_FAULT, 0, kMovedVa, ORR_FAULT_NOT_MAPPED);
    expect_error(bench, queues[1], ORR_QERR_FAULT, 0, kMovedVa, ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(bench.status(10).error, ORR_QERR_NONE);
}

TEST_F(WaitsTest, ASignalBetweenFlushAndSecondLookWakesNobodyWrongly) {
    // More waiters than one pass looks at: the signal of the old memory runs while most are still known by
    // it.
    const auto queues = park(1, 30, kMovedVa, 5);
    bench.soc.map(2, kMovedVa, kSharedMemory + 0x1000);
    orr_mbox_message command{};
    command.opcode = ORR_MBOX_TLB_FLUSH;
    command.sequence = 900;
    command.arg[0] = 2;
    bench.send(command);
    bench.pass();
    bench.push(signaller, signal(kSharedVa, 5));
    bench.ring(signaller);
    bench.pass();
    EXPECT_EQ(bench.shared(0), 5u);
    bench.run();
    EXPECT_EQ(completed(queues), 0u);
    accesses_of_a_signal(kSharedVa + 0x1000, 5);
    EXPECT_EQ(completed(queues), 30u);
}

TEST_F(WaitsTest, AContextThatGoesWhileItsWaitsAreStaleLeavesNothing) {
    const auto queues = park(1, 3, kMovedVa, 5);
    for (const std::uint64_t opcode :
         {ORR_MBOX_TLB_FLUSH, ORR_MBOX_QUEUE_DESTROY, ORR_MBOX_CONTEXT_DESTROY}) {
        const std::uint32_t count = opcode == ORR_MBOX_QUEUE_DESTROY ? 3 : 1;
        for (std::uint32_t n = 0; n < count; ++n) {
            orr_mbox_message command{};
            command.opcode = static_cast<std::uint16_t>(opcode);
            command.sequence = 900 + n;
            command.arg[0] = opcode == ORR_MBOX_QUEUE_DESTROY ? queues[n].number : 2;
            bench.send(command);
        }
    }
    bench.run();
    EXPECT_FALSE(bench.soc.has_root(2));
    bench.create_context(2, 1);
    const auto again = park(1, 3, kSharedVa, 5);
    accesses_of_a_signal(kSharedVa, 5);
    EXPECT_EQ(completed(again), 3u);
}

TEST_F(WaitsTest, WaitsAreTraced) {
    const auto queues = park(5, 1, kSharedVa + 48, 17);
    const auto waits = trace_records(bench.soc, ORR_TRACE_WAIT);
    ASSERT_EQ(waits.size(), 1u);
    EXPECT_EQ(waits[0].a, 5u);
    EXPECT_EQ(waits[0].words,
              (std::vector<std::uint64_t>{ORR_VRAM_WINDOW + kSharedMemory + 48, 17, kSharedVa + 48, 0}));
}

}  // namespace
}  // namespace orrery::fw::test
