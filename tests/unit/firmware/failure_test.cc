// Failure travels with the semaphore: whatever stops a queue, those who wait for it learn why.
#include <orrery/fw/failure.h>

#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

constexpr std::uint64_t kUnmapped = 0x7fff0000;

orr_packet fail_packet(std::uint64_t va, std::uint64_t code) {
    return semaphore_packet(ORR_PKT_FAIL, va, code, 0);
}
orr_packet limited_wait(std::uint64_t va, std::uint64_t value, std::uint64_t limit_ns) {
    orr_packet p = wait(va, value);
    p.word[2] = limit_ns;
    return p;
}

class FailureTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        waiter = bench.create_queue(1, 1);
        bad = bench.create_queue(2, 2);
        bystander = bench.create_queue(3, 2);
        node = static_cast<std::uint32_t>(bench.soc.reg(SOC_UID) & 0xff);
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
        bench.submit(bystander, {signal(kSharedVa + 0xf00, 1)});
        EXPECT_EQ(bench.status(bystander.number).completed, bystander.producer);
        EXPECT_EQ(bench.soc.halt, kEmpty);
    }
    std::uint64_t word(std::uint64_t code, const ProcessQueue& queue, std::uint64_t index) const {
        return ORR_FAILURE_WORD(code, node, queue.number, index);
    }
    void expect_failed(std::uint64_t offset, std::uint64_t word) {
        EXPECT_EQ(bench.shared(offset), ORR_SEM_FAILED | word)
            << "code " << ORR_FAILURE_CODE(bench.shared(offset)) << " of queue "
            << ORR_FAILURE_QUEUE(bench.shared(offset));
    }
    void expect_poisoned(const ProcessQueue& queue, std::uint64_t index, std::uint64_t va,
                         std::uint64_t word) {
        expect_error(bench, queue, ORR_QERR_POISON, index, va, word);
    }
    orr_mbox_message close(std::uint64_t offset, std::uint64_t word) {
        return bench.call(ORR_MBOX_SEM_CLOSE, {kSharedMemory + offset, ORR_SEM_IN_VRAM, word});
    }
    Bench bench;
    ProcessQueue waiter, bad, bystander;
    std::uint32_t node = 0;
};

TEST_F(FailureTest, AStoppedQueueFailsWhatItWouldHaveSignalled) {
    bench.submit(waiter, {wait(kAliasVa, 5), nop()});
    bench.submit(bad,
                 {signal(kSharedVa + 32, 1), packet(1234), signal(kSharedVa, 5), signal(kSharedVa + 16, 1)});
    const auto cause = word(ORR_QERR_BAD_OPCODE, bad, 1);
    expect_error(bench, bad, ORR_QERR_BAD_OPCODE, 1, 0, 1234);
    expect_failed(0, cause);
    expect_failed(16, cause);
    EXPECT_EQ(bench.shared(32), 1u) << "what was carried out stays";
    expect_poisoned(waiter, 0, kAliasVa, cause);
}

TEST_F(FailureTest, TheFirstCauseIsPassedOn) {
    bench.submit(waiter, {wait(kSharedVa, 5), signal(kSharedVa + 16, 1)});
    ProcessQueue last = bench.create_queue(7, 1);
    bench.submit(last, {wait(kSharedVa + 16, 1), signal(kSharedVa + 48, 1)});
    bench.submit(bad, {timestamp(kUnmapped), signal(kSharedVa, 5)});
    const auto cause = word(ORR_QERR_FAULT, bad, 0);
    expect_poisoned(waiter, 0, kSharedVa, cause);
    expect_poisoned(last, 0, kSharedVa + 16, cause);
    expect_failed(48, cause);
}

TEST_F(FailureTest, AWaitThatComesLaterFindsTheFailure) {
    bench.submit(bad, {packet(1234), signal(kSharedVa, 5)});
    bench.submit(waiter, {nop(), wait(kSharedVa, 5)});
    expect_poisoned(waiter, 1, kSharedVa, word(ORR_QERR_BAD_OPCODE, bad, 0));
}

