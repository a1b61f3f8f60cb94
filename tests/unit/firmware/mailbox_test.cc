// Commands of the driver: what each does, what is refused, and what happens when rings are full or wrong.
#include "firmware/version.h"
#include "tests/unit/firmware/bench.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

class MailboxTest : public testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(bench.boot()); }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
    }
    void expect(const orr_mbox_message& reply, std::uint32_t status, std::uint32_t detail = 0) {
        EXPECT_EQ(reply.status, status);
        EXPECT_EQ(reply.detail, detail);
    }
    Bench bench;
};

TEST_F(MailboxTest, PingAndVersion) {
    const auto ping = bench.call(ORR_MBOX_PING, {1, 2, 3, 4, 5, 6});
    expect(ping, ORR_STATUS_OK);
    EXPECT_EQ(ping.opcode, ORR_MBOX_PING);
    EXPECT_EQ(ping.arg[5], 6u);
    const auto version = bench.call(ORR_MBOX_VERSION);
    expect(version, ORR_STATUS_OK);
    EXPECT_EQ(version.arg[0], ORR_FW_ABI);
    EXPECT_EQ(version.arg[1], kFirmwareVersion);
    EXPECT_GE(bench.soc.host_irqs[ORR_IRQ_MAILBOX], 2u);
    const auto mails = trace_records(bench.soc, ORR_TRACE_MAIL);
    ASSERT_EQ(mails.size(), 2u);
    EXPECT_EQ(mails[0].a, ORR_MBOX_PING);
    EXPECT_EQ(mails[0].b, ping.sequence);
    EXPECT_EQ(mails[0].words, std::vector<std::uint64_t>{ORR_STATUS_OK});
}

TEST_F(MailboxTest, HeartbeatAdvancesOnProgressOnly) {
    const auto before = bench.soc.heartbeat;
    bench.call(ORR_MBOX_PING);
    EXPECT_GT(bench.soc.heartbeat, before);
    const auto after = bench.soc.heartbeat;
    bench.soc.ring_mailbox();
    bench.soc.poke(0);
    bench.run();
    EXPECT_EQ(bench.soc.heartbeat, after);
}

TEST_F(MailboxTest, UnknownOpcodeAndFlag) {
    expect(bench.call(0), ORR_STATUS_NOT_SUPPORTED);
    expect(bench.call(0x7fff), ORR_STATUS_NOT_SUPPORTED);
    expect(bench.call(ORR_MBOX_PING, {}, 2), ORR_STATUS_NOT_SUPPORTED);
    orr_mbox_message command{};
    command.opcode = ORR_MBOX_PING;
    command.status = 1;
    expect(bench.call(command), ORR_STATUS_INVALID);
}

TEST_F(MailboxTest, NoReplyIsSilent) {
    orr_mbox_message command{};
    command.sequence = 77;
    command.opcode = ORR_MBOX_PING;
    command.flags = ORR_MBOX_F_NO_REPLY;
    bench.send(command);
    bench.run();
    EXPECT_FALSE(bench.receive());
    EXPECT_EQ(bench.soc.host(kCommands + 64), 1u);
}

TEST_F(MailboxTest, SequenceZeroIsLogged) {
    orr_mbox_message command{};
    command.opcode = ORR_MBOX_PING;
    bench.send(command);
    bench.run();
    const auto event = bench.receive();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->opcode, ORR_EVENT_LOG);
    EXPECT_EQ(event->sequence, 0u);
    EXPECT_EQ(std::memcmp(event->arg, "mailbox:", 8), 0);
}

TEST_F(MailboxTest, Contexts) {
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {1, 0x2000, 3}), ORR_STATUS_OK);
    EXPECT_TRUE(bench.soc.has_root(1));
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {1, 0x2000, 3}), ORR_STATUS_EXISTS);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {0, 0x2000, 3}), ORR_STATUS_INVALID, 0);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {1024, 0x2000, 3}), ORR_STATUS_INVALID, 0);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {2, 0x2001, 3}), ORR_STATUS_INVALID, 1);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {2, 1ull << 40, 3}), ORR_STATUS_INVALID, 1);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {2, 0x2000, 512}), ORR_STATUS_INVALID, 2);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {2, 0x2000, 3, 0, 9, 1}), ORR_STATUS_INVALID, 5);
    expect(bench.call(ORR_MBOX_CONTEXT_DESTROY, {2}), ORR_STATUS_NO_ENTRY);
    expect(bench.call(ORR_MBOX_CONTEXT_DESTROY, {1ull << 32}), ORR_STATUS_INVALID, 0);
    expect(bench.call(ORR_MBOX_CONTEXT_DESTROY, {1}), ORR_STATUS_OK);
    EXPECT_FALSE(bench.soc.has_root(1));
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {1023, 0, 511}), ORR_STATUS_OK);
}

