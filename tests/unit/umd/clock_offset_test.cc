// How far the clocks of two cards are apart is found within what is said of the error.
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/clock_offset.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

// As two cards with these clocks would stamp: time passes by itself between the stamps.
ClockRound round_of(std::uint64_t now, std::uint64_t there, std::uint64_t back, std::int64_t offset) {
    return {now, now + there + static_cast<std::uint64_t>(offset), now + there + back};
}

std::uint64_t distance(std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(std::abs(a - b));
}

TEST(ClockOffset, IsWithinItsErrorHoweverUnlikeTheWaysAre) {
    for (const std::int64_t offset : {0ll, 7ll, -7ll, 123'456'789ll, -123'456'789ll, 5'000'000'000'000ll}) {
        for (const auto& [there, back] :
             {std::pair{1000ull, 1000ull}, {0ull, 9001ull}, {9001ull, 0ull}, {0ull, 1ull}}) {
            const std::array rounds = {round_of(1'000'000'000, there, back, offset)};
            const auto found = clock_offset(rounds);
            ASSERT_TRUE(found);
            EXPECT_LE(distance(found->offset_ps, offset), found->error_ps)
                << offset << ' ' << there << ' ' << back;
            EXPECT_EQ(found->error_ps, (there + back + 1) / 2);
            EXPECT_EQ(found->device_ps, rounds[0].device_ps);
            EXPECT_EQ(found->worst_ps, found->error_ps);
        }
    }
}

TEST(ClockOffset, IsThatOfTheRoundThatTookTheLeastTime) {
    const std::array rounds = {round_of(1'000'000, 50'000, 10, -300), round_of(2'000'000, 600, 400, -300),
                               round_of(3'000'000, 500, 500, -300), round_of(4'000'000, 0, 7'000, -300)};
    const auto found = clock_offset(rounds);
    ASSERT_TRUE(found);
    // Of two that are alike the later one.
    EXPECT_EQ(found->device_ps, rounds[2].device_ps);
    EXPECT_EQ(found->offset_ps, -300);
    EXPECT_EQ(found->error_ps, 500u);
    EXPECT_EQ(found->worst_ps, 25'005u);
}

TEST(ClockOffset, OfClocksThatGoBackIsNone) {
    const std::array<ClockRound, 1> within = {{{2000, 5000, 1999}}};
    const std::array<ClockRound, 2> reference = {{{1000, 5000, 2000}, {1999, 6000, 3000}}};
    const std::array<ClockRound, 2> device = {{{1000, 5000, 2000}, {2000, 4999, 3000}}};
    for (const std::span<const ClockRound> rounds :
         {std::span<const ClockRound>(within), {reference}, {device}}) {
        const auto found = clock_offset(rounds);
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().code, orrErrorInternal);
        EXPECT_THAT(found.error().text, ::testing::HasSubstr("went back"));
    }
}

// Two cards whose clocks are apart. Time passes only by what lies between the stamps.
class Clocks : public ::testing::Test {
  protected:
    // to_0, to_1: how much later than the stamp before it, on either card, one of this card is.
    void set(std::int64_t of_0, std::int64_t of_1, std::uint64_t to_0, std::uint64_t to_1) {
        const auto clock = [this](std::int64_t offset, std::uint64_t later) {
            return [this, offset, later] {
                return kStart + static_cast<std::uint64_t>(offset) + now_.fetch_add(later) + later;
            };
        };
        system_.card(0).clock = clock(of_0, to_0);
        system_.card(1).clock = clock(of_1, to_1);
    }
    static orrClockOffset measure(int device, int reference) {
        orrClockOffset offset = ORR_INIT(orrClockOffset);
        EXPECT_OK(orrDeviceGetClockOffset(&offset, device, reference));
        return offset;
    }

    static constexpr std::uint64_t kStart = 1'000'000'000'000;
    std::atomic<std::uint64_t> now_{0};
    FakeSystem system_{3};
};

TEST_F(Clocks, AreMeasuredBothWays) {
    for (const auto& [to_0, to_1] : {std::pair{2000ull, 2000ull}, {100ull, 60'000ull}, {60'000ull, 100ull}}) {
        set(5'000'000, -70'000'000, to_0, to_1);
        const orrClockOffset there = measure(1, 0), back = measure(0, 1);
        EXPECT_LE(distance(there.offset_ps, -75'000'000), there.error_ps);
        EXPECT_LE(distance(back.offset_ps, 75'000'000), back.error_ps);
        // The whole of a round is from the reference's first stamp to its second one.
        EXPECT_EQ(there.error_ps, (to_0 + to_1) / 2);
        EXPECT_EQ(back.error_ps, there.error_ps);
    }
}

// The device's jump is none of the reference's time, so all rounds take as long: the last one counts.
TEST_F(Clocks, ThatJumpAreAsTheyAreAtTheEnd) {
    set(0, 0, 1000, 1000);
    unsigned stamps = 0;
    system_.card(1).clock = [this, &stamps] {
        const std::uint64_t jumped = ++stamps > 3 ? 30'000'000 : 0;
        return kStart + jumped + now_.fetch_add(1000) + 1000;
    };
    const orrClockOffset found = measure(1, 0);
    EXPECT_EQ(stamps, kClockRounds);
    EXPECT_LE(distance(found.offset_ps, 30'000'000), found.error_ps);
    EXPECT_EQ(found.error_ps, 1000u);
    // The reference's is in the round.
    stamps = 0;
    const orrClockOffset back = measure(0, 1);
    EXPECT_LE(distance(back.offset_ps, -30'000'000), back.error_ps);
    EXPECT_EQ(back.error_ps, 1000u);
    EXPECT_EQ(back.worst_ps, 15'001'000u);
}

TEST_F(Clocks, AreMeasuredByManyThreads) {
    set(0, 1'000'000, 10, 10);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([thread] {
            const int device = thread % 2;
            const orrClockOffset found = measure(device, 1 - device);
            EXPECT_LE(distance(found.offset_ps, device == 1 ? 1'000'000 : -1'000'000), found.error_ps);
        });
    }
    for (auto& thread : threads)
        thread.join();
}

TEST_F(Clocks, DoNotHoldUpWhatElseTheCardsDo) {
    // A stream that waits, on both, is not in the way.
    std::array<orrStream_t, 2> streams{};
    std::array<orrSemaphore_t, 2> gates{};
    for (const int device : {0, 1}) {
        const auto n = static_cast<std::size_t>(device);
        ASSERT_OK(orrSetDevice(device));
        ASSERT_OK(orrStreamCreate(&streams[n], 0));
        ASSERT_OK(orrSemaphoreCreate(&gates[n], 0));
        ASSERT_OK(orrStreamWaitSemaphore(streams[n], gates[n], 1, nullptr));
    }
    set(0, 3'000'000, 500, 500);
    EXPECT_LE(distance(measure(1, 0).offset_ps, 3'000'000), 500u);
    for (const std::size_t n : {0u, 1u}) {
        ASSERT_OK(orrSemaphoreSignal(gates[n], 1));
        ASSERT_OK(orrStreamDestroy(streams[n]));
        ASSERT_OK(orrSemaphoreDestroy(gates[n]));
    }
}

TEST_F(Clocks, WithoutAWayAreRefused) {
    orrClockOffset offset = ORR_INIT(orrClockOffset);
    EXPECT_FAIL(orrDeviceGetClockOffset(nullptr, 1, 0), orrErrorInvalidValue, "orrClockOffset is null");
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, 1, 1), orrErrorInvalidDevice, "no peer of itself");
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, 1, 7), orrErrorInvalidDevice, "7");
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, -1, 0), orrErrorInvalidDevice, "-1");
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, 2, 0), orrErrorPeerAccess, "orrery-smi shows the links");
    system_.card(1).cut_link();
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, 1, 0), orrErrorPeerAccess, "orrery-smi shows the links");
    system_.card(1).mend_link();
    EXPECT_OK(orrDeviceGetClockOffset(&offset, 1, 0));
    system_.card(1).lose();
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, 1, 0), orrErrorDeviceLost, "No such device");
}