TEST_F(FailureTest, TheFirstFailureStaysAndLaterSignalsChangeNothing) {
    bench.submit(bad, {packet(1234), signal(kSharedVa, 5)});
    ProcessQueue other = bench.create_queue(8, 1);
    bench.submit(other,
                 {signal(kSharedVa, 9), fail_packet(kSharedVa, 99), packet(77), signal(kSharedVa, 10)});
    expect_failed(0, word(ORR_QERR_BAD_OPCODE, bad, 0));
    EXPECT_EQ(bench.status(8).error_index, 2u);
}

TEST_F(FailureTest, ValuesOnlyGrow) {
    bench.submit(bad, {signal(kSharedVa, 9), signal(kSharedVa, 4)});
    EXPECT_EQ(bench.shared(0), 9u);
    EXPECT_EQ(bench.status(bad.number).completed, 2u);
}

TEST_F(FailureTest, PacketsSubmittedToAStoppedQueueFailToo) {
    bench.submit(bad, {packet(1234)});
    bench.submit(waiter, {wait(kSharedVa, 5)});
    EXPECT_EQ(bench.status(waiter.number).error, ORR_QERR_NONE);
    bench.submit(bad, {nop(), signal(kSharedVa, 5)});
    expect_poisoned(waiter, 0, kSharedVa, word(ORR_QERR_BAD_OPCODE, bad, 0));
    bench.events.clear();
    bench.submit(bad, {signal(kSharedVa + 16, 5)});
    expect_failed(16, word(ORR_QERR_BAD_OPCODE, bad, 0));
    EXPECT_TRUE(bench.events.empty()) << "told twice";
}

TEST_F(FailureTest, DestroyFailsWhatIsLeft) {
    bench.submit(waiter, {wait(kSharedVa, 5)});
    ProcessQueue behind = bench.create_queue(9, 1);
    bench.submit(behind, {wait(kSharedVa + 16, 1)});
    bench.submit(bad, {wait(kSharedVa + 0x200, 1), signal(kSharedVa, 5)});
    // Written, but its doorbell has not been heard.
    bench.push(bad, signal(kSharedVa + 16, 1));
    bench.soc.set_memory(bad.ring, bad.producer);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {bad.number}).status, ORR_STATUS_OK);
    expect_failed(0, word(ORR_QERR_ABORTED, bad, 0));
    expect_failed(16, word(ORR_QERR_ABORTED, bad, 0));
    bench.run();
    expect_poisoned(waiter, 0, kSharedVa, word(ORR_QERR_ABORTED, bad, 0));
    expect_poisoned(behind, 0, kSharedVa + 16, word(ORR_QERR_ABORTED, bad, 0));
}

TEST_F(FailureTest, DestroyOfAStoppedQueueKeepsItsCause) {
    bench.submit(bad, {packet(1234)});
    bench.push(bad, signal(kSharedVa, 5));
    bench.soc.set_memory(bad.ring, bad.producer);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {bad.number}).status, ORR_STATUS_OK);
    expect_failed(0, word(ORR_QERR_BAD_OPCODE, bad, 0));
}

TEST_F(FailureTest, DestroyRepliesOnceAllHaveFailed) {
    ProcessQueue large = bench.create_queue(10, 1, 64);
    bench.push(large, wait(kSharedVa + 0x200, 1));
    for (std::uint64_t n = 0; n < 63; ++n)
        bench.push(large, signal(kSharedVa + 16 * n, 1));
    bench.ring(large);
    bench.run();
    bench.soc.on_signal = [this](auto, auto, auto) { bench.soc.time += kPsPerUs; };  // chunks of two packets
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {10}).status, ORR_STATUS_OK);
    for (std::uint64_t n = 0; n < 63; ++n)
        expect_failed(16 * n, word(ORR_QERR_ABORTED, large, 0));
}