TEST_F(MailboxTest, QueueCreateChecksEveryArgument) {
    bench.create_context(5, 7);
    const ProcessQueue good = bench.create_queue(9, 5);
    EXPECT_EQ(good.generation, 1u);
    EXPECT_EQ(bench.status(9).generation, 1u);
    const auto create = [&](std::uint64_t queue, std::uint64_t context, std::uint64_t va,
                            std::uint64_t entries, std::uint64_t slot, std::uint64_t priority,
                            std::uint64_t limit) {
        return bench.call(ORR_MBOX_QUEUE_CREATE,
                          {queue | context << 32, va, entries, slot | priority << 32, limit});
    };
    const std::uint64_t va = kRingVa + 9 * kRingBytes;
    expect(create(9, 5, va, 16, 1, 0, 0), ORR_STATUS_EXISTS, 0);
    expect(create(1024, 5, va, 16, 1, 0, 0), ORR_STATUS_INVALID, 0);
    expect(create(1, 0, va, 16, 1, 0, 0), ORR_STATUS_INVALID, 0);
    expect(create(1, 1024, va, 16, 1, 0, 0), ORR_STATUS_INVALID, 0);
    expect(create(1, 6, va, 16, 1, 0, 0), ORR_STATUS_NO_ENTRY, 0);
    expect(create(1, 5, va + 8, 16, 1, 0, 0), ORR_STATUS_INVALID, 1);
    expect(create(1, 5, 1ull << 48, 16, 1, 0, 0), ORR_STATUS_INVALID, 1);
    expect(create(1, 5, (1ull << 48) - 256, 16, 1, 0, 0), ORR_STATUS_INVALID, 1);
    for (const std::uint64_t entries : {0ull, 1ull, 3ull, 131072ull, 1ull << 33})
        expect(create(1, 5, va, entries, 1, 0, 0), ORR_STATUS_INVALID, 2);
    expect(create(1, 5, va, 16, ORR_DB_SLOTS, 0, 0), ORR_STATUS_INVALID, 3);
    expect(create(1, 5, va, 16, 1, 4, 0), ORR_STATUS_INVALID, 3);
    expect(create(1, 5, va, 16, 9, 0, 0), ORR_STATUS_EXISTS, 3);  // slot 9 is queue 9's
    expect(create(1, 5, va, 16, 1, 0, ~0ull), ORR_STATUS_INVALID, 4);
    expect(bench.call(ORR_MBOX_QUEUE_CREATE, {1 | 5ull << 32, va, 16, 1, 0, ORR_WEIGHT_MAX + 1}),
           ORR_STATUS_INVALID, 5);
    // Not mapped at all, the last packet not mapped, not writable.
    expect(create(1, 5, 0x7000000, 16, 1, 0, 0), ORR_STATUS_FAULT, 1);
    bench.soc.map(5, 0x7000000, 0x8000);
    expect(create(1, 5, 0x7000000, 128, 1, 0, 0), ORR_STATUS_FAULT, 1);
    bench.soc.map(5, 0x7000000, 0x8000, false);
    expect(create(1, 5, 0x7000000, 16, 1, 0, 0), ORR_STATUS_FAULT, 1);
    bench.soc.map(5, 0x7000000, 0x8000);
    expect(create(1, 5, 0x7000000, 16, 1, 3, 0), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_CONTEXT_DESTROY, {5}), ORR_STATUS_BUSY);
}

