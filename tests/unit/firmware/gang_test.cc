// Gangs: all members start, or none.
#include <algorithm>

#include <orrery/fw/failure.h>

#include "tests/unit/firmware/gangs.h"
#include "tests/unit/firmware/trace_reader.h"

namespace orrery::fw::test {
namespace {

class GangTest : public testing::Test {
  protected:
    void SetUp() override {
        give_areas(bench, areas_);
        ASSERT_TRUE(bench.boot());
        bench.create_context(1, 0);
        bench.create_context(2, 1);
        for (std::uint32_t n = 0; n < 8; ++n)
            queues.push_back(bench.create_queue(n, n < 5 ? 1 : 2, 16, 1000));
    }
    void TearDown() override {
        EXPECT_TRUE(bench.soc.violations().empty()) << bench.soc.violations().front();
        if (running(bench) == 0) {
            EXPECT_EQ(bench.soc.timer, kEmpty) << "a forgotten alarm makes the idle clock jump";
        }
    }
    void finish_all() {
        for (int n = 0; n < 20; ++n) {
            for (const std::uint32_t port : bench.soc.busy_ports())
                bench.soc.finish(port);
            bench.run();
        }
    }
    void pass_time(std::uint64_t us) {
        const std::uint64_t until = bench.soc.time + us * 1'000'000;
        for (int n = 0; n < 1000 && bench.soc.timer <= until; ++n) {
            if (bench.soc.time < bench.soc.timer) bench.soc.time = bench.soc.timer;
            bench.run();
        }
        if (bench.soc.time < until) bench.soc.time = until;
        bench.run();
    }
    // What runs has had so many cores all the time.
    void work_on(std::uint64_t cores) {
        for (const std::uint32_t port : bench.soc.busy_ports()) {
            auto& engine = bench.soc.engines[port];
            engine.used = cores * (bench.soc.time - engine.start_ps);
        }
    }
    // What has this entry has so many groups on cores now.
    void groups_on_cores(std::uint64_t entry, std::uint64_t groups) {
        for (const std::uint32_t port : bench.soc.busy_ports()) {
            auto& engine = bench.soc.engines[port];
            if (engine.as<orr_desc_kernel>().entry == entry) engine.active = groups;
        }
    }
    // What has this entry ends, after the same number of cores.
    std::uint64_t finish(std::uint64_t entry, std::uint64_t cores) {
        std::uint64_t ended = 0;
        work_on(cores);
        for (const std::uint32_t port : bench.soc.busy_ports()) {
            if (bench.soc.engines[port].as<orr_desc_kernel>().entry != entry) continue;
            bench.soc.finish(port);
            ++ended;
        }
        bench.run();
        return ended;
    }
    bool runs(std::uint64_t entry) {
        const auto ports = bench.soc.busy_ports();
        return std::ranges::any_of(ports, [&](std::uint32_t port) {
            return bench.soc.engines[port].as<orr_desc_kernel>().entry == entry;
        });
    }
    void expect_gang_error(std::uint32_t n, std::uint64_t detail) {
        EXPECT_EQ(bench.status(n).error, ORR_QERR_GANG) << "queue " << n;
        EXPECT_EQ(bench.status(n).error_detail, detail) << "queue " << n;
    }
    static FakeSoc::Config at_once(bool preempts) {
        FakeSoc::Config config = chip();
        config.preempt_at_once = preempts;
        return config;
    }
    explicit GangTest(bool preempts_at_once = true, std::uint64_t areas = 8)
        : bench(at_once(preempts_at_once)), areas_(areas) {}

    Bench bench;
    std::vector<ProcessQueue> queues;