// Forty long rings of one user, and a busy card: whoever else stops is told soon, by a command or not, and
// the heartbeat shows that work goes on.
TEST_F(FailureTest, UsersTakeTurnsToFail) {
    bench.create_context(5, 4, 1001, 1);
    bench.create_context(6, 5, 1002, 2);
    bench.soc.on_signal = [this](auto, auto, auto) { bench.soc.time += 700'000; };
    std::vector<ProcessQueue> storm;
    for (std::uint32_t n = 0; n < 40; ++n) {
        storm.push_back(bench.create_queue(100 + n, 5, 64));
        bench.push(storm.back(), wait(kSharedVa + 0x400, 1));
        for (int more = 0; more < 63; ++more)
            bench.push(storm.back(), signal(kSharedVa + 0x500, 1));
        bench.ring(storm.back());
    }
    ProcessQueue victim = bench.create_queue(30, 6, 64), other = bench.create_queue(31, 6, 64);
    for (ProcessQueue* queue : {&victim, &other}) {
        bench.push(*queue, wait(kSharedVa + 0x410 + 0x10 * (queue->number - 30), 1));
        for (int more = 0; more < 62; ++more)
            bench.push(*queue, signal(kSharedVa + 0x510, 1));
        bench.push(*queue, signal(kSharedVa + 0x10 * (queue->number - 30), 1));
        bench.ring(*queue);
    }
    bench.submit(bystander, {dispatch(0x1000)});  // it does not end
    bench.run();
    // All of the storm stop at once: poisoned.
    bench.submit(bad, {packet(1234), signal(kSharedVa + 0x400, 1)});
    const std::uint64_t beat = bench.soc.heartbeat, began = bench.soc.time;
    bench.submit(bad, {signal(kSharedVa + 0x420, 1)});
    std::uint64_t asked = 0, replied = 0;
    orr_mbox_message abort{};
    abort.sequence = 9'000;
    abort.opcode = ORR_MBOX_QUEUE_ABORT;
    abort.arg[0] = victim.number;
    const auto pass_until = [&](auto done) {
        while (!done() && bench.soc.timer != kEmpty && bench.soc.time < began + 50'000'000'000) {
            bench.soc.time = std::max(bench.soc.time, bench.soc.timer);
            bench.run();
            while (const auto message = bench.receive()) {
                if (message->sequence == 9'000) replied = bench.soc.time;
            }
        }
    };
    asked = bench.soc.time;
    bench.send(abort);
    bench.run();
    pass_until([&] { return replied != 0 && bench.shared(0x10) != 0; });
    ASSERT_NE(replied, 0u);
    // Each of the two has 63 packets of 0.7 us, at a twentieth of the core's time and half of that.
    EXPECT_LE(replied - asked, 4 * kPsPerUs * 1000);
    EXPECT_NE(bench.shared(0) & ORR_SEM_FAILED, 0u);
    EXPECT_NE(bench.shared(0x10) & ORR_SEM_FAILED, 0u) << "who was poisoned, and nobody asked for";
    EXPECT_GT(bench.soc.heartbeat, beat);
    EXPECT_LT(bench.soc.time - began, 10 * kPsPerUs * 1000) << "the storm has not failed yet by far";
    bench.soc.finish(bench.soc.busy_ports().front());
    bench.soc.on_signal = nullptr;
    bench.run();
}

// Doorbells of queues that have stopped cost no access to their rings by themselves.
TEST_F(FailureTest, DoorbellsOfStoppedQueuesAreLookedAtInPauses) {
    std::vector<ProcessQueue> storm;
    for (std::uint32_t n = 0; n < 32; ++n) {
        storm.push_back(bench.create_queue(100 + n, 2));
        bench.submit(storm.back(), {packet(1234)});
    }
    bench.submit(bystander, {dispatch(0x1000)});
    bench.run();
    bench.soc.on_load = [this](std::uint64_t) { bench.soc.time += 300'000; };
    const std::uint64_t before = bench.soc.loads;
    for (ProcessQueue& queue : storm)
        bench.ring(queue);
    bench.run();
    EXPECT_LE(bench.soc.loads - before, 4u);
    bench.soc.on_load = nullptr;
    // What is submitted fails all the same, in its time.
    bench.push(storm[17], signal(kSharedVa + 0x40, 1));
    bench.ring(storm[17]);
    for (int n = 0; n < 200 && bench.soc.timer != kEmpty && bench.shared(0x40) == 0; ++n) {
        bench.soc.time = std::max(bench.soc.time, bench.soc.timer);
        bench.run();
    }
    expect_failed(0x40, word(ORR_QERR_BAD_OPCODE, storm[17], 0));
    bench.soc.finish(bench.soc.busy_ports().front());
    bench.run();
}

TEST_F(FailureTest, ARingThatCannotBeReadEndsIt) {
    bench.submit(bad, {wait(kSharedVa + 0x200, 1), signal(kSharedVa, 5)});
    for (std::uint64_t page = 0; page < kRingBytes; page += ORR_PAGE_SIZE)
        bench.soc.unmap(2, bad.ring - kRingMemory + kRingVa + page);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {bad.number}).status, ORR_STATUS_OK);
    EXPECT_EQ(bench.shared(0), 0u);
}

TEST_F(FailureTest, SemaphoresThatAreNotThereAreLeftOut) {
    bench.submit(bad, {packet(1234), signal(kUnmapped, 1), signal(kVaEnd, 1), signal(kSharedVa + 8, 1),
                       signal(kSharedVa + 16, 1)});
    expect_failed(16, word(ORR_QERR_BAD_OPCODE, bad, 0));
}

TEST_F(FailureTest, AbortStopsAQueueThatCanStillBeAsked) {
    bench.submit(waiter, {wait(kSharedVa, 5)});
    bench.submit(bad, {nop(), copy(0x1000), signal(kSharedVa, 5)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_ABORT, {bad.number}).status, ORR_STATUS_OK);
    EXPECT_TRUE(bench.soc.busy_ports().empty()) << "something of it runs";
    expect_error(bench, bad, ORR_QERR_ABORTED, 1, 0, 0);
    const auto info = bench.call(ORR_MBOX_QUEUE_INFO, {bad.number});
    EXPECT_EQ(info.arg[0], ORR_QUEUE_STOPPED);
    EXPECT_EQ(info.arg[2], ORR_QERR_ABORTED);
    expect_poisoned(waiter, 0, kSharedVa, word(ORR_QERR_ABORTED, bad, 1));
    // Once more changes nothing.
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_ABORT, {bad.number}).status, ORR_STATUS_OK);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {bad.number}).status, ORR_STATUS_OK);
}

