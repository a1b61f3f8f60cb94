// The core crashes and is started again: who goes on, who is stopped, and what corrupt tables can do.
#include <algorithm>
#include <random>

#include <orrery/fw/failure.h>

#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

class RestartTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        for (std::uint32_t n = 0; n < 6; ++n)
            queues.push_back(bench.create_queue(n, 1 + n % 2, 32));
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
    }
    void crash(std::uint64_t guilty) {
        orr_mbox_message command{};
        command.opcode = ORR_MBOX_CRASH;
        command.sequence = 77;
        command.arg[0] = guilty;
        bench.send(command);
        bench.run();
        ASSERT_TRUE(bench.crashed);
        ASSERT_TRUE(bench.restart());
    }
    std::uint64_t block(std::size_t offset) { return bench.soc.host(kBlock + offset); }
    Bench bench;
    std::vector<ProcessQueue> queues;
};

TEST_F(RestartTest, AFirstStartIsCold) {
    EXPECT_EQ(block(offsetof(orr_boot_block, start_kind)), ORR_BB_START_COLD);
    EXPECT_EQ(trace_records(bench.soc, ORR_TRACE_START).at(0).words[1],
              ORR_BB_START_COLD | std::uint64_t{ORR_TRACE_NONE} << 32);
}

TEST_F(RestartTest, AllGoOnIfNobodyIsGuilty) {
    bench.submit(queues[0], {dispatch(0x1000), signal(kSharedVa, 1)});
    bench.submit(queues[1], {wait(kSharedVa, 1), signal(kSharedVa + 16, 1)});
    bench.submit(queues[2], {copy(0x1000), copy(0x2000), copy(0x3000), nop()});
    bench.push(queues[3], signal(kSharedVa + 32, 1));
    bench.soc.set_memory(queues[3].ring, queues[3].producer);  // not rung: found all the same
    const auto heartbeat = bench.soc.heartbeat;
    const auto started = bench.soc.busy_ports();
    crash(~0ull);
    EXPECT_EQ(bench.soc.progress, ORR_PROGRESS_READY | ORR_BB_STEP_RINGS);
    EXPECT_EQ(block(offsetof(orr_boot_block, start_kind)), ORR_BB_START_WARM | 6ull << 32);
    EXPECT_GT(bench.soc.heartbeat, heartbeat);
    EXPECT_EQ(bench.soc.busy_ports(), started) << "engines go on";
    bench.run();
    EXPECT_EQ(bench.shared(32), 1u);
    EXPECT_EQ(bench.shared(16), 0u);
    bench.soc.finish(2);
    bench.soc.finish(0);
    bench.run();
    EXPECT_EQ(bench.shared(16), 1u);
    for (const std::uint32_t port : bench.soc.busy_ports())
        bench.soc.finish(port);
    bench.run();
    for (const ProcessQueue& q : queues) {
        EXPECT_EQ(bench.status(q.number).completed, q.producer);
        EXPECT_EQ(bench.status(q.number).error, ORR_QERR_NONE);
    }
    EXPECT_EQ(bench.firmware->scheduler().stats().wild_completions, 0u);
    // And everything works as before.
    bench.submit(queues[1], {signal(kSharedVa + 48, 4)});
    EXPECT_EQ(bench.shared(48), 4u);
    EXPECT_EQ(bench.soc.timer, kEmpty);
}

TEST_F(RestartTest, TheGuiltyQueueStops) {
    bench.submit(queues[0], {copy(0x1000), copy(0x2000, ORR_PKT_F_ORDERED), nop()});
    bench.submit(queues[1], {wait(kSharedVa, 5)});
    bench.tables->header.trap_cause = 5;
    crash(0);
    EXPECT_EQ(block(offsetof(orr_boot_block, start_kind)), ORR_BB_START_WARM | 5ull << 32);
    EXPECT_EQ(trace_records(bench.soc, ORR_TRACE_START).at(1).words[1], ORR_BB_START_WARM | 0ull << 32);
    bench.soc.finish(0);
    bench.run();
    expect_error(bench, queues[0], ORR_QERR_FIRMWARE, 1, 0, 5);
    bench.submit(queues[2], {signal(kAliasVa, 5)});
    EXPECT_EQ(bench.status(1).completed, 1u);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {0}).status, ORR_STATUS_OK);
    const ProcessQueue again = bench.create_queue(0, 1);
    EXPECT_EQ(again.generation, queues[0].generation + 1);
}