  private:
    std::uint64_t areas_;
};

class GangTestWithManyAreas : public GangTest {
  protected:
    GangTestWithManyAreas() : GangTest(true, 16) {}
};

// What runs does not stop because it is asked to.
class GangBesideStubbornKernels : public GangTest {
  protected:
    GangBesideStubbornKernels() : GangTest(false) {}
};

TEST_F(GangTest, MembersStartTogether) {
    bench.submit(queues[0], {gang(3), resident(2), nop()});
    bench.submit(queues[1], {gang(3), resident(2)});
    EXPECT_EQ(running(bench), 0u);
    EXPECT_EQ(bench.status(0).completed, 1u) << "the GANG packet itself";
    bench.submit(queues[2], {gang(3), resident(4)});
    ASSERT_EQ(running(bench), 3u);
    for (const std::uint32_t port : bench.soc.busy_ports())
        EXPECT_EQ(bench.soc.engines[port].desc[0] >> 16 & 0xffff, ORR_DESC_F_RESIDENT);
    finish_all();
    EXPECT_EQ(bench.status(0).completed, 3u);
    EXPECT_EQ(bench.status(1).completed, 2u);
    EXPECT_EQ(bench.status(2).completed, 2u);
    std::vector<std::uint32_t> steps;
    for (const TraceRecord& record : trace_records(bench.soc, ORR_TRACE_GANG)) {
        steps.push_back(record.b);
        EXPECT_EQ(record.words, (std::vector<std::uint64_t>{1, ORR_VRAM_WINDOW + kSharedMemory + 0x1000}));
    }
    EXPECT_EQ(steps, (std::vector<std::uint32_t>{ORR_GANG_JOINED, ORR_GANG_JOINED, ORR_GANG_JOINED,
                                                 ORR_GANG_HELD, ORR_GANG_GO, ORR_GANG_GO, ORR_GANG_GO}));
}

// A core that crashes while it starts a member blames that member, not whoever came last.
TEST_F(GangTest, EachMemberStartsOnItsOwnAccount) {
    std::vector<std::uint32_t> started;
    bench.soc.on_trace = [&](std::uint64_t word) {
        if (ORR_TRACE_TYPE(word) != ORR_TRACE_GANG || ORR_TRACE_B(word) != ORR_GANG_GO) return;
        started.push_back(ORR_TRACE_A(word));
        EXPECT_EQ(bench.tables->header.working, ORR_TRACE_A(word) + 1);
    };
    for (std::size_t n = 0; n < 3; ++n)
        bench.submit(queues[n], {gang(3), resident(2)});
    EXPECT_EQ(started.size(), 3u);
    finish_all();
}

TEST_F(GangTest, ABoardIsUsedAgainWithTheNextRound) {
    for (std::uint64_t round = 1; round <= 5; ++round) {
        for (const std::uint32_t n : {1u, 0u})
            bench.submit(queues[n], {gang(2, round), resident(1)});
        ASSERT_EQ(running(bench), 2u);
        finish_all();
    }
    EXPECT_EQ(bench.status(0).completed, 10u);
}

TEST_F(GangTestWithManyAreas, WaitsUntilAllItsPortsAreFree) {
    bench.submit(queues[5], {dispatch(0x9000), dispatch(0x9100), dispatch(0x9200)});
    ASSERT_EQ(running(bench), 3u);
    bench.submit(queues[0], {gang(2), resident(2)});
    bench.submit(queues[1], {gang(2), resident(2)});
    // It asks the others to leave at a group's border; nobody new gets a port meanwhile.
    bench.submit(queues[6], {dispatch(0x9300)});
    EXPECT_EQ(running(bench), 3u);
    EXPECT_NE(bench.soc.engines[2].preempt, 0u);
    bench.soc.preempt(2);
    bench.run();
    EXPECT_EQ(trace_records(bench.soc, ORR_TRACE_GANG).back().b, ORR_GANG_GO);
    EXPECT_EQ(running(bench), 4u);
    finish_all();
    for (const std::uint32_t n : {0u, 1u, 5u, 6u})
        EXPECT_EQ(bench.status(n).completed, queues[n].producer) << "queue " << n;
}

// So that it can be preempted. The user owns what is left: he waits, as with any other job.
TEST_F(GangTest, WaitsUntilItMayOwnItsAreas) {
    bench.submit(queues[5], {dispatch(0x9000), dispatch(0x9100), dispatch(0x9200)});
    ASSERT_EQ(running(bench), 3u);
    bench.submit(queues[0], {gang(2), resident(2)});
    bench.submit(queues[1], {gang(2), resident(2)});
    EXPECT_EQ(running(bench), 3u);
    bench.soc.finish(2);
    bench.run();
    EXPECT_EQ(running(bench), 4u);
    finish_all();
    for (const std::uint32_t n : {0u, 1u, 5u})
        EXPECT_EQ(bench.status(n).completed, queues[n].producer) << "queue " << n;
}

TEST_F(GangTest, IsNotTornApartByOthers) {
    bench.submit(queues[0], {gang(2), resident(4)});
    bench.submit(queues[1], {gang(2), resident(4)});
    ASSERT_EQ(running(bench), 2u);
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_SET, {5, ORR_PRIORITY_HIGH, 0}).status, ORR_STATUS_OK);
    bench.submit(queues[5], {dispatch(0x9000), dispatch(0x9100), dispatch(0x9200), dispatch(0x9300)});
    for (int n = 0; n < 20; ++n)
        pass_time(10);
    for (const std::uint32_t port : {2u, 3u})
        EXPECT_EQ(bench.soc.engines[port].preempt, 0u);
    finish_all();
}