TEST_F(FailureTest, AbortOfAWaiterEndsItsWait) {
    bench.submit(waiter, {wait(kSharedVa, 5), signal(kSharedVa + 16, 2)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_ABORT, {waiter.number}).status, ORR_STATUS_OK);
    expect_error(bench, waiter, ORR_QERR_ABORTED, 0, 0, 0);
    expect_failed(16, word(ORR_QERR_ABORTED, waiter, 0));
    bench.submit(bystander, {signal(kSharedVa, 5)});
    EXPECT_EQ(bench.status(waiter.number).completed, 0u);
}

TEST_F(FailureTest, AbortWaitsForAnEngineThatIsSlowToLetGo) {
    SlowBench slow;
    ProcessQueue q = slow.create_queue(0, 1);
    slow.submit(q, {copy(0x1000), signal(kSharedVa, 1)});
    orr_mbox_message command{};
    command.opcode = ORR_MBOX_QUEUE_ABORT;
    command.sequence = 500;
    slow.send(command);
    slow.run();
    EXPECT_FALSE(slow.receive());
    ASSERT_TRUE(slow.soc.engines[0].abort_wanted);
    EXPECT_EQ(slow.shared(0), 0u);
    slow.soc.finish(0, ORR_DONE_ABORTED);
    slow.run();
    expect_error(slow, q, ORR_QERR_ABORTED, 0, 0, 0);
    ASSERT_EQ(ORR_FAILURE_CODE(slow.shared(0)), ORR_QERR_ABORTED);
}

