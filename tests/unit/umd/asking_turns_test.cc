#include "umd/runtime/asking_turns.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace orrery::umd {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Ten that try each millisecond, and one that does each 20: all have their turn before anybody has two.
TEST(AskingTurns, WhoTriesSeldomIsNotStarved) {
    AskingTurns turns;
    std::array<int, 11> names{};
    std::set<const int*> served;
    for (std::int64_t now = 0; served.size() < names.size(); now += kMs) {
        ASSERT_LT(now, 2'000 * kMs);
        for (const int& name : names) {
            const bool seldom = &name == &names.back();
            if ((seldom && now % (20 * kMs) != 7 * kMs) || !turns.begin({&name, 0}, now)) continue;
            turns.end({&name, 0}, now, 0);
            EXPECT_TRUE(served.insert(&name).second);
        }
    }
}

// Asks if it is its turn: whether it saw the same in its last one.
bool asks(AskingTurns& turns, const AskingTurns::Who& who, std::int64_t now, std::uint64_t stamp,
          std::int64_t takes = 0) {
    return turns.begin(who, now) && turns.end(who, now + takes, stamp);
}

TEST(AskingTurns, OneAsksEach20Ms) {
    AskingTurns turns;
    const int a = 0;
    ASSERT_TRUE(turns.begin({&a, 0}, 0));
    turns.end({&a, 0}, 5 * kMs, 0);
    EXPECT_FALSE(turns.begin({&a, 0}, 24 * kMs));
    EXPECT_TRUE(turns.begin({&a, 0}, 25 * kMs));
}

TEST(AskingTurns, WhoIsGoneKeepsNobodyFromAsking) {
    AskingTurns turns;
    const int a = 0, b = 0, c = 0;
    asks(turns, {&c, 0}, 0, 0);
    EXPECT_FALSE(turns.begin({&b, 0}, kMs));
    asks(turns, {&a, 0}, 2 * kMs, 0);
    EXPECT_TRUE(turns.begin({&b, 0}, 20 * kMs));
    turns.end({&b, 0}, 20 * kMs, 0);
    EXPECT_FALSE(turns.begin({&b, 0}, 41 * kMs)) << "a and c are before it";
    EXPECT_TRUE(turns.begin({&b, 0}, 3 * kMs + AskingTurns::kGoneNs)) << "they do not come";
}

// Threads that wait for a moment each, for another value each time.
TEST(AskingTurns, NewcomersAreBehindWhoWaits) {
    AskingTurns turns;
    const int stream = 0;
    std::array<int, 2> threads{};
    int told = 0;
    for (std::int64_t now = 0; now < 2'000 * kMs; now += kMs) {
        for (const int& thread : threads) {
            const std::int64_t phase = (now / kMs + (&thread - threads.data()) * 12) % 25;
            const std::uint64_t value = static_cast<std::uint64_t>(now / kMs) / 25 + 1;
            if (phase >= 20) asks(turns, {&thread, value}, now, 0);
        }
        if (now % (20 * kMs) == 7 * kMs && asks(turns, {&stream, 0}, now, 7)) ++told;
    }
    EXPECT_GT(told, 0);
}

TEST(AskingTurns, WhatIsSeenTwiceIsOfOneWait) {
    AskingTurns turns;
    const int a = 0;
    const auto sees = [&](std::uint64_t value, std::int64_t ms, std::uint64_t stamp) {
        return asks(turns, {&a, value}, ms * kMs, stamp);
    };
    EXPECT_FALSE(sees(1, 0, 7));
    EXPECT_FALSE(sees(2, 20, 7)) << "of another value";
    EXPECT_TRUE(sees(1, 40, 7));
    EXPECT_FALSE(sees(2, 60, 0));
    EXPECT_FALSE(sees(1, 80, 0));
    EXPECT_FALSE(sees(2, 100, 7)) << "there was none in between";
    EXPECT_FALSE(sees(1, 90 + AskingTurns::kGoneNs / kMs, 7)) << "another wait, long after";
}

// A look may take longer than who waits is remembered.
TEST(AskingTurns, LongLooksAreNoReasonToForget) {
    AskingTurns turns;
    const int a = 0, b = 0;
    int told = 0;
    std::int64_t now = 0;
    for (int turn = 0; turn < 8; ++turn) {
        for (const int* who : {&a, &b}) {
            now += 20 * kMs;
            if (!turns.begin({who, 0}, now)) continue;
            now += 300 * kMs;
            if (turns.end({who, 0}, now, 7)) ++told;
        }
    }
    EXPECT_GE(told, 2);
}

}  // namespace
}  // namespace orrery::umd