TEST_F(GangTest, TwoGangsOneAfterTheOther) {
    // Each wants three of the four ports; members arrive mixed.
    bench.submit(queues[0], {gang(3), resident(2, 0xa00)});
    bench.submit(queues[5], {gang(3), resident(2, 0xb00)});
    bench.submit(queues[1], {gang(3), resident(2, 0xa00)});
    bench.submit(queues[6], {gang(3), resident(2, 0xb00)});
    bench.submit(queues[7], {gang(3), resident(2, 0xb00)});
    bench.submit(queues[2], {gang(3), resident(2, 0xa00)});
    ASSERT_EQ(running(bench), 3u);
    for (const std::uint32_t port : bench.soc.busy_ports())
        EXPECT_EQ(bench.soc.engines[port].as<orr_desc_kernel>().entry, 0xb00u) << "mixed up";
    for (const std::uint32_t port : bench.soc.busy_ports())
        bench.soc.finish(port);
    bench.run();
    ASSERT_EQ(running(bench), 3u);
    for (const std::uint32_t port : bench.soc.busy_ports())
        EXPECT_EQ(bench.soc.engines[port].as<orr_desc_kernel>().entry, 0xa00u);
    finish_all();
}

TEST_F(GangTest, WhoDoesNotComeEndsItAfterTheLimit) {
    bench.submit(queues[0], {gang(3), resident(2), nop()});
    bench.submit(queues[1], {gang(3)});
    bench.submit(queues[5], {dispatch(0x9000)});
    EXPECT_EQ(running(bench), 1u) << "an incomplete gang holds nothing back";
    finish_all();
    EXPECT_EQ(bench.status(5).completed, 1u);
    pass_time(900);
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    pass_time(200);
    expect_gang_error(0, 1);
    expect_gang_error(1, 1);
    expect_error(bench, queues[0], ORR_QERR_GANG, 1, kBoard, 1);
}

TEST_F(GangTest, WhatIsWrongHarmsItsOwnMembersOnly) {
    bench.submit(queues[5], {gang(2), resident(2)});
    // Other numbers for the same board; one too many; no dispatch behind it; not resident; more than the card
    // has.
    bench.submit(queues[0], {gang(2), resident(2)});
    bench.submit(queues[1], {gang(3), resident(2)});
    EXPECT_EQ(bench.status(1).error, ORR_QERR_GANG);
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    bench.submit(queues[2], {gang(2), copy(0x1000)});
    EXPECT_EQ(bench.status(2).error, ORR_QERR_BAD_PACKET);
    expect_gang_error(0, 1);
    bench.submit(queues[3], {gang(1, 1, 0, 1, kBoard + 0x100), dispatch(0x1000)});
    EXPECT_EQ(bench.status(3).error, ORR_QERR_BAD_PACKET);
    bench.submit(queues[4], {gang(1), resident(9)});
    expect_gang_error(4, 0);
    bench.submit(queues[6], {gang(2), resident(2)});
    EXPECT_EQ(running(bench), 2u) << "the other context's gang, same board address";
    finish_all();
    EXPECT_EQ(bench.status(5).completed, 2u);
    EXPECT_EQ(bench.status(6).completed, 2u);
}