TEST_F(FailureTest, FailFailsAndItsQueueGoesOn) {
    bench.submit(waiter, {wait(kSharedVa, 5)});
    bench.submit(bad, {nop(), fail_packet(kSharedVa, 99), signal(kSharedVa + 16, 1)});
    EXPECT_EQ(bench.status(bad.number).completed, 3u);
    EXPECT_EQ(bench.shared(16), 1u);
    expect_poisoned(waiter, 0, kSharedVa, word(99, bad, 1));
}

TEST_F(FailureTest, PacketsAreChecked) {
    const struct {
        orr_packet packet;
        std::uint64_t bad_word;
    } cases[] = {
        {wait(kSharedVa, ORR_SEM_FAILED), 2},
        {signal(kSharedVa, ORR_SEM_FAILED | 5), 2},
        {signal(kSharedVa, ~std::uint64_t{0}), 2},
        {limited_wait(kSharedVa, 1, ORR_WAIT_LIMIT_MAX_NS + 1), 3},
        {semaphore_packet(ORR_PKT_FAIL, kSharedVa + 8, 5, 0), 1},
        {fail_packet(kSharedVa, 0), 2},
        {fail_packet(kSharedVa, ORR_FAILURE_MAX_CODE + 1), 2},
    };
    std::uint32_t number = 20;
    for (const auto& each : cases) {
        ProcessQueue q = bench.create_queue(number++, 1);
        bench.submit(q, {each.packet});
        expect_error(bench, q, ORR_QERR_BAD_PACKET, 0, 0, each.bad_word);
    }
    orr_packet limited_signal = signal(kSharedVa, 1);
    limited_signal.word[2] = 1;
    ProcessQueue q = bench.create_queue(number, 1);
    bench.submit(q, {limited_signal});
    expect_error(bench, q, ORR_QERR_BAD_PACKET, 0, 0, 3);
    EXPECT_EQ(ORR_FAILURE_CODE(bench.shared(0)), ORR_QERR_BAD_PACKET) << "what it would have signalled";
}

TEST_F(FailureTest, ManyWaitersAllLearnIt) {
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 100; n < 100 + 3 * kWakesPerPass + 5; ++n) {
        queues.push_back(bench.create_queue(n, 1));
        bench.submit(queues.back(), {wait(kSharedVa, n)});
    }
    bench.submit(bad, {packet(1234), signal(kSharedVa, 1)});
    for (const ProcessQueue& q : queues)
        EXPECT_EQ(bench.status(q.number).error_detail, word(ORR_QERR_BAD_OPCODE, bad, 0)) << q.number;
}

TEST_F(FailureTest, AFailureFromAPeerPoisons) {
    bench.submit(waiter, {wait(kSharedVa, 5)});
    const auto cause = ORR_FAILURE_WORD(ORR_QERR_KERNEL_TRAP, 0x7e, 12, 34);
    bench.set_shared(0, ORR_SEM_FAILED | cause);
    bench.soc.poke(kSharedMemory);
    bench.run();
    expect_poisoned(waiter, 0, kSharedVa, cause);
}

TEST_F(FailureTest, AClosedSemaphoreStopsThoseWhoWantMore) {
    bench.submit(bystander, {signal(kSharedVa, 3)});
    bench.submit(waiter, {wait(kSharedVa, 4)});
    ProcessQueue later = bench.create_queue(30, 1);
    const auto cause = ORR_FAILURE_WORD(ORR_QERR_PEER_LOST, 0x55, ORR_FAILURE_NO_QUEUE, 0);
    EXPECT_EQ(close(0, cause).status, ORR_STATUS_OK);
    bench.run();
    expect_poisoned(waiter, 0, kSharedVa, cause);
    bench.submit(later, {wait(kSharedVa, 3), wait(kSharedVa, 4)});
    expect_poisoned(later, 1, kSharedVa, ORR_FAILURE_WORD(ORR_QERR_ABANDONED, node, ORR_FAILURE_NO_QUEUE, 0));
    EXPECT_EQ(bench.shared(0), 3u);
    // It stays closed when somebody signals it all the same.
    bench.submit(bystander, {signal(kSharedVa, 7)});
    EXPECT_EQ(bench.shared(0), 7u);
    EXPECT_EQ(bench.shared(8) & ORR_SEM_CLOSED, ORR_SEM_CLOSED);
}