TEST_F(RestartTest, QuotasNamesAndClassesSurvive) {
    EXPECT_EQ(bench.call(ORR_MBOX_QUOTA_SET, {1, 250 | 10'000ull << 32}).status, ORR_STATUS_OK);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_SET, {0, ORR_PRIORITY_HIGH, 100 | 700ull << 32}).status,
              ORR_STATUS_OK);
    std::uint64_t text = 0;
    std::memcpy(&text, "trainer", 8);
    EXPECT_EQ(bench.call(ORR_MBOX_NAME, {0, text}).status, ORR_STATUS_OK);
    bench.submit(queues[0], {dispatch(0x1000)});
    bench.soc.time += 3'000'000'000;
    bench.soc.finish(2);
    bench.run();
    const std::uint64_t used = bench.tables->contexts[1].used_ps;
    EXPECT_GT(used, 0u);
    crash(~0ull);
    EXPECT_EQ(bench.tables->contexts[1].quota_permille, 250u);
    EXPECT_EQ(bench.tables->contexts[1].quota_period_us, 10'000u);
    EXPECT_EQ(bench.tables->contexts[1].used_ps, used);
    EXPECT_EQ(bench.tables->queues[0].priority, ORR_PRIORITY_HIGH);
    EXPECT_EQ(bench.tables->queues[0].weight, 100u);
    EXPECT_EQ(bench.tables->queues[0].slice_us, 700u);
    EXPECT_STREQ(bench.tables->queues[0].name, "trainer");
}

TEST_F(RestartTest, AnEndUnderWayIsToldToWhoAsksAgain) {
    SlowBench slow;
    ProcessQueue queue = slow.create_queue(0, 1);
    slow.submit(queue, {copy(0x1000)});
    for (const std::uint32_t opcode : {ORR_MBOX_QUEUE_DESTROY, ORR_MBOX_CRASH}) {
        orr_mbox_message command{};
        command.opcode = static_cast<std::uint16_t>(opcode);
        command.sequence = 77;
        command.arg[0] = opcode == ORR_MBOX_CRASH ? ~0ull : 0;
        slow.send(command);
    }
    slow.run();
    ASSERT_TRUE(slow.crashed);
    ASSERT_TRUE(slow.restart());
    slow.run();
    EXPECT_FALSE(slow.receive());
    orr_mbox_message again{};
    again.opcode = ORR_MBOX_QUEUE_DESTROY;
    again.sequence = 78;
    slow.send(again);
    slow.run();
    EXPECT_FALSE(slow.receive()) << "it still runs";
    slow.soc.finish(0, ORR_DONE_ABORTED);
    slow.run();
    const auto reply = slow.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->sequence, 78u);
    EXPECT_EQ(slow.call(ORR_MBOX_QUEUE_INFO, {0}).status, ORR_STATUS_NO_ENTRY);
}

TEST_F(RestartTest, AnotherBuildStartsCold) {
    bench.submit(queues[0], {copy(0x1000), dispatch(0x2000)});
    bench.tables->header.layout ^= 1;
    crash(~0ull);
    EXPECT_EQ(block(offsetof(orr_boot_block, start_kind)), ORR_BB_START_COLD);
    bench.run();
    EXPECT_TRUE(bench.soc.busy_ports().empty()) << "nobody would ever end it";
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_INFO, {0}).status, ORR_STATUS_NO_ENTRY);
}

TEST_F(RestartTest, CrashIsChecked) {
    EXPECT_EQ(bench.call(ORR_MBOX_CRASH, {100}).status, ORR_STATUS_NO_ENTRY);
    EXPECT_EQ(bench.call(ORR_MBOX_CRASH, {1024}).status, ORR_STATUS_INVALID);
    EXPECT_EQ(bench.call(ORR_MBOX_CRASH, {0, 1}).status, ORR_STATUS_INVALID);
}

// Queues with a mix of work, all of it submitted; what the chip sees of each packet is counted.
class Workload {
  public:
    static constexpr std::uint32_t kQueues = 5;
    static constexpr std::uint64_t kPackets = 20;