TEST_F(GangTest, MalformedPackets) {
    const auto refused = [&](std::uint32_t n, const orr_packet& p, std::uint64_t word) {
        bench.submit(queues[n], {p, resident(1)});
        EXPECT_EQ(bench.status(n).error, ORR_QERR_BAD_PACKET);
        EXPECT_EQ(bench.status(n).error_detail, word);
    };
    refused(0, gang(0), 4);
    refused(1, gang(9), 4);
    refused(2, gang(1, 0), 3);
    refused(3, gang(1, 1, 1, 1), 4);
    refused(4, gang(5), 4);  // it has four ports
    orr_packet odd = gang(1);
    odd.word[0] += 8;
    refused(5, odd, 1);
    odd = gang(1);
    odd.word[1] = kPeers;
    refused(6, odd, 2);
    odd = gang(1);
    odd.word[6] = 1;
    refused(7, odd, 7);
}

// A context has four places. A user with many contexts has as many as are left then, so that there are some
// for others, however many they are.
TEST_F(GangTest, OneWithoutAPlaceIsToldSo) {
    constexpr std::uint32_t kOf = ORR_GANG_MAX_OF_CONTEXT;
    std::uint32_t number = 8, context = 3;
    // How many gangs of so many new contexts of the user get a place, each of which tries one more than it
    // may.
    const auto places_of = [&](std::uint64_t user, std::uint32_t contexts) {
        std::uint32_t waiting = 0;
        for (std::uint32_t c = 0; c < contexts; ++c, ++context) {
            bench.create_context(context, context, user);
            std::uint32_t own = 0;
            for (std::uint32_t n = 0; n <= kOf; ++n, ++number) {
                ProcessQueue queue = bench.create_queue(number, context, 16, 1000);
                bench.submit(queue, {gang(2, number), resident(1)});
                if (bench.status(number).error == ORR_QERR_NONE)
                    ++own;
                else
                    expect_gang_error(number, ORR_GANG_NO_PLACE);
            }
            EXPECT_LE(own, kOf);
            waiting += own;
        }
        return waiting;
    };
    EXPECT_EQ(places_of(10, 1), kOf);
    EXPECT_EQ(places_of(10, 3), ORR_GANG_MAX_OF_CARD / 2 - kOf) << "half of all";
    EXPECT_EQ(places_of(11, 4), 4u) << "half of what that left";
    EXPECT_EQ(places_of(12, 4), 2u);
    EXPECT_EQ(places_of(13, 1), 1u);
    EXPECT_EQ(places_of(14, 1), 1u) << "the last";
    EXPECT_EQ(places_of(15, 1), 0u);
    pass_time(1100);
}