// Whose mappings have changed is looked at anew, and is still told why.
TEST_F(FailureTest, ACloseTellsItsCauseBehindAFlush) {
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 100; n < 140; ++n) {  // more than are woken in one pass
        queues.push_back(bench.create_queue(n, 1));
        bench.submit(queues.back(), {wait(kSharedVa, 4)});
    }
    orr_mbox_message flush{};
    flush.opcode = ORR_MBOX_TLB_FLUSH;
    flush.sequence = 900;
    flush.arg[0] = 1;
    bench.send(flush);
    const auto cause = ORR_FAILURE_WORD(ORR_QERR_PEER_LOST, 0x55, ORR_FAILURE_NO_QUEUE, 0);
    EXPECT_EQ(close(0, cause).status, ORR_STATUS_OK);
    bench.run();
    for (const ProcessQueue& q : queues)
        expect_poisoned(q, 0, kSharedVa, cause);
}

// What is on the link when a semaphore is closed is carried out first, and whoever has it then goes on.
TEST_F(FailureTest, ACloseOvertakesNoSignal) {
    ProcessQueue wants_more = bench.create_queue(30, 1);
    bench.submit(waiter, {wait(kSharedVa, 5), nop()});
    bench.submit(wants_more, {wait(kSharedVa, 6)});
    bench.soc.busy_closes = 3;
    bench.soc.on_close = [this] { bench.set_shared(0, 5); };
    const auto cause = ORR_FAILURE_WORD(ORR_QERR_ABANDONED, node, ORR_FAILURE_NO_QUEUE, 0);
    EXPECT_EQ(close(0, cause).status, ORR_STATUS_OK);
    bench.soc.on_close = nullptr;
    bench.run();
    EXPECT_EQ(bench.status(waiter.number).completed, 2u);
    expect_poisoned(wants_more, 0, kSharedVa, cause);
    bench.soc.busy_closes = 100'000;
    EXPECT_EQ(close(0x40, cause).status, ORR_STATUS_NO_RESOURCE);
    bench.soc.busy_closes = 0;
}

// A peer whose inbox is full: the signal is tried again, others have their turns.
TEST_F(FailureTest, ASignalWithoutRoomIsTriedAgain) {
    bench.soc.busy_signals = 20;
    bench.push(bad, signal(kSharedVa, 5));
    bench.push(bad, fail_packet(kSharedVa + 0x10, ORR_QERR_ABORTED));
    bench.ring(bad);
    bench.submit(bystander, {nop(), nop()});
    EXPECT_EQ(bench.status(bystander.number).completed, 2u);
    bench.run();
    EXPECT_EQ(bench.shared(0), 5u);
    EXPECT_NE(bench.shared(0x10) & ORR_SEM_FAILED, 0u);
    EXPECT_EQ(bench.status(bad.number).error, ORR_QERR_NONE);
}

