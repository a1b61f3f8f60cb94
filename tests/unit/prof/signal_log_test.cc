// Who ended a wait: nobody rather than the wrong one.
#include <gtest/gtest.h>
#include <orrery/prof.h>

#include <cstdint>

#include "umd/runtime/signal_log.h"

namespace orrery::umd::test {
namespace {

TEST(SignalLog, DoesNotTakeWhatStandsBehindTheWait) {
    SignalLog log;
    constexpr std::uint64_t kSemaphore = 0x5e3a;
    log.note(kSemaphore, 1, {orrProfFromStream, 7, 11});
    EXPECT_NE(log.find(kSemaphore, 0, 1, 7, 10).from, orrProfFromStream);
    EXPECT_EQ(log.find(kSemaphore, 0, 1, 7, 12).from, orrProfFromStream);
    EXPECT_EQ(log.find(kSemaphore, 0, 1, 8, 10).index, 11u);
}

TEST(SignalLog, OfWhatOthersSignalTooKnowsExactValuesOnly) {
    SignalLog log;
    constexpr std::uint64_t kSemaphore = 0x5e3a;
    const auto find = [&](std::uint64_t value, std::uint64_t stream) {
        return log.find(kSemaphore, log.generation(kSemaphore), value, stream, 10).from;
    };
    log.begin(kSemaphore, true);
    EXPECT_EQ(find(1, 7), orrProfFromOutside);
    log.note(kSemaphore, 2, {orrProfFromStream, 7, 11});
    EXPECT_EQ(find(1, 7), orrProfFromOutside) << "the wait's own stream answers";
    EXPECT_EQ(find(1, 8), orrProfFromUnknown) << "somebody else, once that was there";
    EXPECT_EQ(find(2, 8), orrProfFromStream);
    EXPECT_EQ(find(3, 8), orrProfFromOutside);
}

TEST(SignalLog, WhatIsForgottenIsNobodys) {
    SignalLog log;
    constexpr std::uint64_t kSemaphore = 0x5e3a;
    for (std::uint64_t value = 1; value <= 5'000; ++value)
        log.note(kSemaphore, value, {orrProfFromStream, 7, value});
    EXPECT_EQ(log.find(kSemaphore, 0, 500, 8, 1).from, orrProfFromUnknown);
    EXPECT_EQ(log.find(kSemaphore, 0, 4'000, 8, 1).index, 4'000u);
    // Another semaphore is there now: waits for this one are not told with its signals.
    log.begin(kSemaphore, false);
    log.note(kSemaphore, 4'000, {orrProfFromStream, 9, 1});
    EXPECT_EQ(log.find(kSemaphore, 0, 4'000, 8, 1).from, orrProfFromUnknown);
    EXPECT_EQ(log.find(kSemaphore, log.generation(kSemaphore), 4'000, 8, 1).stream, 9u);
}

}  // namespace
}  // namespace orrery::umd::test