// One card's ports are kept for a millisecond at most; who makes use of that again and again pauses.
TEST_F(GangBesideStubbornKernels, WhoHoldsPortsAndStartsPausesToo) {
    bench.create_context(3, 3, 7);
    ProcessQueue other = bench.create_queue(20, 3, 16, 100'000'000);
    ProcessQueue small = bench.create_queue(21, 1, 16, 100'000'000);
    ProcessQueue large = bench.create_queue(22, 1, 16, 100'000'000);
    std::uint64_t idle = 0, rounds = 0;
    const std::uint64_t begin = bench.soc.time;
    for (std::uint64_t round = 1; bench.soc.time < begin + 1'000'000'000'000; ++round) {
        // A gang of all cores holds the ports while a kernel of a single core runs that makes no room.
        bench.submit(small, {dispatch(0x1000)});
        for (int n = 0; !runs(0x1000); ++n) {
            ASSERT_LT(n, 1000) << "round " << round;
            pass_time(100);
        }
        groups_on_cores(0x1000, 1);
        bench.submit(large, {gang(1, round, 0, 1, kBoard + 0x100), resident(8, 0x2000)});
        bench.submit(other, {dispatch(0x9000)});
        const std::uint64_t before = bench.status(20).completed, from = bench.soc.time;
        const bool held = running(bench) == 1;
        if (held) {
            pass_time(950);
            EXPECT_EQ(running(bench), 1u);
            idle += (bench.soc.time - from) * 7 / 8;
            ++rounds;
        }
        // The small one ends, and then what the other user has; till the large one has run alone.
        finish(0x1000, 1);
        for (int n = 0; bench.status(20).completed == before || !runs(0x2000); ++n) {
            ASSERT_LT(n, 1000) << "round " << round << ", " << running(bench) << " run";
            finish(0x9000, 1);
            if (running(bench) == 0) pass_time(100);
        }
        finish(0x2000, 8);
        ASSERT_EQ(bench.status(21).error | bench.status(22).error, 0u);
    }
    EXPECT_GT(rounds, 10u);
    EXPECT_LT(idle, (bench.soc.time - begin) / 18);
    finish_all();
}

// Gangs that are there before the one before them has ended leave no core idle: nobody pauses for that.
TEST_F(GangTest, GangsInARowKeepTheCoresBusyBesideOthers) {
    bench.create_context(3, 3, 7);
    ProcessQueue other = bench.create_queue(20, 3, 16, 100'000'000);
    ProcessQueue own[] = {bench.create_queue(21, 1, 16, 100'000'000),
                          bench.create_queue(22, 1, 16, 100'000'000)};
    bench.submit(own[1], {gang(1, 1), resident(8)});
    bench.submit(other, {dispatch(0x9000)});
    const std::uint64_t begin = bench.soc.time;
    std::uint64_t worked = 0;
    for (std::uint64_t round = 2; round < 60; ++round) {
        bench.submit(own[round % 2], {gang(1, round), resident(8)});
        pass_time(900);
        worked += 900'000'000;
        ASSERT_EQ(finish(0x1000, 8), 1u) << "the gang before";
        for (int n = 0; !runs(0x1000); ++n) {
            ASSERT_LT(n, 3000) << "round " << round;
            if (finish(0x9000, 1) != 0) bench.submit(other, {dispatch(0x9000)});
            if (!runs(0x1000)) pass_time(10);
        }
    }
    EXPECT_GT(worked, (bench.soc.time - begin) * 9 / 10);
    finish_all();
}

// A gang that ends while it holds ports pauses its user's for what it has held, and only if others waited.
TEST_F(GangBesideStubbornKernels, OneThatGoesWhileItHoldsPausesForWhatItHeld) {
    bench.create_context(3, 3, 7);
    ProcessQueue other = bench.create_queue(20, 3, 16, 100'000'000);
    std::uint64_t round = 0;
    std::uint32_t number = 21;
    for (const bool beside_others : {false, true}) {
        // Twice: a millisecond is for nothing.
        for (int n = 0; n < 2; ++n, ++number) {
            bench.submit(queues[0], {dispatch(0x8000)});
            ASSERT_EQ(running(bench), 1u);
            groups_on_cores(0x8000, 8);
            work_on(0);
            ProcessQueue goes = bench.create_queue(number, 1, 16, 100'000'000);
            bench.submit(goes, {gang(1, ++round), resident(8)});
            if (beside_others) bench.submit(other, {dispatch(0x9000)});
            pass_time(900);
            EXPECT_EQ(running(bench), 1u);
            EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {number}).status, ORR_STATUS_OK);
            finish_all();
            EXPECT_EQ(running(bench), 0u);
        }
        const std::uint64_t from = bench.soc.time;
        ProcessQueue next = bench.create_queue(number++, 1, 16, 100'000'000);
        bench.submit(next, {gang(1, ++round), resident(8)});
        for (int ms = 0; running(bench) == 0 && ms < 5'000; ++ms)
            pass_time(1'000);
        finish_all();
        const std::uint64_t waited_ms = (bench.soc.time - from) / 1'000'000'000;
        EXPECT_GE(waited_ms, beside_others ? 10u : 0u);
        EXPECT_LE(waited_ms, beside_others ? 20u : 0u);
    }
}