TEST_F(FailureTest, AFailureWithoutRoomIsTriedAgainAndNotForEver) {
    bench.push(bad, packet(1234));
    for (std::uint64_t n = 0; n < 8; ++n)
        bench.push(bad, signal(kSharedVa + 0x10 * n, 5));
    bench.soc.busy_signals = 5;
    bench.ring(bad);
    const auto pass = [&] {
        for (int n = 0; n < 400 && bench.soc.timer != kEmpty; ++n) {
            bench.soc.time = std::max(bench.soc.time, bench.soc.timer);
            bench.run();
        }
    };
    bench.run();
    pass();
    for (std::uint64_t n = 0; n < 8; ++n)
        expect_failed(0x10 * n, word(ORR_QERR_BAD_OPCODE, bad, 0));
    bench.soc.busy_signals = 100'000;
    bench.submit(bad, {signal(kSharedVa + 0x100, 5), signal(kSharedVa + 0x110, 5)});
    pass();
    EXPECT_EQ(bench.soc.timer, kEmpty) << "it still tries";
    EXPECT_LT(bench.soc.busy_signals, 100'000u - 200);
    bench.soc.busy_signals = 0;
    EXPECT_EQ(bench.shared(0x100), 0u);
}

// The signal and the close came together: what is there counts.
TEST_F(FailureTest, AWaitLooksAgainBehindAClose) {
    bench.set_shared(8, ORR_SEM_CLOSED);
    bench.soc.on_load = [this](std::uint64_t window) {
        if (window == ORR_VRAM_WINDOW + kSharedMemory + 8) bench.set_shared(0, 5);
    };
    bench.submit(waiter, {wait(kSharedVa, 5), nop()});
    bench.soc.on_load = nullptr;
    EXPECT_EQ(bench.status(waiter.number).error, ORR_QERR_NONE);
    EXPECT_EQ(bench.status(waiter.number).completed, 2u);
}

// The memory goes between two looks: the waiter stops, the driver's memory is not blamed.
TEST_F(FailureTest, ASemaphoreThatGoesStopsItsWaiter) {
    bench.soc.on_load = [this](std::uint64_t window) {
        if (window == ORR_VRAM_WINDOW + kSharedMemory + 8) bench.soc.fault_next = ORR_FAULT_PAGE_RANGE;
    };
    bench.submit(waiter, {wait(kSharedVa, 5)});
    bench.soc.on_load = nullptr;
    EXPECT_EQ(bench.status(waiter.number).error, ORR_QERR_FAULT);
    EXPECT_EQ(bench.status(waiter.number).error_detail, ORR_FAULT_PAGE_RANGE);
}

TEST_F(FailureTest, CloseIsChecked) {
    EXPECT_EQ(bench.call(ORR_MBOX_SEM_CLOSE, {kSharedMemory + 8, ORR_SEM_IN_VRAM, 0}).status,
              ORR_STATUS_INVALID);
    EXPECT_EQ(bench.call(ORR_MBOX_SEM_CLOSE, {kSharedMemory, 2, 0}).status, ORR_STATUS_INVALID);
    EXPECT_EQ(bench.call(ORR_MBOX_SEM_CLOSE, {kSharedMemory, ORR_SEM_IN_VRAM, ORR_SEM_FAILED}).status,
              ORR_STATUS_INVALID);
    EXPECT_EQ(bench.call(ORR_MBOX_SEM_CLOSE, {bench.soc.reg(SOC_VRAM_SIZE), ORR_SEM_IN_VRAM, 0}).status,
              ORR_STATUS_INVALID);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_ABORT, {ORR_FW_QUEUES}).status, ORR_STATUS_INVALID);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_ABORT, {500}).status, ORR_STATUS_NO_ENTRY);
}

TEST_F(FailureTest, AWaitHasALimitOfModelTime) {
    bench.submit(waiter, {limited_wait(kSharedVa, 5, 2'500'000)});
    bench.submit(bystander, {signal(kSharedVa, 3)});
    const auto pass_ms = [&](unsigned tenths) {
        for (unsigned n = 0; n < tenths; ++n) {
            bench.soc.time += 100'000'000;
            bench.run();
        }
    };
    pass_ms(23);
    EXPECT_EQ(bench.status(waiter.number).error, ORR_QERR_NONE);
    pass_ms(4);
    expect_error(bench, waiter, ORR_QERR_WAIT_LIMIT, 0, kSharedVa, 3);
    EXPECT_EQ(bench.soc.timer, kEmpty) << "a forgotten alarm would make the clock jump";
}