TEST_F(MailboxTest, QuotasAreChecked) {
    const auto quota = [](std::uint64_t permille, std::uint64_t period) { return permille | period << 32; };
    const std::uint64_t bad[] = {quota(0, 1000), quota(1001, 1000),     quota(500, 0),
                                 quota(500, 99), quota(500, 1'000'001), quota(1ull << 31, 1000)};
    for (const std::uint64_t q : bad)
        expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {1, 0x2000, 3, q}), ORR_STATUS_INVALID, 3);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {1, 0x2000, 3, quota(1000, 100)}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_CONTEXT_CREATE, {2, 0x2000, 4, quota(1, 1'000'000)}), ORR_STATUS_OK);
    for (const std::uint64_t q : bad)
        expect(bench.call(ORR_MBOX_QUOTA_SET, {1, q}), ORR_STATUS_INVALID, 1);
    expect(bench.call(ORR_MBOX_QUOTA_SET, {1, 0}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_QUOTA_SET, {1, quota(250, 10'000)}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_QUOTA_SET, {3, 0}), ORR_STATUS_NO_ENTRY);
    expect(bench.call(ORR_MBOX_QUOTA_SET, {1024, 0}), ORR_STATUS_INVALID, 0);
    expect(bench.call(ORR_MBOX_QUOTA_SET, {1, 0, 1}), ORR_STATUS_INVALID, 2);
}

TEST_F(MailboxTest, QueueSetIsChecked) {
    bench.create_context(1, 0);
    bench.create_queue(0, 1);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {0, ORR_PRIORITY_REALTIME, 1 | 500ull << 32}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {0, 4, 0}), ORR_STATUS_INVALID, 1);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {0, 1ull << 32, 0}), ORR_STATUS_INVALID, 1);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {0, 0, ORR_WEIGHT_MAX}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {0, 0, ORR_WEIGHT_MAX + 1}), ORR_STATUS_INVALID, 2);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {0, 0, 0, 1}), ORR_STATUS_INVALID, 3);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {1, 0, 0}), ORR_STATUS_NO_ENTRY);
    expect(bench.call(ORR_MBOX_QUEUE_SET, {1024, 0, 0}), ORR_STATUS_INVALID, 0);
}

TEST_F(MailboxTest, QueueStatsStartFromZero) {
    bench.create_context(1, 0);
    bench.create_queue(0, 1);
    const auto stats = bench.call(ORR_MBOX_QUEUE_STATS, {0});
    expect(stats, ORR_STATUS_OK);
    for (const std::uint64_t word : stats.arg)
        EXPECT_EQ(word, 0u);
    expect(bench.call(ORR_MBOX_QUEUE_STATS, {1}), ORR_STATUS_NO_ENTRY);
    expect(bench.call(ORR_MBOX_QUEUE_STATS, {1ull << 40}), ORR_STATUS_INVALID, 0);
    expect(bench.call(ORR_MBOX_QUEUE_STATS, {0, 1}), ORR_STATUS_INVALID, 1);
}

TEST_F(MailboxTest, NamesAreKeptAndMadePrintable) {
    bench.create_context(1, 0);
    bench.create_queue(0, 1);
    const auto name = [&](std::uint64_t which, const std::string& text) {
        std::uint64_t words[5] = {};
        std::memcpy(words, text.data(), std::min(text.size(), sizeof(words)));
        return bench.call(ORR_MBOX_NAME, {which, words[0], words[1], words[2], words[3], words[4]});
    };
    Scheduler& scheduler = const_cast<Scheduler&>(bench.firmware->scheduler());
    expect(name(0, "trainer"), ORR_STATUS_OK);
    EXPECT_STREQ(scheduler.queue(0)->name, "trainer");
    expect(name(1 | std::uint64_t{ORR_NAME_CONTEXT} << 32, std::string("a\x1b[31m\x80\x7f") + "b"),
           ORR_STATUS_OK);
    EXPECT_STREQ(scheduler.context(1)->name, "a?[31m??b");
    expect(name(0, std::string(40, 'x')), ORR_STATUS_OK);
    EXPECT_EQ(std::string(scheduler.queue(0)->name), std::string(ORR_NAME_BYTES - 1, 'x'));
    expect(name(0, std::string("cut\0here", 8)), ORR_STATUS_OK);
    for (std::size_t n = 3; n < ORR_NAME_BYTES; ++n)
        EXPECT_EQ(scheduler.queue(0)->name[n], 0);
    const auto names = trace_records(bench.soc, ORR_TRACE_NAME);
    ASSERT_EQ(names.size(), 4u);
    EXPECT_EQ(names[1].a, 1u);
    EXPECT_EQ(names[1].b, ORR_NAME_CONTEXT);
    EXPECT_EQ(std::memcmp(names[0].words.data(), "trainer", 8), 0);
    expect(name(2ull << 32, "x"), ORR_STATUS_INVALID);
    expect(name(1, "x"), ORR_STATUS_NO_ENTRY);
    expect(name(1024, "x"), ORR_STATUS_INVALID);
    expect(name(2 | std::uint64_t{ORR_NAME_CONTEXT} << 32, "x"), ORR_STATUS_NO_ENTRY);
}

