// How far the clocks of cards are apart, as they find by their links.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/unit/umd/api_test.h"

namespace orrery {
namespace {

int count() {
    int devices = 0;
    EXPECT_OK(orrGetDeviceCount(&devices));
    EXPECT_GE(devices, 2);
    return devices;
}

orrClockOffset measure(int device, int reference) {
    orrClockOffset found = ORR_INIT(orrClockOffset);
    EXPECT_OK(orrDeviceGetClockOffset(&found, device, reference));
    std::printf("device %d by device %d: %lld ps, error %llu ps, worst %llu ps\n", device, reference,
                static_cast<long long>(found.offset_ps), static_cast<unsigned long long>(found.error_ps),
                static_cast<unsigned long long>(found.worst_ps));
    return found;
}

std::uint64_t now_of(int device) {
    orrEvent_t event = nullptr;
    std::uint64_t ps = 0;
    EXPECT_OK(orrSetDevice(device));
    EXPECT_OK(orrEventCreate(&event, 0));
    EXPECT_OK(orrEventRecord(event, nullptr));
    EXPECT_OK(orrEventSynchronize(event));
    EXPECT_OK(orrEventGetModelTime(&ps, event));
    EXPECT_OK(orrEventDestroy(event));
    return ps;
}

std::int64_t error_of(const orrClockOffset& found) {
    return static_cast<std::int64_t>(found.error_ps);
}

// No signal comes before it was sent, so 0 is never excluded, whatever the cards did before: neither by one
// way, nor by the other, nor around three cards.
TEST(Clocks, OfAllPairsAgree) {
    const int cards = count();
    for (int a = 0; a < cards; ++a) {
        for (int b = 0; b < cards; ++b) {
            if (a == b) continue;
            const orrClockOffset there = measure(a, b), back = measure(b, a);
            EXPECT_LE(std::abs(there.offset_ps), error_of(there));
            EXPECT_LE(std::abs(there.offset_ps + back.offset_ps), error_of(there) + error_of(back));
            EXPECT_GT(there.error_ps, 0u);
            EXPECT_LE(there.error_ps, there.worst_ps);
            const int c = 3 - a - b;
            if (c < 0 || c >= cards || c == a || c == b) continue;
            const orrClockOffset second = measure(b, c), third = measure(c, a);
            EXPECT_LE(std::abs(there.offset_ps + second.offset_ps + third.offset_ps),
                      error_of(there) + error_of(second) + error_of(third));
        }
    }
}

// They are the clocks of events, and the moment is one of the call.
TEST(Clocks, AreThoseOfEvents) {
    const std::uint64_t before = now_of(1), before_0 = now_of(0);
    const orrClockOffset found = measure(1, 0);
    const std::uint64_t after = now_of(1), after_0 = now_of(0);
    EXPECT_GT(found.device_ps, before);
    EXPECT_LT(found.device_ps, after);
    const auto reference = static_cast<std::int64_t>(found.device_ps) - found.offset_ps;
    EXPECT_GE(reference + error_of(found), static_cast<std::int64_t>(before_0));
    EXPECT_LE(reference - error_of(found), static_cast<std::int64_t>(after_0));
}

// Work of one card alone takes its clock ahead; the other one's, which is the reference, jumps in an
// exchange.
TEST(Clocks, AreCloseWhateverTheyWereBefore) {
    constexpr std::size_t kBytes = 16 << 20;
    void* memory = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrMalloc(&memory, kBytes));
    ASSERT_OK(orrMemset(memory, 1, kBytes));
    ASSERT_OK(orrDeviceSynchronize());
    const orrClockOffset found = measure(0, 1);
    EXPECT_LE(std::abs(found.offset_ps), error_of(found));
    ASSERT_OK(orrFree(memory));
}

// Of one clock for all: the error is what signals take, and no exchange takes much more than another.
TEST(ClocksInStep, ErrWithWhatSignalsTake) {
    const int cards = count();
    for (int device = 1; device < cards; ++device) {
        const orrClockOffset found = measure(device, 0);
        EXPECT_LE(std::abs(found.offset_ps), error_of(found));
        EXPECT_LT(found.error_ps, 10'000'000u * static_cast<unsigned>(device));
        EXPECT_LT(found.worst_ps, 100'000'000u);
    }
}

// The link goes down between two exchanges: that is told, and what is there before and after is measured.
TEST(ClocksLink, GoesDownInTheMiddle) {
    unsigned good = 0, lost = 0;
    for (unsigned turn = 0; turn < 8 && lost == 0; ++turn) {
        orrClockOffset found = ORR_INIT(orrClockOffset);
        const orrError_t error = orrDeviceGetClockOffset(&found, 1, 0);
        if (error == orrSuccess) {
            ++good;
            continue;
        }
        ++lost;
        EXPECT_EQ(error, orrErrorPeerAccess) << orrGetLastErrorText();
        EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("link"));
        std::printf("%s\n", orrGetLastErrorText());
    }
    EXPECT_EQ(lost, 1u);
    std::printf("%u before it went down\n", good);
}

}  // namespace
}  // namespace orrery