// The value is there, its poke stands behind those of others: that is no time-out.
TEST_F(FailureTest, AWaitThatHasItsValueIsNotOver) {
    bench.submit(waiter, {limited_wait(kSharedVa, 5, 2'500'000), nop()});
    for (int tenths = 0; tenths < 27; ++tenths) {
        if (tenths == 24) bench.set_shared(0, 5);
        bench.soc.time += 100'000'000;
        bench.run();
    }
    EXPECT_EQ(bench.status(waiter.number).error, ORR_QERR_NONE);
    EXPECT_EQ(bench.status(waiter.number).completed, 2u);
    EXPECT_EQ(bench.soc.timer, kEmpty);
}

TEST_F(FailureTest, AWaitThatEndsInTimeLeavesNoAlarm) {
    bench.submit(waiter, {limited_wait(kSharedVa, 5, 2'500'000), nop()});
    EXPECT_NE(bench.soc.timer, kEmpty);
    bench.submit(bystander, {signal(kSharedVa, 5)});
    EXPECT_EQ(bench.status(waiter.number).completed, 2u);
    EXPECT_EQ(bench.soc.timer, kEmpty);
    bench.submit(waiter, {limited_wait(kSharedVa, 9, 2'500'000)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_ABORT, {waiter.number}).status, ORR_STATUS_OK);
    EXPECT_EQ(bench.soc.timer, kEmpty);
}

TEST_F(FailureTest, AJumpOfTheClockIsNoTimeToWait) {
    // An arrival of a peer that is far ahead moves the clock: this is not the time that the limit means.
    bench.submit(waiter, {limited_wait(kSharedVa, 5, 2'500'000)});
    bench.soc.time += 3'600 * kPsPerUs * 1'000'000;
    bench.run();
    EXPECT_EQ(bench.status(waiter.number).error, ORR_QERR_NONE);
    EXPECT_LE(bench.soc.timer, bench.soc.time + 1'000'000'000);
    bench.submit(bystander, {signal(kSharedVa, 5)});
    EXPECT_EQ(bench.status(waiter.number).completed, 1u);
}

TEST_F(FailureTest, LimitsOfManyWaitsComeEachInItsTime) {
    std::vector<ProcessQueue> queues;
    for (std::uint32_t n = 0; n < 10; ++n) {
        queues.push_back(bench.create_queue(40 + n, 1));
        bench.submit(queues.back(), {limited_wait(kSharedVa, 5, (10 - n) * 300'000)});
    }
    for (std::uint32_t step = 1; step <= 32; ++step) {
        bench.soc.time += 100'000'000;
        bench.run();
        for (std::uint32_t n = 0; n < 10; ++n) {
            const auto error = bench.status(40 + n).error;
            if (step * 100 + 1 < (10 - n) * 300) {
                EXPECT_EQ(error, ORR_QERR_NONE) << n << " at " << step;
            }
            if (step * 100 > (10 - n) * 300 + 100) {
                EXPECT_EQ(error, ORR_QERR_WAIT_LIMIT) << n << " at " << step;
            }
        }
    }
}

TEST_F(FailureTest, ARestartGoesOnWithIt) {
    // The firmware dies while it works for the queue: that is the cause which its waiters learn.
    bench.submit(waiter, {wait(kSharedVa, 5)});
    bench.submit(bad, {wait(kSharedVa + 0x200, 1), signal(kSharedVa, 5)});
    bench.send({.sequence = 700,
                .opcode = ORR_MBOX_CRASH,
                .flags = 0,
                .status = 0,
                .detail = 0,
                .arg = {bad.number}});
    bench.run();
    ASSERT_TRUE(bench.crashed);
    ASSERT_TRUE(bench.restart());
    bench.run();
    EXPECT_EQ(bench.status(bad.number).error, ORR_QERR_FIRMWARE);
    expect_failed(0, word(ORR_QERR_FIRMWARE, bad, 0));
    expect_poisoned(waiter, 0, kSharedVa, word(ORR_QERR_FIRMWARE, bad, 0));
}

}  // namespace
}  // namespace orrery::fw::test