TEST_F(MailboxTest, GenerationGoesOnOverDestroyAndReset) {
    bench.create_context(1, 0);
    EXPECT_EQ(bench.create_queue(0, 1).generation, 1u);
    expect(bench.call(ORR_MBOX_QUEUE_DESTROY, {0}), ORR_STATUS_OK);
    EXPECT_EQ(bench.create_queue(0, 1).generation, 2u);
    // A new firmware goes on from the status line; after 65535 comes 1.
    bench.soc.set_host(kStatus + 64 + offsetof(orr_queue_status, generation), 0xffff);
    EXPECT_EQ(bench.create_queue(1, 1).generation, 1u);
}

TEST_F(MailboxTest, NumbersOfMissingThings) {
    for (const unsigned number : {ORR_MBOX_QUEUE_DESTROY, ORR_MBOX_QUEUE_ARM, ORR_MBOX_QUEUE_INFO}) {
        const auto opcode = static_cast<std::uint16_t>(number);
        expect(bench.call(opcode, {3}), ORR_STATUS_NO_ENTRY);
        expect(bench.call(opcode, {1024}), ORR_STATUS_INVALID, 0);
        expect(bench.call(opcode, {3 | 1ull << 32}), ORR_STATUS_INVALID, 0);
    }
    expect(bench.call(ORR_MBOX_TLB_FLUSH, {3}), ORR_STATUS_NO_ENTRY);
}

TEST_F(MailboxTest, TlbFlush) {
    bench.create_context(4, 0);
    expect(bench.call(ORR_MBOX_TLB_FLUSH, {4, 0x1000, 0x2000}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_TLB_FLUSH, {4, 0, 0}), ORR_STATUS_OK);
    EXPECT_EQ(bench.soc.flushes, 2u);
    expect(bench.call(ORR_MBOX_TLB_FLUSH, {4, 1ull << 48, 1}), ORR_STATUS_INVALID, 1);
    expect(bench.call(ORR_MBOX_TLB_FLUSH, {4, 4096, 1ull << 48}), ORR_STATUS_INVALID, 2);
    expect(bench.call(ORR_MBOX_TLB_FLUSH, {1024, 0, 0}), ORR_STATUS_INVALID, 0);
}

TEST_F(MailboxTest, QueueInfoTellsTheState) {
    bench.create_context(1, 0);
    ProcessQueue queue = bench.create_queue(2, 1);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_INFO, {2}).arg[0], ORR_QUEUE_IDLE);
    bench.submit(queue, {copy(0x1000)});
    auto info = bench.call(ORR_MBOX_QUEUE_INFO, {2});
    EXPECT_EQ(info.arg[0], ORR_QUEUE_RUNNING);
    EXPECT_EQ(info.arg[3], 1u);
    bench.soc.finish(0);
    bench.submit(queue, {wait(kSharedVa, 1)});
    info = bench.call(ORR_MBOX_QUEUE_INFO, {2});
    EXPECT_EQ(info.arg[0], ORR_QUEUE_WAITING);
    EXPECT_EQ(info.arg[1], 1u);
    ProcessQueue other = bench.create_queue(3, 1);
    bench.submit(other, {signal(kSharedVa, 1)});
    bench.submit(queue, {packet(99)});
    info = bench.call(ORR_MBOX_QUEUE_INFO, {2});
    EXPECT_EQ(info.arg[0], ORR_QUEUE_STOPPED);
    EXPECT_EQ(info.arg[2], ORR_QERR_BAD_OPCODE);
}

TEST_F(MailboxTest, DestroyWithWorkInFlightRepliesLast) {
    SlowBench slow;
    ProcessQueue doomed = slow.create_queue(0, 1);
    ProcessQueue other = slow.create_queue(1, 1);
    slow.submit(doomed, {copy(0x1000), dispatch(0x2000), nop()});
    orr_mbox_message command{};
    command.sequence = 500;
    command.opcode = ORR_MBOX_QUEUE_DESTROY;
    slow.send(command);
    slow.run();
    EXPECT_FALSE(slow.receive()) << "replied while packets run";
    EXPECT_TRUE(slow.soc.engines[0].abort_wanted);
    EXPECT_TRUE(slow.soc.engines[2].abort_wanted);
    // Others go on; the number cannot be had twice; a second destroy is refused.
    slow.submit(other, {signal(kSharedVa, 5)});
    EXPECT_EQ(slow.shared(0), 5u);
    expect(slow.call(ORR_MBOX_QUEUE_DESTROY, {0}), ORR_STATUS_BUSY);
    expect(slow.call(ORR_MBOX_QUEUE_ARM, {0, 1}), ORR_STATUS_BUSY);
    expect(slow.call(ORR_MBOX_CONTEXT_DESTROY, {1}), ORR_STATUS_BUSY);
    slow.soc.finish(0, ORR_DONE_ABORTED);
    slow.run();
    EXPECT_FALSE(slow.receive());
    slow.soc.finish(2);  // it was faster than the abort
    slow.run();
    const auto reply = slow.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->sequence, 500u);
    expect(*reply, ORR_STATUS_OK);
    EXPECT_EQ(slow.soc.bindings.size(), 1u);
    EXPECT_EQ(slow.status(0).completed, 0u);
    expect(slow.call(ORR_MBOX_QUEUE_INFO, {0}), ORR_STATUS_NO_ENTRY);
    EXPECT_TRUE(slow.soc.violations().empty());
}

