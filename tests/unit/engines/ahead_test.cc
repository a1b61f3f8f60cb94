// Work-groups on several threads of the host: with any number of them the same bits in memory, the same
// completions, and the same model time, whatever groups do to each other and whatever comes in between.
#include "emulator/api/checks.h"
#include "tests/unit/engines/ahead_world.h"

namespace orrery::emu::test {
namespace {

TEST(Ahead, GroupsThatHaveNothingToDoWithEachOtherAreAllComputedAhead) {
    EXPECT_EQ(expect_same(launch(kTriad, {kData + kOut, kData + 2 * kOut, kData + 3 * kOut, 4096}, 24)),
              100u);
    EXPECT_EQ(expect_same(launch(kFloat, {kData + kOut, kData + 2 * kOut}, 12, 512)), 100u);
    EXPECT_EQ(expect_same(launch(kProduct, {kData + kOut, kData + 2 * kOut, kData + 3 * kOut, 256}, 24)),
              100u);
    EXPECT_EQ(expect_same(launch(kSpin, {4000}, 20, 2)), 100u);
    // On host memory.
    EXPECT_EQ(expect_same(launch(kTriad, {kHostData, kData + 2 * kOut, kData + 3 * kOut, 4096}, 16)), 100u);
}

// Rows of 1 KiB, of a page that the group has touched elsewhere: only their own lines meet what others write.
TEST(Ahead, RowsOfAPageThatIsKnownAreToldToo) {
    // The last two rows that group 0 reads are the first two that group 1 writes, 33 KiB from the start.
    const std::uint64_t at = kData + kOut;
    EXPECT_LT(expect_same(launch(kTriad, {at, at + 2048, kData + 3 * kOut, 33 * 128}, 2)), 100u);
    // Group 1 reads the last two rows that group 0 writes, in pages that it writes too.
    EXPECT_LT(expect_same(launch(kTriad, {at, at + 1024, at - 2048, 34 * 128}, 2)), 100u);
}

TEST(Ahead, ResultsOfGroupsMayStandInOneLine) {
    EXPECT_EQ(expect_same(launch(kWriteOne, {kData + kOut, 1, 1500}, 40)), 100u);
    // Two in one word of the host's, and the last bytes of a page with the first of the next.
    EXPECT_EQ(expect_same(launch(kWriteOne, {kData + kOut + 4096 - 64, 4, 1500}, 40)), 100u);
}

TEST(Ahead, LongGroupsGoOnStretchByStretch) {
    EXPECT_EQ(expect_same(launch(kMixAlone, {4000, kData + kOut}, 9, 3, 8000)), 100u);
    EXPECT_EQ(expect_same(launch(kVectors, {20'000, kData + kOut}, 9, 2)), 100u);
}

TEST(Ahead, BarriersAndWorkGroupMemory) {
    const Scenario tree = [](World& world) {
        world.args({12, kData + kOut});
        orr_desc_kernel d = world.desc(kTree, kData, 10, 24);
        d.local_bytes = 4096;
        d.item_stacks = kData + 4 * kOut;
        d.item_stack_pages = 1;
        world.start(0, d);
        world.finish();
    };
    EXPECT_EQ(expect_same(tree), 100u);
}

TEST(Ahead, WhatGroupsDoToEachOtherIsInTheOrderOfModelTime) {
    EXPECT_LT(expect_same(launch(kAtomics, {0, 0, 500}, 12)), 50u);
    EXPECT_LT(expect_same(launch(kRace, {kData + kOut, 1000, 4000}, 24)), 90u);
    EXPECT_LT(expect_same(launch(kRace, {kData + kOut, 100'000, 8000}, 24)), 100u);
    EXPECT_LT(expect_same(launch(kClock, {}, 64, 64)), 50u);
    // One waits for the other.
    EXPECT_LT(expect_same(launch(kHandOver, {kData + kOut, 20'000}, 8)), 100u);
    // All write the same word, and neighbours the same line.
    EXPECT_LT(expect_same(launch(kWriteOne, {kData + kOut, 0, 1500}, 24)), 100u);
    EXPECT_LT(expect_same(launch(kMark, {}, 40, 333)), 100u);
}

TEST(Ahead, AtomicsWhoseOldValueNobodyWantsAreDoneInAnyOrder) {
    EXPECT_EQ(expect_same(launch(kHistogram, {kData + 2 * kOut, 60'000, kData + kOut}, 8, 2)), 100u);
    EXPECT_EQ(expect_same(launch(kPost, {kData + kOut, 400, 0}, 16)), 100u);
    // But not if one looks at what others change, or they change it in another way, or somebody else may know
    // their order.
    for (const std::uint64_t how : {1u, 2u, 3u, 4u})
        EXPECT_LT(expect_same(launch(kPost, {kData + kOut, 400, how}, 16)), 100u) << how;
}

// The short ones are over when the long ones are looked at.
TEST(Ahead, WhatAGroupLeavesBeforeAnotherIsLookedAtCounts) {
    // So few that nobody takes the launch for one of short groups.
    EXPECT_LT(expect_same(launch(kFollow, {kData + kOut, 20'000}, 6)), 50u);
}

TEST(Ahead, RacesOfManyKinds) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const std::uint64_t words = 100u << seed * 3 / 2, rounds = 500 + 1000 * (seed % 4);
        expect_same(launch(kRace, {kData + kOut, std::min<std::uint64_t>(words, 100'000), rounds}, 20));
        if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
}

// How long each works in a round, and where its words are, is by chance.
TEST(Ahead, GroupsThatWaitForEachOther) {
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
        const std::uint64_t rounds = 3 + seed % 5, at = kOut + seed * 8 * 1237;
        const auto groups = static_cast<std::uint32_t>(2 + seed % 7);
        const Scenario turns = [=](World& world) {
            std::memset(world.words(at), 0, 32 << 10);
            launch(kTakeTurns, {kData + at, rounds, seed * 0x9e37'79b9'7f4a'7c15, seed % 2}, groups)(world);
        };
        EXPECT_LT(expect_same(turns), 100u);
        if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
}

TEST(Ahead, FaultsAndTrapsEndAKernelWhereTheyWould) {
    expect_same(launch(kStopAt, {kData + kOut, 13, 4000, 0x7777'0000}, 20));
    expect_same(launch(kStopAt, {kData + kOut, 0, 4000, 0x7777'0000}, 20));
    expect_same(launch(kStopAt, {kData + kOut, 11, 20'000, 1}, 20));
    expect_same(launch(kIllegal, {}, 12));
    expect_same(launch(kAssert, {}, 12));
    expect_same(launch(kRecurse, {}, 12));
    expect_same(launch(kWaitForever, {}, 12));
    expect_same(launch(kMisalignedAtomic, {}, 12));
    expect_same(launch(kJump, {}, 12));
}

TEST(Ahead, AtomicsThatTheFunctionMustNotDoFaultInTheirTurn) {
    const auto refused = [](Kernel kernel, std::initializer_list<std::uint64_t> args) {
        const Scenario run = launch(kernel, args, 12);
        return [run](World& world) {
            world.rig.host.set_atomics(false);
            run(world);
            ASSERT_EQ(world.rig.done.size(), 1u);
            EXPECT_EQ(world.rig.done[0].status, ORR_DONE_FAULT);
            EXPECT_EQ(world.rig.done[0].fault, ORR_FAULT_ATOMIC);
        };
    };
    expect_same(refused(kPost, {kHostData + 4096, 400, 0}));
    expect_same(refused(kEveryAtomic, {kHostData + 4096, kData + kOut}));
    // Each bin is loaded, in memory of the card, before it is added to.
    expect_same(refused(kHistogram, {kData + 2 * kOut, 60'000, kHostData}));
}

// What stands on a stack from groups before is the same, too.
TEST(Ahead, GroupsFindTheStackThatTheyWouldFind) {
    const Scenario stacks = [](World& world) {
        world.args({3000, kData + kOut});
        for (unsigned i = 0; i < 6; ++i) {
            world.args({kData + 2 * kOut + i * 4096, 1000, 3000}, 4096);
            world.start(0, world.desc(kMixAlone, kData, 13, 2));
            world.start(1, world.desc(kOldStack, kData + 4096, 9));
            world.run_until(world.rig.events.now() + (17 + 30 * i) * kUs);
            if (i % 2 == 0) world.unit.port(0).abort();
            world.finish();
        }
    };
    expect_same(stacks);
}

TEST(Ahead, SeveralLaunchesAtOnceAndOneAfterTheOther) {
    const Scenario several = [](World& world) {
        world.args({kData + kOut, kData + 2 * kOut, kData + 3 * kOut, 4096}, 0);
        world.args({kData + kOut + 4096, 3000, 3000}, 4096);  // it writes what the first one does
        world.args({1500, kData + 4 * kOut}, 8192);
        for (unsigned round = 0; round < 3; ++round) {
            world.start(0, world.desc(kTriad, kData, 20));
            world.start(1, world.desc(kMixAlone, kData + 8192, 15, 2));
            world.run_until(world.rig.events.now() + 40 * kUs);
            if (round == 1) world.start(2, world.desc(kRace, kData + 4096, 20));
            world.finish();
        }
    };
    const std::uint64_t ahead = expect_same(several);
    EXPECT_GT(ahead, 0u);
    EXPECT_LT(ahead, 100u);
}

TEST(Ahead, ALaunchSaysHowMuchOfItRanInOrderAndWhy) {
    const auto accounts = [](unsigned threads, const Scenario& scenario) {
        World world(threads);
        scenario(world);
        std::uint64_t instructions = 0, ahead = 0;
        for (const LaunchAccount& each : world.accounts) {
            instructions += each.instructions;
            ahead += each.ahead;
        }
        EXPECT_EQ(instructions, world.rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS));
        EXPECT_EQ(ahead, world.rig.counters.get(ORR_CTR_VECTOR_AHEAD));
        return world.accounts;
    };
    const auto one = [&](unsigned threads, const Scenario& scenario) {
        const auto all = accounts(threads, scenario);
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? LaunchAccount{} : all.front();
    };
    const Scenario alone = launch(kMixAlone, {4000, kData + kOut}, 9, 3, 8000);
    LaunchAccount account = one(0, alone);
    EXPECT_EQ(account.cause, InOrder::kNoThreads);
    EXPECT_EQ(account.ahead, 0u);
    EXPECT_GT(account.instructions, 100'000u);
    account = one(2, alone);
    EXPECT_EQ(account.cause, InOrder::kNot);
    EXPECT_EQ(account.ahead, account.instructions);
    EXPECT_EQ(account.desc.grid_x, 9u);
    EXPECT_EQ(account.status, ORR_DONE_OK);
    EXPECT_GT(account.end_ps, account.start_ps);
    // They take tickets: where the first did.
    account = one(2, launch(kAtomics, {0, 0, 500}, 12));
    EXPECT_EQ(account.cause, InOrder::kStopped);
    EXPECT_LT(account.group, 12u);
    EXPECT_GT(account.pc, kImageBase);
    EXPECT_LT(account.pc, kImageBase + (64 << 10));
    EXPECT_LT(account.ahead, account.instructions / 2);
    // All write one word.
    account = one(2, launch(kWriteOne, {kData + kOut, 0, 1500}, 24));
    EXPECT_EQ(account.cause, InOrder::kMet);
    account = one(2, launch(kSpin, {10}, 64));
    EXPECT_EQ(account.cause, InOrder::kShort);
    const Scenario twice = [](World& world) {
        world.args({kData + kOut, 0, 1500});
        world.args({4000, kData + 2 * kOut}, 4096);
        world.start(0, world.desc(kWriteOne, kData, 24));
        world.finish();
        // Beside a launch that is not the reason for it.
        world.start(1, world.desc(kMixAlone, kData + 4096, 3));
        world.start(0, world.desc(kWriteOne, kData, 24));
        world.finish();
    };
    const auto all = accounts(2, twice);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].cause, InOrder::kMet);
    for (const LaunchAccount& each : {all[1], all[2]})
        EXPECT_EQ(each.cause, each.port == 0 ? InOrder::kBefore : InOrder::kNot);
}

// A launch that runs in order touches what others have computed ahead.
TEST(Ahead, LaunchesInOrderBesideOthers) {
    const Scenario beside = [](World& world) {
        world.args({kData + kOut, 500, 3000});
        world.args({3000, kData + kOut}, 4096);
        world.args({kData + kOut, 0, 800}, 8192);
        world.start(0, world.desc(kRace, kData, 12));
        world.finish();
        world.start(0, world.desc(kMixAlone, kData + 4096, 7));
        world.run_until(world.rig.events.now() + 20 * kUs);
        world.start(1, world.desc(kRace, kData, 5));
        world.start(2, world.desc(kWriteOne, kData + 8192, 1));
        world.finish();
    };
    EXPECT_LT(expect_same(beside), 100u);
}

// What had to run in order is over: all others go on ahead, in the middle of their groups.
TEST(Ahead, GoesOnBehindWhatRanInOrder) {
    const Scenario race = [](World& world) {
        world.args({kData + kOut, 100, 1000});
        world.args({20'000, kData + 2 * kOut}, 4096);
        world.start(0, world.desc(kRace, kData, 6));
        world.start(1, world.desc(kMixAlone, kData + 4096, 9, 2));
        world.finish();
    };
    const std::uint64_t ahead = expect_same(race);
    EXPECT_GT(ahead, 80u);
    EXPECT_LT(ahead, 100u);
    const Scenario flush = [](World& world) {
        world.args({6000, kData + kOut});
        world.start(0, world.desc(kMixAlone, kData, 9, 2));
        for (int i = 0; i < 5; ++i) {
            world.run_until(world.rig.events.now() + 31 * kUs);
            world.rig.mmu.flush_asid(1);
        }
        world.finish();
    };
    EXPECT_EQ(expect_same(flush), 100u);
}

TEST(Ahead, NobodyIsAheadWhileADebuggerIsThere) {
    std::uint64_t from = 0, to = 0;
    const Scenario debugged = [&](World& world) {
        world.args({4000, kData + kOut});
        world.start(0, world.desc(kMixAlone, kData, 9, 2));
        world.run_until(world.rig.events.now() + 33 * kUs);
        const auto ahead = [&] { return world.rig.counters.get(ORR_CTR_VECTOR_AHEAD); };
        KernelDebugger& debugger = world.unit.debugger();
        from = ahead();
        debugger.attach();
        for (const ModelTime until = world.rig.events.now() + 40 * kUs; debugger.stopped();) {
            debugger.resume();
            while (!debugger.stopped() && world.rig.events.run_next(until)) {
            }
        }
        to = ahead();
        debugger.detach();
        world.finish();
        EXPECT_EQ(to, from);
    };
    const std::uint64_t ahead = expect_same(debugged);
    EXPECT_GT(from, 0u);
    EXPECT_GT(ahead, 0u);
    EXPECT_LT(ahead, 100u);
}

TEST(Ahead, NobodyIsAheadOfAChecker) {
    World world(2, kCheckRace);
    launch(kMixAlone, {1000, kData + kOut}, 9)(world);
    EXPECT_EQ(world.percent_ahead(), 0u);
}

// They may be another's, whoever has the rest of the word.
TEST(Ahead, BytesBesideThoseThatAGroupWritesAreLeftAlone) {
    for (const unsigned threads : kThreads) {
        SCOPED_TRACE(threads);
        constexpr std::uint64_t kBytes = 200'000;
        World world(threads);
        world.args({kData + 2 * kOut, kData + kOut, kBytes});
        world.args({kData + 3 * kOut, kData + 4 * kOut, kBytes}, 4096);
        auto* const last = reinterpret_cast<std::uint8_t*>(world.words(kOut)) + kBytes;
        const auto written = static_cast<std::uint8_t>(~last[0]),
                   beside = static_cast<std::uint8_t>(~last[1]);
        last[kOut] = written;
        world.start(0, world.desc(kShareRows, kData, 1));
        world.start(1, world.desc(kShareRows, kData + 4096, 1));
        // Both are in the middle, and what threads compute ahead is computed.
        while (world.rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS) < 700 &&
               world.rig.events.run_next(kNever - 1)) {
        }
        ASSERT_TRUE(world.rig.done.empty());
        last[1] = beside;
        world.finish();
        EXPECT_EQ(world.rig.done.size(), 2u);
        EXPECT_EQ(world.percent_ahead() != 0, threads != 0);
        EXPECT_EQ(last[0], written);
        EXPECT_EQ(last[1], beside);
    }
}

// Groups wait for a flag, which the host sets right before `event`. However they come to see it, they end
// well, once, and at a time that was.
void expect_mail(unsigned threads, const std::function<void(World&)>& event) {
    SCOPED_TRACE(threads);
    constexpr std::uint64_t kGroups = 4, kWord = 77, kFlagAt = 0, kWordAt = 5 * 4096;
    World world(threads);
    world.run_until(50 * kUs);
    const ModelTime started = world.rig.events.now();
    std::memset(world.words(kOut), 0, 4096);
    std::memcpy(world.rig.host_data + kWordAt, &kWord, sizeof kWord);
    world.args({kHostData + kFlagAt, kHostData + kWordAt, kData + kOut});
    world.start(0, world.desc(kMailbox, kData, kGroups));
    world.run_until(started + 25 * kUs);
    EXPECT_EQ(world.percent_ahead(), threads == 0 ? 0u : 100u);
    world.rig.host_data[kFlagAt] = 1;
    event(world);
    world.finish();
    ASSERT_EQ(world.rig.done.size(), 1u);
    const Completion& done = world.rig.done.front();
    EXPECT_EQ(done.status, ORR_DONE_OK) << "fault " << done.fault << " at " << std::hex << done.detail;
    for (std::uint64_t group = 0; group < kGroups; ++group) {
        const std::uint64_t* const out = world.words(kOut) + 8 * group;
        EXPECT_EQ(out[0], kWord) << "group " << group;
        EXPECT_GE(out[1] * kPsPerNs, started) << "group " << group;
    }
}

// What was played goes another way when it is computed once more.
TEST(Ahead, WhatTheHostWritesMayBeSeenWhenAGroupIsComputedOnceMore) {
    for (const unsigned threads : kThreads) {
        expect_mail(threads, [](World& world) { world.rig.mmu.flush_asid(2); });
        expect_mail(threads, [](World& world) {
            ASSERT_TRUE(world.unit.port(0).preempt(Preempt::kNow, kArea));
            world.finish();
            ASSERT_EQ(world.rig.done.size(), 1u);
            if (world.rig.done.front().status != ORR_DONE_PREEMPTED) return;
            world.rig.done.clear();
            ASSERT_TRUE(world.unit.port(2).resume(kArea, 5));
        });
    }
}

// What was played sees the flag, and ends before its pages go.
TEST(Ahead, ARootChangesBehindAllThatWasPlayed) {
    for (const unsigned threads : kThreads) {
        if (threads == 0) continue;
        expect_mail(threads, [](World& world) { ASSERT_EQ(world.rig.mmu.clear_root(1), 0u); });
        // A table without an entry.
        expect_mail(threads, [](World& world) {
            std::memset(world.rig.vram.data() + kArea, 0, ORR_PAGE_SIZE);
            ASSERT_EQ(world.rig.mmu.set_root(1, kArea), 0u);
        });
    }
}

// Cores know pages from one stretch to the next, but not beyond a change.
TEST(Ahead, PagesThatChangeBetweenLaunchesAreAskedForAgain) {
    const Scenario twice = [](World& world) {
        world.args({kData + kOut, kData + 2 * kOut, kData + 3 * kOut, 4096});
        world.start(0, world.desc(kTriad, kData, 24));
        world.finish();
        world.rig.map(kData + 2 * kOut, kOut, ORR_TARGET_VRAM, kDataOffset + 4 * kOut);
        world.start(0, world.desc(kTriad, kData, 24));
        world.finish();
    };
    EXPECT_EQ(expect_same(twice), 100u);
}

}  // namespace
}  // namespace orrery::emu::test