// Hardware 1.2 tells its cores elsewhere.
TEST(GangOnAnOlderCard, HasAllItsCores) {
    FakeSoc::Config older = chip();
    older.tells_kinds = false;
    Bench bench(older);
    give_areas(bench);
    ASSERT_TRUE(bench.boot());
    bench.create_context(1, 0);
    auto queue = bench.create_queue(0, 1, 16, 1000);
    bench.submit(queue, {gang(1), resident(older.vector_cores)});
    EXPECT_EQ(bench.status(0).error, ORR_QERR_NONE);
    EXPECT_EQ(running(bench), 1u);
}

TEST_F(GangTest, DestroyingAMemberEndsTheOthers) {
    bench.submit(queues[0], {gang(3), resident(2)});
    bench.submit(queues[1], {gang(3), resident(2)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_DESTROY, {0}).status, ORR_STATUS_OK);
    EXPECT_EQ(bench.status(1).error, ORR_QERR_GANG);
    bench.submit(queues[2], {gang(1), resident(2)});
    EXPECT_EQ(running(bench), 1u) << "the record is free again";
    finish_all();
}

// One of two stops before it comes to its GANG packet: the other, who is there, who comes later, learns it.
TEST_F(GangTest, AnUnreadGangPacketOfAStoppedQueueEndsTheGang) {
    bench.submit(queues[0], {gang(3), resident(2)});
    bench.submit(queues[1], {packet(1234), gang(3), resident(2)});
    expect_error(bench, queues[0], ORR_QERR_POISON, 1, kBoard,
                 ORR_FAILURE_WORD(ORR_QERR_BAD_OPCODE, bench.soc.reg(SOC_UID) & 0xff, 1, 0));
    bench.submit(queues[2], {gang(3), resident(2)});
    EXPECT_EQ(bench.status(2).error, ORR_QERR_GANG);
    // Another round is another gang.
    bench.submit(queues[3], {gang(2, 2), resident(1)});
    bench.submit(queues[4], {gang(2, 2), resident(1)});
    EXPECT_EQ(running(bench), 2u);
    finish_all();
}

TEST_F(GangTest, RealtimeDoesNotWaitForAGangThatMakesRoom) {
    bench.submit(queues[5], {dispatch(0x9000), dispatch(0x9100), dispatch(0x9200)});
    bench.submit(queues[0], {gang(2), resident(2)});
    bench.submit(queues[1], {gang(2), resident(2)});
    EXPECT_EQ(bench.call(ORR_MBOX_QUEUE_SET, {6, ORR_PRIORITY_REALTIME, 0}).status, ORR_STATUS_OK);
    bench.submit(queues[6], {dispatch(0x9900)});
    EXPECT_EQ(running(bench), 4u);
    finish_all();
    for (const std::uint32_t n : {0u, 1u, 5u, 6u})
        EXPECT_EQ(bench.status(n).completed, queues[n].producer) << "queue " << n;
}

TEST_F(GangTest, ARestartStartsNobodyAlone) {
    bench.submit(queues[0], {gang(2), resident(2)});
    orr_mbox_message command{};
    command.opcode = ORR_MBOX_CRASH;
    command.sequence = 77;
    command.arg[0] = ~0ull;
    bench.send(command);
    bench.run();
    ASSERT_TRUE(bench.restart());
    bench.run();
    EXPECT_EQ(bench.status(0).error, ORR_QERR_GANG);
    EXPECT_EQ(running(bench), 0u);
}

}  // namespace
}  // namespace orrery::fw::test