TEST_F(MailboxTest, DestroyFromEveryPlace) {
    bench.create_context(1, 0);
    ProcessQueue blocker = bench.create_queue(9, 1);
    bench.submit(blocker, {copy(0x1000), copy(0x2000), dispatch(0x2000), dispatch(0x2000)});
    ProcessQueue waits = bench.create_queue(0, 1);
    bench.submit(waits, {wait(kSharedVa, 9)});
    ProcessQueue copies = bench.create_queue(1, 1);
    bench.submit(copies, {copy(0x1000)});
    ProcessQueue dispatches = bench.create_queue(2, 1);
    bench.submit(dispatches, {dispatch(0x1000)});
    ProcessQueue stopped = bench.create_queue(3, 1);
    bench.submit(stopped, {packet(77)});
    bench.create_queue(4, 1);
    for (std::uint64_t n = 0; n < 5; ++n)
        expect(bench.call(ORR_MBOX_QUEUE_DESTROY, {n}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_QUEUE_DESTROY, {9}), ORR_STATUS_OK);
    EXPECT_TRUE(bench.soc.bindings.empty());
    expect(bench.call(ORR_MBOX_CONTEXT_DESTROY, {1}), ORR_STATUS_OK);
    // Nothing of them is left on any list: everything can be made and used again.
    bench.create_context(1, 0);
    ProcessQueue again = bench.create_queue(0, 1);
    bench.submit(again, {signal(kSharedVa, 1), wait(kSharedVa, 1), copy(0x1000)});
    EXPECT_EQ(bench.status(0).completed, 2u);
}

TEST_F(MailboxTest, SilentDestroyFreesTheNumber) {
    bench.create_context(1, 0);
    bench.create_queue(0, 1);
    bench.call(ORR_MBOX_PING);
    orr_mbox_message command{};
    command.sequence = 9;
    command.opcode = ORR_MBOX_QUEUE_DESTROY;
    command.flags = ORR_MBOX_F_NO_REPLY;
    bench.send(command);
    bench.run();
    EXPECT_FALSE(bench.receive());
    expect(bench.call(ORR_MBOX_QUEUE_INFO, {0}), ORR_STATUS_NO_ENTRY);
}

TEST_F(MailboxTest, FullMessageRingLosesNothing) {
    bench.create_context(1, 0);
    ProcessQueue queue = bench.create_queue(0, 1);
    // The host does not read. Fill the ring with replies, then more, and an event.
    constexpr std::uint64_t kSent = ORR_MBOX_ENTRIES + 40;
    const std::uint64_t before = bench.message_consumer;
    for (std::uint64_t n = 0; n < ORR_MBOX_ENTRIES; ++n) {
        orr_mbox_message ping{};
        ping.sequence = static_cast<std::uint32_t>(1000 + n);
        ping.opcode = ORR_MBOX_PING;
        bench.send(ping);
        bench.run();
    }
    EXPECT_EQ(bench.soc.host(kMessages) - before, ORR_MBOX_ENTRIES);
    bench.submit(queue, {packet(77)});
    for (std::uint64_t n = ORR_MBOX_ENTRIES; n < kSent; ++n) {
        orr_mbox_message ping{};
        ping.sequence = static_cast<std::uint32_t>(1000 + n);
        ping.opcode = ORR_MBOX_PING;
        bench.send(ping);
    }
    bench.run();
    EXPECT_EQ(bench.soc.host(kMessages) - before, ORR_MBOX_ENTRIES) << "overwrote what the host has not read";
    EXPECT_NE(bench.soc.timer, kEmpty) << "nothing would wake the firmware";
    // The alarm alone makes it try again, ever more seldom.
    const std::uint64_t first = bench.soc.timer - bench.soc.time;
    bench.soc.time = bench.soc.timer;
    bench.run();
    EXPECT_GT(bench.soc.timer - bench.soc.time, first);

    std::uint32_t next = 1000;
    int events = 0;
    for (int rounds = 0; rounds < 100 && next < 1000 + kSent; ++rounds) {
        for (int n = 0; n < 10; ++n) {
            const auto message = bench.receive();
            if (!message) break;
            if (message->sequence == 0) {
                ++events;
            } else {
                EXPECT_EQ(message->sequence, next++);
            }
        }
        if (bench.soc.timer != kEmpty) bench.soc.time = bench.soc.timer;
        bench.run();
    }
    EXPECT_EQ(next, 1000 + kSent);
    EXPECT_EQ(events, 1);
    EXPECT_EQ(bench.soc.timer, kEmpty) << "the alarm was left on";
}