    explicit Workload(std::uint64_t seed) : random_(seed) {
        bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_areas), std::uint64_t{8} << 32);
        bench.soc.set_host(kBlock + offsetof(orr_boot_block, save_base), 0x900000);
        EXPECT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        for (std::uint32_t n = 0; n < kQueues; ++n)
            queues.push_back(bench.create_queue(n, 1 + n % 2, 32, 2'000'000));
        bench.call(ORR_MBOX_QUEUE_SET, {1, ORR_PRIORITY_HIGH, 0});
        bench.soc.on_start = [this](std::uint32_t, const FakeSoc::Engine& engine) {
            if (engine.resumed) return;
            const std::uint64_t name = engine.desc[1];
            ++starts[name >> 32][(name & 0xffffffff) >> 4];
        };
        for (std::uint32_t n = 0; n < kQueues; ++n) {
            for (std::uint64_t index = 0; index < kPackets; ++index)
                bench.push(queues[n], make(n, index));
            bench.ring(queues[n]);
        }
    }

    // One step of the world: the firmware, then perhaps an engine.
    void step() {
        bench.pass();
        if (bench.crashed) return;
        const auto busy = bench.soc.busy_ports();
        if (busy.empty()) return;
        const std::uint32_t port = busy[random_() % busy.size()];
        if (bench.soc.engines[port].preempt != 0)
            bench.soc.preempt(port);
        else if (random_() % 3 == 0)
            bench.soc.finish(port);
    }
    bool over() {
        for (const ProcessQueue& q : queues) {
            if (bench.status(q.number).completed < kPackets && bench.status(q.number).error == 0)
                return false;
        }
        return true;
    }
    void finish() {
        for (int n = 0; n < 4000 && !over(); ++n) {
            if (bench.soc.timer != kEmpty && random_() % 8 == 0 && bench.soc.time < bench.soc.timer)
                bench.soc.time = std::min(bench.soc.timer, bench.soc.time + 1'000'000'000);
            step();
            // A wait for the packets of a queue that has stopped: the process would signal.
            if (n > 2000) {
                for (std::uint32_t q = 0; q < kQueues; ++q) {
                    if (bench.shared(16 * q) < kPackets) bench.set_shared(16 * q, kPackets);
                    bench.soc.poke(kSharedMemory + 16 * q);
                }
            }
        }
    }
    // What must hold of a queue that has no error: each packet ran once, and the last signal stands.
    void expect_whole(std::uint32_t n) {
        EXPECT_EQ(bench.status(n).completed, kPackets) << "queue " << n;
        for (std::uint64_t index = 0; index < kPackets; ++index) {
            const std::uint32_t opcode = opcodes[n][index];
            if (opcode == ORR_PKT_COPY || opcode == ORR_PKT_DISPATCH) {
                EXPECT_EQ((starts[n][index]), 1u) << "packet " << index << " of queue " << n;
            }
        }
    }

    Bench bench;
    std::vector<ProcessQueue> queues;
    std::uint32_t starts[kQueues][kPackets] = {};
    std::uint32_t opcodes[kQueues][kPackets] = {};

  private:
    orr_packet make(std::uint32_t n, std::uint64_t index) {
        const std::uint64_t name = std::uint64_t{n} << 32 | index << 4;
        const std::uint16_t flags = random_() % 4 == 0 ? ORR_PKT_F_ORDERED : 0;
        orr_packet p = nop(flags);
        switch (random_() % 6) {
            case 0:
            case 1:
                p = copy(name, flags);
                break;
            case 2:
            case 3:
                p = dispatch(name, flags);
                break;
            case 4:
                p = signal(kSharedVa + 16 * n, index + 1);
                break;
            default:
                if (n != 0) p = wait(kSharedVa + 16 * (n - 1), index / 2);
        }
        opcodes[n][index] = p.header.opcode;
        return p;
    }
    std::mt19937_64 random_;
};

class CrashAnywhere : public testing::TestWithParam<int> {};

