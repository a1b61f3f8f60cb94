// Groups that threads begin before a core gets them, and whatever comes in between: as without threads.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/unit/engines/ahead_world.h"

namespace orrery::emu::test {
namespace {

// Streams, for which there is so little bandwidth that cores end their groups one after the other: all but
// those of the first two rounds, whose cores began together, are guessed, and right.
constexpr std::uint64_t kLittle = 200'000'000'000;
constexpr std::uint32_t kStreamGroups = 48;
constexpr ModelTime kStep = 500'000;
constexpr std::uint64_t kElements = 4096;
constexpr ModelTime kStreamStep = 2'070'000;
constexpr unsigned kStreamPoints = 12;
constexpr std::uint64_t kRow = kElements * 8;  // bytes of a group's
constexpr std::uint64_t kStreamOut = kData + 9 * kOut / 2;

// So that threads compute all that they may before model time goes on.
void wait_for_threads() {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
}

void run_slowly(World& world, ModelTime time) {
    while (world.rig.events.now() < time) {
        wait_for_threads();
        world.run_until(std::min(time, world.rig.events.now() + kStep));
    }
}

Scenario stream(std::uint64_t out, std::uint64_t in) {
    return [=](World& world) {
        world.args({out, in, kData + 3 * kOut, kElements});
        world.start(0, world.desc(kTriad, kData, kStreamGroups));
        run_slowly(world, 25 * kUs);
        world.finish();
        ASSERT_EQ(world.rig.done.size(), 1u);
    };
}

TEST(AheadGuess, GroupsOfAStreamAreComputedBeforeACoreGetsThem) {
    World world(2, 0, kLittle);
    world.args({kStreamOut, kData + kOut, kData + 3 * kOut, kElements});
    world.start(0, world.desc(kTriad, kData, kStreamGroups));
    world.finish();
    ASSERT_EQ(world.accounts.size(), 1u);
    EXPECT_EQ(world.accounts[0].right_guesses, kStreamGroups - 2 * world.unit.config().cores);
    EXPECT_EQ(world.accounts[0].wrong_guesses, 0u);
}

// The core's last group, still in play when it is read; those of others; and no longer the group before last.
TEST(AheadGuess, AGroupReadsWhatOneBeforeItWrote) {
    for (const std::uint64_t back : {1u, 7u, 8u, 9u}) {
        SCOPED_TRACE(back);
        EXPECT_LT(expect_same(stream(kStreamOut, kStreamOut - back * kRow), kLittle), 100u);
    }
    // That was written before the thread began.
    EXPECT_EQ(expect_same(stream(kStreamOut, kStreamOut - 16 * kRow), kLittle), 100u);
}

TEST(AheadGuess, AGroupWritesWhatOneBeforeItReadsOrWrote) {
    EXPECT_LT(expect_same(stream(kStreamOut, kStreamOut + kRow), kLittle), 100u);
    // The other is over in model time when this one writes.
    for (const std::uint64_t back : {8u, 9u})
        EXPECT_EQ(expect_same(stream(kStreamOut, kStreamOut + back * kRow), kLittle), 100u) << back;
    expect_same(launch(kWriteOne, {kData + kOut, 0, 8000}, kStreamGroups));
}

TEST(AheadGuess, AGuessThatWasWrongLeavesNothing) {
    std::uint64_t wrong = 0;
    for (const unsigned point : {20u, 47u, 90u}) {
        SCOPED_TRACE(point);
        const Scenario scenario = [&](World& world) {
            world.args({300, kData + kOut});
            world.args({kData + 2 * kOut, 1000, 3000}, 4096);
            orr_desc_kernel d = world.desc(kMixAlone, kData, 40, 3);
            d.local_bytes = 8000;
            world.start(0, d);
            run_slowly(world, point * kUs);
            // It reads what stands on the stack, and gets cores for which others were guessed.
            world.start(1, world.desc(kOldStack, kData + 4096, 20));
            world.finish();
            for (const LaunchAccount& each : world.accounts)
                wrong += each.wrong_guesses;
        };
        EXPECT_EQ(expect_same(scenario), 100u);
    }
    EXPECT_GT(wrong, 0u);
}

// The trap is that of the group that has it first, not of one that was begun too early.
TEST(AheadGuess, AFaultInAGuessedGroupComesInItsTurn) {
    // Those from group 30 on read behind the last page.
    const std::uint64_t end = kData + kDataBytes;
    const Scenario fault = stream(kData + kOut, end - 30 * kRow);
    EXPECT_LT(expect_same(
                  [&](World& world) {
                      fault(world);
                      EXPECT_EQ(world.rig.done.at(0).status, ORR_DONE_FAULT);
                      EXPECT_EQ(world.rig.done.at(0).detail, end);
                  },
                  kLittle),
              100u);
    expect_same(launch(kStopAt, {kData + kOut, 29, 8000, 0x7777'0000}, 48), kLittle);
}

void interrupt(int kind, ModelTime point, std::uint64_t bandwidth,
               const std::function<orr_desc_kernel(World&)>& kernel) {
    const Scenario scenario = [&](World& world) {
        world.start(0, kernel(world));
        world.run_until(world.rig.events.now() + point);
        wait_for_threads();
        switch (kind) {
            case 0:
                world.unit.port(0).abort();
                break;
            case 1:
            case 2: {
                const Preempt mode = kind == 1 ? Preempt::kNow : Preempt::kGroup;
                if (!world.unit.port(0).busy()) break;
                ASSERT_TRUE(world.unit.port(0).preempt(mode, kArea));
                world.finish();
                // Stacks of others are there when it goes on.
                world.args({1000, kData + 4 * kOut}, 4096);
                world.start(1, world.desc(kMixAlone, kData + 4096, 9));
                world.finish();
                ASSERT_TRUE(world.unit.port(2).resume(kArea, 5));
                break;
            }
            case 3:
                world.rig.mmu.flush_asid(1);
                break;
            case 4:
                world.rig.unmap(kData + kOut);
                break;
            case 5:
                world.unit.reset();
                break;
            default:
                // What it reads is another page from now on.
                world.rig.map(kData + kOut, 4096, ORR_TARGET_VRAM, kDataOffset + 5 * kOut);
                break;
        }
        world.finish();
    };
    expect_same(scenario, bandwidth);
}

class AheadInterrupted : public testing::TestWithParam<int> {};

// In the middle, at many times: what comes in between finds what it would find.
TEST_P(AheadInterrupted, AtAnyTime) {
    for (const unsigned point : {11u, 74u, 131u}) {
        interrupt(GetParam(), point * kUs, kBandwidth, [](World& world) {
            world.args({1500, kData + kOut});
            orr_desc_kernel d = world.desc(kMixAlone, kData, 13, 3);
            d.local_bytes = 8000;
            return d;
        });
        if (testing::Test::HasFailure()) FAIL() << "at point " << point;
    }
}

TEST_P(AheadInterrupted, InAStream) {
    for (unsigned point = 1; point < kStreamPoints; ++point) {
        interrupt(GetParam(), point * kStreamStep, kLittle, [](World& world) {
            world.args({kStreamOut, kData + kOut, kData + 3 * kOut, kElements});
            return world.desc(kTriad, kData, kStreamGroups);
        });
        if (testing::Test::HasFailure()) FAIL() << "at point " << point;
    }
}

INSTANTIATE_TEST_SUITE_P(By, AheadInterrupted, testing::Range(0, 7));

}  // namespace
}  // namespace orrery::emu::test