TEST_F(MailboxTest, ManyCommandsAtOnce) {
    for (std::uint32_t n = 0; n < ORR_MBOX_ENTRIES; ++n) {
        orr_mbox_message ping{};
        ping.sequence = n + 1;
        ping.opcode = ORR_MBOX_PING;
        bench.send(ping);
    }
    bench.run();
    for (std::uint32_t n = 0; n < ORR_MBOX_ENTRIES; ++n) {
        const auto reply = bench.receive();
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->sequence, n + 1);
    }
}

TEST_F(MailboxTest, CommandIndexNonsenseHalts) {
    bench.soc.set_host(kCommands, ORR_MBOX_ENTRIES + 1);
    bench.soc.ring_mailbox();
    bench.run();
    EXPECT_EQ(bench.soc.halt, kHaltCommandIndex);
    EXPECT_TRUE(bench.firmware->halted());
}

TEST_F(MailboxTest, MessageIndexNonsenseHalts) {
    for (std::uint32_t n = 0; n < ORR_MBOX_ENTRIES; ++n) {
        orr_mbox_message ping{};
        ping.sequence = n + 1;
        ping.opcode = ORR_MBOX_PING;
        bench.send(ping);
        bench.run();
    }
    bench.soc.set_host(kMessages + 64, ORR_MBOX_ENTRIES + 1);  // more than was ever sent
    bench.soc.ring_mailbox();
    bench.run();
    EXPECT_EQ(bench.soc.halt, kHaltMessageIndex);
}

TEST_F(MailboxTest, ArmRaisesOnceTheIndexIsReached) {
    bench.create_context(1, 0);
    ProcessQueue queue = bench.create_queue(0, 1);
    const auto irqs = [&] { return bench.soc.host_irqs[ORR_IRQ_QUEUE]; };
    bench.submit(queue, {nop(), nop()});
    EXPECT_EQ(irqs(), 0u);
    expect(bench.call(ORR_MBOX_QUEUE_ARM, {0, 2}), ORR_STATUS_OK);
    EXPECT_EQ(irqs(), 1u) << "reached already: now";
    expect(bench.call(ORR_MBOX_QUEUE_ARM, {0, 4}), ORR_STATUS_OK);
    bench.submit(queue, {nop()});
    EXPECT_EQ(irqs(), 1u);
    bench.submit(queue, {nop()});
    EXPECT_EQ(irqs(), 2u);
    bench.submit(queue, {nop()});
    EXPECT_EQ(irqs(), 2u) << "armed once is told once";
    // A later arm never hides an earlier one.
    expect(bench.call(ORR_MBOX_QUEUE_ARM, {0, 8}), ORR_STATUS_OK);
    expect(bench.call(ORR_MBOX_QUEUE_ARM, {0, 6}), ORR_STATUS_OK);
    bench.submit(queue, {nop()});
    EXPECT_EQ(irqs(), 3u);
    bench.submit(queue, {nop(), nop()});
    EXPECT_EQ(irqs(), 4u);
    bench.submit(queue, {nop()});
    EXPECT_EQ(irqs(), 4u);
    // On a stopped queue there is nothing to wait for.
    bench.submit(queue, {packet(77)});
    const auto stopped = irqs();
    expect(bench.call(ORR_MBOX_QUEUE_ARM, {0, 1000}), ORR_STATUS_OK);
    EXPECT_EQ(irqs(), stopped + 1);
}

}  // namespace
}  // namespace orrery::fw::test