// At whatever access the core dies: at most one queue is stopped, and those who wait for it; the others lose
// and repeat nothing.
TEST_P(CrashAnywhere, OneQueueAtMost) {
    const auto seed = static_cast<std::uint64_t>(GetParam());
    std::uint64_t length = 0;
    {
        Workload whole(seed);
        const auto first = whole.bench.soc.accesses;
        whole.finish();
        ASSERT_TRUE(whole.over());
        length = whole.bench.soc.accesses - first;
    }
    std::uint32_t crashes = 0, guilty = 0, poisoned = 0;
    for (std::uint64_t at = 1; at < length; at += 13) {
        Workload work(seed);
        work.bench.soc.crash_at = work.bench.soc.accesses + at;
        for (int n = 0; n < 4000 && !work.bench.crashed && !work.over(); ++n)
            work.step();
        if (!work.bench.crashed) break;
        ++crashes;
        ASSERT_TRUE(work.bench.restart());
        work.finish();
        ASSERT_TRUE(work.over()) << "seed " << seed << ", access " << at;
        std::uint32_t stopped = 0;
        const std::uint32_t before = poisoned;
        for (std::uint32_t n = 0; n < Workload::kQueues; ++n) {
            const std::uint64_t error = work.bench.status(n).error;
            if (error == ORR_QERR_NONE) {
                work.expect_whole(n);
            } else if (error == ORR_QERR_POISON) {
                EXPECT_EQ(ORR_FAILURE_CODE(work.bench.status(n).error_detail), ORR_QERR_FIRMWARE);
                ++poisoned;
            } else {
                ++stopped;
                EXPECT_EQ(error, ORR_QERR_FIRMWARE) << "queue " << n;
            }
        }
        EXPECT_LE(stopped, 1u);
        if (stopped == 0) {
            EXPECT_EQ(poisoned, before) << "by nobody";
        }
        guilty += stopped;
        ASSERT_TRUE(work.bench.soc.violations().empty()) << work.bench.soc.violations().front();
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", access " << at;
    }
    EXPECT_GT(crashes, 20u);
    EXPECT_GT(guilty, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CrashAnywhere, testing::Range(1, 9));

class Corruption : public testing::TestWithParam<int> {};

// Whatever stands in the tables after a restart: the firmware lives, and a queue that did not get all that it
// asked for says so.
TEST_P(Corruption, NobodyIsHarmedUnnoticed) {
    const auto seed = static_cast<std::uint64_t>(GetParam());
    std::mt19937_64 random(seed);
    std::uint32_t lost = 0, whole = 0;
    for (int round = 0; round < 60; ++round) {
        Workload work(seed * 1000 + static_cast<std::uint64_t>(round));
        for (std::uint64_t n = random() % 40; n-- > 0;)
            work.step();
        auto* const bytes = reinterpret_cast<std::uint8_t*>(work.bench.tables.get());
        // Mostly where something is.
        const auto spot = [&]() -> std::size_t {
            switch (random() % 6) {
                case 0:
                    return offsetof(Tables, ports) + random() % (6 * sizeof(Port));
                case 1:
                    return offsetof(Tables, suspended) + random() % (8 * sizeof(Suspended));
                case 2:
                    return offsetof(Tables, contexts) + random() % (4 * sizeof(Context));
                case 3:
                    return offsetof(Tables, header.heartbeat) +
                           random() % (sizeof(PersistHeader) - offsetof(PersistHeader, heartbeat));
                default:
                    return offsetof(Tables, queues) + random() % (6 * sizeof(Queue));
            }
        };
        const int kind = static_cast<int>(random() % 3);
        for (std::uint64_t n = 1 + random() % (kind == 0 ? 1 : 4); n-- > 0;) {
            const std::size_t at = spot();
            const std::size_t length = kind == 2 ? 1 + random() % 200 : 1;
            for (std::size_t i = at; i < std::min(at + length, sizeof(Tables)); ++i)
                bytes[i] = kind == 0 ? static_cast<std::uint8_t>(bytes[i] ^ 1u << random() % 8)
                                     : static_cast<std::uint8_t>(random());
        }
        ASSERT_TRUE(work.bench.restart());
        work.finish();
        ASSERT_TRUE(work.over()) << "seed " << seed << ", round " << round;
        for (std::uint32_t n = 0; n < Workload::kQueues; ++n) {
            if (work.bench.status(n).error != ORR_QERR_NONE) {
                ++lost;
                continue;
            }
            ++whole;
            work.expect_whole(n);
        }
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", round " << round;
    }
    EXPECT_GT(lost, 0u);
    EXPECT_GT(whole, lost) << "one bad byte costs more than its own row";
}

INSTANTIATE_TEST_SUITE_P(Seeds, Corruption, testing::Range(1, 9));

}  // namespace
}  // namespace orrery::fw::test