// What goes wrong between the rounds. Memory comes back: FakeSystem looks.
TEST_F(Clocks, WhoseLinkGoesDownMeanwhile) {
    system_.card(1).hold_arrivals(true);
    // With the first signal on its way.
    system_.card(0).clock = [this] { return now_.fetch_add(1) + 1; };
    std::atomic<bool> measured{false};
    std::thread other([&] {
        while (system_.card(1).arrivals() == 0 && !measured.load())
            std::this_thread::yield();
        system_.card(1).cut_link();
        system_.card(1).hold_arrivals(false);
    });
    orrClockOffset offset = ORR_INIT(orrClockOffset);
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, 1, 0), orrErrorPeerAccess, "link");
    measured.store(true);
    other.join();
    system_.card(1).mend_link();
    EXPECT_OK(orrDeviceGetClockOffset(&offset, 1, 0));
}

TEST_F(Clocks, WhoseCardIsLostMeanwhile) {
    system_.card(1).hold_arrivals(true);
    std::atomic<bool> measured{false};
    std::thread other([&] {
        while (system_.card(1).arrivals() == 0 && !measured.load())
            std::this_thread::yield();
        system_.card(1).lose();
    });
    orrClockOffset offset = ORR_INIT(orrClockOffset);
    EXPECT_FAIL(orrDeviceGetClockOffset(&offset, 1, 0), orrErrorDeviceLost, "device 1");
    measured.store(true);
    other.join();
}

TEST_F(Clocks, OfACardThatStandsHaveALimit) {
    measure(1, 0);
    system_.card(1).hold_arrivals(true);
    const auto runtime = Runtime::get();
    ASSERT_TRUE(runtime);
    Context& device = **(*runtime)->context(1);
    Context& reference = **(*runtime)->context(0);
    const auto found = measure_clock_offset(device, reference, 20'000'000);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, orrErrorTimeout);
    EXPECT_THAT(found.error().text,
                ::testing::HasSubstr("'clock of device 1' on device 0 has come to packet"));
    // What comes late goes nowhere that matters.
    system_.card(1).hold_arrivals(false);
    set(0, 4'000'000, 500, 500);
    EXPECT_LE(distance(measure(1, 0).offset_ps, 4'000'000), 500u);
}

TEST_F(Clocks, AreNamedByEventsOfTwoDevices) {
    std::array<orrEvent_t, 2> events{};
    for (const int device : {0, 1}) {
        ASSERT_OK(orrSetDevice(device));
        orrEvent_t& event = events[static_cast<std::size_t>(device)];
        ASSERT_OK(orrEventCreate(&event, 0));
        ASSERT_OK(orrEventRecord(event, nullptr));
        ASSERT_OK(orrEventSynchronize(event));
    }
    double ns = 0;
    EXPECT_FAIL(orrEventElapsedModelTime(&ns, events[0], events[1]), orrErrorInvalidValue,
                "orrDeviceGetClockOffset(&offset, 1, 0)");
    for (const orrEvent_t event : events)
        ASSERT_OK(orrEventDestroy(event));
}

}  // namespace
}  // namespace orrery::umd::test
